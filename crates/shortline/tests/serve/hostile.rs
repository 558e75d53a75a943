//! Clients that mean harm, or are merely broken, all at once.
//!
//! `SHORTLINE_HOSTILE_CLIENTS` says how many; 200 if it does not.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::SockRef;

use crate::admin::status;
use crate::client::get;
use crate::process::{PATIENCE, Server, Site, pattern, wait_for};

/// Allocators keep some of what they had.
const MEMORY_KEPT_BYTES: u64 = 24 << 20;

fn clients() -> usize {
    std::env::var("SHORTLINE_HOSTILE_CLIENTS").map_or(200, |number| number.parse().unwrap())
}

fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, all).unwrap();
}

/// What a hostile client does next; it is held open until it is dropped.
fn attack(address: SocketAddr, kind: usize) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = b"GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n";
    match kind % 5 {
        // A head that never ends.
        0 => stream.write_all(&request[..1 + kind % 30]).unwrap(),
        // A response that nobody reads.
        1 => stream.write_all(request).unwrap(),
        // A reset while the response is queued or sent.
        2 => {
            stream.write_all(request).unwrap();
            SockRef::from(&stream)
                .set_linger(Some(Duration::ZERO))
                .unwrap();
        }
        // Many requests at once, and nobody reads.
        3 => stream.write_all(&request.repeat(100)).unwrap(),
        // A body that is promised and does not come.
        _ => stream
            .write_all(b"POST /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nx")
            .unwrap(),
    }
    stream
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [head, payload.to_vec()].concat()
}

/// The same over HTTP/2.
fn attack_http2(address: SocketAddr, kind: usize) -> TcpStream {
    const FINAL: u8 = 0x5;
    const WHOLE_HEAD: u8 = 0x4;
    let get = b"\x82\x86\x04\x0a/large.bin\x01\x01a";
    let post = b"\x83\x86\x04\x0a/hello.txt\x01\x01a";
    let streams = |count: u32| (0..count).map(|index| 2 * index + 1);
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    match kind % 5 {
        // Requests that are reset at once.
        0 => {
            bytes.extend(frame(4, 0, 0, b""));
            for stream in streams(1000) {
                bytes.extend(frame(1, FINAL, stream, get));
                bytes.extend(frame(3, 0, stream, &[0, 0, 0, 8]));
            }
        }
        // A head that never ends.
        1 => {
            bytes.extend(frame(4, 0, 0, b""));
            bytes.extend(frame(1, 0, 1, get));
            bytes.extend(frame(9, 0, 1, b"").repeat(10_000));
        }
        // Requests, and no window for any.
        2 => {
            bytes.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
            streams(20).for_each(|stream| bytes.extend(frame(1, FINAL, stream, get)));
        }
        // Pings, whose answers nobody reads.
        3 => {
            bytes.extend(frame(4, 0, 0, b""));
            bytes.extend(frame(6, 0, 0, &[0; 8]).repeat(50_000));
        }
        // A body byte by byte, without an end.
        _ => {
            bytes.extend(frame(4, 0, 0, b""));
            bytes.extend(frame(1, WHOLE_HEAD, 1, post));
            bytes.extend(frame(0, 0, 1, b"x").repeat(20_000));
        }
    }
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_write_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    // The server may take no more of it, or close before it has read everything.
    let _ = stream.write_all(&bytes);
    stream
}

#[test]
fn hostile_clients_leave_nothing_behind() {
    leave_nothing_behind(attack);
}

#[test]
fn hostile_clients_of_http_2_leave_nothing_behind() {
    leave_nothing_behind(attack_http2);
}

fn leave_nothing_behind(attack: fn(SocketAddr, usize) -> TcpStream) {
    allow_descriptors();
    let site = Site::new();
    let flags = [
        "--uplink",
        "400mbit",
        "--uplink-loopback",
        "--header-time-max",
        "1s",
        "--stall-time-max",
        "1s",
        "--idle-time-max",
        "1s",
    ];
    let server = Server::start(&site, &flags);
    // Once beforehand, so that caches and pools are warm.
    assert_eq!(get(server.address(), "/large.bin").status, 200);
    let resident_before = server.resident_bytes();

    let (reset, held): (Vec<_>, Vec<_>) = (0..clients())
        .map(|kind| (kind, attack(server.address(), kind)))
        .partition(|(kind, _)| kind % 5 == 2);
    drop(reset);
    for _ in 0..5 {
        assert_eq!(get(server.address(), "/hello.txt").body, b"hello\n");
    }
    wait_for("the limits to end every connection", || {
        (status(&server)["server"]["connections"]["open"] == 0).then_some(())
    });
    let told = status(&server);
    assert_eq!(told["link"]["jobs"], 0, "{told}");
    drop(held);

    assert!(get(server.address(), "/large.bin").body == pattern(1_000_000));
    wait_for("the memory to be given back", || {
        get(server.address(), "/large.bin");
        let resident = server.resident_bytes();
        (resident <= resident_before + MEMORY_KEPT_BYTES).then_some(())
    });
}

#[test]
fn clients_that_take_nothing_are_closed_where_nothing_is_ordered_too() {
    let site = Site::new();
    // Loopback waits for no grants unless it is told to.
    let server = Server::start(&site, &["--stall-time-max", "1s", "--idle-time-max", "1s"]);
    let held: Vec<_> = (0..5).map(|_| attack(server.address(), 3)).collect();
    wait_for("responses under way", || {
        (status(&server)["server"]["connections"]["response"] == 5).then_some(())
    });
    wait_for("the limit to end every connection", || {
        (status(&server)["server"]["connections"]["open"] == 0).then_some(())
    });
    drop(held);
}

#[test]
fn a_client_that_aborts_leaves_the_queue_at_once() {
    let site = Site::new();
    let server = Server::start(&site, &["--uplink", "1mbit", "--uplink-loopback"]);
    let streams: Vec<_> = (0..10).map(|_| attack(server.address(), 1)).collect();
    wait_for("ten jobs", || {
        (status(&server)["link"]["jobs"] == 10).then_some(())
    });
    drop(streams);
    wait_for("no job", || {
        (status(&server)["link"]["jobs"] == 0).then_some(())
    });
}
