//! Requests and responses as they should be: what a backend sees, and on which connection.

use std::io::Write;
use std::time::Duration;

use crate::backend::Backend;
use crate::client::{connect, exchange, field, get, post, read_one, refusing, wait_for};
use crate::front::Front;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_backend_sees_the_request_and_the_client_behind_it() {
    let backend = Backend::echoing();
    let front = Front::start(&[backend.address]);
    let claims = "X-Forwarded-For: 10.0.0.1\r\nX-Mine: 1\r\nConnection: X-Mine\r\nX-Other: 2\r\n";
    let response = get(front.address, "/path?query=1", claims);
    assert_eq!(response.status, 200);
    let seen = response.text();
    assert!(seen.starts_with("GET /path?query=1 HTTP/1.1\r\n"), "{seen}");
    assert_eq!(field(&seen, "host"), Some("shop.example"));
    assert_eq!(field(&seen, "x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(field(&seen, "x-forwarded-proto"), Some("http"));
    assert_eq!(field(&seen, "x-other"), Some("2"));
    assert_eq!(
        (field(&seen, "x-mine"), field(&seen, "connection")),
        (None, None)
    );
}

#[test]
fn a_body_goes_through_with_its_length_or_chunked() {
    let backend = Backend::echoing();
    let front = Front::start(&[backend.address]);
    let seen = post(front.address, "/", "name=value").text();
    assert_eq!(field(&seen, "content-length"), Some("10"));
    assert!(seen.ends_with("\r\n\r\nname=value"), "{seen}");

    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
                   4\r\nname\r\n6\r\n=value\r\n0\r\n\r\n";
    let seen = exchange(front.address, chunked).text();
    assert_eq!(field(&seen, "transfer-encoding"), Some("chunked"));
    assert_eq!(field(&seen, "content-length"), None);
    let body = seen.split_once("\r\n\r\n").unwrap().1;
    assert!(
        body.contains("name") && body.ends_with("0\r\n\r\n"),
        "{seen}"
    );

    let empty = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let seen = exchange(front.address, empty).text();
    assert_eq!(field(&seen, "content-length"), Some("0"));
}

#[test]
fn connections_to_a_backend_are_kept_and_used_again() {
    let backend = Backend::answering(OK);
    let front = Front::start(&[backend.address]);
    let mut client = connect(front.address);
    for _ in 0..5 {
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        assert_eq!(read_one(&mut client).body, b"ok");
        front.wait_until_idle();
    }
    assert_eq!(get(front.address, "/", "").status, 200);
    assert_eq!((backend.connections(), backend.heads().len()), (1, 6));
}

#[test]
fn idle_connections_are_closed_in_time() {
    let backend = Backend::answering(OK);
    let front = Front::with(&[backend.address], |options| {
        options.idle_connection_time_max = Duration::from_millis(100);
    });
    assert_eq!(get(front.address, "/", "").status, 200);
    wait_for("the idle connection's end", || {
        (front.backend().connections_open == 0).then_some(())
    });
}

#[test]
fn a_head_request_tells_the_length_and_has_no_body() {
    let backend = Backend::answering("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n");
    let front = Front::start(&[backend.address]);
    let head = "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let response = exchange(front.address, head);
    assert_eq!(response.field("content-length"), Some("1234"));
    assert!(response.body.is_empty());
}

#[test]
fn a_response_without_a_body_has_none() {
    for head in [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n",
    ] {
        let backend = Backend::answering(head);
        let front = Front::start(&[backend.address]);
        let mut client = connect(front.address);
        for _ in 0..2 {
            client
                .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            let response = read_one(&mut client);
            assert_eq!(response.field("content-length"), None, "{head}");
        }
    }
}

#[test]
fn several_backends_share_the_requests_and_a_dead_one_gets_none() {
    let (one, other) = (Backend::answering(OK), Backend::answering(OK));
    let front = Front::start(&[one.address, refusing(), other.address]);
    for _ in 0..12 {
        // Even a POST: without a connection nothing of it was sent.
        assert_eq!(post(front.address, "/", "x").status, 200);
    }
    let (one, other) = (one.heads().len(), other.heads().len());
    assert_eq!(one + other, 12);
    assert!(one >= 4 && other >= 4, "{one} and {other}");
}

#[test]
fn a_health_check_takes_a_backend_out_and_in_again() {
    let sick = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let backend = Backend::start({
        let sick = std::sync::Arc::clone(&sick);
        move |mut conversation| {
            while let Some((head, _)) = conversation.read_request() {
                let sick = sick.load(std::sync::atomic::Ordering::SeqCst);
                let status = if sick && head.starts_with("GET /health ") {
                    "503 Sick"
                } else {
                    "200 OK"
                };
                conversation
                    .write(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes());
            }
        }
    });
    let front = Front::with(&[backend.address], |options| {
        options.health_path = Some("/health".parse().unwrap());
        options.health_every = Duration::from_millis(50);
    });
    wait_for("a failed check", || (!front.backend().up).then_some(()));
    let response = get(front.address, "/", "");
    assert_eq!(response.status, 503);
    assert_eq!(response.field("retry-after"), Some("1"));
    sick.store(false, std::sync::atomic::Ordering::SeqCst);
    wait_for("a passed check", || front.backend().up.then_some(()));
    assert_eq!(get(front.address, "/", "").status, 200);
}

#[test]
fn a_backend_behind_a_socket_in_the_file_system_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            std::io::Read::read_exact(&mut stream, &mut byte).unwrap();
            head.push(byte[0]);
        }
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let front = Front::with(&[], |options| {
        let address = format!("unix:{}", path.display());
        options.backends = vec![address.parse().unwrap()];
    });
    assert_eq!(get(front.address, "/", "").body, b"ok");
}
