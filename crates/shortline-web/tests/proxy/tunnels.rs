//! Upgrades: `101 Switching Protocols` and what follows.

use std::io::{Read, Write};
use std::sync::mpsc;
use std::time::Duration;

use crate::backend::Backend;
use crate::client::{connect, exchange, field, read_head};
use crate::front::Front;

const ASKING: &[u8] = b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\
                        Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n";
const SWITCHING: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                           Upgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\n";

/// Switches protocols, speaks first, and echoes everything until the end.
fn echo() -> Backend {
    Backend::start(|mut conversation| {
        conversation.read_head().unwrap();
        conversation.write(&[SWITCHING, b"first"].concat());
        let mut bytes = [0; 1024];
        while let Ok(count @ 1..) = conversation.stream.read(&mut bytes) {
            conversation.write(&bytes[..count]);
        }
        conversation.write(b"last");
    })
}

#[test]
fn bytes_pass_both_ways_after_an_upgrade() {
    let backend = echo();
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address);
    // The first bytes of the new protocol may come with the request.
    client.write_all(&[ASKING, b"early"].concat()).unwrap();
    let head = read_head(&mut client);
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert_eq!(field(&head, "upgrade"), Some("websocket"));
    assert_eq!(field(&head, "connection"), Some("upgrade"));
    assert_eq!(field(&head, "sec-websocket-accept"), Some("y"));
    let mut bytes = [0; 10];
    client.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"firstearly");
    for _ in 0..3 {
        client.write_all(b"0123456789").unwrap();
        client.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"0123456789");
    }
    // A half-close passes through, and what is said after it still comes back.
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"last");
    let seen = &backend.heads()[0];
    assert_eq!(field(seen, "upgrade"), Some("websocket"));
    assert_eq!(field(seen, "connection"), Some("upgrade"));
}

#[test]
fn an_upgrade_that_the_backend_declines_is_an_ordinary_exchange() {
    let backend = Backend::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno");
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address);
    for _ in 0..2 {
        client.write_all(ASKING).unwrap();
        assert_eq!(crate::client::read_one(&mut client).body, b"no");
    }
}

#[test]
fn a_backend_that_switches_unasked_is_a_bad_gateway() {
    let backend = echo();
    let front = Front::start(&[backend.address]);
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert_eq!(exchange(front.address, request).status, 502);
    // Inside h2c a client could talk to the backend without our control.
    let h2c = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, Upgrade, HTTP2-Settings\r\n\
               Upgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n";
    assert_eq!(exchange(front.address, h2c).status, 502);
    assert_eq!(field(&backend.heads()[1], "upgrade"), None);
}

#[test]
fn a_silent_tunnel_and_one_whose_backend_has_gone_are_closed() {
    let (say, heard) = mpsc::channel();
    let backend = Backend::start(move |mut conversation| {
        conversation.read_head().unwrap();
        conversation.write(SWITCHING);
        if conversation.number == 0 {
            say.send(conversation.is_left()).unwrap();
        }
    });
    let front = Front::with(&[backend.address], |options| {
        options.tunnel_idle_time_max = Duration::from_millis(200);
    });
    for _ in 0..2 {
        let mut client = connect(front.address);
        client.write_all(ASKING).unwrap();
        read_head(&mut client);
        assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    }
    assert!(heard.recv().unwrap());
}
