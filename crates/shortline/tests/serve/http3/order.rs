//! The order in which responses leave over HTTP/3. What is asserted is an order or a count, never how long something took.

use std::time::Duration;

use super::client::{Client, config, endpoint, get, rest, start, until};
use crate::admin::status;
use crate::client::get as get_plain;
use crate::process::{Server, Site, pattern};
use crate::tls;

const LARGE_BYTES: usize = 1_000_000;
const SLOW: [&str; 3] = ["--uplink", "400kbit", "--uplink-loopback"];

fn jobs(server: &Server) -> u64 {
    let told = tokio::task::block_in_place(|| status(server));
    told["link"]["jobs"].as_u64().unwrap()
}

fn grants(server: &Server) -> u64 {
    let told = tokio::task::block_in_place(|| status(server));
    told["link"]["grants_total"].as_u64().unwrap()
}

/// Twenty seconds of the uplink: the large response cannot be done when the small one is.
#[tokio::test(flavor = "multi_thread")]
async fn a_small_response_overtakes_a_large_one_of_its_connection() {
    let site = Site::new();
    for mode in [&["--link-mode", "paced"][..], &["--policy", "srpt"]] {
        let server = start(&site, &[&SLOW[..], mode].concat());
        let client = Client::connect(&site, server.address()).await;
        let mut large = client.begin(get("/large.bin")).await;
        assert_eq!(large.recv_response().await.unwrap().status(), 200);
        assert!(large.recv_data().await.unwrap().is_some());
        for _ in 0..3 {
            assert_eq!(client.get("/hello.txt").await.body, b"hello\n");
        }
        assert_eq!(jobs(&server), 1, "the large response is still under way");
        assert!(large.recv_data().await.unwrap().is_some(), "and goes on");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_response_overtakes_those_of_other_connections() {
    let site = Site::new();
    let server = start(&site, &SLOW);
    let mut held = Vec::new();
    for number in 1..=3 {
        let client = Client::connect(&site, server.address()).await;
        let large = client.begin(get("/large.bin")).await;
        until("its job", || jobs(&server) == number).await;
        held.push((client, large));
    }
    let client = Client::connect(&site, server.address()).await;
    assert_eq!(client.get("/hello.txt").await.body, b"hello\n");
    assert_eq!(jobs(&server), 3);
    // TCP is in the same queue.
    let address = server.address();
    let tcp = tls::client_config(&site, rustls::ALL_VERSIONS, "http/1.1");
    let over_tcp = tokio::task::spawn_blocking(move || tls::get_over(address, tcp, "/hello.txt"));
    assert_eq!(over_tcp.await.unwrap().body, b"hello\n");
    assert_eq!(jobs(&server), 3);
}

/// What QUIC keeps between the grant and the wire is bounded: what waits in there no small response overtakes.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_granted_to_a_client_that_takes_nothing() {
    let site = Site::new();
    for mode in [&["--uplink", "1gbit"][..], &["--link-mode", "slots"], &[]] {
        let server = start(&site, &[&["--uplink-loopback"], mode].concat());
        let window_bytes = 100_000;
        let own = endpoint("127.0.0.1:0");
        let client = Client::over(&own, config(&site, window_bytes), server.address()).await;
        let mut large = client.begin(get("/large.bin")).await;
        assert_eq!(large.recv_response().await.unwrap().status(), 200);
        let (mut before, mut granted) = (0, grants(&server));
        while before != granted {
            tokio::time::sleep(Duration::from_millis(200)).await;
            (before, granted) = (granted, grants(&server));
        }
        // No more than the window and a grant for what it does not hold: a grant has 1448 bytes at least.
        assert!(
            granted <= u64::from(window_bytes) / 1448 + 8,
            "{mode:?}: {granted}"
        );
        assert_eq!(jobs(&server), 1);
        // Other responses of the connection go on meanwhile.
        assert_eq!(client.get("/hello.txt").await.body, b"hello\n");
        let whole = rest_of(&mut large).await;
        assert!(whole == pattern(LARGE_BYTES));
    }
}

async fn rest_of(stream: &mut super::client::Stream) -> Vec<u8> {
    use bytes::Buf;
    let mut body = Vec::new();
    while let Some(mut data) = stream.recv_data().await.unwrap() {
        body.extend_from_slice(&data.copy_to_bytes(data.remaining()));
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_is_given_up_leaves_the_queue() {
    let site = Site::new();
    let server = start(&site, &SLOW);
    let client = Client::connect(&site, server.address()).await;
    let mut large = client.begin(get("/large.bin")).await;
    assert_eq!(large.recv_response().await.unwrap().status(), 200);
    large.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
    until("no job", || jobs(&server) == 0).await;
    assert_eq!(client.get("/hello.txt").await.body, b"hello\n");
    // One that still waits for its first grant, too.
    let _first = client.begin(get("/large.bin")).await;
    let mut second = client.begin(get("/large.bin")).await;
    until("two jobs", || jobs(&server) == 2).await;
    second.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
    until("one job", || jobs(&server) == 1).await;
}

/// A client that knocks a thousand times a second would take the uplink from all others.
#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_is_a_job_of_the_link() {
    let site = Site::new();
    let server = start(&site, &["--uplink-loopback", "--uplink", "10mbit"]);
    assert_eq!(grants(&server), 0);
    let client = Client::connect(&site, server.address()).await;
    assert_eq!(grants(&server), 1, "no request was sent");
    assert_eq!(client.get("/hello.txt").await.body, b"hello\n");
    assert_eq!(grants(&server), 2);
    let metrics = tokio::task::block_in_place(|| get_plain(server.admin.unwrap(), "/metrics").body);
    assert!(String::from_utf8(metrics).unwrap().contains("shortline_"));
    let mut stream = client.begin(get("/hello.txt")).await;
    stream.finish().await.unwrap();
    assert_eq!(rest(&mut stream).await.unwrap().body, b"hello\n");
}
