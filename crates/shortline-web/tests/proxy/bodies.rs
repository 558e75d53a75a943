//! Bodies under way: trailers, `100 Continue`, streams without a length, a slow client.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::backend::Backend;
use crate::client::{connect, exchange, field, get, read_head, read_one, read_to_end, wait_for};
use crate::front::Front;

#[test]
fn chunks_and_trailers_come_through() {
    let backend = Backend::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
         5\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 11\r\n\r\n",
    );
    let front = Front::start(&[backend.address]);
    let response = get(front.address, "/", "TE: trailers\r\n");
    assert_eq!(response.field("transfer-encoding"), Some("chunked"));
    let body = response.text();
    assert!(body.contains("hello"), "{body}");
    assert!(
        body.to_ascii_lowercase()
            .ends_with("0\r\nx-sum: 11\r\n\r\n"),
        "{body}"
    );
    assert_eq!(field(&backend.heads()[0], "te"), Some("trailers"));
}

#[test]
fn a_requests_trailers_come_through() {
    let backend = Backend::echoing();
    let front = Front::start(&[backend.address]);
    let request = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTrailer: X-Sum\r\n\
                   Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 2\r\n\r\n";
    let seen = exchange(front.address, request).text().to_ascii_lowercase();
    assert!(seen.ends_with("0\r\nx-sum: 2\r\n\r\n"), "{seen}");
}

#[test]
fn a_client_of_http_1_0_gets_a_body_that_ends_with_the_connection() {
    let backend = Backend::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    );
    let front = Front::start(&[backend.address]);
    let response = exchange(front.address, "GET / HTTP/1.0\r\n\r\n");
    assert_eq!((response.text().as_str(), response.reset), ("hello", false));
    assert_eq!(response.field("transfer-encoding"), None);
}

const EXPECTING: &[u8] =
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";

#[test]
fn continue_is_the_backends_word() {
    let (tell, told) = mpsc::channel();
    let told = parking_lot::Mutex::new(told);
    let backend = Backend::start(move |mut conversation| {
        conversation.read_head().unwrap();
        told.lock().recv().unwrap();
        conversation.write(b"HTTP/1.1 100 Continue\r\n\r\n");
        let mut body = [0; 4];
        conversation.stream.read_exact(&mut body).unwrap();
        conversation.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
        conversation.write(&body);
    });
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address);
    client.write_all(EXPECTING).unwrap();
    wait_for("the head at the backend", || {
        (backend.heads().len() == 1).then_some(())
    });
    assert!(field(&backend.heads()[0], "expect").is_some());
    client.set_nonblocking(true).unwrap();
    let nothing = client.peek(&mut [0]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
    client.set_nonblocking(false).unwrap();
    tell.send(()).unwrap();
    assert!(read_head(&mut client).starts_with("HTTP/1.1 100 "));
    client.write_all(b"body").unwrap();
    assert_eq!(read_one(&mut client).body, b"body");
}

#[test]
fn a_backend_that_does_not_want_the_body_is_not_sent_it() {
    let (say, heard) = mpsc::channel();
    let backend = Backend::start(move |mut conversation| {
        conversation.read_head().unwrap();
        conversation.write(b"HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
        let mut rest = Vec::new();
        let _ = conversation.stream.read_to_end(&mut rest);
        say.send(rest).unwrap();
    });
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address);
    client.write_all(EXPECTING).unwrap();
    assert_eq!(read_one(&mut client).status, 417);
    drop(client);
    assert_eq!(heard.recv().unwrap(), b"");
}

#[test]
fn a_body_is_sent_to_a_backend_that_knows_no_continue() {
    let backend = Backend::echoing();
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address);
    client.write_all(EXPECTING).unwrap();
    assert!(read_head(&mut client).starts_with("HTTP/1.1 100 "));
    client.write_all(b"body").unwrap();
    assert!(read_one(&mut client).text().ends_with("body"));
}

#[test]
fn what_a_backend_says_piece_by_piece_comes_at_once() {
    let (next, wait) = mpsc::channel();
    let wait = parking_lot::Mutex::new(wait);
    let backend = Backend::start(move |mut conversation| {
        conversation.read_head().unwrap();
        conversation.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for _ in 0..3 {
            wait.lock().recv().unwrap();
            conversation.write(b"5\r\nevent\r\n");
        }
        conversation.write(b"0\r\n\r\n");
    });
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address);
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    // The head comes before any of the body exists.
    assert!(read_head(&mut client).contains("200 OK"));
    for _ in 0..3 {
        next.send(()).unwrap();
        let mut chunk = [0; 10];
        client.read_exact(&mut chunk).unwrap();
        assert_eq!(&chunk, b"5\r\nevent\r\n");
    }
    let mut end = Vec::new();
    client.read_to_end(&mut end).unwrap();
    assert_eq!(end, b"0\r\n\r\n");
}

#[test]
fn a_body_larger_than_allowed_is_refused() {
    let backend = Backend::echoing();
    let front = Front::with(&[backend.address], |options| options.request_bytes_max = 10);
    let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    let told = exchange(front.address, format!("{head}Content-Length: 11\r\n\r\n"));
    assert_eq!(told.status, 413);
    assert!(backend.heads().is_empty(), "refused before it was sent");
    let chunked = "Transfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n";
    let found = exchange(front.address, format!("{head}{chunked}"));
    assert_eq!(found.status, 413);
}

#[test]
fn a_refusal_before_the_body_was_read_says_that_the_connection_closes() {
    let backend = Backend::echoing();
    let front = Front::with(&[backend.address], |options| options.request_bytes_max = 10);
    let request = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n";
    let refused = exchange(front.address, request);
    assert_eq!(refused.status, 413);
    assert_eq!(refused.field("connection"), Some("close"));
    let empty = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    let mut client = connect(front.address);
    client.write_all(empty.as_bytes()).unwrap();
    assert!(!read_head(&mut client).contains("connection: close"));
}

#[test]
fn a_large_response_comes_through_whole() {
    const BYTES: usize = 5_000_000;
    let pattern: Vec<u8> = (0..BYTES).map(|at| (at * 7 + at / 251) as u8).collect();
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n").into_bytes();
    answer.extend_from_slice(&pattern);
    let backend = Backend::answering(answer);
    let front = Front::start(&[backend.address]);
    let response = get(front.address, "/", "");
    assert!(
        response.body == pattern,
        "{} bytes differ",
        response.body.len()
    );
}

#[test]
fn a_client_that_reads_nothing_stops_its_backend() {
    const BYTES: usize = 100_000_000;
    let written = Arc::new(AtomicUsize::new(0));
    let backend = Backend::start({
        let written = Arc::clone(&written);
        move |mut conversation| {
            conversation.read_head().unwrap();
            conversation
                .write(format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n").as_bytes());
            let block = vec![7; 100_000];
            for _ in 0..BYTES / block.len() {
                if conversation.stream.write_all(&block).is_err() {
                    return;
                }
                written.fetch_add(block.len(), Ordering::SeqCst);
            }
        }
    });
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address);
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    // Until it stops for a while.
    let mut before = usize::MAX;
    let stood = wait_for("the backend to stand still", || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        let now = written.load(Ordering::SeqCst);
        (now > 0 && std::mem::replace(&mut before, now) == now).then_some(now)
    });
    // The kernel's buffers of two connections, plus ours.
    assert!(stood < BYTES / 2, "{stood} bytes were taken");
    let response = read_to_end(&mut client);
    assert_eq!((response.body.len(), response.reset), (BYTES, false));
}
