//! Wrong flags and files: exit 2 or 1, and one line that says what would be right.

use crate::process::{Ended, shortline};

const UPSTREAM: [&str; 4] = ["gate", "postgres", "--upstream", "127.0.0.1:1"];

fn refused(arguments: &[&str], code: i32, expected: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let Ended { code: got, stderr } = shortline(folder.path(), arguments);
    assert_eq!(got, code, "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(stderr.starts_with("shortline: "), "{stderr}");
    for part in expected {
        assert!(
            stderr.contains(part),
            "{arguments:?}: no `{part}` in {stderr}"
        );
    }
}

fn refused_with(flags: &[&str], code: i32, expected: &[&str]) {
    refused(&[&UPSTREAM[..], flags].concat(), code, expected);
}

#[test]
fn help_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(shortline(folder.path(), &["gate", "--help"]).code, 0);
}

#[test]
fn bad_usage_exits_2_and_names_value_and_remedy() {
    refused(&["gate", "oracle"], 2, &["oracle", "postgres"]);
    refused(&["gate", "postgres"], 2, &["--upstream HOST:PORT"]);
    refused_with(&[], 2, &["--listen ADDR"]);
    refused_with(&["--listen", "localhost"], 2, &["localhost", "--listen"]);
    refused_with(&["--capacity", "400"], 2, &["400", "500ms"]);
    refused_with(&["--capacity", "0s"], 2, &["0s", "above 0"]);
    refused_with(&["--policy", "srpt"], 2, &["srpt", "sjf"]);
    refused_with(&["--types-from", "tags"], 2, &["tags", "application-name"]);
    refused_with(&["--aging", "0"], 2, &["aging `0`"]);
    refused_with(
        &["--aging", "2", "--policy", "fifo"],
        2,
        &["--aging", "fifo"],
    );
    refused_with(&["--tls-cert", "a.pem"], 2, &["--tls-key"]);
    refused_with(&["--queue-max", "0"], 2, &["--queue-max"]);
    let upstream = [
        "gate",
        "postgres",
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        "localhost",
    ];
    refused(&upstream, 2, &["localhost", "HOST:PORT"]);
}

#[test]
fn what_cannot_be_had_exits_1_and_names_it() {
    refused_with(&["--config", "missing.toml"], 1, &["missing.toml"]);
    let certificate = [
        "--listen",
        "127.0.0.1:0",
        "--tls-cert",
        "no.crt",
        "--tls-key",
        "no.key",
    ];
    refused_with(&certificate, 1, &["no.crt"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused_with(&["--listen", &address], 1, &[&address, "in use"]);
}

#[test]
fn a_wrong_configuration_names_file_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = "[gate]\nupstream = \"db:5432\"\n[[gate.rule]]\ntype = \"x\"\nstatment = \"y\"\n";
    std::fs::write(folder.path().join("a.toml"), file).unwrap();
    let arguments = ["gate", "postgres", "--config", "a.toml"];
    let Ended { code, stderr } = shortline(folder.path(), &arguments);
    assert_eq!(code, 2);
    assert!(
        stderr.starts_with("shortline: a.toml:5: gate.rule.statment:"),
        "{stderr}"
    );
}
