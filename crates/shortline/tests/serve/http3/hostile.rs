//! Clients over QUIC that mean harm, or are merely broken.

use std::net::UdpSocket;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::{Request, StatusCode};
use quinn::{ConnectionError, VarInt};

use super::client::{Client, config, endpoint, get, shake_hands, start, until};
use super::relay::Relay;
use crate::admin::status;
use crate::process::{Server, Site};

fn number(server: &Server, path: &[&str]) -> u64 {
    let told = tokio::task::block_in_place(|| status(server));
    let found = path.iter().fold(&told, |value, key| &value[*key]);
    found.as_u64().unwrap()
}

fn connections(server: &Server) -> u64 {
    number(server, &["server", "connections", "open"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_acknowledges_nothing_holds_little_and_is_let_go() {
    let site = Site::new();
    for mode in [&["--uplink-loopback"][..], &["--link-mode", "off"]] {
        let server = start(&site, &[&["--stall-time-max", "1s"], mode].concat());
        let relay = Relay::start(server.address());
        let own = endpoint("127.0.0.1:0");
        let client = Client::over(&own, config(&site, 1 << 24), relay.address).await;
        assert_eq!(client.get("/hello.txt").await.body, b"hello\n");
        // From the first packets of the answer on the server hears nothing.
        let at_cut_bytes = relay.to_client_bytes.load(Ordering::SeqCst) + 8_000;
        relay.cut_at_bytes.store(at_cut_bytes, Ordering::SeqCst);
        let large = client.begin(get("/large.bin")).await;
        until("the end of the connection", || connections(&server) == 0).await;
        let sent_bytes = relay.to_client_bytes.load(Ordering::SeqCst) - at_cut_bytes;
        assert!(sent_bytes < 400_000, "{sent_bytes} bytes went to nobody");
        assert_eq!(number(&server, &["link", "jobs"]), 0);
        drop(large);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_has_as_many_connections_as_over_tcp_and_proves_that_it_is_its_own() {
    let site = Site::new();
    let server = start(&site, &["--connections-per-address-max", "2"]);
    let first = Client::connect(&site, server.address()).await;
    let relay = Relay::start(server.address());
    let own = endpoint("127.0.0.1:0");
    let second = Client::over(&own, config(&site, 1 << 20), relay.address).await;
    assert!(
        relay.retries.load(Ordering::SeqCst) > 0,
        "the second must prove its address"
    );
    let own = endpoint("127.0.0.1:0");
    let third = shake_hands(&own, config(&site, 1 << 20), server.address());
    match third.await {
        Err(ConnectionError::ConnectionClosed(_)) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(number(&server, &["server", "connections_refused_total"]), 1);
    let elsewhere = endpoint("127.0.0.2:0");
    let elsewhere = Client::over(&elsewhere, config(&site, 1 << 20), server.address()).await;
    for client in [&first, &second, &elsewhere] {
        assert_eq!(client.get("/hello.txt").await.status, StatusCode::OK);
    }
    drop(first);
    until("room", || connections(&server) == 2).await;
    let again = Client::connect(&site, server.address()).await;
    assert_eq!(again.get("/hello.txt").await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_connections_together_are_bounded() {
    let site = Site::new();
    let server = start(&site, &["--connections-max", "1"]);
    let first = Client::connect(&site, server.address()).await;
    let own = endpoint("127.0.0.2:0");
    let second = shake_hands(&own, config(&site, 1 << 20), server.address());
    assert!(second.await.is_err());
    assert_eq!(first.get("/hello.txt").await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_beyond_the_limit_is_refused_and_what_never_ends_too() {
    let site = Site::new();
    let server = start(&site, &[]);
    let client = Client::connect(&site, server.address()).await;
    let request = Request::get("https://localhost/hello.txt").header("x", "y".repeat(100_000));
    let refused = client.ask(request.body(()).unwrap(), &[]).await;
    if let Ok(answer) = &refused {
        assert_eq!(answer.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    assert_eq!(client.get("/hello.txt").await.status, StatusCode::OK);
    // A head (frame type 1), and a frame of unknown kind, of 1 GiB each: h3 would keep them whole.
    for kind in [0x01, 0x21] {
        let (mut send, _receive) = client.quic.open_bi().await.unwrap();
        let frame = [&[kind][..], &(0xc000_0000_4000_0000_u64).to_be_bytes()].concat();
        send.write_all(&frame).await.unwrap();
        let piece = vec![0; 10_000];
        let mut sent_bytes = 0;
        let stopped = loop {
            match send.write_all(&piece).await {
                Ok(()) => sent_bytes += piece.len(),
                Err(quinn::WriteError::Stopped(code)) => break code,
                Err(other) => panic!("{other}"),
            }
            assert!(sent_bytes < 4_000_000, "nobody stops it");
        };
        assert_eq!(stopped, VarInt::from_u32(0x107), "excessive load");
    }
    assert_eq!(client.get("/hello.txt").await.status, StatusCode::OK);
}

/// h3 keeps a number of each request, also of one that ends without a head.
#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_head_end_the_connection_after_a_while() {
    let site = Site::new();
    let server = start(&site, &[]);
    let client = Client::connect(&site, server.address()).await;
    for number in 0.. {
        assert!(number < 2000, "nobody stops it");
        let Ok((mut send, _receive)) = client.quic.open_bi().await else {
            break;
        };
        let _ = send.finish();
    }
    match client.quic.closed().await {
        ConnectionError::ApplicationClosed(closed) => {
            assert_eq!(closed.error_code.into_inner(), 0x107, "excessive load");
        }
        other => panic!("{other:?}"),
    }
    let again = Client::connect(&site, server.address()).await;
    assert_eq!(again.get("/hello.txt").await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_connections_are_malformed() {
    let site = Site::new();
    let server = start(&site, &[]);
    let client = Client::connect(&site, server.address()).await;
    for (name, value) in [
        ("connection", "close"),
        ("transfer-encoding", "chunked"),
        ("te", "gzip"),
    ] {
        let request = Request::get("https://localhost/hello.txt").header(name, value);
        let refused = client.ask(request.body(()).unwrap(), &[]).await;
        let error = refused.expect_err(name).to_string();
        assert!(error.contains("H3_MESSAGE_ERROR"), "{error}");
    }
    let trailers = Request::get("https://localhost/hello.txt").header("te", "trailers");
    let fine = client.ask(trailers.body(()).unwrap(), &[]).await.unwrap();
    assert_eq!(fine.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_ends_at_most_its_connection() {
    let site = Site::new();
    let server = start(&site, &[]);
    let other = Client::connect(&site, server.address()).await;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in [0, 1, 20, 1200, 1400] {
        for first in [0x00, 0x40, 0xc0, 0xe0, 0xff] {
            let mut packet = vec![first; length];
            // A version that is known, so that more of it is looked at.
            if length > 5 {
                packet[1..5].copy_from_slice(&[0, 0, 0, 1]);
            }
            socket.send_to(&packet, server.address()).unwrap();
        }
    }
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0xff; 100],
        &[0x00, 0x05, 1, 2, 3, 4, 5],
    ] {
        let own = endpoint("127.0.0.1:0");
        let quic = shake_hands(&own, config(&site, 1 << 20), server.address())
            .await
            .unwrap();
        let (mut send, _receive) = quic.open_bi().await.unwrap();
        send.write_all(bytes).await.unwrap();
        let mut alone = quic.open_uni().await.unwrap();
        alone.write_all(bytes).await.unwrap();
        let _ = (send.finish(), alone.finish());
        quic.closed().await;
    }
    assert_eq!(other.get("/hello.txt").await.status, StatusCode::OK);
    until("one connection", || connections(&server) == 1).await;
}

/// A body that is promised and does not come, for a file, which needs none.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_nobody_wants_is_not_waited_for() {
    let site = Site::new();
    let server = start(&site, &[]);
    let client = Client::connect(&site, server.address()).await;
    let request = Request::get("https://localhost/hello.txt").header("content-length", 100_000);
    let mut stream = client.begin(request.body(()).unwrap()).await;
    stream.send_data(Bytes::from_static(b"x")).await.unwrap();
    let answer = super::client::rest(&mut stream).await.unwrap();
    assert_eq!(answer.body, b"hello\n");
}
