//! What can be seen of a gate, and by whom: who waits now, how many series there are, who is answered.

use std::os::unix::process::CommandExt;
use std::process::{Child, Output, Stdio};

use serde_json::Value;

use crate::admin::gate;
use crate::client::{exchange, get, parse};
use crate::postgres::Postgres;
use crate::process::{Server, wait_for};
use crate::relayed::{self, status};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn metrics(server: &Server) -> String {
    text(&get(server.admin.unwrap(), "/metrics").body)
}

/// psql at work on a statement.
fn psql(postgres: &Postgres, server: &Server, statement: &str) -> Child {
    let mut psql = postgres.psql_command(server.address().port(), "postgres", &[statement]);
    psql.stdout(Stdio::null()).stderr(Stdio::null());
    psql.spawn().unwrap()
}

fn show(postgres: &Postgres, server: &Server, command: &str) -> Output {
    let mut psql = postgres.psql_command(server.address().port(), "shortline", &[command]);
    psql.output().unwrap()
}

/// The value of a metric.
fn value(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find(|line| line.starts_with(name)).unwrap();
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[test]
fn what_waits_is_seen_before_it_is_admitted() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let server = relayed::gate(&postgres, &["--capacity", "1ns", "--stall-max", "0s"]);
    let admission = || status(server.admin.unwrap())["admission"].clone();
    assert_eq!(admission()["oldest"], Value::Null);
    let mut long = psql(&postgres, &server, "select pg_sleep(600)");
    wait_for("the long one to run", || {
        (admission()["running"] == 1).then_some(())
    });
    let report = "select count(*) as report from pg_class";
    let mut reports: Vec<Child> = (0..3).map(|_| psql(&postgres, &server, report)).collect();
    let told = wait_for("a report to have waited for half a second", || {
        let told = admission();
        let waited_ns = told["oldest"]["waited_ns"].as_u64().unwrap_or(0);
        (waited_ns >= 500_000_000 && told["waiting"] == 3).then_some(told)
    });
    assert_eq!(told["oldest"]["name"], report);
    let types = told["types"].as_array().unwrap();
    let reporting = types.iter().find(|each| each["waiting"] == 3).unwrap();
    assert_eq!(reporting["waited_ns_max"], 0);
    assert_eq!(reporting["oldest_wait_ns"], told["oldest"]["waited_ns"]);
    let metrics = metrics(&server);
    assert!(
        value(&metrics, "shortline_gate_oldest_wait_seconds") >= 0.5,
        "{metrics}"
    );
    let of_type = format!("shortline_gate_type_oldest_wait_seconds{{type=\"{report}\"}}");
    assert!(value(&metrics, &of_type) >= 0.5, "{metrics}");
    let pools = text(&show(&postgres, &server, "SHOW GATE").stdout);
    assert!(pools.contains(report), "{pools}");
    let queue = text(&show(&postgres, &server, "SHOW QUEUE").stdout);
    let oldest_wait_ms = queue.trim().rsplit_once('|').unwrap().1;
    assert!(oldest_wait_ms.parse::<f64>().unwrap() >= 500.0, "{queue}");
    for child in reports.iter_mut().chain([&mut long]) {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let left = wait_for("the reports to have left", || {
        let told = admission();
        (told["waiting"] == 0).then_some(told)
    });
    // They count with what they waited, although they were never admitted.
    let types = left["types"].as_array().unwrap();
    let left = types.iter().find(|each| each["withdrawn"] == 3).unwrap();
    assert!(
        left["waited_ns_max"].as_u64().unwrap() >= 500_000_000,
        "{left}"
    );
}

#[test]
fn a_foreign_tag_counts_only_where_the_configuration_says_so() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let tagged = "select 'a' /*route='%2Fhome'*/";
    for (flags, expected) in [
        (&["--tags-from", "user:tester"][..], "route /home"),
        (&["--tags-from", "127.0.0.0/8"], "route /home"),
        (&["--tags-from", "192.0.2.0/24,user:other"], "select ?"),
        (&[], "select ?"),
    ] {
        let mut server = relayed::gate(&postgres, flags);
        assert!(
            postgres
                .psql(server.address().port(), &[tagged])
                .status
                .success()
        );
        let types = status(server.admin.unwrap())["admission"]["types"].clone();
        let admitted = |each: &&Value| each["admitted"] == 1;
        let found: Vec<_> = types
            .as_array()
            .unwrap()
            .iter()
            .filter(admitted)
            .cloned()
            .collect();
        assert_eq!(found[0]["name"], expected, "{flags:?}");
        if expected == "select ?" {
            let line = server.line_with("tags do not count");
            assert!(
                line.contains("tags-from") && line.contains("tester"),
                "{line}"
            );
        }
    }
}

#[test]
fn a_page_that_rebinds_its_name_reads_nothing_of_the_admin_address() {
    let server = gate(&["--admin-host", "gate.example", "--admin-host", "db.example"]);
    let admin = server.admin.unwrap();
    let asked_as = |host: &str, path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        parse(&exchange(admin, request))
    };
    for path in [
        "/", "/status", "/history", "/metrics", "/healthz", "/nothing",
    ] {
        let refused = asked_as("evil.example:9181", path);
        assert_eq!(refused.status, 421, "{path}");
        let reason = text(&refused.body);
        assert!(reason.contains("`evil.example:9181`"), "{reason}");
        assert!(reason.contains("--admin-host NAME"), "{reason}");
    }
    let own = format!("localhost:{}", admin.port());
    for host in [
        "gate.example",
        "DB.example:9181",
        "127.0.0.1",
        "[::1]:9181",
        &own,
    ] {
        assert_eq!(asked_as(host, "/status").status, 200, "{host}");
    }
}

#[test]
fn the_series_of_types_are_bounded() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let server = relayed::gate(&postgres, &["--capacity", "1s", "--metrics-types-max", "2"]);
    let statements: Vec<String> = (0..20).map(|i| format!("select 1 as column_{i}")).collect();
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    assert!(
        postgres
            .psql(server.address().port(), &statements)
            .status
            .success()
    );
    let admitted = |metrics: &str| -> Vec<f64> {
        let name = "shortline_gate_type_admitted_total{";
        let lines = metrics.lines().filter(|line| line.starts_with(name));
        lines.map(|line| value(line, name)).collect()
    };
    let metrics = metrics(&server);
    let counts = admitted(&metrics);
    assert_eq!(counts.len(), 3, "{metrics}");
    assert_eq!(counts.iter().sum::<f64>(), 20.0, "{metrics}");
    let all = status(server.admin.unwrap())["admission"]["types"].clone();
    assert!(all.as_array().unwrap().len() > 20);
}

#[test]
fn show_is_for_root_the_gates_own_user_and_those_that_are_named() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be another user");
        return;
    }
    let Some(postgres) = Postgres::start() else {
        return;
    };
    // Such as a proxy of this machine, behind which strangers are.
    const NOBODY: u32 = 65534;
    let ask = |server: &Server| {
        let port = server.address().port();
        let mut psql = postgres.psql_command(port, "shortline", &["SHOW TYPES"]);
        psql.uid(NOBODY).current_dir("/").output().unwrap()
    };
    let server = relayed::gate(&postgres, &[]);
    let refused = ask(&server);
    assert!(!refused.status.success());
    let reason = text(&refused.stderr);
    assert!(reason.contains("--admin-uids 65534"), "{reason}");
    assert!(show(&postgres, &server, "SHOW TYPES").status.success());
    let named = relayed::gate(&postgres, &["--admin-uids", "65534"]);
    let heard = ask(&named);
    assert!(heard.status.success(), "{}", text(&heard.stderr));
}

#[test]
fn a_monitor_that_cannot_ask_is_told_once_and_harms_nobody() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let role = "create role blind login";
    assert!(postgres.psql(postgres.port, &[role]).status.success());
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    std::fs::write(&password, "geheim\n").unwrap();
    let blind = format!("postgres://blind@127.0.0.1:{}/postgres", postgres.port);
    let nobody = format!("postgres://nobody@127.0.0.1:{}/postgres", postgres.port);
    for (url, expected) in [
        (blind.as_str(), "grant it pg_read_all_stats"),
        (&nobody, "role \"nobody\" does not exist"),
        (
            "postgres://m@127.0.0.1:1/postgres",
            "cannot connect to 127.0.0.1:1",
        ),
    ] {
        let file = password.to_str().unwrap();
        let flags = ["--monitor", url, "--monitor-password-file", file];
        let mut server = relayed::gate(&postgres, &flags);
        let line = server.line_with("monitor postgres://");
        assert!(
            line.contains(expected) && !line.contains("geheim"),
            "{line}"
        );
        let asked = postgres.psql(server.address().port(), &["select pg_sleep(0.5)"]);
        assert!(asked.status.success());
    }
}
