//! HTTP/2, with prior knowledge and by ALPN; and the conformance suite h2spec.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::bad_requests::refuse_pseudo_trailers;
use crate::client::get;
use crate::piped;
use crate::process::{PATIENCE, Server, Site, pattern};
use crate::tls;

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> SendRequest<Bytes> {
    // One stream's window does not take up the connection's.
    let mut builder = h2::client::Builder::new();
    builder.initial_connection_window_size(1 << 20);
    let (client, connection) = builder.handshake(stream).await.unwrap();
    tokio::spawn(async move {
        // It ends with the client.
        let _ = connection.await;
    });
    client
}

/// The body of a response, as far as it came, and whether it came whole.
async fn fetch(client: &mut SendRequest<Bytes>, path: &str) -> (u16, Vec<u8>, bool) {
    fetch_and(client, path, || {}).await
}

/// The same; does something once the first bytes are here.
async fn fetch_and(
    client: &mut SendRequest<Bytes>,
    path: &str,
    begun: impl FnOnce(),
) -> (u16, Vec<u8>, bool) {
    let request = Request::get(format!("http://a{path}")).body(()).unwrap();
    let mut ready = client.clone().ready().await.unwrap();
    let (response, _) = ready.send_request(request, true).unwrap();
    let response = response.await.unwrap();
    let status = response.status().as_u16();
    let mut stream = response.into_body();
    let mut body = Vec::new();
    let mut begun = Some(begun);
    while let Some(data) = stream.data().await {
        if let Some(begun) = begun.take() {
            begun();
        }
        let Ok(data) = data else {
            return (status, body, false);
        };
        stream.flow_control().release_capacity(data.len()).unwrap();
        body.extend_from_slice(&data);
    }
    (status, body, true)
}

async fn connect(address: SocketAddr) -> SendRequest<Bytes> {
    handshake(TcpStream::connect(address).await.unwrap()).await
}

#[tokio::test]
async fn streams_share_a_connection() {
    let site = Site::new();
    let modes: [&[&str]; 3] = [
        &["--link-mode", "off"],
        &["--uplink-loopback"],
        &["--uplink-loopback", "--uplink", "100mbit"],
    ];
    for flags in modes {
        let server = Server::start(&site, flags);
        let client = connect(server.address()).await;
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..40 {
            let mut client = client.clone();
            tasks.spawn(async move {
                if number % 8 == 0 {
                    let (status, body, whole) = fetch(&mut client, "/large.bin").await;
                    assert!(status == 200 && whole && body == pattern(1_000_000));
                } else {
                    let (status, body, whole) = fetch(&mut client, "/hello.txt").await;
                    assert!(status == 200 && whole && body == b"hello\n");
                }
            });
        }
        tasks.join_all().await;
    }
}

#[tokio::test]
async fn alpn_chooses_http_2() {
    let site = Site::new();
    let server = tls::start(&site, &["--uplink-loopback"]);
    let config = tls::client_config(&site, rustls::ALL_VERSIONS, "h2");
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = tokio_rustls::TlsConnector::from(config)
        .connect(name, stream)
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (status, body, whole) = fetch(&mut handshake(stream).await, "/large.bin").await;
    assert!(status == 200 && whole && body == pattern(1_000_000));
}

/// The other request of the connection waits for the place at the backend that the response which nobody takes has. So not all of the
/// connection's responses wait for its client, and it is not closed.
#[tokio::test]
async fn a_response_that_nobody_takes_leaves_its_backend_to_others() {
    let site = Site::new();
    let flags = ["--uplink-loopback", "--stall-time-max", "1s"];
    let keys = "connections-max = 1";
    let server = piped::start(&site, &flags, keys);
    let mut client = connect(server.address()).await;
    let request = Request::get("http://a/tcp/3000001").body(()).unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    let mut held = response.await.unwrap().into_body();
    let asked = fetch(&mut client, "/tcp/10");
    let (status, body, whole) = tokio::time::timeout(PATIENCE, asked).await.unwrap();
    assert!(status == 200 && whole && body == pattern(10));
    // What came stays here, so that the window stays closed.
    let reset = loop {
        if let Err(error) = held.data().await.expect("the end of the stream") {
            break error;
        }
    };
    assert!(reset.is_reset(), "{reset}");
}

#[tokio::test]
async fn a_file_cut_short_resets_its_stream_only() {
    let site = Site::new();
    let slow = [
        "--uplink",
        "4mbit",
        "--uplink-loopback",
        "--cache-file-size-max",
        "0",
    ];
    let server = Server::start(&site, &slow);
    let mut client = connect(server.address()).await;
    let mut other = client.clone();
    let path = site.root().join("large.bin");
    let cut = || {
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(1000).unwrap();
    };
    let (_, _, whole) = fetch_and(&mut client, "/large.bin", cut).await;
    assert!(!whole);
    let (status, body, whole) = fetch(&mut other, "/hello.txt").await;
    assert!(status == 200 && whole && body == b"hello\n");
}

#[tokio::test]
async fn a_stream_that_is_reset_leaves_the_queue() {
    let site = Site::new();
    let server = Server::start(&site, &["--uplink", "1mbit", "--uplink-loopback"]);
    let client = connect(server.address()).await;
    let request = Request::get("http://a/large.bin").body(()).unwrap();
    let mut ready = client.clone().ready().await.unwrap();
    let (response, mut sender) = ready.send_request(request, true).unwrap();
    drop(response);
    sender.send_reset(h2::Reason::CANCEL);
    let admin = server.admin.unwrap();
    let left = tokio::task::spawn_blocking(move || {
        crate::process::wait_for("no job", || {
            let told: serde_json::Value =
                serde_json::from_slice(&get(admin, "/status").body).unwrap();
            (told["link"]["jobs"] == 0).then_some(())
        });
    });
    left.await.unwrap();
}

#[test]
fn pseudo_header_fields_in_trailers_reset_the_stream_of_a_file() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    refuse_pseudo_trailers(server.address(), "/hello.txt");
}

/// Runs h2spec, or says why not.
fn h2spec(arguments: &[&str]) {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/h2spec");
    if !tool.exists() {
        println!("skipped: no h2spec; `make h2spec` builds it, with go");
        return;
    }
    let output = Command::new(tool).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let failures = text.split("Failures:").nth(1).unwrap_or_default();
    assert!(output.status.success(), "{failures}");
    assert!(text.contains(" 0 failed"), "{text}");
}

#[test]
fn h2spec_passes_over_tls() {
    let site = Site::new();
    let server = tls::start(&site, &["--uplink-loopback"]);
    let port = server.address().port().to_string();
    h2spec(&["-t", "-k", "-h", "127.0.0.1", "-p", &port]);
}

#[test]
fn h2spec_passes_with_prior_knowledge() {
    let site = Site::new();
    let server = Server::start(&site, &["--uplink", "100mbit", "--uplink-loopback"]);
    let port = server.address().port().to_string();
    // All but http2/3.5/2, which sends `INVALID CONNECTION PREFACE` and wants the connection closed
    // without a byte. On a port that also speaks HTTP/1.1 this is a malformed HTTP/1.1 request: it
    // gets its 400, then the connection is closed (malformed.rs). RFC 9113 3.4 allows both: who
    // sends no preface does not speak HTTP/2. Over TLS, where ALPN has chosen HTTP/2, it is run.
    let sections = [
        "generic",
        "hpack",
        "http2/3.5/1",
        "http2/4",
        "http2/5",
        "http2/6",
        "http2/7",
        "http2/8",
    ];
    h2spec(&[&sections[..], &["-h", "127.0.0.1", "-p", &port]].concat());
}

/// What h2 throws away when its stream is reset is never written: the connection must be found
/// able to send nevertheless.
#[tokio::test]
async fn resets_leave_the_connection_able_to_send() {
    let site = Site::new();
    let server = Server::start(&site, &["--uplink", "1gbit", "--uplink-loopback"]);
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let (client, connection) = h2::client::Builder::new()
        .initial_window_size(1 << 30)
        .initial_connection_window_size(1 << 30)
        // What was under way to a stream that is gone counts as an error of the peer's. A slow
        // client has thousands of such frames, and this one would end the connection itself.
        .max_local_error_reset_streams(None)
        .handshake::<_, Bytes>(stream)
        .await
        .unwrap();
    tokio::spawn(async move {
        let _ = connection.await;
    });
    for round in 0..100u64 {
        let mut senders = Vec::new();
        for _ in 0..8 {
            let request = Request::get("http://a/large.bin").body(()).unwrap();
            let mut ready = client.clone().ready().await.unwrap();
            senders.push(ready.send_request(request, true).unwrap());
        }
        tokio::time::sleep(std::time::Duration::from_micros(round * 37)).await;
        for (_, sender) in &mut senders {
            sender.send_reset(h2::Reason::CANCEL);
        }
        drop(senders);
        let mut other = client.clone();
        let answer = tokio::time::timeout(PATIENCE, fetch(&mut other, "/hello.txt"));
        let (status, _, whole) = answer
            .await
            .unwrap_or_else(|_| panic!("hangs in round {round}"));
        assert!(status == 200 && whole);
    }
}
