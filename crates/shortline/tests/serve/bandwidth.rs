//! `bandwidth-max`: what one response gets of the uplink at most.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use crate::admin::status;
use crate::client::{connect, get, read_head};
use crate::process::{Server, Site, pattern, shortline};
use crate::routes::application;

/// 8 kbit/s: a thousand bytes a second.
const BYTES_A_SECOND: f64 = 1000.0;
const AFTER: usize = 500_000;

fn start(site: &Site, flags: &[&str]) -> Server {
    let file = site.beside("shortline.toml");
    let limit = "bandwidth-max = \"8kbit\"\nbandwidth-after = \"500kB\"";
    let text = format!(
        "[[site.rule]]\npath = \"/large.bin\"\n{limit}\n[[site.rule]]\npath = \"/app/*\"\n{limit}\n\
         [[route]]\npath = \"/app\"\nupstream = [\"{}\"]\n",
        application()
    );
    std::fs::write(&file, text).unwrap();
    let flags = [&["--config", file.to_str().unwrap()], flags].concat();
    Server::start(site, &flags)
}

fn begin(server: &Server, target: &str) -> TcpStream {
    let mut stream = connect(server.address());
    write!(stream, "GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    stream
}

#[test]
fn a_response_is_held_back_while_others_get_the_uplink() {
    let site = Site::new().with("other.bin", pattern(1_000_000));
    for flags in [
        &["--uplink", "off"][..],
        &["--uplink", "80mbit", "--uplink-loopback"],
    ] {
        for target in ["/large.bin", "/app/large"] {
            let server = start(&site, flags);
            let begun = Instant::now();
            let mut limited = begin(&server, target);
            assert!(
                read_head(&mut limited)
                    .unwrap()
                    .starts_with("HTTP/1.1 200 ")
            );
            let mut got = vec![0; AFTER];
            limited.read_exact(&mut got).unwrap();
            // It is out: neither whole responses nor larger ones wait for it.
            assert_eq!(get(server.address(), "/other.bin").body.len(), 1_000_000);
            assert_eq!(get(server.address(), "/hello.txt").body, b"hello\n");
            if flags.len() > 2 {
                assert_eq!(status(&server)["link"]["jobs"], 1);
            }
            // All that has come by now, and no more than the rate gave in this time.
            limited.set_nonblocking(true).unwrap();
            let mut piece = [0; 65536];
            while let Ok(bytes) = limited.read(&mut piece) {
                assert!(bytes > 0, "it broke off");
                got.extend_from_slice(&piece[..bytes]);
            }
            let most = BYTES_A_SECOND * (begun.elapsed().as_secs_f64() + 1.0) + 2.0 * 1448.0;
            assert!(
                got.len() - AFTER <= most as usize,
                "{} bytes",
                got.len() - AFTER
            );
            assert!(got == pattern(1_000_000)[..got.len()]);
        }
    }
}

#[test]
fn a_limit_above_what_is_sent_changes_nothing() {
    let site = Site::new();
    let file = site.beside("shortline.toml");
    std::fs::write(&file, "[[site.rule]]\nbandwidth-max = \"10gbit\"\n").unwrap();
    let flags = ["--config", file.to_str().unwrap()];
    for uplink in [
        &["--uplink", "off"][..],
        &["--uplink", "800mbit", "--uplink-loopback"],
    ] {
        let server = Server::start(&site, &[&flags[..], uplink].concat());
        assert!(get(server.address(), "/large.bin").body == pattern(1_000_000));
        assert_eq!(get(server.address(), "/hello.txt").body, b"hello\n");
        assert_eq!(get(server.address(), "/missing").status, 404);
    }
}

#[test]
fn what_limits_nothing_is_refused() {
    let site = Site::new();
    for (keys, expected) in [
        (
            "bandwidth-after = \"1MB\"",
            "bandwidth-after: belongs to a limit: add it, such as bandwidth-max = \"1mbit\"",
        ),
        ("bandwidth-max = \"0mbit\"", "rate `0mbit`"),
        (
            "limit_rate = \"1m\"",
            "`bandwidth-max` of a `[[site.rule]]`",
        ),
    ] {
        let file = site.beside("a.toml");
        std::fs::write(
            &file,
            format!("[site]\nroot = \".\"\n[[site.rule]]\n{keys}\n"),
        )
        .unwrap();
        let ended = shortline(&site.root(), &["serve", "--config", file.to_str().unwrap()]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}
