//! The other kinds of gate, before a real MariaDB and before an application of ours: what asks is
//! answered, and each request is told by its type.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::Value;
use shortline_bookstore::Kind;
use shortline_bookstore::bed::{Bed, Sizing};

use crate::application::{application, ok};
use crate::client::get;
use crate::gate;
use crate::process::{Server, wait_for};
use crate::relayed::status;

fn gate(kind: &str, upstream: SocketAddr, flags: &[&str]) -> Server {
    let flags = [&["--capacity", "1s"], flags].concat();
    gate::gate(kind, &upstream.to_string(), &flags)
}

/// Waits until so many requests of a type have been completed.
fn wait_for_type(server: &Server, name: &str, completed: u64) {
    wait_for("the type to be counted", || {
        let told = status(server.admin.unwrap());
        let types = told["admission"]["types"].as_array()?.clone();
        let is_told = |told: &Value| told["name"] == name && told["completed"] == completed;
        types.iter().any(is_told).then_some(())
    });
}

#[test]
fn statements_to_mariadb_are_answered_and_told_by_type() {
    if let Err(missing) = Bed::available(Kind::MariaDb) {
        eprintln!("skipped: {missing}");
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let bed = runtime
        .block_on(Bed::start(Kind::MariaDb, Sizing::default()))
        .unwrap();
    let database = bed.database();
    let trusted = format!("user:{}", database.user);
    let server = gate("mysql", database.address, &["--tags-from", &trusted]);
    let answer = Command::new("mariadb")
        .args([
            "--no-defaults",
            "-h",
            "127.0.0.1",
            "--skip-column-names",
            "--comments",
        ])
        .args(["-P", &server.address().port().to_string()])
        .arg(format!("--user={}", database.user))
        .arg(format!(
            "--password={}",
            database.password.as_deref().unwrap_or_default()
        ))
        .args(["-e", "select 6 * 7; select 'a' /*route='books'*/"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&answer.stderr).into_owned();
    assert!(answer.status.success(), "{told}");
    assert_eq!(String::from_utf8_lossy(&answer.stdout), "42\na\n");
    wait_for_type(&server, "route /books", 1);
}

#[test]
fn requests_to_an_application_are_answered_and_told_by_route() {
    let server = gate("http", application(|_| ok("yes")), &[]);
    for number in [17, 18] {
        let got = get(server.address(), &format!("/books/{number}"));
        assert_eq!((got.status, &got.body[..]), (200, &b"yes"[..]));
    }
    wait_for_type(&server, "GET /books/:id", 2);
}
