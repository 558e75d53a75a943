//! Files that change while they are sent, and descriptors that run out.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::client::{connect, get, parse, read_to_end};
use crate::process::{PROGRAM, Server, Site, pattern, wait_for};

/// Slow enough to change a file under way, which is read from disk as it goes.
const SLOW: [&str; 5] = [
    "--uplink",
    "4mbit",
    "--uplink-loopback",
    "--cache-file-size-max",
    "0",
];

/// Asks for the large file, reads its head and a little more, calls `change`, reads the rest.
fn read_while(server: &Server, change: impl FnOnce()) -> crate::client::Response {
    let mut stream = connect(server.address());
    stream
        .write_all(b"GET /large.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut first = vec![0; 4000];
    stream.read_exact(&mut first).unwrap();
    change();
    first.extend(read_to_end(&mut stream));
    parse(&first)
}

#[test]
fn a_file_cut_short_ends_that_response_only() {
    let site = Site::new();
    let mut server = Server::start(&site, &SLOW);
    let path = site.root().join("large.bin");
    let got = read_while(&server, || {
        OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(50_000)
            .unwrap();
    });
    assert_eq!(got.status, 200);
    assert!(
        got.body.len() < got.content_length(),
        "{} bytes",
        got.body.len()
    );
    assert_eq!(get(server.address(), "/hello.txt").status, 200);
    server.line_with("a file cannot be read to its end");
}

#[test]
fn a_file_that_grows_keeps_its_promised_length() {
    let site = Site::new();
    let server = Server::start(&site, &SLOW);
    let path = site.root().join("large.bin");
    let got = read_while(&server, || {
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&[0; 1000]).unwrap();
    });
    assert!(got.body == pattern(1_000_000));
}

#[test]
fn a_file_replaced_is_sent_as_it_was() {
    let site = Site::new().with("new.bin", "new");
    let server = Server::start(&site, &SLOW);
    let got = read_while(&server, || {
        std::fs::rename(site.root().join("new.bin"), site.root().join("large.bin")).unwrap();
    });
    assert!(got.body == pattern(1_000_000));
    wait_for("the new file", || {
        (get(server.address(), "/large.bin").body == b"new").then_some(())
    });
}

#[test]
fn an_unreadable_file_is_an_error_of_its_own() {
    let site = Site::new();
    let path = site.root().join("hello.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o0)).unwrap();
    if std::fs::read(&path).is_ok() {
        println!("skipped: root may read every file");
        return;
    }
    let server = Server::start(&site, &[]);
    assert!(matches!(
        get(server.address(), "/hello.txt").status,
        403 | 404
    ));
    assert_eq!(get(server.address(), "/").status, 200);
}

#[test]
fn without_descriptors_the_server_goes_on() {
    let site = Site::new();
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 40; exec \"$0\" \"$@\"", PROGRAM])
        .args(["serve", "--listen", "127.0.0.1:0"])
        .arg(site.root());
    let mut server = Server::spawn(&mut command);
    let held: Vec<_> = (0..60).map(|_| connect(server.address())).collect();
    server.line_with("cannot accept");
    drop(held);
    let got = get(server.address(), "/large.bin");
    assert!(got.body == pattern(1_000_000));
}
