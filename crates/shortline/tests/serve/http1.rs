//! HTTP/1.1 over a real socket: methods, ranges, conditions, encodings, connections.

use std::io::Write;

use crate::client::{connect, exchange, get, parse, read_one, request};
use crate::process::{Server, Site, pattern};

#[test]
fn get_head_and_options() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    let got = get(server.address(), "/hello.txt");
    assert_eq!((got.status, got.body.as_slice()), (200, &b"hello\n"[..]));
    assert_eq!(got.field("content-type"), Some("text/plain; charset=utf-8"));
    let head = request(server.address(), "HEAD", "/hello.txt", "");
    assert_eq!(
        (head.status, head.content_length(), head.body.len()),
        (200, 6, 0)
    );
    let options = request(server.address(), "OPTIONS", "/hello.txt", "");
    assert!(options.field("allow").unwrap().contains("HEAD"));
    let post = request(
        server.address(),
        "POST",
        "/hello.txt",
        "Content-Length: 0\r\n",
    );
    assert_eq!(post.status, 405);
}

#[test]
fn every_mode_and_policy_serves_the_whole_file() {
    let site = Site::new();
    let modes: [&[&str]; 8] = [
        &["--link-mode", "off"],
        &["--uplink-loopback", "--slots", "1"],
        &["--uplink-loopback", "--policy", "fair"],
        &["--uplink-loopback", "--uplink", "200mbit"],
        &["--uplink-loopback", "--policy", "bands:6"],
        &["--uplink-loopback", "--policy", "quickfix:10KB"],
        &[
            "--uplink-loopback",
            "--uplink=200mbit",
            "--policy=fsp",
            "--growing=3",
        ],
        &[
            "--uplink-loopback",
            "--uplink",
            "200mbit",
            "--policy",
            "las",
            "--aging",
            "3",
        ],
    ];
    for flags in modes {
        let server = Server::start(&site, flags);
        let got = get(server.address(), "/large.bin");
        assert!(
            got.body == pattern(1_000_000),
            "{flags:?}: {} bytes",
            got.body.len()
        );
    }
}

/// Long pieces of a kept file go out by `sendfile`, the heads between them by writes.
#[test]
fn long_pieces_keep_their_order_on_one_connection() {
    let site = Site::new();
    let server = Server::start(&site, &["--link-mode", "off"]);
    let content = pattern(1_000_000);
    let mut stream = connect(server.address());
    for _ in 0..3 {
        let ask =
            "GET /large.bin HTTP/1.1\r\nHost: x\r\nRange: bytes=0-19999,500000-899999\r\n\r\n";
        stream.write_all(ask.as_bytes()).unwrap();
        let got = read_one(&mut stream);
        let at = |from: usize, len: usize| &got.body[from..from + len];
        let blank = |from: usize| {
            let rest = got.body[from..].windows(4);
            from + rest.take(400).position(|four| four == b"\r\n\r\n").unwrap() + 4
        };
        let first = blank(0);
        assert!(at(first, 20_000) == &content[..20_000]);
        let second = blank(first + 20_000);
        assert!(at(second, 400_000) == &content[500_000..900_000]);

        stream
            .write_all(b"GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        assert!(read_one(&mut stream).body == content);
    }
}

#[test]
fn ranges_and_conditions() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    let address = server.address();
    let content = pattern(1_000_000);
    let one = request(address, "GET", "/large.bin", "Range: bytes=10-19\r\n");
    assert_eq!((one.status, one.body.as_slice()), (206, &content[10..20]));
    assert_eq!(one.field("content-range"), Some("bytes 10-19/1000000"));
    let two = request(address, "GET", "/large.bin", "Range: bytes=0-1,-2\r\n");
    assert_eq!(two.status, 206);
    assert!(
        two.field("content-type")
            .unwrap()
            .starts_with("multipart/byteranges; boundary=")
    );
    assert_eq!(two.body.len(), two.content_length());
    let none = request(address, "GET", "/large.bin", "Range: bytes=1000000-\r\n");
    assert_eq!(none.status, 416);

    let etag = one.field("etag").unwrap();
    let same = request(
        address,
        "GET",
        "/large.bin",
        &format!("If-None-Match: {etag}\r\n"),
    );
    assert_eq!((same.status, same.body.len()), (304, 0));
    let other = request(address, "GET", "/large.bin", "If-Match: \"x\"\r\n");
    assert_eq!(other.status, 412);
    let stale = "Range: bytes=0-1\r\nIf-Range: \"x\"\r\n";
    assert_eq!(request(address, "GET", "/large.bin", stale).status, 200);
}

#[test]
fn compressed_siblings_are_offered() {
    let site = Site::new()
        .with("hello.txt.gz", "gzip!")
        .with("hello.txt.br", "brotli!");
    let server = Server::start(&site, &[]);
    let got = request(
        server.address(),
        "GET",
        "/hello.txt",
        "Accept-Encoding: gzip\r\n",
    );
    assert_eq!(got.field("content-encoding"), Some("gzip"));
    assert_eq!(got.body, b"gzip!");
    let plain = get(server.address(), "/hello.txt");
    assert_eq!(plain.body, b"hello\n");
    assert!(
        plain
            .field("vary")
            .unwrap()
            .eq_ignore_ascii_case("accept-encoding")
    );
}

#[test]
fn folders_and_hidden_files() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    let address = server.address();
    assert_eq!(get(address, "/").body, b"<p>index\n");
    let redirect = get(address, "/folder");
    assert!(matches!(redirect.status, 301 | 308), "{}", redirect.status);
    assert!(redirect.field("location").unwrap().ends_with("/folder/"));
    assert_eq!(get(address, "/folder/").status, 404);
    assert_eq!(get(address, "/.hidden").status, 404);
    let listing = Server::start(&site, &["--listing"]);
    let page = get(listing.address(), "/folder/");
    assert_eq!(page.status, 200);
    assert!(String::from_utf8(page.body).unwrap().contains("page.html"));
}

#[test]
fn a_connection_serves_many_requests_and_pipelines_them() {
    let site = Site::new();
    let server = Server::start(&site, &["--uplink-loopback"]);
    let mut stream = connect(server.address());
    for _ in 0..3 {
        stream
            .write_all(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        assert_eq!(read_one(&mut stream).body, b"hello\n");
    }
    let three = "GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /large.bin HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    stream.write_all(three.as_bytes()).unwrap();
    assert_eq!(read_one(&mut stream).body, b"hello\n");
    assert!(read_one(&mut stream).body == pattern(1_000_000));
    assert_eq!(read_one(&mut stream).body, b"<p>index\n");
}

#[test]
fn an_answer_before_a_long_body_was_read_says_that_the_connection_closes() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    let told = |method: &str, length: usize| {
        let mut stream = connect(server.address());
        let head =
            format!("{method} /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        let request = [head.as_bytes(), &pattern(length.min(1000))].concat();
        stream.write_all(&request).unwrap();
        let response = read_one(&mut stream);
        let connection = response.field("connection").map(str::to_owned);
        (response.status, connection)
    };
    let closes = Some("close".to_owned());
    assert_eq!(told("GET", 1_000_000), (200, closes.clone()));
    assert_eq!(told("POST", 1_000_000), (405, closes));
    // It has come with its head.
    assert_eq!(told("GET", 1000), (200, None));
    assert_eq!(told("GET", 0), (200, None));
}

/// Such a client may send its next request in the place of the body.
#[test]
fn a_client_that_waits_with_a_body_that_nobody_wants_is_told_to_close() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    for length in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
        let request = format!(
            "PUT /hello.txt HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n{length}\r\n\r\n"
        );
        let got = parse(&exchange(server.address(), request));
        assert_eq!((got.status, got.field("connection")), (405, Some("close")));
    }
}

#[test]
fn a_short_body_that_nobody_wants_is_passed_over() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    let mut stream = connect(server.address());
    let with_body = "POST /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 8000\r\n\r\n";
    let next = "GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    for piece in [8000, 100] {
        stream.write_all(with_body.as_bytes()).unwrap();
        // The answer comes before the body.
        assert_eq!(read_one(&mut stream).status, 405);
        for part in pattern(8000).chunks(piece) {
            stream.write_all(part).unwrap();
        }
        stream.write_all(next.as_bytes()).unwrap();
        assert_eq!(read_one(&mut stream).body, b"hello\n");
    }
}

#[test]
fn what_is_no_request_is_answered_with_the_reason() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    for (fields, why) in [
        (
            "Content-Length: x",
            "400 Bad Request\nContent-Length is no length, or there are two that differ\n",
        ),
        (
            "Transfer-Encoding: gzip",
            "400 Bad Request\nthe last transfer coding is not chunked, so the request has no end\n",
        ),
        (
            &"a: b\r\n".repeat(100),
            "431 Request Header Fields Too Large\nthe head has more than 100 fields, the most allowed\n",
        ),
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
        let got = parse(&exchange(server.address(), request));
        assert_eq!(String::from_utf8(got.body.clone()).unwrap(), why);
        assert_eq!(got.field("connection"), Some("close"));
        assert_eq!(got.field("content-type"), Some("text/plain; charset=utf-8"));
    }
}

#[test]
fn http_1_0_closes_after_the_response() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    let got = parse(&exchange(
        server.address(),
        "GET /hello.txt HTTP/1.0\r\n\r\n",
    ));
    assert_eq!((got.status, got.body.as_slice()), (200, &b"hello\n"[..]));
}

#[test]
fn http_1_0_keeps_the_connection_if_that_is_asked() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    let mut stream = connect(server.address());
    for _ in 0..2 {
        stream
            .write_all(b"GET /hello.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            .unwrap();
        let got = read_one(&mut stream);
        assert!(got.head.starts_with("HTTP/1.0 200 OK\r\n"), "{}", got.head);
        assert_eq!(got.field("connection"), Some("keep-alive"));
        assert_eq!(got.body, b"hello\n");
    }
}

#[test]
fn a_request_has_a_hundred_fields_at_most() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    for (fields, status) in [(100, 200), (101, 431)] {
        let others = "a: b\r\n".repeat(fields - 2);
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{others}\r\n");
        let got = parse(&exchange(server.address(), request));
        assert_eq!(got.status, status, "{fields} fields");
    }
}
