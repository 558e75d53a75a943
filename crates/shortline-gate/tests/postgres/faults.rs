//! Bytes that are no protocol, a backend that is not there or dies, and the relay's own end.

use std::io::Write;
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use shortline_gate::GateConfig;
use shortline_gate::postgres::AdminDatabase;

use super::cluster::{Cluster, free_port};
use super::raw;
use super::relay::{Relay, soon};

/// What the client is told before its connection ends.
fn last_words(port: u16, bytes: &[u8]) -> Option<String> {
    let mut socket = raw::connect(port);
    socket.write_all(bytes).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    raw::sqlstate(&raw::until_ready(&mut socket))
}

#[test]
fn what_is_no_startup_ends_that_connection_alone() {
    let relay = Relay::start(free_port(), GateConfig::default(), |_| {});
    let cases: [(&[u8], Option<&str>); 9] = [
        (b"", None),
        (b"\0\0", None),
        (b"\0\0\0\x20\0\x03\0\0user\0", None),
        (b"GET / HTTP/1.1\r\n\r\n", Some("08P01")),
        (b"\0\0\0\x07\0\x03\0\0", Some("08P01")),
        (b"\0\0\x27\x11\0\x03\0\0", Some("08P01")),
        (b"\0\0\0\x09\0\x02\0\0\0", Some("0A000")),
        (b"\0\0\0\x0c\0\x03\0\0user", Some("08P01")),
        // Nobody is there to authenticate.
        (b"\0\0\0\x10\0\x03\0\0user\0a\0\0", Some("57P03")),
    ];
    for (bytes, expected) in cases {
        assert_eq!(
            last_words(relay.port, bytes).as_deref(),
            expected,
            "{bytes:?}"
        );
    }
    // Neither form of encryption is there.
    for code in [b"\x04\xd2\x16\x2f", b"\x04\xd2\x16\x30"] {
        let mut socket = raw::connect(relay.port);
        socket
            .write_all(&[b"\0\0\0\x08", code.as_slice()].concat())
            .unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(raw::rest(&mut socket), b"N");
    }
    assert_eq!(relay.registry.counts().total, 11);
}

#[test]
fn what_is_no_message_ends_that_session_alone() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::start(cluster.port, GateConfig::default(), |config| {
        config.relay.limits.message_bytes_max = 1 << 20;
    });
    let long = [b"Q".as_slice(), &((1_u32 << 20) + 5).to_be_bytes()].concat();
    let cases: [&[u8]; 5] = [
        b"Q\0\0\0\x03",
        b"\xff\0\0\0\x04",
        b"y\0\0\0\x04",
        b"Q\xff\xff\xff\xff",
        &long,
    ];
    for bytes in cases {
        // At once, and behind a statement that still runs.
        for first in [Vec::new(), raw::query("select pg_sleep(0.05)")] {
            let mut socket = raw::session(relay.port);
            socket.write_all(&[&first, bytes].concat()).unwrap();
            let mut words = Vec::new();
            while let Some(message) = raw::next(&mut socket) {
                words.push(message);
            }
            assert_eq!(raw::sqlstate(&words).as_deref(), Some("08P01"), "{bytes:?}");
        }
    }
    let mut socket = raw::session(relay.port);
    socket.write_all(&raw::query("select 1")).unwrap();
    assert_eq!(raw::tags(&raw::until_ready(&mut socket)), "TDCZI");
}

/// The messages of a client that has asked for a session as `user`, up to the end, when it says
/// `bytes` as an answer to the first.
fn words_at_authentication(port: u16, user: &str, bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut socket = raw::connect(port);
    let parameters = format!("\0\x03\0\0user\0{user}\0database\0postgres\0\0");
    let length = (parameters.len() as u32 + 4).to_be_bytes();
    socket
        .write_all(&[&length, parameters.as_bytes()].concat())
        .unwrap();
    assert_eq!(raw::next(&mut socket).unwrap().0, b'R');
    socket.write_all(bytes).unwrap();
    let mut words = Vec::new();
    while let Some(message) = raw::next(&mut socket) {
        words.push(message);
    }
    words
}

#[test]
fn what_is_no_answer_at_authentication_is_told() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::open(cluster);
    let cases: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"Q\0\0\0\x0dselect 1\0",
        b"p\0\0\0\x01",
        b"p\x7f\xff\xff\xff",
    ];
    for bytes in cases {
        let words = words_at_authentication(relay.port, "scram", bytes);
        assert_eq!(raw::sqlstate(&words).as_deref(), Some("08P01"), "{bytes:?}");
    }
}

#[test]
fn what_is_no_message_to_the_admin_database_is_told() {
    let relay = Relay::start(free_port(), GateConfig::default(), |config| {
        config.admin = Some(AdminDatabase {
            name: "postgres".to_owned(),
            uids: Vec::new(),
            users: Vec::new(),
            stats_users: Vec::new(),
            answer: Arc::new(|_, _| Box::pin(async { Err("nothing".to_owned()) })),
        });
    });
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"Q\0\0\0\x01"] {
        let words = words_at_authentication(relay.port, "a", bytes);
        assert_eq!(raw::sqlstate(&words).as_deref(), Some("08P01"), "{bytes:?}");
    }
}

#[tokio::test]
async fn one_connection_too_many_is_told() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::start(cluster.port, GateConfig::default(), |config| {
        config.relay.limits.connections_max = 2;
    });
    let (first, _second) = (relay.client().await, relay.client().await);
    let refused = super::relay::connect(relay.port, "user=postgres")
        .await
        .err()
        .unwrap();
    assert_eq!(refused.code().unwrap().code(), "53300");
    first.batch_execute("select 1").await.unwrap();
    assert_eq!(relay.registry.counts().refused_total, 1);
}

#[test]
fn a_client_that_says_nothing_is_left() {
    let relay = Relay::start(free_port(), GateConfig::default(), |config| {
        config.relay.limits.authentication_time_max = Duration::from_millis(50);
    });
    let mut socket = raw::connect(relay.port);
    assert_eq!(raw::rest(&mut socket), b"");
}

#[test]
fn a_backend_that_says_nonsense_or_nothing_ends_the_connection() {
    for (answer, expected) in [(&b""[..], "08006"), (b"Z\0\0\0\0", "08P01")] {
        let backend = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay::start(
            backend.local_addr().unwrap().port(),
            GateConfig::default(),
            |_| {},
        );
        let answering = std::thread::spawn(move || {
            let (mut socket, _) = backend.accept().unwrap();
            socket.write_all(answer).unwrap();
        });
        let words = last_words_of_session(relay.port);
        assert_eq!(words.unwrap_or_default(), expected);
        answering.join().unwrap();
    }
}

fn last_words_of_session(port: u16) -> Option<String> {
    let mut socket = raw::connect(port);
    socket
        .write_all(b"\0\0\0\x10\0\x03\0\0user\0a\0\0")
        .unwrap();
    raw::sqlstate(&raw::until_ready(&mut socket))
}

#[tokio::test]
async fn a_backend_that_ends_is_told_and_comes_back() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let relay = Relay::open(&cluster);
    let client = relay.client().await;
    let pid: i32 = client
        .query_one("select pg_backend_pid()", &[])
        .await
        .unwrap()
        .get(0);
    // Told to end in the middle of a statement.
    let other = relay.client().await;
    let running = async {
        client
            .batch_execute("select pg_sleep(60)")
            .await
            .unwrap_err()
    };
    let ending = async {
        relay.until("running", |gate| gate.active == 1).await;
        while client_is_there(&other, pid).await {}
    };
    let (error, ()) = soon(async { tokio::join!(running, ending) }).await;
    assert_eq!(error.code().unwrap().code(), "57P01");
    drop(other);
    relay.until_at_rest().await;
    // The whole server: idle sessions and running statements are told, later clients refused.
    let mut idle = raw::session(relay.port);
    cluster.tell("stop");
    let words = raw::until_ready(&mut idle);
    assert_eq!(raw::sqlstate(&words).unwrap(), "57P01");
    let refused = super::relay::connect(relay.port, "user=postgres")
        .await
        .err()
        .unwrap();
    assert_eq!(refused.code().unwrap().code(), "57P03");
    cluster.tell("start");
    let client = relay.client().await;
    // One that dies without a word.
    let mut dying = raw::session(relay.port);
    dying
        .write_all(&raw::query("select pg_backend_pid()"))
        .unwrap();
    let answer = raw::until_ready(&mut dying);
    let (_, row) = answer.iter().find(|(tag, _)| *tag == b'D').unwrap();
    let pid = String::from_utf8_lossy(&row[6..]).into_owned();
    dying.write_all(&raw::query("select pg_sleep(60)")).unwrap();
    relay.until("running", |gate| gate.active == 1).await;
    assert!(
        std::process::Command::new("kill")
            .args(["-9", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(
        raw::sqlstate(&raw::until_ready(&mut dying)).unwrap(),
        "08006"
    );
    drop(client);
    relay.until_at_rest().await;
}

/// Terminates the backend `pid`; false if there is none.
async fn client_is_there(client: &tokio_postgres::Client, pid: i32) -> bool {
    client
        .query_one("select pg_terminate_backend($1)", &[&pid])
        .await
        .unwrap()
        .get(0)
}

#[tokio::test]
async fn the_end_of_the_relay_waits_for_transactions() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let mut relay = Relay::open(cluster);
    let mut idle = raw::session(relay.port);
    let mut client = relay.client().await;
    let transaction = client.transaction().await.unwrap();
    transaction.batch_execute("select 1").await.unwrap();
    relay.shut_down();
    assert_eq!(
        raw::sqlstate(&raw::until_ready(&mut idle)).unwrap(),
        "57P01"
    );
    transaction.batch_execute("select 2").await.unwrap();
    transaction.commit().await.unwrap();
    // The order reaches one session after the other.
    let mut more = 0;
    while client.batch_execute("select 3").await.is_ok() {
        more += 1;
        assert!(more < 10_000, "a busy client keeps the relay from ending");
    }
    relay.join();
    assert_eq!(relay.registry.open(), 0);
}

#[test]
fn whoever_is_left_when_the_time_is_over_is_told() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let mut relay = Relay::start(cluster.port, GateConfig::default(), |config| {
        config.relay.limits.drain_time_max = Duration::from_millis(200);
    });
    let mut idle = raw::session(relay.port);
    let mut open = raw::session(relay.port);
    open.write_all(&raw::query("begin")).unwrap();
    raw::until_ready(&mut open);
    let mut busy = raw::session(relay.port);
    busy.write_all(&raw::query("select pg_sleep(600)")).unwrap();
    relay.shut_down();
    for socket in [&mut idle, &mut open, &mut busy] {
        let words = raw::until_ready(socket);
        assert_eq!(raw::sqlstate(&words).as_deref(), Some("57P01"));
    }
    drop((idle, open, busy));
    relay.join();
}

#[test]
fn a_client_that_has_said_nothing_does_not_keep_the_relay_from_ending() {
    let mut relay = Relay::start(free_port(), GateConfig::default(), |config| {
        config.relay.limits.authentication_time_max = Duration::from_secs(3600);
        config.relay.limits.drain_time_max = Duration::from_secs(3600);
    });
    let mut silent = raw::connect(relay.port);
    while relay.registry.open() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    relay.shut_down();
    assert_eq!(raw::rest(&mut silent), b"");
    relay.join();
}

#[test]
fn nor_does_one_whose_backend_says_nothing_once_the_time_is_over() {
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = backend.local_addr().unwrap().port();
    let mut relay = Relay::start(port, GateConfig::default(), |config| {
        config.relay.limits.authentication_time_max = Duration::from_secs(3600);
        config.relay.limits.drain_time_max = Duration::from_millis(100);
    });
    let mut client = raw::connect(relay.port);
    client
        .write_all(b"\0\0\0\x10\0\x03\0\0user\0a\0\0")
        .unwrap();
    let _silent = backend.accept().unwrap();
    relay.shut_down();
    assert_eq!(raw::rest(&mut client), b"");
    relay.join();
}
