//! Where clients come from and go to: Unix sockets, proxies that speak for them, addresses that are shared. And
//! what is exchanged while they are there.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use rustix::process::Signal;

use crate::client::get;
use crate::gate;
use crate::postgres::Postgres;
use crate::process::{Server, wait_for};
use crate::relayed::status;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn psql(postgres: &Postgres, host: &str, port: u16, database: &str, command: &str) -> Output {
    let mut psql = postgres.psql_command(port, database, &[command]);
    psql.args(["-h", host]).env("PGPASSWORD", "geheim");
    psql.output().unwrap()
}

#[test]
fn clients_and_the_backend_meet_by_unix_sockets() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let path = folder.path().join(".s.PGSQL.6432");
    let listen = format!("unix:{}", path.display());
    let upstream = format!("unix:{}", postgres.socket().display());
    let mut server = gate::gate("postgres", &upstream, &["--listen", &listen]);
    let host = folder.path().to_str().unwrap();
    let asked = psql(
        &postgres,
        host,
        6432,
        "postgres",
        "select inet_client_addr() is null",
    );
    assert_eq!(text(&asked.stdout), "t\n", "{}", text(&asked.stderr));
    let shown = psql(&postgres, host, 6432, "shortline", "SHOW CLIENTS");
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    // One that was left behind is replaced; one that is in use is not.
    let second = Command::new(env!("CARGO_BIN_EXE_shortline"))
        .args([
            "gate",
            "postgres",
            "--upstream",
            "127.0.0.1:1",
            "--listen",
            &listen,
        ])
        .output()
        .unwrap();
    assert!(
        text(&second.stderr).contains("in use"),
        "{}",
        text(&second.stderr)
    );
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    let _again = gate::gate("postgres", &upstream, &["--listen", &listen]);
    let asked = psql(&postgres, host, 6432, "postgres", "select 1");
    assert!(asked.status.success(), "{}", text(&asked.stderr));
}

#[test]
fn a_trusted_proxy_says_who_the_client_is() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let flags = [
        "--proxy-from",
        "127.0.0.0/8",
        "--application-name-add-host",
        "--authentication-time-max",
        "5s",
    ];
    let server = gate::gate("postgres", &postgres.address(), &flags);
    // A startup packet of a client whose name the backend shows.
    let parameters = b"user\0tester\0database\0postgres\0application_name\0shop\0\0";
    let length = u32::try_from(parameters.len() + 8).unwrap();
    let startup = [&length.to_be_bytes(), &[0, 3, 0, 0][..], parameters].concat();
    let mut client = TcpStream::connect(server.address()).unwrap();
    let header = b"PROXY TCP4 192.0.2.7 192.0.2.1 5000 6432\r\n";
    client
        .write_all(&[header.as_slice(), &startup].concat())
        .unwrap();
    let clients = || -> Vec<serde_json::Value> {
        serde_json::from_slice(&get(server.admin.unwrap(), "/clients").body).unwrap()
    };
    let known = wait_for("the client", || clients().pop());
    assert_eq!(known["address"], "192.0.2.7:5000");
    let asked = postgres.psql(
        postgres.port,
        &["select application_name from pg_stat_activity where application_name like 'shop%'"],
    );
    assert_eq!(text(&asked.stdout), "shop - 192.0.2.7:5000\n");
    // Who comes from there without a header is not heard: what it says is too short for one, until its time is over.
    let refused = psql(
        &postgres,
        "127.0.0.1",
        server.address().port(),
        "postgres",
        "select 1",
    );
    assert!(!refused.status.success());
    let failed = || status(server.admin.unwrap())["connections"]["failed_total"].as_u64();
    wait_for("it to be counted", || (failed() >= Some(1)).then_some(()));
}

#[test]
fn two_gates_share_an_address_and_one_leaves() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let first = gate::gate("postgres", &postgres.address(), &["--reuse-port"]);
    let port = first.address().port();
    let mut second = Server::spawn(
        Command::new(env!("CARGO_BIN_EXE_shortline"))
            .args([
                "gate",
                "postgres",
                "--upstream",
                &postgres.address(),
                "--reuse-port",
            ])
            .args(["--listen", &format!("127.0.0.1:{port}")]),
    );
    let all_answered = || {
        let asked = (0..10).map(|_| postgres.psql(port, &["select 1"]));
        asked.into_iter().all(|asked| asked.status.success())
    };
    assert!(all_answered());
    drop(first);
    assert!(all_answered());
    second.signal(Signal::TERM);
    assert!(second.wait().success());
}

#[test]
fn limits_and_users_are_read_again() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = |capacity: &str, size: u32, types_max: u32| {
        let users = at("users").display().to_string();
        let text = format!(
            "[gate]\npool = \"transaction\"\npool-users = \"{users}\"\npool-size = {size}\n\
             capacity = \"{capacity}\"\ntypes-max = {types_max}\npolicy = \"boost\"\n"
        );
        std::fs::write(at("gate.toml"), text).unwrap();
    };
    std::fs::write(at("users"), "\"tester\" \"falsch\"\n").unwrap();
    write("1s", 4, 100);
    let config = at("gate.toml");
    let server = gate::gate(
        "postgres",
        &postgres.address(),
        &["--config", config.to_str().unwrap()],
    );
    let port = server.address().port();
    let ask = || psql(&postgres, "127.0.0.1", port, "postgres", "select 1");
    assert!(!ask().status.success());
    std::fs::write(at("users"), "\"tester\" \"geheim\"\n").unwrap();
    write("20ms", 2, 100);
    let reload = || psql(&postgres, "127.0.0.1", port, "shortline", "RELOAD");
    let reloaded = reload();
    assert!(reloaded.status.success(), "{}", text(&reloaded.stderr));
    assert!(ask().status.success());
    let told = status(server.admin.unwrap());
    assert_eq!(told["settings"]["capacity"], "20ms");
    assert_eq!(told["admission"]["capacity_ns"], 20_000_000);
    assert_eq!(told["pool"]["size"], 2);
    write("20ms", 2, 101);
    let refused = reload();
    assert!(text(&refused.stderr).contains("gate.types-max: changes only at a restart"));
    let metrics = text(&get(server.admin.unwrap(), "/metrics").body);
    for line in [
        "shortline_gate_wait_seconds_bucket{le=\"0.000256\"} 1",
        "shortline_gate_service_seconds_bucket{le=\"+Inf\"} 1",
        "shortline_gate_sojourn_seconds_count 1",
        "shortline_gate_type_wait_seconds_bucket{type=\"select ?\",le=\"+Inf\"} 1",
    ] {
        assert!(
            metrics.lines().any(|each| each == line),
            "{line} in {metrics}"
        );
    }
}
