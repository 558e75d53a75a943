//! SIGTERM, a second one, and SIGHUP.

use std::io::{Read, Write};
use std::process::Command;

use rustix::process::Signal;

use crate::client::{begin, connect, get, parse, read_one, read_to_end};
use crate::process::{PROGRAM, Server, Site, pattern, wait_for};

#[test]
fn sigterm_lets_responses_finish_and_takes_no_more() {
    let site = Site::new();
    let mut server = Server::start(&site, &["--uplink", "8mbit", "--uplink-loopback"]);
    let (mut stream, mut bytes) = begin(server.address());
    server.signal(Signal::TERM);
    bytes.extend(read_to_end(&mut stream));
    assert!(parse(&bytes).body == pattern(1_000_000));
    assert!(server.wait().success());
    assert!(std::net::TcpStream::connect(server.address()).is_err());
}

#[test]
fn sigterm_ends_idle_connections_at_once() {
    let site = Site::new();
    let mut server = Server::start(&site, &[]);
    let mut stream = connect(server.address());
    stream
        .write_all(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    read_one(&mut stream);
    server.signal(Signal::TERM);
    assert_eq!(read_to_end(&mut stream), b"");
    assert!(server.wait().success());
}

#[test]
fn a_request_that_has_begun_is_still_answered() {
    let site = Site::new();
    let mut server = Server::start(&site, &[]);
    let mut stream = connect(server.address());
    let one = "GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    stream.write_all(format!("{one}GET /").as_bytes()).unwrap();
    read_one(&mut stream);
    server.signal(Signal::TERM);
    wait_for("the listening socket to be closed", || {
        std::net::TcpStream::connect(server.address()).err()
    });
    stream.write_all(&one.as_bytes()[5..]).unwrap();
    let got = parse(&read_to_end(&mut stream));
    assert_eq!(got.body, b"hello\n");
    assert_eq!(got.field("connection"), Some("close"));
    assert!(server.wait().success());
}

#[test]
fn the_deadline_ends_a_response_that_takes_longer() {
    let site = Site::new();
    let flags = [
        "--uplink",
        "100kbit",
        "--uplink-loopback",
        "--drain",
        "200ms",
    ];
    let mut server = Server::start(&site, &flags);
    let (mut stream, mut bytes) = begin(server.address());
    server.signal(Signal::TERM);
    bytes.extend(read_to_end(&mut stream));
    let got = parse(&bytes);
    assert!(got.body.len() < got.content_length());
    assert!(server.wait().success());
}

#[test]
fn a_second_sigterm_stops_at_once() {
    let site = Site::new();
    let mut server = Server::start(&site, &["--uplink", "100kbit", "--uplink-loopback"]);
    let (mut stream, _) = begin(server.address());
    server.signal(Signal::TERM);
    // The listening socket is closed by the first; then the second is a second one.
    wait_for("the first to be heeded", || {
        std::net::TcpStream::connect(server.address()).err()
    });
    server.signal(Signal::TERM);
    read_to_end(&mut stream);
    assert!(server.wait().success());
}

fn start_with_config(site: &Site, text: &str) -> Server {
    std::fs::write(site.beside("a.toml"), text).unwrap();
    let mut command = Command::new(PROGRAM);
    command
        .arg("serve")
        .arg("--config")
        .arg(site.beside("a.toml"));
    Server::spawn(&mut command)
}

fn config(site: &Site, root: &str, more: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[site]\nroot = \"{}\"\n{more}",
        site.beside(root).display()
    )
}

#[test]
fn sighup_swaps_all_or_nothing() {
    let site = Site::new();
    std::fs::create_dir(site.beside("other")).unwrap();
    std::fs::write(site.beside("other/hello.txt"), "other\n").unwrap();
    let mut server = start_with_config(&site, &config(&site, "site", ""));
    assert_eq!(get(server.address(), "/hello.txt").body, b"hello\n");

    let wrong = config(&site, "other", "[uplink]\npolicy = \"wrong\"\n");
    std::fs::write(site.beside("a.toml"), wrong).unwrap();
    server.signal(Signal::HUP);
    let line = server.line_with("not reloaded");
    assert!(line.contains("a.toml:6: uplink.policy:"), "{line}");
    assert_eq!(get(server.address(), "/hello.txt").body, b"hello\n");

    let right = config(
        &site,
        "other",
        "[uplink]\nrate = \"50mbit\"\nloopback = true\n",
    );
    std::fs::write(site.beside("a.toml"), right).unwrap();
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    assert_eq!(get(server.address(), "/hello.txt").body, b"other\n");
}

#[test]
fn sighup_keeps_responses_under_way() {
    let site = Site::new();
    let slow = "[uplink]\nrate = \"8mbit\"\nloopback = true\n";
    let mut server = start_with_config(&site, &config(&site, "site", slow));
    let (mut stream, mut bytes) = begin(server.address());
    std::fs::write(
        site.beside("a.toml"),
        config(&site, "site", "[uplink]\npolicy = \"fair\"\n"),
    )
    .unwrap();
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    let body_bytes = parse(&bytes).body.len();
    let mut rest = vec![0; 1_000_000 - body_bytes];
    stream.read_exact(&mut rest).unwrap();
    bytes.extend(rest);
    assert!(parse(&bytes).body == pattern(1_000_000));
}

#[test]
fn sighup_opens_the_access_log_anew() {
    let site = Site::new();
    let (log, rotated) = (site.beside("access.log"), site.beside("access.log.1"));
    let mut server = Server::start(&site, &["--access-log", log.to_str().unwrap()]);
    get(server.address(), "/first");
    std::fs::rename(&log, &rotated).unwrap();
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    get(server.address(), "/second");
    wait_for("the second line", || {
        let text = std::fs::read_to_string(&log).ok()?;
        text.contains("/second").then_some(())
    });
    assert!(
        std::fs::read_to_string(&rotated)
            .unwrap()
            .contains("/first")
    );
}
