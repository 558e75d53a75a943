//! HTTP/3 while the server ends, reloads and leaves its place, and while a client changes its address.

use std::net::UdpSocket;
use std::process::Command;

use http::StatusCode;
use quinn::ConnectionError;
use rustix::process::Signal;

use super::client::{Client, config, endpoint, get, rest, shake_hands, start, until};
use crate::process::{PROGRAM, Server, Site, pattern};
use crate::tls::write_certificate;

const LARGE_BYTES: usize = 1_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_lets_responses_finish_and_ends_idle_connections() {
    let site = Site::new();
    let mut server = start(&site, &["--uplink", "8mbit", "--uplink-loopback"]);
    let busy = Client::connect(&site, server.address()).await;
    let idle = Client::connect(&site, server.address()).await;
    let mut large = busy.begin(get("/large.bin")).await;
    large.finish().await.unwrap();
    until("the response", || busy.quic.stats().udp_rx.bytes > 20_000).await;
    server.signal(Signal::TERM);
    match idle.quic.closed().await {
        ConnectionError::ApplicationClosed(closed) => {
            assert_eq!(closed.error_code.into_inner(), 0x100, "no error");
        }
        other => panic!("{other:?}"),
    }
    let whole = rest(&mut large).await.unwrap();
    assert!(whole.body == pattern(LARGE_BYTES));
    let ended = tokio::task::block_in_place(|| server.wait());
    assert!(ended.success(), "{:?}", server.said);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deadline_ends_a_response_that_takes_longer() {
    let site = Site::new();
    let flags = [
        "--uplink",
        "100kbit",
        "--uplink-loopback",
        "--drain",
        "200ms",
    ];
    let mut server = start(&site, &flags);
    let client = Client::connect(&site, server.address()).await;
    let mut large = client.begin(get("/large.bin")).await;
    assert_eq!(
        large.recv_response().await.unwrap().status(),
        StatusCode::OK
    );
    server.signal(Signal::TERM);
    assert!(rest_fails(&mut large).await, "it does not look whole");
    let ended = tokio::task::block_in_place(|| server.wait());
    assert!(ended.success());
}

async fn rest_fails(stream: &mut super::client::Stream) -> bool {
    loop {
        match stream.recv_data().await {
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// A server with a file of settings, which the test writes anew.
pub fn spawn(site: &Site, text: &str) -> Server {
    std::fs::write(site.beside("a.toml"), text).unwrap();
    let mut command = Command::new(PROGRAM);
    command
        .arg("serve")
        .arg("--config")
        .arg(site.beside("a.toml"));
    Server::spawn(&mut command)
}

fn settings(site: &Site, address: &str, http3: bool, more: &str) -> String {
    let (cert, key) = (site.beside("site.crt"), site.beside("site.key"));
    format!(
        "[[listen]]\naddress = \"{address}\"\ntls-cert = \"{}\"\ntls-key = \"{}\"\nhttp3 = {http3}\n\
         [site]\nroot = \"{}\"\n{more}",
        cert.display(),
        key.display(),
        site.root().display()
    )
}

/// An address of this process alone, so that no other test takes its port.
fn own_address(last: u8) -> String {
    let [.., high, low] = std::process::id().to_be_bytes();
    let host = format!("127.{}.{high}.{low}", 100 + last);
    let held = std::net::TcpListener::bind((host.as_str(), 0)).unwrap();
    held.local_addr().unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_turns_it_on_and_off_and_shows_a_new_certificate() {
    let site = Site::new();
    write_certificate(&site);
    let address = own_address(0);
    let without = settings(&site, &address, false, "");
    let with = settings(&site, &address, true, "");
    let mut server = spawn(&site, &without);
    let at = server.address();
    std::fs::write(site.beside("a.toml"), &with).unwrap();
    server.signal(Signal::HUP);
    let line = tokio::task::block_in_place(|| server.line_with("listening on"));
    assert!(line.contains("(https, http3)"), "{line}");
    tokio::task::block_in_place(|| server.line_with("reloaded"));
    let first = Client::connect(&site, at).await;
    assert_eq!(first.get("/hello.txt").await.status, StatusCode::OK);

    write_certificate(&site);
    server.signal(Signal::HUP);
    tokio::task::block_in_place(|| server.line_with("reloaded"));
    let second = Client::connect(&site, at).await;
    assert_eq!(second.get("/hello.txt").await.status, StatusCode::OK);
    assert_eq!(first.get("/hello.txt").await.status, StatusCode::OK);

    std::fs::write(site.beside("a.toml"), &without).unwrap();
    server.signal(Signal::HUP);
    tokio::task::block_in_place(|| server.line_with("reloaded"));
    assert_eq!(
        first.get("/hello.txt").await.status,
        StatusCode::OK,
        "connections go on"
    );
    drop((first, second));
    until("the port to be free", || UdpSocket::bind(at).is_ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_process_takes_the_port_when_the_last_response_has_ended() {
    let site = Site::new();
    write_certificate(&site);
    let handover = format!(
        "[handover]\npath = \"unix:{}\"\n",
        site.beside("handover").display()
    );
    let slow = "[uplink]\nrate = \"4mbit\"\nloopback = true\n";
    let text = settings(&site, &own_address(1), true, &format!("{handover}{slow}"));
    let mut server = spawn(&site, &text);
    let at = server.address();
    let busy = Client::connect(&site, at).await;
    let idle = Client::connect(&site, at).await;
    let mut large = busy.begin(get("/large.bin")).await;
    large.finish().await.unwrap();
    assert_eq!(idle.get("/hello.txt").await.status, StatusCode::OK);
    let next = spawn(&site, &text);
    tokio::task::block_in_place(|| server.line_with("handing over"));
    idle.quic.closed().await;
    let whole = rest(&mut large).await.unwrap();
    assert!(whole.body == pattern(LARGE_BYTES));
    let ended = tokio::task::block_in_place(|| server.wait());
    assert!(ended.success(), "{:?}", server.said);
    for turn in 0.. {
        match shake_hands(&endpoint("127.0.0.1:0"), config(&site, 1 << 20), at).await {
            Ok(_) => break,
            Err(error) => assert!(turn < 30, "{error}"),
        }
    }
    let client = Client::connect(&site, at).await;
    assert_eq!(client.get("/hello.txt").await.status, StatusCode::OK);
    drop(next);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_change_its_address_within_a_response() {
    let site = Site::new();
    let server = start(&site, &["--uplink", "8mbit", "--uplink-loopback"]);
    let own = endpoint("127.0.0.1:0");
    let client = Client::over(&own, config(&site, 1 << 20), server.address()).await;
    let mut large = client.begin(get("/large.bin")).await;
    large.finish().await.unwrap();
    until("the response", || client.quic.stats().udp_rx.bytes > 20_000).await;
    own.rebind(UdpSocket::bind("127.0.0.2:0").unwrap()).unwrap();
    let whole = rest(&mut large).await.unwrap();
    assert!(whole.body == pattern(LARGE_BYTES));
}
