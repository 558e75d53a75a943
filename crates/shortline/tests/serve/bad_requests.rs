//! Requests that are none, by what is wrong with them, and their neighbours that are fine: for files,
//! routes and gates alike.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::client::{connect, exchange, parse};

/// What stands in `Host` and is no host, and what is one.
pub const HOSTS: [&str; 14] = [
    "user@a",
    "user:word@a:80",
    "a/b",
    "a, b",
    "a,b",
    "a b",
    "a\tb",
    "a:65536",
    "a:8o",
    "a:1:2",
    "::1",
    "[::1",
    "[::zz]",
    "a?b",
];
const HOSTS_FINE: [&str; 9] = [
    "",
    "a",
    "a:",
    "a:65535",
    "a_b.example",
    "192.0.2.1:80",
    "[::1]",
    "[::1]:8080",
    "[::1]:",
];
/// Of chunks: a size with what follows it.
const CHUNKS: [&str; 15] = [
    "2;",
    "2; ",
    "2;;a",
    "2;a b",
    "2;a=",
    "2;a=b c",
    "2;a=\"b",
    "2;a=\"b\"c",
    "2;=b",
    "2;a\u{1}",
    "2;a@b",
    "2 ",
    "2\t",
    "2;a ",
    "0x2",
];
const CHUNKS_FINE: [&str; 6] = [
    "2",
    "02",
    "2;a",
    "2;a=b;c",
    "2;a=\"b; \\\" c\"",
    "2 ; a = b",
];

/// An application that answers any request that comes whole, one a connection.
pub fn application() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                if read_request(&mut stream).is_some() {
                    let head =
                        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
                    // Whoever asked may have gone.
                    let _ = stream.write_all(head);
                }
            });
        }
    });
    address
}

/// Reads a request to its end, trailers included.
fn read_request(stream: &mut TcpStream) -> Option<()> {
    let mut bytes = Vec::new();
    let mut until = |end: &[u8]| {
        while !bytes.ends_with(end) {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            bytes.push(byte[0]);
        }
        Some(String::from_utf8_lossy(&bytes).to_ascii_lowercase())
    };
    if until(b"\r\n\r\n")?.contains("\r\ntransfer-encoding: chunked\r\n") {
        until(b"\r\n0\r\n")?;
        until(b"\r\n\r\n")?;
    }
    Some(())
}

fn status(address: SocketAddr, request: String) -> u16 {
    parse(&exchange(address, request)).status
}

/// A host that is none is refused, wherever it stands.
pub fn refuse_hosts(address: SocketAddr, path: &str) {
    let ask = |target: &str, fields: &str| {
        status(
            address,
            format!("GET {target} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n"),
        )
    };
    for host in HOSTS {
        assert_eq!(ask(path, &format!("Host: {host}\r\n")), 400, "{host:?}");
    }
    for fields in ["", "Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n"] {
        assert_eq!(ask(path, fields), 400, "{fields:?}");
    }
    for host in HOSTS_FINE {
        assert_eq!(ask(path, &format!("Host: {host}\r\n")), 200, "{host:?}");
    }
}

/// So are targets that are none, with a port that is none or with no path at all.
pub fn refuse_targets(address: SocketAddr, path: &str) {
    let ask = |method: &str, target: &str| {
        let request = format!("{method} {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        status(address, request)
    };
    for host in ["a:65536", "a:99999", "user@a", "[::zz]", "a:8o"] {
        assert_eq!(ask("GET", &format!("http://{host}{path}")), 400, "{host}");
    }
    for (method, target) in [
        ("GET", "*"),
        ("POST", "*"),
        ("GET", "relative"),
        ("GET", "relative/path"),
        ("GET", "?query"),
        ("OPTIONS", "a:80"),
    ] {
        assert_eq!(ask(method, target), 400, "{method} {target}");
    }
    assert_eq!(ask("OPTIONS", "*"), 204);
    for host in ["a", "a:", "a:65535", "[::1]:80"] {
        assert_eq!(ask("GET", &format!("http://{host}{path}")), 200, "{host}");
    }
}

/// So are chunks that break their grammar, the last one too; `fine` is what sound ones get.
pub fn refuse_chunks(address: SocketAddr, path: &str, fine: u16) {
    let post = |body: &str| {
        let fields = "Host: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n";
        status(
            address,
            format!("POST {path} HTTP/1.1\r\n{fields}\r\n{body}"),
        )
    };
    for size in CHUNKS {
        assert_eq!(post(&format!("{size}\r\nhi\r\n0\r\n\r\n")), 400, "{size:?}");
    }
    for last in ["0;", "0 ", "0;a=", "0;a b"] {
        assert_eq!(post(&format!("2\r\nhi\r\n{last}\r\n\r\n")), 400, "{last:?}");
    }
    for trailer in [":status: 200\r\n", "a: b\nc: d\r\n", "a b: c\r\n"] {
        let body = format!("2\r\nhi\r\n0\r\n{trailer}\r\n");
        assert_eq!(post(&body), 400, "{trailer:?}");
    }
    for size in CHUNKS_FINE {
        assert_eq!(
            post(&format!("{size}\r\nhi\r\n0\r\n\r\n")),
            fine,
            "{size:?}"
        );
    }
}

/// Frames of HTTP/2 and their flags (RFC 9113 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Pseudo-header fields in trailers of HTTP/2 are refused, be they spelt out, in the static table or in
/// the one of the connection; the connection goes on, and other trailers pass.
pub fn refuse_pseudo_trailers(address: SocketAddr, path: &str) {
    let mut stream = connect(address);
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, b"")).unwrap();
    let path = [&[4, path.len() as u8], path.as_bytes()].concat();
    // POST, http, the path, and `:authority: a`, which the first of them adds to the table as 62.
    let request = [&b"\x83\x86\x41\x01a"[..], &path].concat();
    for (number, trailers) in [
        (1, &b"\x84"[..]),
        (3, b"\xbe"),
        (5, b"\x00\x05:path\x01/"),
        (7, b"\x00\x05x-sum\x017"),
    ] {
        let head = frame(HEADERS, END_HEADERS, number, &request);
        let trailers = frame(HEADERS, END_HEADERS | END_STREAM, number, trailers);
        let all = [head, frame(DATA, 0, number, b"hi"), trailers].concat();
        stream.write_all(&all).unwrap();
        let (kind, payload) = answer_on(&mut stream, number);
        if number < 7 {
            assert_eq!(
                (kind, &payload[..]),
                (RST_STREAM, &[0, 0, 0, 1][..]),
                "{number}"
            );
        } else {
            assert_eq!(kind, HEADERS, "{number}");
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [head, payload.to_vec()].concat()
}

/// The first answer on a stream: its head, or its reset.
fn answer_on(stream: &mut TcpStream, number: u32) -> (u8, Vec<u8>) {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let [high, middle, low, kind, _, of @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
        stream.read_exact(&mut payload).unwrap();
        if u32::from_be_bytes(of) == number && matches!(kind, HEADERS | RST_STREAM) {
            return (kind, payload);
        }
    }
}
