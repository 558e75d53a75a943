//! The protocol by hand, for what no driver does.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection that has sent nothing yet.
pub fn connect(port: u16) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    socket
}

/// A session of user `postgres` in which nothing was sent yet.
pub fn session(port: u16) -> TcpStream {
    let mut socket = connect(port);
    let parameters = b"\0\x03\0\0user\0postgres\0\0";
    let length = (parameters.len() as u32 + 4).to_be_bytes();
    socket
        .write_all(&[&length, parameters.as_slice()].concat())
        .unwrap();
    let begun = until_ready(&mut socket);
    assert_eq!(begun.last().unwrap(), &(b'Z', b"I".to_vec()));
    socket
}

/// The same through a pool, of the user `md5`.
pub fn pooled_session(port: u16) -> TcpStream {
    pooled_session_with(port, b"").0
}

/// The same, with these further parameters, and its key for cancel requests.
pub fn pooled_session_with(port: u16, parameters: &[u8]) -> (TcpStream, Vec<u8>) {
    use md5::{Digest, Md5};
    const STORED: &str = "5d80d273267dec78b5d118f9cae7cd26";
    let mut socket = connect(port);
    let names = b"\0\x03\0\0user\0md5\0database\0postgres\0";
    let packet = [names, parameters, b"\0"].concat();
    let length = (packet.len() as u32 + 4).to_be_bytes();
    socket
        .write_all(&[&length, packet.as_slice()].concat())
        .unwrap();
    let (tag, asked) = next(&mut socket).unwrap();
    assert_eq!((tag, &asked[..4]), (b'R', &[0, 0, 0, 5][..]));
    let hash = Md5::new().chain_update(STORED).chain_update(&asked[4..]);
    let hash: String = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let password = format!("md5{hash}\0");
    socket
        .write_all(&message(b'p', password.as_bytes()))
        .unwrap();
    let begun = until_ready(&mut socket);
    assert_eq!(begun.last().unwrap(), &(b'Z', b"I".to_vec()));
    let key = begun.into_iter().find(|(tag, _)| *tag == b'K');
    (socket, key.unwrap().1)
}

/// A message.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag], length.as_slice(), body].concat()
}

/// A Query.
pub fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), b"\0"].concat())
}

/// The next message; none at the end of the stream.
pub fn next(socket: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; 5];
    socket.read_exact(&mut header).ok()?;
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
    let mut body = vec![0; length - 4];
    socket.read_exact(&mut body).ok()?;
    Some((header[0], body))
}

/// All messages up to a ReadyForQuery, or the end of the stream.
pub fn until_ready(socket: &mut TcpStream) -> Vec<(u8, Vec<u8>)> {
    let mut messages = Vec::new();
    while let Some(message) = next(socket) {
        let is_last = message.0 == b'Z';
        messages.push(message);
        if is_last {
            break;
        }
    }
    messages
}

/// The type bytes of messages, with the status behind each `Z`.
pub fn tags(messages: &[(u8, Vec<u8>)]) -> String {
    let mut tags = String::new();
    for (tag, body) in messages {
        tags.push(char::from(*tag));
        if *tag == b'Z' {
            tags.push(char::from(body[0]));
        }
    }
    tags
}

/// The SQLSTATE of the first error in `messages`.
pub fn sqlstate(messages: &[(u8, Vec<u8>)]) -> Option<String> {
    let (_, body) = messages.iter().find(|(tag, _)| *tag == b'E')?;
    let field = body
        .split(|byte| *byte == 0)
        .find(|field| field.first() == Some(&b'C'))?;
    Some(String::from_utf8_lossy(&field[1..]).into_owned())
}

/// All that comes until the end of the stream.
pub fn rest(socket: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is an end too.
    let _ = socket.read_to_end(&mut bytes);
    bytes
}
