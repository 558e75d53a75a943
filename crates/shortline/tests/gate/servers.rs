//! Several servers behind one gate, as an operator sees them: two of which both take writes.

use serde_json::Value;

use crate::client::get;
use crate::gate;
use crate::postgres::Postgres;
use crate::process::wait_for;
use crate::relayed::status;

#[test]
fn of_two_that_take_writes_one_is_the_primary_and_the_other_gets_nothing() {
    let (Some(first), Some(second)) = (Postgres::start(), Postgres::start()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "\"tester\" \"geheim\"\n").unwrap();
    let upstream = format!("{},{}", first.address(), second.address());
    let flags = [
        "--pool",
        "transaction",
        "--watch-user",
        "tester",
        "--watch-every",
        "100ms",
    ];
    let flags = [&flags[..], &["--pool-users", users.to_str().unwrap()]].concat();
    let server = gate::gate("postgres", &upstream, &flags);
    let admin = server.admin.unwrap();
    let servers = wait_for("two primaries", || {
        let servers = status(admin)["servers"].as_array().unwrap().clone();
        let are_known = servers.iter().all(|server| server["role"] == "primary");
        are_known.then_some(servers)
    });
    // Whichever was known first.
    let written: Vec<&Value> = servers
        .iter()
        .filter(|server| server["is_written"] == true)
        .collect();
    assert_eq!(written.len(), 1, "{servers:?}");
    let at = written[0]["address"].as_str().unwrap();
    let port = server.address().port();
    let ask = |database, command| {
        let mut psql = first.psql_command(port, database, &[command]);
        let answer = psql.env("PGPASSWORD", "geheim").output().unwrap();
        assert!(answer.status.success(), "{answer:?}");
        String::from_utf8(answer.stdout).unwrap()
    };
    for _ in 0..3 {
        let port = ask("postgres", "select inet_server_port()");
        assert_eq!(format!("127.0.0.1:{}", port.trim()), at);
    }
    let shown = ask("shortline", "SHOW CLUSTER");
    let rows: Vec<Vec<&str>> = shown.lines().map(|row| row.split('|').collect()).collect();
    assert_eq!(rows.len(), 2, "{shown}");
    for row in rows {
        let is_written = if row[0] == at { "1" } else { "0" };
        assert_eq!(row[1..4], ["primary", is_written, "0"], "{shown}");
    }
    assert!(ask("shortline", "SHOW SERVERS").contains(at));
    let metrics = String::from_utf8(get(admin, "/metrics").body).unwrap();
    let line = format!("shortline_server_written{{server=\"{at}\"}} 1");
    assert!(metrics.lines().any(|is| is == line), "{metrics}");
    assert_eq!(get(admin, "/ready").status, 200);
}
