//! Requests come from the addresses they should, by their shares. All of 127.0.0.0/8 is this
//! machine's.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener};

use shortline_load::generator::{SourceAddress, source_of};
use shortline_load::trace::Request;
use shortline_load::{LoadError, LoadOptions, run};

fn request(number: u64) -> Request {
    Request {
        // One after the other, so that the server sees them in order.
        at_ns: number * 50_000_000,
        path: "/".into(),
        bytes: 2,
    }
}

fn options(port: u16, sources: &[&str]) -> LoadOptions {
    let target = format!("http://127.0.0.1:{port}").parse().unwrap();
    let requests: Vec<Request> = (0..8).map(request).collect();
    let mut options = LoadOptions::new(target, requests);
    options.sources = sources
        .iter()
        .map(|source| source.parse().unwrap())
        .collect();
    options
}

/// Answers so many connections, one after the other, and returns their addresses.
fn peers(listener: &TcpListener, connections: usize) -> Vec<IpAddr> {
    let answer = |_| {
        let (mut tcp, peer) = listener.accept().unwrap();
        let mut head = [0; 1024];
        assert!(tcp.read(&mut head).unwrap() > 0);
        tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            .unwrap();
        peer.ip()
    };
    (0..connections).map(answer).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_comes_from_its_source() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || peers(&listener, 8));
    let options = options(port, &["127.0.0.2=3", "127.0.0.3"]);
    let sources: Vec<SourceAddress> = options.sources.clone();
    let report = run(options).await.unwrap();
    assert!(report.records.iter().all(shortline_load::RequestRecord::ok));

    let shares = || sources.iter().map(|source| source.share);
    let source = |number| sources[source_of(number, shares())].address;
    // A handshake may overtake another on a busy machine, so only the addresses count, not their
    // order.
    let mut wanted: Vec<IpAddr> = (0..8).map(source).collect();
    let mut came = server.join().unwrap();
    wanted.sort();
    came.sort();
    let mut recorded: Vec<IpAddr> = report.records.iter().filter_map(|r| r.source).collect();
    recorded.sort();
    assert_eq!(recorded, came);
    assert_eq!(came, wanted);
    assert!(sources.iter().all(|source| came.contains(&source.address)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_parts_requests_are_together_those_of_one_process() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || peers(&listener, 16));
    let made = async |part: &str| {
        let mut options = options(port, &["127.0.0.2=3", "127.0.0.3"]);
        options.part = part.parse().unwrap();
        let records = run(options).await.unwrap().records;
        let made = records
            .into_iter()
            .map(|r| ((r.at_s * 1e3) as u64, r.source));
        made.collect::<Vec<_>>()
    };
    let whole = made("1/1").await;
    let mut parts = [made("1/2").await, made("2/2").await].concat();
    assert_eq!((whole.len(), parts.len()), (8, 8));
    parts.sort();
    assert_eq!(parts, whole);
    server.join().unwrap();

    let mut none = options(port, &[]);
    none.part = "9/9".parse().unwrap();
    assert!(matches!(run(none).await, Err(LoadError::EmptyPart)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_of_another_kind_is_refused() {
    let error = run(options(1, &["::1"])).await.unwrap_err();
    assert!(matches!(error, LoadError::Source { .. }));
    let text = error.to_string();
    assert!(text.starts_with("source ::1: want an address"), "{text}");
}
