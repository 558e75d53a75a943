//! Applications behind `gate http`, as a test needs them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use crate::gate;
use crate::process::Server;

/// An application that answers each request with what `answer` makes of its path, on a thread for
/// each connection.
pub fn application(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || {
                while let Some(path) = read_request(&mut stream) {
                    // Whoever asked may have gone.
                    let _ = stream.write_all(&answer(&path));
                }
            });
        }
    });
    address
}

/// A complete response with a body.
pub fn ok(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// `gate http` in front of an application.
pub fn gate(upstream: SocketAddr, flags: &[&str]) -> Server {
    gate::gate("http", &upstream.to_string(), flags)
}

/// The path of a request without a body.
fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    head.split(' ').nth(1).map(str::to_owned)
}
