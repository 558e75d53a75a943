//! What no driver says to the pool, and what the server then has or has not.

use std::io::Write;

use shortline_gate::pool::PoolMode;

use super::cluster::Cluster;
use super::pool::USERS;
use super::raw;
use super::relay::{Relay, runtime};

fn transactions(cluster: &Cluster, size: usize) -> Relay {
    Relay::pooled(cluster.port, PoolMode::Transaction, size, USERS)
}

/// A Parse without parameter types.
fn parse(name: &str, text: &str) -> Vec<u8> {
    raw::message(b'P', format!("{name}\0{text}\0\0\0").as_bytes())
}

/// A Bind of the unnamed portal, and its Execute.
fn execute(name: &str) -> Vec<u8> {
    let bind = raw::message(b'B', format!("\0{name}\0\0\0\0\0\0\0").as_bytes());
    [bind, raw::message(b'E', b"\0\0\0\0\0")].concat()
}

fn said(socket: &mut std::net::TcpStream, messages: &[Vec<u8>]) -> String {
    let sync = raw::message(b'S', b"");
    socket
        .write_all(&[&messages.concat()[..], &sync].concat())
        .unwrap();
    raw::tags(&raw::until_ready(socket))
}

#[test]
fn an_error_leaves_the_connection_and_the_client_with_the_statements_they_have() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 1);
    let mut one = raw::pooled_session(relay.port);
    let mut other = raw::pooled_session(relay.port);
    assert_eq!(
        said(&mut one, &[parse("a", "select 1"), execute("a")]),
        "12DCZI"
    );
    // A statement that nobody has, in both protocols.
    other.write_all(&raw::query("execute nope")).unwrap();
    assert_eq!(raw::tags(&raw::until_ready(&mut other)), "EZI");
    assert_eq!(said(&mut other, &[execute("nope")]), "EZI");
    assert_eq!(
        said(&mut other, &[parse("b", "select 1"), execute("b")]),
        "12DCZI"
    );
    assert_eq!(said(&mut one, &[execute("a")]), "2DCZI");
    // What comes behind an error is not done: neither the Close nor the Parse.
    let close = raw::message(b'C', b"Sb\0");
    let fails = [execute("nope"), close, parse("c", "select 1")];
    assert_eq!(said(&mut other, &fails), "EZI");
    assert_eq!(said(&mut other, &[execute("b")]), "2DCZI");
    assert_eq!(said(&mut other, &[execute("c")]), "EZI");
    assert_eq!(
        said(&mut other, &[parse("c", "select 1"), execute("c")]),
        "12DCZI"
    );
    // A Close that the pool puts before a Parse (it keeps 20 statements) is not done either.
    for number in 0..40 {
        let text = format!("select {number} + 1");
        let fails = [execute("nope"), parse("d", &text)];
        assert_eq!(said(&mut one, &fails), "EZI", "{text}");
        let works = [parse("d", &text), execute("d"), raw::message(b'C', b"Sd\0")];
        assert_eq!(said(&mut one, &works), "12DC3ZI", "{text}");
        assert_eq!(said(&mut one, &[execute("a")]), "2DCZI", "{text}");
    }
}

/// The pool answered the second Parse itself, as if the transaction whose BEGIN it had kept back could not fail.
#[test]
fn a_statement_that_is_known_is_not_prepared_in_a_transaction_that_fails_meanwhile() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 1);
    let mut session = raw::pooled_session(relay.port);
    assert_eq!(
        said(&mut session, &[parse("a", "select 1"), execute("a")]),
        "12DCZI"
    );
    session.write_all(&raw::query("begin")).unwrap();
    assert_eq!(raw::tags(&raw::until_ready(&mut session)), "CZT");
    let sync = raw::message(b'S', b"");
    let known = [parse("b", "select 1"), execute("b")].concat();
    let at_once = [execute("nope"), sync.clone(), known, sync].concat();
    session.write_all(&at_once).unwrap();
    assert_eq!(raw::tags(&raw::until_ready(&mut session)), "EZE");
    assert_eq!(raw::tags(&raw::until_ready(&mut session)), "EZE");
}

#[test]
fn a_query_between_an_error_and_the_sync_keeps_no_unit() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let pooled = transactions(cluster, 1);
    let plain = Relay::open(cluster);
    for (relay, mut socket) in [
        (&pooled, raw::pooled_session(pooled.port)),
        (&plain, raw::session(plain.port)),
    ] {
        // The error comes before the Query is sent, and after.
        let fails = [parse("", "nonsense"), raw::message(b'H', b"")].concat();
        socket.write_all(&fails).unwrap();
        assert_eq!(raw::next(&mut socket).unwrap().0, b'E');
        assert_eq!(said(&mut socket, &[raw::query("select 1")]), "ZI");
        runtime().block_on(relay.until_at_rest());
        let fails = [parse("", "nonsense"), raw::query("select 1")];
        assert_eq!(said(&mut socket, &fails), "EZI");
        runtime().block_on(relay.until_at_rest());
        let works = [parse("", "select 1"), execute(""), raw::query("select 1")];
        assert_eq!(said(&mut socket, &works), "12DCTDCZI");
        assert_eq!(raw::tags(&raw::until_ready(&mut socket)), "ZI");
        runtime().block_on(relay.until_at_rest());
    }
}

#[test]
fn what_is_set_without_a_name_that_is_seen_stays_with_its_session() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let argument = |text: &str| {
        let length = (text.len() as u32).to_be_bytes();
        [&length, text.as_bytes()].concat()
    };
    // set_config('my.own', 'mine', false)
    let call = [
        &b"\0\0\x08\x1e\0\0\0\x03"[..],
        &argument("my.own"),
        &argument("mine"),
        &argument("f"),
        b"\0\0",
    ];
    let call = raw::message(b'F', &call.concat());
    let computed = "select set_config('my.' || 'own', 'mine', false)";
    let behind = [raw::query("discard all"), raw::query(computed)].concat();
    for (sets, answers) in [(call, 1), (behind, 2)] {
        let relay = transactions(cluster, 3);
        let (mut one, mut other) = (
            raw::pooled_session(relay.port),
            raw::pooled_session(relay.port),
        );
        one.write_all(&sets).unwrap();
        for _ in 0..answers {
            raw::until_ready(&mut one);
        }
        let asks = raw::query("select coalesce(current_setting('my.own', true), '')");
        for (socket, value) in [(&mut other, &b""[..]), (&mut one, b"mine")] {
            socket.write_all(&asks).unwrap();
            let said = raw::until_ready(socket);
            assert!(said[1].1.ends_with(value) && said[1].1.len() == 6 + value.len());
        }
    }
}

/// Drivers (asyncpg, pgx) prepare the text anew under another name then.
#[test]
fn a_statement_whose_table_has_changed_is_prepared_anew() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 2);
    let mut one = raw::pooled_session(relay.port);
    let mut other = raw::pooled_session(relay.port);
    let mut run = |statement: &str| {
        one.write_all(&raw::query(statement)).unwrap();
        raw::tags(&raw::until_ready(&mut one))
    };
    run("drop table if exists changes; create table changes (a int)");
    // Both connections have the statement.
    let asks = || [parse("a", "select * from changes"), execute("a")];
    assert_eq!(run("begin; select 1"), "CTDCZT");
    assert_eq!(said(&mut other, &asks()), "12CZI");
    assert_eq!(run("commit"), "CZI");
    assert_eq!(said(&mut other, &[execute("a")]), "2CZI");
    assert_eq!(run("alter table changes add b int"), "CZI");
    assert_eq!(said(&mut other, &[execute("a")]), "EZI");
    let again = [parse("b", "select * from changes"), execute("b")];
    assert_eq!(said(&mut other, &again), "12CZI");
    // The old one stays what it was.
    assert_eq!(said(&mut other, &[execute("a")]), "EZI");
    // On the other connection, too.
    assert_eq!(run("begin; select 1"), "CTDCZT");
    assert_eq!(said(&mut other, &[execute("b")]), "2CZI");
    assert_eq!(run("rollback; drop table changes"), "CCZI");
}

/// libpq's PQprepare sends a Sync behind each Parse, and psql's \gdesc prepares without a name.
#[test]
fn the_unnamed_statement_outlasts_what_the_pool_asks() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 2);
    let mut one = raw::pooled_session(relay.port);
    let describe = || raw::message(b'D', b"S\0");
    // The server is asked what is left behind each statement of a session that keeps its connection.
    for begins in [
        "prepare kept as select 1",
        "deallocate kept",
        "set my.own = 'a'",
    ] {
        one.write_all(&raw::query(begins)).unwrap();
        raw::until_ready(&mut one);
        for _ in 0..3 {
            assert_eq!(said(&mut one, &[parse("", "select 1")]), "1ZI", "{begins}");
            assert_eq!(said(&mut one, &[describe()]), "tTZI", "{begins}");
            assert_eq!(said(&mut one, &[execute("")]), "2DCZI", "{begins}");
            // Another session's settings come and go.
            let mut other = raw::pooled_session(relay.port);
            other
                .write_all(&raw::query("set timezone = 'Asia/Tokyo'"))
                .unwrap();
            raw::until_ready(&mut other);
            assert_eq!(said(&mut one, &[execute("")]), "2DCZI", "{begins}");
        }
    }
}

/// pg_regress's clients begin with a DateStyle that is not the server's, and set the server's.
#[test]
fn a_value_that_is_the_servers_own_is_set_in_a_session_that_began_with_another() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 1);
    let (mut one, _) = raw::pooled_session_with(relay.port, b"DateStyle\0Postgres, DMY\0");
    let mut other = raw::pooled_session(relay.port);
    let mut shows = |statement: &str, expected: &str| {
        one.write_all(&raw::query(statement)).unwrap();
        raw::until_ready(&mut one);
        for socket in [&mut other, &mut one] {
            socket.write_all(&raw::query("show datestyle")).unwrap();
        }
        let others = raw::until_ready(&mut other);
        assert!(others[1].1.ends_with(b"ISO, MDY"), "{statement}");
        let mine = raw::until_ready(&mut one);
        let row = mine.iter().find(|(tag, _)| *tag == b'D').unwrap();
        assert!(
            row.1.ends_with(expected.as_bytes()),
            "{statement}: {mine:?}"
        );
    };
    shows("select 1", "Postgres, DMY");
    shows("set datestyle to 'ISO, MDY'", "ISO, MDY");
    shows("set statement_timeout to '1min'", "ISO, MDY");
    shows("reset datestyle", "Postgres, DMY");
    shows("begin; set datestyle to 'ISO, MDY'; commit", "ISO, MDY");
    shows("begin; set datestyle to 'German'; rollback", "ISO, MDY");
    shows("set local datestyle to 'German'", "ISO, MDY");
    shows("discard all", "Postgres, DMY");
}
