//! What no client should send: answered with a 4xx and a closed connection, and harmless.

use std::io::Write;

use crate::bad_requests::{refuse_chunks, refuse_hosts, refuse_targets};
use crate::client::{connect, exchange, get, parse, read_one};
use crate::process::{Server, Site, wait_for};

/// Sends `request` as it is; the connection must close, after at most one 4xx.
fn refused(server: &Server, request: &[u8]) {
    let answer = exchange(server.address(), request);
    let shown = String::from_utf8_lossy(request)
        .chars()
        .take(60)
        .collect::<String>();
    assert!(!answer.is_empty(), "{shown:?} got no answer");
    let status = parse(&answer).status;
    assert!((400..=431).contains(&status), "{shown:?} got {status}");
}

#[test]
fn malformed_requests_get_a_4xx_and_a_closed_connection() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    let long_field = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(100_000)
    );
    let many_fields = format!(
        "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
        "X: y\r\n".repeat(200)
    );
    let long_target = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(100_000));
    let requests: [&[u8]; 13] = [
        // No preface of HTTP/2 either (h2spec's http2/3.5/2).
        b"INVALID CONNECTION PREFACE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1 extra\r\nHost: a\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
        b"G@T\x01 / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        long_field.as_bytes(),
        many_fields.as_bytes(),
        long_target.as_bytes(),
    ];
    for request in requests {
        refused(&server, request);
    }
    assert_eq!(get(server.address(), "/hello.txt").status, 200);
}

#[test]
fn no_path_leads_outside_the_root() {
    let site = Site::new();
    std::fs::write(site.beside("outside.txt"), "outside\n").unwrap();
    std::os::unix::fs::symlink(site.beside("outside.txt"), site.root().join("link.txt")).unwrap();
    let server = Server::start(&site, &[]);
    let long = format!("/{}", "a/".repeat(3000));
    let targets: [&[u8]; 14] = [
        b"/../outside.txt",
        b"/folder/../../outside.txt",
        b"/%2e%2e/outside.txt",
        b"/%2E%2E%2Foutside.txt",
        b"/..%2foutside.txt",
        b"/..\\outside.txt",
        b"/%5c..%5coutside.txt",
        b"/hello.txt%00.html",
        b"/folder%2fpage.html",
        b"/%ff%fe",
        b"/\xff\xfe",
        b"/%zz",
        b"/link.txt",
        long.as_bytes(),
    ];
    for target in targets {
        let request = [
            b"GET ",
            target,
            b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        ]
        .concat();
        let got = parse(&exchange(server.address(), request));
        let shown = String::from_utf8_lossy(target);
        assert!(
            matches!(got.status, 400 | 404 | 414),
            "{shown}: {}",
            got.status
        );
        assert!(
            !got.body.windows(7).any(|window| window == b"outside"),
            "{shown}"
        );
    }
}

#[test]
fn nothing_forges_a_line_of_the_log() {
    let site = Site::new();
    let log = site.beside("access.log");
    let server = Server::start(&site, &["--access-log", log.to_str().unwrap()]);
    let agent = "x\" 200 1 \"-\" \"\\\u{1b}[2J";
    let request = format!(
        "GET /a%0d%0a127.0.0.1%22\" HTTP/1.1\r\nHost: a\r\nUser-Agent: {agent}\r\nReferer: \u{e9}\r\nConnection: close\r\n\r\n"
    );
    exchange(server.address(), request);
    exchange(
        server.address(),
        "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: a\rb\r\n\r\n",
    );
    get(server.address(), "/last");
    let text = wait_for("the last line", || {
        let text = std::fs::read_to_string(&log).unwrap();
        text.contains("/last").then_some(text)
    });
    for line in text.lines() {
        assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
        assert!(line.contains(" wait=") && line.contains(" send="), "{line}");
        assert_eq!(line.matches('"').count(), 6, "{line}");
        assert!(
            line.bytes().all(|byte| (b' '..0x7f).contains(&byte)),
            "{line}"
        );
    }
}

#[test]
fn a_host_that_is_none_gets_400_for_a_file() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    refuse_hosts(server.address(), "/hello.txt");
}

#[test]
fn a_target_that_is_none_gets_400_for_a_file() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    refuse_targets(server.address(), "/hello.txt");
}

#[test]
fn chunks_that_break_their_grammar_get_400_for_a_file() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    refuse_chunks(server.address(), "/hello.txt", 405);
}

#[test]
fn a_transfer_coding_that_is_not_known_gets_400_for_a_file() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    for fields in [
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: identity\r\n",
    ] {
        let request = format!("GET /hello.txt HTTP/1.1\r\nHost: a\r\n{fields}\r\n0\r\n\r\n");
        let got = parse(&exchange(server.address(), request));
        assert_eq!(got.status, 400, "{fields:?}");
    }
}

#[test]
fn a_refusal_says_why() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    let got = parse(&exchange(
        server.address(),
        "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
    ));
    let body = String::from_utf8(got.body.clone()).unwrap();
    assert_eq!(got.field("content-type"), Some("text/plain; charset=utf-8"));
    let why = "Host is not a host: want a name or an address, and a port up to 65535 or none";
    assert_eq!(body, format!("400 Bad Request\n{why}\n"));
}

#[test]
fn requests_behind_each_other_are_told_apart_however_they_end() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    let mut stream = connect(server.address());
    let chunked = "GET /hello.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3;a=b\r\n\n\r\n\r\n0\r\nX: y\r\n\r\n";
    let plain = "\r\n\r\nGET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    let all = [chunked, plain, plain, chunked, plain, chunked].concat();
    // At once, then byte by byte: how they come in pieces must not matter.
    stream.write_all(all.as_bytes()).unwrap();
    for _ in 0..6 {
        assert_eq!(read_one(&mut stream).body, b"hello\n");
    }
    stream.set_nodelay(true).unwrap();
    for byte in all.as_bytes() {
        stream.write_all(&[*byte]).unwrap();
    }
    for _ in 0..6 {
        assert_eq!(read_one(&mut stream).body, b"hello\n");
    }
}

/// Who sends chunks without an end must not be waited for without an end.
#[test]
fn chunks_that_do_not_come_get_408() {
    let site = Site::new();
    let server = Server::start(&site, &["--header-time-max", "1s"]);
    let request = "GET /hello.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nh";
    assert_eq!(parse(&exchange(server.address(), request)).status, 408);
}
