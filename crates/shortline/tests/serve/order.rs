//! The order in which responses leave, over real sockets. What is asserted is an order, never how
//! long something took.

use std::fs::File;
use std::io::{IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::{ReadWriteFlags, preadv2};
use socket2::{Domain, Socket, Type};

use crate::admin::status;
use crate::client::{connect, get, parse, read_one, read_to_end, request};
use crate::process::{Server, Site, pattern, wait_for};

const LARGE_BYTES: usize = 1_000_000;
/// More of the large response than the kernel keeps when the small one has come.
const FURTHER_BYTES: usize = 100_000;

fn site() -> Site {
    Site::new()
        .with("large.bin", pattern(LARGE_BYTES))
        .with("small.txt", "small")
}

const LARGE: &[u8] = b"GET /large.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[test]
fn a_small_response_overtakes_a_large_one() {
    for policy in ["srpt", "bands", "quickfix:1KB", "fsp", "shares"] {
        overtakes_under(policy);
    }
}

fn overtakes_under(policy: &str) {
    let uplink = ["--uplink", "400kbit", "--uplink-loopback"];
    let flags = [&uplink[..], &["--policy", policy]].concat();
    let site = site();
    let server = Server::start(&site, &flags);
    let mut large = connect(server.address());
    large.write_all(LARGE).unwrap();
    assert!(large.peek(&mut [0]).unwrap() > 0);
    assert_eq!(get(server.address(), "/small.txt").body, b"small");
    // Twenty seconds of the uplink: the large response cannot be done yet, and goes on.
    let jobs = status(&server)["link"]["jobs"].as_u64();
    assert_eq!(jobs, Some(1), "the large response is still under way");
    large.read_exact(&mut [0; FURTHER_BYTES]).unwrap();
}

/// What a read of 64 KiB left over after the last whole grant went out alone: a second turn, and a short packet.
#[test]
fn a_file_leaves_in_whole_grants_from_memory_and_from_disk() {
    const QUANTUM_BYTES: usize = 10_000;
    for kept in ["1MiB", "0"] {
        let quantum = ["--quantum", "10KB", "--cache-file-size-max", kept];
        let flags = [&["--uplink", "1gbit", "--uplink-loopback"], &quantum[..]].concat();
        let site = site();
        let server = Server::start(&site, &flags);
        let mut client = connect(server.address());
        client.write_all(LARGE).unwrap();
        let response_bytes = read_to_end(&mut client).len();
        assert!(response_bytes > LARGE_BYTES);
        let grants = status(&server)["link"]["grants_total"].as_u64();
        let whole = response_bytes.div_ceil(QUANTUM_BYTES) as u64;
        assert_eq!(grants, Some(whole), "kept in memory up to {kept}");
    }
}

/// It asked for its turn first, gave that back to read the disk, and asked for another: a packet of a large one went before it.
#[test]
fn a_small_file_is_read_before_its_turn_is_asked_for() {
    let site = Site::in_memory().with("small.txt", "small");
    if !is_never_at_hand(&site.root().join("small.txt")) {
        eprintln!("not tested: this kernel can tell what of tmpfs is in memory");
        return;
    }
    let server = Server::start(&site, &["--uplink", "1gbit", "--uplink-loopback"]);
    assert_eq!(get(server.address(), "/small.txt").body, b"small");
    assert_eq!(status(&server)["link"]["grants_total"].as_u64(), Some(1));
}

/// Whether the kernel says of each read that it may have to wait.
fn is_never_at_hand(path: &Path) -> bool {
    let (file, mut byte) = (File::open(path).unwrap(), [0]);
    let buffers = &mut [IoSliceMut::new(&mut byte)];
    preadv2(&file, buffers, 0, ReadWriteFlags::NOWAIT).is_err()
}

/// One address asks for a large file in pipelined ranges of 1 KB, each the smallest of all. Under `srpt`
/// another client waits for the last of them.
#[test]
fn small_ranges_of_one_client_do_not_keep_the_others_waiting() {
    pieces_do_not_keep_another_waiting(&[], "127.0.0.2:0", ["", ""]);
}

/// Both come from the same address, which says whom it asks for.
#[test]
fn nor_do_those_of_one_client_behind_a_proxy() {
    let fields = [
        "X-Forwarded-For: 192.0.2.1\r\n",
        "X-Forwarded-For: 192.0.2.2\r\n",
    ];
    let trusted = ["--trusted-proxy", "127.0.0.0/8"];
    pieces_do_not_keep_another_waiting(&trusted, "127.0.0.1:0", fields);
}

/// One client asks for many ranges, another for one file; with a field each.
fn pieces_do_not_keep_another_waiting(flags: &[&str], from: &str, fields: [&'static str; 2]) {
    const RANGES: usize = 2000;
    const RANGE_BYTES: usize = 1024;
    let uplink = ["--uplink", "800kbit", "--uplink-loopback"];
    let site = site().with("medium.bin", pattern(30_000));
    let server = Server::start(&site, &[&uplink[..], flags].concat());
    let greedy = connect_from(from, server.address());
    let got = Arc::new(AtomicUsize::new(0));
    let reader = {
        let (mut stream, got) = (greedy.try_clone().unwrap(), Arc::clone(&got));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
                got.fetch_add(bytes, Ordering::SeqCst);
            }
        })
    };
    let [greedys, others] = fields;
    let writer = {
        let mut stream = greedy.try_clone().unwrap();
        std::thread::spawn(move || {
            let text = format!(
                "GET /large.bin HTTP/1.1\r\nHost: a\r\n{greedys}Range: bytes=0-1023\r\n\r\n"
            );
            // It ends early, with the test.
            let _ = stream.write_all(text.repeat(RANGES).as_bytes());
        })
    };
    wait_for("the first ranges", || {
        (got.load(Ordering::SeqCst) > 20 * RANGE_BYTES).then_some(())
    });
    let other = request(server.address(), "GET", "/medium.bin", others);
    assert_eq!(other.body.len(), 30_000);
    let got = got.load(Ordering::SeqCst);
    greedy.shutdown(Shutdown::Both).unwrap();
    reader.join().unwrap();
    writer.join().unwrap();
    assert!(got < RANGES * RANGE_BYTES / 2, "{got} bytes went before");
}

/// A connection from an address of its own on the loopback interface.
fn connect_from(own: &str, server: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let own: SocketAddr = own.parse().unwrap();
    socket.bind(&own.into()).unwrap();
    socket.connect(&server.into()).unwrap();
    socket.into()
}

/// No order is asserted: round trips on the loopback interface depend on the processor's other work.
#[test]
fn policies_that_go_by_the_network_serve_paced_and_in_slots() {
    let site = site();
    for policy in ["srrt", "stert", "fcf", "swift"] {
        for mode in ["paced", "slots"] {
            let uplink = ["--uplink", "400mbit", "--uplink-loopback"];
            let order = ["--link-mode", mode, "--policy", policy];
            let server = Server::start(&site, &[&uplink[..], &order].concat());
            let mut large = connect(server.address());
            large.write_all(LARGE).unwrap();
            assert_eq!(get(server.address(), "/small.txt").body, b"small");
            assert_eq!(parse(&read_to_end(&mut large)).body.len(), LARGE_BYTES);
        }
    }
}

#[test]
fn a_full_queue_answers_503_at_once_and_recovers() {
    // Eight seconds for the large response: the second request comes in between.
    let flags = ["--uplink", "1mbit", "--uplink-loopback", "--jobs-max", "1"];
    let site = site();
    let server = Server::start(&site, &flags);
    let mut large = connect(server.address());
    large.write_all(LARGE).unwrap();
    let mut second = connect(server.address());
    // The first job is in the queue once its first bytes have come.
    assert!(large.peek(&mut [0]).unwrap() > 0);
    second
        .write_all(b"GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert_eq!(read_one(&mut second).status, 503);
    assert_eq!(parse(&read_to_end(&mut large)).body.len(), LARGE_BYTES);
    assert_eq!(get(server.address(), "/small.txt").status, 200);
}
