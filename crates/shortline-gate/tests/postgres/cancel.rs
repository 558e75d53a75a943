//! Cancel requests before a backend that is told when to close: the client's connection must not end
//! sooner, for it sends its next statement then, which the request could meet.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use shortline_gate::GateConfig;
use shortline_gate::postgres::ALPN;
use shortline_gate::relay::tls::{ClientTls, UpstreamTls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::raw;
use super::relay::{Relay, soon};

/// Length, code, and the key of nobody who waits here.
const REQUEST: &[u8] = b"\0\0\0\x10\x04\xd2\x16\x2eprocskey";

/// A backend, and a relay of one thread before it.
fn before_a_backend(client_tls: Option<ClientTls>) -> (TcpListener, Relay) {
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = backend.local_addr().unwrap().port();
    let relay = Relay::start(port, GateConfig::default(), |config| {
        config.relay.limits.workers = 1;
        config.relay.client_tls = client_tls;
        // It is the backend's end that is waited for.
        config.relay.limits.connect_time_max = Duration::from_secs(300);
    });
    (backend, relay)
}

/// The backend's connection, when the request has come on it.
fn asked(backend: &TcpListener) -> TcpStream {
    let (mut socket, _) = backend.accept().unwrap();
    let mut request = vec![0; REQUEST.len()];
    socket.read_exact(&mut request).unwrap();
    assert_eq!(request, REQUEST);
    socket
}

/// Has the relay's one thread do something else, and so all that it had to do before.
fn let_it_go_on(relay: &Relay) {
    let mut other = raw::connect(relay.port);
    other.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(!raw::rest(&mut other).is_empty());
}

#[test]
fn a_clients_cancel_connection_does_not_end_before_the_backends() {
    let (backend, relay) = before_a_backend(None);
    let mut client = raw::connect(relay.port);
    client.write_all(REQUEST).unwrap();
    let passed = asked(&backend);
    let_it_go_on(&relay);
    client.set_nonblocking(true).unwrap();
    let early = client.read(&mut [0; 1]).map_err(|error| error.kind());
    assert_eq!(early, Err(ErrorKind::WouldBlock));
    client.set_nonblocking(false).unwrap();
    drop(passed);
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
}

#[tokio::test]
async fn nor_does_one_with_tls_which_ends_with_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("a.crt"), folder.path().join("a.key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = ClientTls::new(shortline_tls::load(&cert, &key).unwrap(), &[ALPN], false).unwrap();
    let (backend, relay) = before_a_backend(Some(tls));
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", relay.port))
        .await
        .unwrap();
    socket
        .write_all(b"\0\0\0\x08\x04\xd2\x16\x2f")
        .await
        .unwrap();
    assert_eq!(socket.read_u8().await.unwrap(), b'S');
    let upstream_tls = UpstreamTls::require().unwrap();
    let connector = upstream_tls.connector(true).unwrap();
    let mut client = connector.connect(socket.into(), "localhost").await.unwrap();
    client.write_all(REQUEST).await.unwrap();
    client.flush().await.unwrap();
    let (backend, passed) = tokio::task::spawn_blocking(move || {
        let passed = asked(&backend);
        (backend, passed)
    })
    .await
    .unwrap();
    let_it_go_on(&relay);
    let mut byte = [0; 1];
    let early = tokio::time::timeout(Duration::from_millis(50), client.read(&mut byte)).await;
    assert!(early.is_err(), "{early:?}");
    drop((passed, backend));
    // An end without TLS's own is an error.
    assert_eq!(soon(client.read(&mut byte)).await.unwrap(), 0);
}

#[test]
fn a_backend_that_never_closes_keeps_a_cancel_for_the_time_to_connect_only() {
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = backend.local_addr().unwrap().port();
    let relay = Relay::start(port, GateConfig::default(), |config| {
        config.relay.limits.connect_time_max = Duration::from_millis(300);
    });
    let mut client = raw::connect(relay.port);
    client.write_all(REQUEST).unwrap();
    let _passed = asked(&backend);
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
}
