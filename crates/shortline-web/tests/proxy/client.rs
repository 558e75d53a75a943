//! A client that sends exactly what a test says.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

/// How long a test waits for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A response as received.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The head.
    pub head: String,
    /// The body as far as it came, whether chunked or not.
    pub body: Vec<u8>,
    /// Whether a reset ended the connection.
    pub reset: bool,
}

impl Response {
    /// The value of a header field.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// The value of a header field in a head.
pub fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// A connection that gives up if nothing comes for long.
pub fn connect(address: SocketAddr) -> TcpStream {
    patient(TcpStream::connect(address).unwrap())
}

/// The same, from its own address.
pub fn connect_from(own: IpAddr, address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(own, 0).into()).unwrap();
    socket.connect(&address.into()).unwrap();
    patient(socket.into())
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends `request` on a new connection and reads to its end.
pub fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> Response {
    let mut stream = connect(address);
    // The server may close before it has read everything.
    let _ = stream.write_all(request.as_ref());
    read_to_end(&mut stream)
}

/// GET on a new connection, with more header lines, each ending in CRLF.
pub fn get(address: SocketAddr, target: &str, fields: &str) -> Response {
    exchange(
        address,
        format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n{fields}\r\n"),
    )
}

/// POST with a length on a new connection.
pub fn post(address: SocketAddr, target: &str, body: &str) -> Response {
    let length = body.len();
    exchange(
        address,
        format!(
            "POST {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        ),
    )
}

/// Reads a response and the connection to its end. A reset is an end, silence is not.
pub fn read_to_end(stream: &mut TcpStream) -> Response {
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes);
    let reset = match ended {
        Ok(_) => false,
        Err(error) => {
            let silent = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
            let so_far = String::from_utf8_lossy(&bytes);
            assert!(!silent, "the connection stays open after {so_far:?}");
            true
        }
    };
    Response {
        reset,
        ..parse(&bytes)
    }
}

/// Reads one head, and the body that its length promises.
pub fn read_one(stream: &mut TcpStream) -> Response {
    let mut response = parse(read_head(stream).as_bytes());
    let length = response
        .field("content-length")
        .map_or(0, |length| length.parse().unwrap());
    response.body = vec![0; length];
    stream.read_exact(&mut response.body).unwrap();
    response
}

/// Reads one head, with its blank line.
pub fn read_head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "closed in the head");
        bytes.push(byte[0]);
    }
    String::from_utf8(bytes).unwrap()
}

fn parse(bytes: &[u8]) -> Response {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no response: {:?}", String::from_utf8_lossy(bytes)));
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    Response {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head,
        body: bytes[end + 4..].to_vec(),
        reset: false,
    }
}

/// Repeats `look` until it has an answer.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A socket address that refuses connections.
pub fn refusing() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}
