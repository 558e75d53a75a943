//! Clients that replicate, before a pool.

use std::io::Write;

use shortline_gate::pool::{PoolMode, Shown};

use super::cluster::Cluster;
use super::pool::{POSTGRES, USERS, text};
use super::raw;
use super::relay::{Relay, runtime};

/// The server would trust this user without a password.
const WRONG: &[(&str, &str)] = &[("PGPASSWORD", "wrong")];
const RIGHT: &[(&str, &str)] = &[("PGPASSWORD", "any")];

#[test]
fn replication_has_a_connection_of_its_own_beside_the_pool() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    for mode in [PoolMode::Transaction, PoolMode::Session] {
        let relay = Relay::pooled(cluster.port, mode, 1, USERS);
        let pool: &dyn Shown = relay.pool.as_deref().unwrap();
        // The pool's only connection is in use.
        let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
        let busy = runtime.block_on(relay.client_as(POSTGRES));
        runtime.block_on(text(&busy, "begin; select 1"));
        let process = runtime.block_on(text(&busy, "select pg_backend_pid()"));
        // BASE_BACKUP, and START_REPLICATION beside it.
        let target = folder.path().join("backup");
        let target = target.to_str().unwrap();
        let arguments = ["-D", target, "-X", "stream", "-c", "fast"];
        let copied = cluster.program("pg_basebackup", relay.port, RIGHT, &arguments);
        assert!(copied.status.success(), "{copied:?}");
        assert!(folder.path().join("backup/PG_VERSION").exists());
        let refused = cluster.program("pg_basebackup", relay.port, WRONG, &["-D", "/nowhere"]);
        let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            refused.contains("password authentication failed"),
            "{refused}"
        );
        streams_and_is_cancelled(relay.port);
        assert_eq!(pool.counts().total, 1);
        assert_eq!(
            runtime.block_on(text(&busy, "select pg_backend_pid()")),
            process
        );
        let types = relay.gate.snapshot().types;
        let is_of_replication = |name: &str| name.to_lowercase().contains("replication");
        assert!(!types.iter().any(|view| is_of_replication(&view.name)));
        runtime.block_on(text(&busy, "commit"));
        drop(busy);
        runtime.block_on(relay.until_at_rest());
    }
}

/// Logical replication, and SQL on the same connection, with a cancel request for it.
fn streams_and_is_cancelled(port: u16) {
    let parameters = b"replication\0database\0application_name\0copies\0";
    let (mut socket, key) = raw::pooled_session_with(port, parameters);
    socket
        .write_all(&raw::query(
            "select current_setting('application_name'), pg_sleep(600)",
        ))
        .unwrap();
    // The statement may not have begun when the first request arrives.
    let ended = std::thread::scope(|scope| {
        let answer = scope.spawn(|| raw::until_ready(&mut socket));
        while !answer.is_finished() {
            let packet = [&[0, 0, 0, 16, 4, 210, 22, 46][..], &key].concat();
            let mut cancel = raw::connect(port);
            cancel.write_all(&packet).unwrap();
            raw::rest(&mut cancel);
        }
        answer.join().unwrap()
    });
    assert_eq!(raw::sqlstate(&ended).as_deref(), Some("57014"), "{ended:?}");
    let make = "CREATE_REPLICATION_SLOT copies TEMPORARY LOGICAL pgoutput";
    socket.write_all(&raw::query(make)).unwrap();
    // The last cancel request may hit this one.
    let made = raw::tags(&raw::until_ready(&mut socket));
    if made != "TDCZI" {
        socket.write_all(&raw::query(make)).unwrap();
        assert_eq!(raw::tags(&raw::until_ready(&mut socket)), "TDCZI");
    }
    let start =
        "START_REPLICATION SLOT copies LOGICAL 0/0 (proto_version '1', publication_names 'none')";
    socket.write_all(&raw::query(start)).unwrap();
    // CopyBothResponse, and the server's keepalive.
    assert_eq!(raw::next(&mut socket).unwrap().0, b'W');
    assert_eq!(raw::next(&mut socket).unwrap().0, b'd');
}
