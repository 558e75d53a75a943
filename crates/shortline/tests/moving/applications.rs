//! Two applications behind Caddy: one with WebSocket, one that speaks gRPC.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use crate::answer::Request;
use crate::bed::{Bed, Given, Server};
use crate::compare;
use crate::service::{Service, python, script};

const CHAT: &str = "chat.example.org";
const API: &str = "api.example.org";
/// RFC 6455, 1.3: a key, and what a server answers to it.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
/// What an application is told of its client. The address is the same for both servers.
const TOLD: &[&str] = &[
    "host",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
];

#[test]
fn two_applications_from_caddy() {
    let chat = serve_chat();
    let Some(python) = python() else { return };
    // Each server has a service of its own: it remembers what was cancelled.
    let [theirs, ours] = &[(); 2].map(|()| Service::start(python));
    let given = |service: &Service| {
        [
            ("127.0.0.1:9001", chat.to_string()),
            ("127.0.0.1:9002", service.address.to_string()),
        ]
    };
    for (applications, is_ours) in [(given(theirs), false), (given(ours), true)] {
        let given = Given {
            name: "apps",
            hosts: &[CHAT, API],
            applications: &applications,
        };
        let Some(bed) = Bed::of_caddy(&given, |_| {}) else {
            return;
        };
        let server = if is_ours { &bed.ours } else { &bed.theirs };
        call(python, server, &bed.certificate("apps"));
        compare(
            &bed,
            &[
                Request::plain(CHAT, "/rooms?x=1"),
                Request::secure(CHAT, "/rooms?x=1"),
                Request::secure(CHAT, "/rooms").method("DELETE"),
                Request::secure(CHAT, "/rooms").with("X-Forwarded-Host", "evil.example"),
            ],
        );
        assert_eq!(talk(&bed.theirs), talk(&bed.ours));
    }
}

/// An application that says what it is told, and over a WebSocket says everything again.
fn serve_chat() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || answer(stream.unwrap()));
        }
    });
    address
}

fn answer(mut stream: TcpStream) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut head = Vec::new();
    while let Some(Ok(line)) = lines.next() {
        if line.is_empty() {
            break;
        }
        head.push(line);
    }
    let field = |name: &str| {
        let start = format!("{name}:");
        let line = head
            .iter()
            .find(|line| line.to_ascii_lowercase().starts_with(&start));
        line.map(|line| line[start.len()..].trim().to_owned())
    };
    if field("upgrade").is_some() {
        assert_eq!(field("sec-websocket-key").as_deref(), Some(KEY));
        let switched = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
        );
        stream.write_all(switched.as_bytes()).unwrap();
        let mut piece = [0; 1024];
        while let Ok(read @ 1..) = stream.read(&mut piece) {
            stream.write_all(&piece[..read]).unwrap();
        }
        return;
    }
    let mut body = format!("{}\n", head.first().cloned().unwrap_or_default());
    for name in TOLD {
        body += &format!("{name}: {:?}\n", field(name));
    }
    let length = body.len();
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-App: chat\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    // A server may have gone.
    let _ = stream.write_all(response.as_bytes());
}

/// Says something over a WebSocket, and returns what comes back with the status.
fn talk(server: &Server) -> (String, Vec<u8>) {
    let mut stream = server.connect(CHAT);
    let request = format!(
        "GET /live HTTP/1.1\r\nHost: {CHAT}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(
        head.to_ascii_lowercase()
            .contains(&ACCEPT.to_ascii_lowercase()),
        "{head}"
    );
    let said = [&[0x81, 0x85, 0, 0, 0, 0][..], b"hello"].concat();
    stream.write_all(&said).unwrap();
    let mut heard = vec![0; said.len()];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(heard, said);
    (head.lines().next().unwrap().to_owned(), heard)
}

/// Every kind of call, over TLS.
fn call(python: &str, server: &Server, roots: &Path) {
    let ended = Command::new(python)
        .arg(script())
        .args(["client", &server.secure.to_string()])
        .arg(roots)
        .arg(API)
        .status()
        .unwrap();
    assert!(ended.success(), "{}", server.secure);
}
