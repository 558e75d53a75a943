//! Statements through the gate: who waits, who goes first, what is told, how it ends.

use std::net::SocketAddr;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::client::get;
use crate::gate;
use crate::postgres::Postgres;
use crate::process::{Server, wait_for};

/// A gate in front of `postgres`, with an admin endpoint.
pub fn gate(postgres: &Postgres, flags: &[&str]) -> Server {
    gate::gate("postgres", &postgres.address(), flags)
}

/// `/status` as JSON.
pub fn status(admin: SocketAddr) -> Value {
    let got = get(admin, "/status");
    assert_eq!(got.status, 200);
    serde_json::from_slice(&got.body).unwrap()
}

fn admission(server: &Server) -> Value {
    status(server.admin.unwrap())["admission"].clone()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn statements_are_answered_and_told_by_type() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let server = gate(&postgres, &["--capacity", "1s", "--tags-from", "127.0.0.1"]);
    let port = server.address().port();
    let answer = postgres.psql(
        port,
        &["select 6 * 7", "select 'a' /*route='%2Fbooks%2F17'*/"],
    );
    assert!(answer.status.success(), "{}", text(&answer.stderr));
    assert_eq!(text(&answer.stdout), "42\na\n");
    let told = wait_for("both to be counted", || {
        let told = admission(&server);
        (told["running"] == 0).then_some(told)
    });
    let types = told["types"].as_array().unwrap();
    for name in ["select ? * ?", "route /books/:id"] {
        let found = types.iter().find(|each| each["name"] == name);
        let found = found.unwrap_or_else(|| panic!("no `{name}` in {types:?}"));
        assert_eq!(found["completed"], 1, "{name}");
    }
}

#[test]
fn what_is_above_the_capacity_waits_and_is_let_in() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let server = gate(&postgres, &["--capacity", "1ns"]);
    let port = server.address().port();
    let mut first = postgres
        .psql_command(port, "postgres", &["select pg_sleep(2)"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the first to run", || {
        (admission(&server)["running"] == 1).then_some(())
    });
    let mut second = postgres
        .psql_command(port, "postgres", &["select 1"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the second to wait", || {
        (admission(&server)["waiting"] == 1).then_some(())
    });
    let metrics = text(&get(server.admin.unwrap(), "/metrics").body);
    assert!(metrics.contains("shortline_gate_waiting 1\n"), "{metrics}");
    assert!(metrics.contains("shortline_gate_running 1\n"), "{metrics}");
    assert!(first.wait().unwrap().success());
    assert!(second.wait().unwrap().success());
    assert_eq!(admission(&server)["waiting"], 0);
}

#[test]
fn the_certificate_is_read_again() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let write = |trusted: &str| {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(path("a.crt"), made.cert.pem()).unwrap();
        std::fs::write(path("a.key"), made.signing_key.serialize_pem()).unwrap();
        std::fs::write(path(trusted), made.cert.pem()).unwrap();
    };
    write("old.crt");
    let (cert, key) = (path("a.crt"), path("a.key"));
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let mut server = gate(&postgres, &["--tls-cert", cert, "--tls-key", key]);
    let port = server.address().port();
    let is_shown = |trusted: &str| {
        let asked = postgres
            .psql_command(port, "postgres", &["select 1"])
            .env("PGSSLMODE", "verify-ca")
            .env("PGSSLROOTCERT", path(trusted))
            .output()
            .unwrap();
        asked.status.success()
    };
    assert!(is_shown("old.crt"));
    write("new.crt");
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    assert!(is_shown("new.crt") && !is_shown("old.crt"));
    std::fs::write(path("a.key"), "nonsense").unwrap();
    server.signal(Signal::HUP);
    let line = server.line_with("not reloaded");
    assert!(line.contains("a.key"), "{line}");
    assert!(is_shown("new.crt"));
}

#[test]
fn rules_are_read_again_and_a_wrong_file_changes_nothing() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.toml");
    let rule = |name: &str| {
        std::fs::write(&path, format!("[gate]\n[[gate.rule]]\ntype = \"{name}\"\n")).unwrap();
    };
    rule("first");
    let mut server = gate(&postgres, &["--config", path.to_str().unwrap()]);
    let port = server.address().port();
    let has = |server: &Server, name: &str| {
        assert!(postgres.psql(port, &["select 1"]).status.success());
        let types = admission(server)["types"].clone();
        types
            .as_array()
            .unwrap()
            .iter()
            .any(|each| each["name"] == name)
    };
    assert!(has(&server, "first"));
    rule("second");
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    assert!(has(&server, "second"));
    std::fs::write(&path, "[gate]\nlisten = [\"127.0.0.1:1\"]\ncapacty = 1\n").unwrap();
    server.signal(Signal::HUP);
    let line = server.line_with("not reloaded");
    assert!(line.contains("gate.capacty"), "{line}");
    std::fs::write(&path, "[gate]\ntypes-max = 7\n").unwrap();
    server.signal(Signal::HUP);
    let line = server.line_with("not reloaded");
    assert!(
        line.contains("gate.types-max: changes only at a restart"),
        "{line}"
    );
}

#[test]
fn sigterm_lets_a_transaction_finish() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let mut server = gate(&postgres, &[]);
    let port = server.address().port();
    let running = postgres
        .psql_command(port, "postgres", &["select pg_sleep(1), 'done'"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("it to run", || {
        (admission(&server)["running"] == 1).then_some(())
    });
    server.signal(Signal::TERM);
    let answer = running.wait_with_output().unwrap();
    assert_eq!(text(&answer.stdout), "|done\n");
    assert!(server.wait().success());
}

#[test]
fn show_commands_are_answered_to_psql() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let server = gate(&postgres, &["--capacity", "1s"]);
    let port = server.address().port();
    assert!(postgres.psql(port, &["select 1"]).status.success());
    let show = |command: &str| {
        let mut psql = postgres.psql_command(port, "shortline", &[command]);
        psql.output().unwrap()
    };
    let types = wait_for("the statement to be counted", || {
        let types = text(&show("SHOW TYPES").stdout);
        types.contains("select ?|").then_some(types)
    });
    assert!(
        types.lines().all(|line| line.split('|').count() == 13),
        "{types}"
    );
    for what in [
        "HELP", "STATS", "POOLS", "QUEUE", "CLIENTS", "CONFIG", "VERSION",
    ] {
        let answer = show(&format!("show {what};"));
        assert!(answer.status.success(), "{what}: {}", text(&answer.stderr));
    }
    let wrong = show("SHOW NOTHING");
    assert!(!wrong.status.success());
    assert!(
        text(&wrong.stderr).contains("try SHOW HELP"),
        "{}",
        text(&wrong.stderr)
    );
    // The backend has no such database.
    let unnamed = gate(&postgres, &["--admin-database="]);
    let mut psql = postgres.psql_command(unnamed.address().port(), "shortline", &["SHOW HELP"]);
    let refused = psql.output().unwrap();
    assert!(
        text(&refused.stderr).contains("does not exist"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn what_was_learnt_is_kept_over_a_restart() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("estimates.json");
    std::fs::write(&path, "{\"version\":1,").unwrap();
    let flags = ["--estimates", path.to_str().unwrap()];
    let mut first = gate(&postgres, &flags);
    // Said before it listened, so that it is not among the lines to come.
    let port = first.address().port();
    assert!(
        postgres
            .psql(port, &["select pg_sleep(0.1)"])
            .status
            .success()
    );
    first.signal(Signal::TERM);
    assert!(first.wait().success());
    let second = gate(&postgres, &flags);
    let types = admission(&second)["types"].clone();
    let mut types = types.as_array().unwrap().iter();
    let known = types
        .find(|each| each["name"] == "select pg_sleep(...)")
        .unwrap();
    assert!(
        known["estimate_ns"].as_u64().unwrap() >= 100_000_000,
        "{known}"
    );
    assert_eq!(known["admitted"], 0);
}

#[test]
fn a_slow_wait_is_logged_as_json_and_told_to_the_client() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let flags = [
        "--capacity",
        "1ns",
        "--slow-wait",
        "10ms",
        "--log-format",
        "json",
    ];
    let mut server = gate(&postgres, &flags);
    let port = server.address().port();
    let mut first = postgres
        .psql_command(port, "postgres", &["select pg_sleep(1)"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the first to run", || {
        (admission(&server)["running"] == 1).then_some(())
    });
    let second = postgres.psql(port, &["select 1"]);
    assert!(
        text(&second.stderr).contains("ms for admission"),
        "{}",
        text(&second.stderr)
    );
    assert!(first.wait().unwrap().success());
    let line: Value = serde_json::from_str(&server.line_with("slow wait")).unwrap();
    assert_eq!(line["type"], "select ?");
    assert_eq!(line["is_admitted"], true);
    assert!(line["waited_ms"].as_u64().unwrap() >= 10, "{line}");
}
