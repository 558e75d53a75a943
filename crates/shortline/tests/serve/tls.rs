//! TLS: versions, ALPN, and certificates exchanged while the server runs.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::Signal;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned,
    SupportedProtocolVersion,
};

use crate::admin::status;
use crate::client::{Response, connect, exchange, get, parse, read_to_end, request};
use crate::process::{Server, Site, pattern};

/// Writes a new certificate for `localhost` and its key beside the site.
pub fn write_certificate(site: &Site) -> (PathBuf, PathBuf) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (site.beside("site.crt"), site.beside("site.key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (cert, key)
}

/// Serves `site` over TLS.
pub fn start(site: &Site, flags: &[&str]) -> Server {
    let (cert, key) = write_certificate(site);
    let tls = [
        "--tls-cert",
        cert.to_str().unwrap(),
        "--tls-key",
        key.to_str().unwrap(),
    ];
    Server::start(site, &[&tls, flags].concat())
}

/// A client that trusts the site's certificate as it is now, and offers `protocol`.
pub fn client_config(
    site: &Site,
    versions: &[&'static SupportedProtocolVersion],
    protocol: &str,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let cert = rustls::pki_types::CertificateDer::from_pem_file(site.beside("site.crt")).unwrap();
    roots.add(cert).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    Arc::new(config)
}

fn open(
    address: SocketAddr,
    config: Arc<ClientConfig>,
) -> StreamOwned<ClientConnection, std::net::TcpStream> {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(config, name).unwrap();
    StreamOwned::new(connection, connect(address))
}

/// Shakes hands and no more.
pub fn handshake(address: SocketAddr, config: Arc<ClientConfig>) -> std::io::Result<()> {
    open(address, config).write_all(b"GET")
}

/// GET on a connection of its own.
pub fn get_over(address: SocketAddr, config: Arc<ClientConfig>, target: &str) -> Response {
    let mut stream = open(address, config);
    let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).unwrap();
    parse(&read_to_end(&mut stream))
}

fn get_large(address: SocketAddr, config: Arc<ClientConfig>) -> Vec<u8> {
    get_over(address, config, "/large.bin").body
}

#[test]
fn both_versions_serve_in_every_link_mode() {
    let site = Site::new();
    let modes: [&[&str]; 4] = [
        &["--link-mode", "off"],
        &["--uplink-loopback"],
        &[
            "--uplink-loopback",
            "--link-mode",
            "writers",
            "--slots",
            "1",
        ],
        &["--uplink-loopback", "--uplink", "200mbit"],
    ];
    for flags in modes {
        let server = start(&site, flags);
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let config = client_config(&site, &[version], "http/1.1");
            assert!(
                get_large(server.address(), config) == pattern(1_000_000),
                "{flags:?}"
            );
        }
    }
}

/// A thousand handshakes a second of one address took the uplink from all others: no order knew of them.
#[test]
fn a_handshake_is_a_job_of_the_link_and_waits_for_its_grant() {
    let site = Site::new();
    let server = start(&site, &["--uplink-loopback", "--uplink", "10mbit"]);
    let config = client_config(&site, rustls::ALL_VERSIONS, "http/1.1");
    let grants = || status(&server)["link"]["grants_total"].as_u64();
    assert_eq!(grants(), Some(0));
    let mut stream = open(server.address(), config);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).unwrap();
    }
    assert_eq!(grants(), Some(1), "no request was sent");
}

#[test]
fn sighup_takes_a_new_certificate_and_refuses_a_broken_one() {
    let site = Site::new();
    let mut server = start(&site, &[]);
    write_certificate(&site);
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    let trusts_new = client_config(&site, rustls::ALL_VERSIONS, "http/1.1");
    assert_eq!(
        get_large(server.address(), Arc::clone(&trusts_new)).len(),
        1_000_000
    );

    std::fs::write(site.beside("site.key"), "no key").unwrap();
    server.signal(Signal::HUP);
    let line = server.line_with("not reloaded");
    assert!(
        line.contains("site.key") && line.contains("BEGIN PRIVATE KEY"),
        "{line}"
    );
    assert_eq!(get_large(server.address(), trusts_new).len(), 1_000_000);
}

#[test]
fn what_is_no_handshake_ends_the_connection() {
    let site = Site::new();
    let server = start(&site, &["--header-time-max", "1s"]);
    let mut plain = connect(server.address());
    plain
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    read_to_end(&mut plain);
    // A handshake that never comes runs into the limit.
    let mut silent = connect(server.address());
    assert_eq!(silent.read(&mut [0]).unwrap_or(0), 0);
    let config = client_config(&site, rustls::ALL_VERSIONS, "http/1.1");
    assert_eq!(get_large(server.address(), config).len(), 1_000_000);
}

#[test]
fn plain_http_on_the_tls_port_gets_a_400_in_plain_text() {
    let site = Site::new();
    let server = start(&site, &[]);
    let got = get(server.address(), "/hello.txt");
    assert_eq!(got.status, 400);
    assert_eq!(got.field("content-type"), Some("text/plain; charset=utf-8"));
    let told = String::from_utf8(got.body.clone()).unwrap();
    let address = server.address();
    assert!(
        told.ends_with(&format!(
            "This port speaks TLS: ask for https://{address}/ instead.\n"
        )),
        "{told}"
    );
    assert!(request(server.address(), "HEAD", "/", "").body.is_empty());
    // The answer arrives although more comes than the server looks at.
    let fields = format!("X: {}\r\n", "x".repeat(20_000));
    assert_eq!(request(server.address(), "POST", "/", &fields).status, 400);
    // Byte by byte it is the same.
    let mut stream = connect(server.address());
    stream.set_nodelay(true).unwrap();
    for byte in b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" {
        if stream.write_all(&[*byte]).is_err() {
            break;
        }
    }
    assert_eq!(parse(&read_to_end(&mut stream)).status, 400);
}

#[test]
fn what_is_neither_tls_nor_http_gets_an_alert() {
    let site = Site::new();
    let server = start(&site, &[]);
    for first in [
        &b"HELO a.example\r\n\r\n"[..],
        b"SSH-2.0-x\r\n",
        b"GETX / HTTP/1.1\r\n",
    ] {
        let got = exchange(server.address(), first);
        // A fatal alert in a record of its own (RFC 8446 6), or nothing after a reset.
        assert!(got.is_empty() || (got[0], got[5]) == (21, 2), "{got:?}");
    }
}

#[test]
fn a_session_is_resumed_by_whichever_thread() {
    let site = Site::new();
    let mut server = start(&site, &[]);
    let address = server.address();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let config = client_config(&site, &[version], "http/1.1");
        let kind = || {
            let mut stream = open(address, Arc::clone(&config));
            stream
                .write_all(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                .unwrap();
            assert_eq!(parse(&read_to_end(&mut stream)).body, b"hello\n");
            stream.conn.handshake_kind().unwrap()
        };
        assert_eq!(kind(), HandshakeKind::Full);
        // Each processor has a thread that takes connections, and the kernel spreads them.
        for _ in 0..32 {
            assert_eq!(kind(), HandshakeKind::Resumed);
        }
        // A reload has the same keys.
        server.signal(Signal::HUP);
        server.line_with("reloaded");
        assert_eq!(kind(), HandshakeKind::Resumed);
    }
}
