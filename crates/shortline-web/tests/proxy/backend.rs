//! A backend that does exactly what a test says, with one thread per connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::client::PATIENCE;

/// A backend. It runs until the test process ends.
pub struct Backend {
    /// Where it listens.
    pub address: SocketAddr,
    seen: Arc<Mutex<Received>>,
}

#[derive(Default)]
struct Received {
    connections: usize,
    heads: Vec<String>,
}

/// One connection of a backend.
pub struct Conversation {
    /// The socket.
    pub stream: TcpStream,
    /// The number of connections before it.
    pub number: usize,
    seen: Arc<Mutex<Received>>,
}

impl Backend {
    /// A backend that leaves each connection to `serve`.
    pub fn start(serve: impl Fn(Conversation) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Received>> = Arc::default();
        let serve = Arc::new(serve);
        std::thread::spawn({
            let seen = Arc::clone(&seen);
            move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    stream.set_nodelay(true).unwrap();
                    let (serve, seen) = (Arc::clone(&serve), Arc::clone(&seen));
                    let number = seen.lock().connections;
                    seen.lock().connections += 1;
                    std::thread::spawn(move || {
                        serve(Conversation {
                            stream,
                            number,
                            seen,
                        });
                    });
                }
            }
        });
        Self { address, seen }
    }

    /// A backend that answers each request with `answer`, whatever its body, and keeps the
    /// connection.
    pub fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |mut conversation| {
            while conversation.read_request().is_some() {
                conversation.write(&answer);
            }
        })
    }

    /// A backend that answers each request with the request itself.
    pub fn echoing() -> Self {
        Self::start(|mut conversation| {
            while let Some((head, body)) = conversation.read_request() {
                let mut echo = head.into_bytes();
                echo.extend_from_slice(&body);
                let length = echo.len();
                conversation.write(
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").as_bytes(),
                );
                conversation.write(&echo);
            }
        })
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.seen.lock().connections
    }

    /// The heads of requests so far.
    pub fn heads(&self) -> Vec<String> {
        self.seen.lock().heads.clone()
    }
}

impl Conversation {
    /// The next request's head, with its blank line; `None` at the end of the connection.
    pub fn read_head(&mut self) -> Option<String> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            bytes.push(self.read_byte()?);
        }
        let head = String::from_utf8(bytes).unwrap();
        self.seen.lock().heads.push(head.clone());
        Some(head)
    }

    /// The next request: head and body, a chunked one as it was sent, trailers included.
    pub fn read_request(&mut self) -> Option<(String, Vec<u8>)> {
        let head = self.read_head()?;
        let lower = head.to_ascii_lowercase();
        let length = lower
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        if lower.contains("\r\ntransfer-encoding: chunked\r\n") {
            self.read_chunks(&mut body)?;
        }
        Some((head, body))
    }

    fn read_chunks(&mut self, raw: &mut Vec<u8>) -> Option<()> {
        loop {
            let line = self.read_line(raw)?;
            let size = usize::from_str_radix(&line, 16).unwrap();
            if size == 0 {
                while !self.read_line(raw)?.is_empty() {}
                return Some(());
            }
            for _ in 0..size + 2 {
                raw.push(self.read_byte()?);
            }
        }
    }

    fn read_line(&mut self, raw: &mut Vec<u8>) -> Option<String> {
        let from = raw.len();
        while !raw[from..].ends_with(b"\r\n") {
            raw.push(self.read_byte()?);
        }
        Some(String::from_utf8(raw[from..raw.len() - 2].to_vec()).unwrap())
    }

    fn read_byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        (self.stream.read(&mut byte).ok()? == 1).then_some(byte[0])
    }

    /// Sends. A peer that has gone is not an error.
    pub fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Waits for the other side to end. Returns whether it did.
    pub fn is_left(&mut self) -> bool {
        let mut bytes = [0; 1024];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        let socket = socket2::SockRef::from(&self.stream);
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }
}
