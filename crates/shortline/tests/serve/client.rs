//! A client that sends exactly what a test says.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::process::PATIENCE;

/// A response as it came.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The head, field names in small letters.
    pub head: String,
    /// The body as far as it came.
    pub body: Vec<u8>,
}

impl Response {
    /// The value of a header field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let start = format!("{name}:");
        let mut lines = self.head.lines();
        let line = lines.find(|line| line.to_ascii_lowercase().starts_with(&start))?;
        Some(line[start.len()..].trim())
    }

    /// The values of a field that may stand several times.
    pub fn fields(&self, name: &str) -> Vec<&str> {
        let start = format!("{name}:");
        let lines = self.head.lines();
        let lines = lines.filter(|line| line.to_ascii_lowercase().starts_with(&start));
        lines.map(|line| line[start.len()..].trim()).collect()
    }

    /// The length its head promises.
    pub fn content_length(&self) -> usize {
        self.field("content-length").unwrap().parse().unwrap()
    }
}

/// A connection that gives up where nothing comes for long.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends `request` and reads to the end of the connection, however it ends.
pub fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> Vec<u8> {
    let mut stream = connect(address);
    // The server may close before it has read everything.
    let _ = stream.write_all(request.as_ref());
    read_to_end(&mut stream)
}

/// Reads to the end; a reset ends a connection too, silence does not.
pub fn read_to_end(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        let silent = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(
            !silent,
            "the connection stays open after {:?}",
            String::from_utf8_lossy(&bytes)
        );
    }
    bytes
}

/// Parses one response.
pub fn parse(bytes: &[u8]) -> Response {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no response: {:?}", String::from_utf8_lossy(bytes)));
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response {
        status,
        head,
        body: bytes[end + 4..].to_vec(),
    }
}

/// One request on a connection of its own, with more header lines (each ending in CRLF).
pub fn request(address: SocketAddr, method: &str, target: &str, fields: &str) -> Response {
    let text = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{fields}\r\n"
    );
    parse(&exchange(address, text))
}

/// GET on a connection of its own.
pub fn get(address: SocketAddr, target: &str) -> Response {
    request(address, "GET", target, "")
}

/// Reads one response with a length from a connection that stays open.
pub fn read_one(stream: &mut impl Read) -> Response {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "closed in the head");
        bytes.push(byte[0]);
    }
    let mut response = parse(&bytes);
    response.body = vec![0; response.content_length()];
    stream.read_exact(&mut response.body).unwrap();
    response
}

/// Asks for the large file of a [`crate::process::Site`] and waits until it comes.
pub fn begin(address: SocketAddr) -> (TcpStream, Vec<u8>) {
    let mut stream = connect(address);
    stream
        .write_all(b"GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let mut first = vec![0; 1000];
    stream.read_exact(&mut first).unwrap();
    (stream, first)
}

/// The head of a request that comes to a backend of a test, if one does.
pub fn read_head(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).unwrap())
}
