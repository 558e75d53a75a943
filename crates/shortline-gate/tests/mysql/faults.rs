//! Bytes that are no protocol, clients that die, a backend that does: each gets its error or a clean
//! close, the slot returns, the others go on, and no outcome is told wrongly.

use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::gated::{Gated, PATIENCE, admission, narrow};
use crate::raw::{DEPRECATE_EOF, MYSQL, PLAIN, Raw, code, packet};
use crate::server::{Server, shared};

#[tokio::test]
async fn bytes_that_begin_no_session_are_told_or_left() {
    let Some(server) = shared() else { return };
    let gated = Gated::with(server.address, narrow(), |config| {
        config.limits.authentication_time_max = Duration::from_secs(2);
    })
    .await;
    let cases: [(&[u8], Option<u16>); 9] = [
        (b"GET / HTTP/1.1\r\n\r\n", Some(1156)),
        // The beginnings of TLS and of PostgreSQL.
        (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", Some(1156)),
        (b"\0\0\0\x08\x04\xd2\x16\x2f", Some(1156)),
        (b"\xff\xff\xff\x01", Some(1043)),
        (&packet(1, b"no"), Some(1043)),
        (&packet(1, &[0; 40]), Some(1043)),
        (&[0xff; 64], Some(1156)),
        // Cut short: left when its time is over.
        (&packet(1, &[0; 40])[..20], None),
        (b"", None),
    ];
    for (bytes, expected) in cases {
        let mut client = Raw {
            socket: TcpStream::connect(gated.address).await.unwrap(),
        };
        assert_eq!(client.read().await.1[0], 10);
        client.socket.write_all(bytes).await.unwrap();
        let told = match expected {
            Some(_) => code(&client.read().await.1),
            None => None,
        };
        assert_eq!(told, expected, "{bytes:?}");
        let closed = tokio::time::timeout(PATIENCE, client.is_closed()).await;
        assert_eq!(closed, Ok(true), "{bytes:?}");
    }
    assert!(gated.end().await);
}

#[tokio::test]
async fn messages_are_limited() {
    let Some(server) = shared() else { return };
    let gated = Gated::with(server.address, narrow(), |config| {
        config.limits.message_bytes_max = 20_000_000;
    })
    .await;
    let mut client = Raw::connect(gated.address, PLAIN | MYSQL).await;
    client.query("SELECT 1").await;
    client.read_all().await;
    let full = vec![b' '; 0xff_ffff];
    let (mut reader, mut writer) = client.socket.split();
    let writing = async {
        // The gate closes in between.
        let _ = writer
            .write_all(&packet(0, &[b"\x03".as_slice(), &full[1..]].concat()))
            .await;
        let _ = writer.write_all(&packet(1, &full)).await;
        std::future::pending::<()>().await;
    };
    let mut answer = Vec::new();
    tokio::select! {
        () = writing => {}
        read = tokio::time::timeout(PATIENCE, reader.read_to_end(&mut answer)) => {
            read.unwrap().unwrap();
        }
    }
    assert_eq!(code(&answer[4..]), Some(1153));
    gated.until_empty().await;
}

#[tokio::test]
async fn one_connection_too_many_is_told() {
    let Some(server) = shared() else { return };
    let gated = Gated::with(server.address, narrow(), |config| {
        config.limits.connections_max = 1
    })
    .await;
    let mut first = Raw::connect(gated.address, PLAIN | MYSQL).await;
    let mut second = Raw {
        socket: TcpStream::connect(gated.address).await.unwrap(),
    };
    assert_eq!(code(&second.read().await.1), Some(1040));
    assert!(second.is_closed().await);
    first.query("DO 1").await;
    assert_eq!(first.read().await.1[0], 0);
}

#[tokio::test]
async fn a_client_that_dies_gives_its_place_back() {
    let Some(server) = shared() else { return };
    server.query("CREATE TABLE shop.died (a INT)");
    let gated = Gated::new(server.address, narrow()).await;
    let held = gated.gate.admit(gated.gate.type_of("hold")).await.unwrap();
    // In the queue.
    let mut queued = Raw::connect(gated.address, PLAIN | MYSQL).await;
    queued.query("INSERT INTO shop.died VALUES (1)").await;
    gated.until("waiting", |now| now.waiting == 1).await;
    drop(queued);
    gated.until("left", |now| now.waiting == 0).await;
    drop(held);
    // In a transaction.
    let mut idle = Raw::connect(gated.address, PLAIN | MYSQL).await;
    idle.query("BEGIN").await;
    idle.query("INSERT INTO shop.died VALUES (2)").await;
    gated
        .until("idle", |now| (now.running, now.active) == (1, 0))
        .await;
    drop(idle);
    gated.until_empty().await;
    // In the middle of a command, of a file, of rows that nobody reads.
    let mut cut = Raw::connect(gated.address, PLAIN | MYSQL).await;
    let whole = packet(0, b"\x03INSERT INTO shop.died VALUES (3)");
    cut.socket.write_all(&whole[..20]).await.unwrap();
    drop(cut);
    let mut loader = Raw::connect(gated.address, PLAIN | MYSQL).await;
    loader
        .query("LOAD DATA LOCAL INFILE 'x' INTO TABLE shop.died")
        .await;
    assert_eq!(loader.read().await.1[0], 0xfb);
    loader.write(2, b"4\n").await;
    drop(loader);
    gated.until_empty().await;
    let mut reader = Raw::connect(gated.address, PLAIN | MYSQL).await;
    reader
        .query("SELECT REPEAT('a', 1000) FROM shop.seq_1_to_1000000")
        .await;
    gated.until("running", |now| now.running == 1).await;
    reader.read().await;
    drop(reader);
    gated.until_empty().await;
    // A command that was not sent whole is not carried out, nor is a file.
    assert_eq!(server.query("SELECT COUNT(*) FROM shop.died"), "0\n");
    gated.until("closed", |_| gated.registry.open() == 0).await;
    assert!(gated.end().await);
}

#[tokio::test]
async fn a_backend_that_is_killed_is_found_again() {
    let Some(mut server) = Server::own() else {
        return;
    };
    let gated = Gated::new(server.address, narrow()).await;
    let mut runs = gated.connect().await;
    let mut waits = gated.connect().await;
    let mut idle = gated.connect().await;
    let runs = tokio::spawn(async move { runs.query_drop("SELECT SLEEP(60)").await });
    gated.until("running", |now| now.running == 1).await;
    let waits = tokio::spawn(async move { waits.query_drop("SELECT 1").await });
    gated.until("waiting", |now| now.waiting == 1).await;
    server.kill();
    assert!(runs.await.unwrap().is_err());
    assert!(waits.await.unwrap().is_err());
    assert!(idle.query_drop("SELECT 1").await.is_err());
    gated.until_empty().await;
    let mut refused = Raw {
        socket: TcpStream::connect(gated.address).await.unwrap(),
    };
    assert_eq!(code(&refused.read().await.1), Some(1429));
    server.run();
    let mut conn = gated.connect().await;
    let answer: Option<u8> = conn.query_first("SELECT 1").await.unwrap();
    assert_eq!(answer, Some(1));
    gated.until_empty().await;
}

/// A server's kernel that has forgotten the first connection: it stays open, and nobody greets.
#[tokio::test]
async fn a_connection_that_nobody_greets_is_made_anew() {
    let Some(server) = shared() else { return };
    let forgetful = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = forgetful.local_addr().unwrap();
    let backend = server.address;
    let passing = tokio::spawn(async move {
        let _forgotten = forgetful.accept().await.unwrap();
        let (mut second, _) = forgetful.accept().await.unwrap();
        let mut backend = TcpStream::connect(backend).await.unwrap();
        tokio::io::copy_bidirectional(&mut second, &mut backend)
            .await
            .unwrap();
    });
    let gated = Gated::with(address, narrow(), |config| {
        config.limits.connect_time_max = Duration::from_secs(3);
    })
    .await;
    let mut conn = gated.connect().await;
    let answer: Option<u8> = conn.query_first("SELECT 1").await.unwrap();
    assert_eq!(answer, Some(1));
    conn.disconnect().await.unwrap();
    passing.await.unwrap();
}

#[tokio::test]
async fn the_end_lets_transactions_end() {
    let Some(server) = shared() else { return };
    server.query("CREATE TABLE shop.ended (a INT)");
    let gated = Gated::new(server.address, narrow()).await;
    let mut conn = gated.connect().await;
    let mut idle = gated.connect().await;
    let mut queued = gated.connect().await;
    conn.query_drop("BEGIN").await.unwrap();
    conn.query_drop("INSERT INTO shop.ended VALUES (1)")
        .await
        .unwrap();
    let _hold = gated.gate.admit(gated.gate.type_of("hold")).await.unwrap();
    let queued = tokio::spawn(async move { queued.query_drop("SELECT 1").await });
    gated.until("queued", |now| now.waiting == 1).await;
    let ending = tokio::spawn(gated.end());
    assert!(queued.await.unwrap().is_err());
    while idle.query_drop("DO 1").await.is_ok() {}
    conn.query_drop("COMMIT").await.unwrap();
    assert!(ending.await.unwrap());
    assert_eq!(server.query("SELECT a FROM shop.ended"), "1\n");
}

/// Of a client and of one that compresses: idle, with a transaction open, and in a statement, when
/// the time to drain is over.
#[tokio::test]
async fn whoever_is_left_at_the_end_is_told() {
    let Some(server) = shared() else { return };
    let gated = Gated::with(server.address, admission("1h"), |config| {
        config.limits.drain_time_max = Duration::from_millis(200);
    })
    .await;
    let mut idle = Raw::connect(gated.address, PLAIN | MYSQL).await;
    let mut open = Raw::connect(gated.address, PLAIN | MYSQL).await;
    open.query("BEGIN").await;
    open.read().await;
    let mut busy = Raw::connect(gated.address, PLAIN | MYSQL).await;
    busy.query("SELECT SLEEP(600)").await;
    let mut compressed = gated
        .try_connect(|options| options.compression(Some(mysql_async::Compression::default())))
        .await
        .unwrap();
    compressed.query_drop("DO 1").await.unwrap();
    gated.until("busy", |now| now.active == 1).await;
    let ending = tokio::spawn(gated.end());
    for client in [&mut idle, &mut open, &mut busy] {
        let (sequence, payload) = client.read().await;
        // As the answer to what was asked, or would be next.
        assert_eq!((sequence, code(&payload)), (1, Some(1053)));
        assert!(client.is_closed().await);
    }
    let told = compressed.query_drop("DO 1").await.unwrap_err();
    assert_eq!(crate::gated::code(&told), Some(1053), "{told}");
    drop(compressed);
    assert!(ending.await.unwrap());
}

#[tokio::test]
async fn a_client_that_has_said_nothing_is_told_and_keeps_nobody_from_ending() {
    let Some(server) = shared() else { return };
    let gated = Gated::with(server.address, narrow(), |config| {
        config.limits.authentication_time_max = Duration::from_secs(3600);
        config.limits.drain_time_max = Duration::from_secs(3600);
    })
    .await;
    let mut silent = Raw {
        socket: TcpStream::connect(gated.address).await.unwrap(),
    };
    assert_eq!(silent.read().await.1[0], 10);
    let ending = tokio::spawn(gated.end());
    assert_eq!(code(&silent.read().await.1), Some(1053));
    assert!(silent.is_closed().await);
    drop(silent);
    assert!(ending.await.unwrap());
}

/// A server that answers, byte by byte, with delays: pieces cut anywhere.
#[tokio::test]
async fn a_slow_server_is_followed() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let greeting =
            b"\x0a8.0.0\0\x07\0\0\0abcdefgh\0\xff\xf7\x2d\x02\0\xff\x81\x15\0\0\0\0\0\0\0\0\0\0\
            ijklmnopqrst\0mysql_native_password\0";
        let replies = [
            packet(0, greeting),
            packet(2, b"\0\0\0\x02\0\0\0"),
            [
                packet(1, b"\x01"),
                packet(2, b"\x03def"),
                packet(3, b"\x011"),
                packet(4, b"\xfe\0\0\x02\0\0\0"),
            ]
            .concat(),
        ];
        for reply in replies {
            for byte in reply {
                socket.write_all(&[byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
            assert!(socket.read(&mut [0; 1024]).await.unwrap() > 0);
        }
        // It closes in the middle of a packet.
        socket.write_all(b"\x05\0\0").await.unwrap();
    });
    let gated = Arc::new(Gated::new(address, narrow()).await);
    let mut client = Raw::connect(gated.address, PLAIN | MYSQL | DEPRECATE_EOF).await;
    client.query("SELECT 1").await;
    for expected in [&b"\x01"[..], b"\x03def", b"\x011", b"\xfe\0\0\x02\0\0\0"] {
        assert_eq!(client.read().await.1, expected);
    }
    gated.until_empty().await;
    client.query("SELECT 2").await;
    let mut rest = Vec::new();
    client.socket.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"\x05\0\0");
    gated.until_empty().await;
}
