//! `[[route]]`: one process serves files and fronts an application, and both leave in one order.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};

use rustix::process::Signal;
use rustls::ClientConnection;
use rustls::StreamOwned;
use rustls::pki_types::ServerName;

use crate::admin::status;
use crate::bad_requests::{
    self, refuse_chunks, refuse_hosts, refuse_pseudo_trailers, refuse_targets,
};
use crate::client::{connect, get, parse, read_head, read_to_end};
use crate::process::{Server, Site, pattern};
use crate::tls;

const LARGE_BYTES: usize = 1_000_000;

/// An application that knows a few paths and else tells the request as it came.
pub fn application() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                while let Some(head) = read_head(&mut stream) {
                    // Whoever asked may have gone.
                    let _ = stream.write_all(&answer(&head));
                }
            });
        }
    });
    address
}

fn answer(head: &str) -> Vec<u8> {
    let body = match head.split(' ').nth(1).unwrap() {
        "/app/small" => b"small".to_vec(),
        "/app/large" => pattern(LARGE_BYTES),
        "/app/stream" => return chunked(&pattern(LARGE_BYTES)),
        _ => head.as_bytes().to_vec(),
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(10_000) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

fn write_config(site: &Site, path: &str, application: SocketAddr) -> String {
    let file = site.beside("shortline.toml");
    let text = format!("[[route]]\npath = \"{path}\"\nupstream = [\"{application}\"]\n");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn files_and_an_application_share_an_address() {
    let site = Site::new();
    let config = write_config(&site, "/app", application());
    let mut server = Server::start(&site, &["--config", &config]);
    let address = server.address();
    assert_eq!(get(address, "/hello.txt").body, b"hello\n");
    assert_eq!(get(address, "/app/small").body, b"small");
    let told = String::from_utf8(get(address, "/app?x=1").body).unwrap();
    assert!(told.starts_with("GET /app?x=1 HTTP/1.1\r\n"), "{told}");
    assert_eq!(get(address, "/application").status, 404);
    let backend = &status(&server)["server"]["backends"][0];
    assert_eq!(backend["requests_total"], 2);
    let metrics = get(server.admin.unwrap(), "/metrics").body;
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(
        metrics.contains("shortline_backend_requests_total{backend="),
        "{metrics}"
    );

    // Another path, and a backend that is not there.
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    write_config(&site, "/other", nobody);
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    assert_eq!(get(address, "/app/small").status, 404);
    assert_eq!(get(address, "/other").status, 502);
}

#[test]
fn a_small_response_overtakes_a_large_one_wherever_both_come_from() {
    let site = Site::new().with("small.txt", "small");
    let config = write_config(&site, "/app", application());
    for (large, small) in [
        ("/app/large", "/app/small"),
        ("/app/large", "/small.txt"),
        ("/large.bin", "/app/small"),
        ("/app/stream", "/app/small"),
        ("/app/stream", "/small.txt"),
    ] {
        let flags = [
            "--config",
            &config,
            "--uplink",
            "4mbit",
            "--uplink-loopback",
        ];
        let server = Server::start(&site, &flags);
        let mut stream = connect(server.address());
        write!(
            stream,
            "GET {large} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        assert!(stream.peek(&mut [0]).unwrap() > 0);
        assert_eq!(get(server.address(), small).body, b"small");
        // Two seconds of the uplink: the large response cannot be done yet, and must not be lost.
        let jobs = status(&server)["link"]["jobs"].as_u64();
        assert_eq!(jobs, Some(1), "{large} is still under way after {small}");
        let response = parse(&read_to_end(&mut stream));
        match large {
            "/app/stream" => assert!(response.body.ends_with(b"\r\n0\r\n\r\n")),
            _ => assert!(response.body == pattern(LARGE_BYTES)),
        }
    }
}

#[test]
fn an_application_behind_tls_is_told_so() {
    let site = Site::new();
    let config = write_config(&site, "/", application());
    let server = tls::start(&site, &["--config", &config, "--listen", "127.0.0.1:0"]);
    let client = tls::client_config(&site, rustls::ALL_VERSIONS, "http/1.1");
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(client, name).unwrap();
    let mut stream = StreamOwned::new(connection, connect(server.address()));
    stream
        .write_all(b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let told = String::from_utf8(parse(&read_to_end(&mut stream)).body).unwrap();
    assert!(told.contains("\r\nx-forwarded-proto: https\r\n"), "{told}");
}

#[test]
fn what_is_no_request_gets_400_on_a_route() {
    let site = Site::new();
    let config = write_config(&site, "/app", bad_requests::application());
    let server = Server::start(&site, &["--config", &config]);
    refuse_hosts(server.address(), "/app/small");
    refuse_targets(server.address(), "/app/small");
    refuse_chunks(server.address(), "/app/small", 200);
    refuse_pseudo_trailers(server.address(), "/app/small");
}
