//! Long bodies that pass through the kernel only: from a backend's socket or a file through a pipe into the client's socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use crate::client::{connect, get, parse, read_head, read_one, read_to_end, request};
use crate::process::{PATIENCE, Server, Site, pattern, wait_for};

/// More than a response's buffer holds, so that it passes through a pipe.
const LONG_BYTES: usize = 3_000_001;

/// The last piece of the path is the length of the body. A `cut` body ends in the middle, one in `pieces` comes in several.
fn answer(stream: &mut (impl Read + Write)) {
    while let Some(head) = read_head(stream) {
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let bytes: usize = path.rsplit('/').next().unwrap().parse().unwrap();
        let mut body = pattern(bytes);
        if path.contains("/cut/") {
            body.truncate(bytes / 2);
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
        let mut whole = [head.as_bytes(), &body].concat();
        if path.contains("/pieces/") {
            let rest = whole.split_off(head.len() + bytes / 5);
            // The client may have gone.
            let _ = stream.write_all(&whole);
            std::thread::sleep(Duration::from_millis(50));
            whole = rest;
        }
        if stream.write_all(&whole).is_err() || path.contains("/cut/") {
            return;
        }
    }
}

fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(&mut stream));
        }
    });
    address
}

fn backend_in_file_system(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(&mut stream));
        }
    });
}

/// A server with the backend above at `/tcp` and `/unix`.
pub fn start(site: &Site, flags: &[&str], keys: &str) -> Server {
    let (backend, socket) = (backend(), site.beside("backend.sock"));
    backend_in_file_system(&socket);
    let text = format!(
        "[[route]]\npath = \"/tcp\"\nupstream = [\"{backend}\"]\n{keys}\n\
         [[route]]\npath = \"/unix\"\nupstream = [\"unix:{}\"]\n{keys}\n",
        socket.display()
    );
    let file = site.beside("shortline.toml");
    std::fs::write(&file, text).unwrap();
    let config = ["--config", file.to_str().unwrap()];
    Server::start(site, &[&config, flags].concat())
}

fn ask(stream: &mut impl Write, path: &str) {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
}

#[test]
fn each_body_arrives_as_it_was_sent() {
    let scheduled = ["--uplink-loopback", "--uplink", "500mbit"];
    for (flags, keys) in [
        (&[][..], ""),
        (&scheduled, ""),
        (&["--uplink", "off"], "buffer-size-max = \"10KB\""),
    ] {
        let site = Site::new();
        let server = start(&site, flags, keys);
        let mut stream = connect(server.address());
        for path in ["/tcp", "/unix", "/tcp/pieces", "/unix/pieces"] {
            for bytes in [LONG_BYTES, 0, 1000, 262_144, 262_145, 300_000, LONG_BYTES] {
                ask(&mut stream, &format!("{path}/{bytes}"));
                let response = read_one(&mut stream);
                assert!(response.body == pattern(bytes), "{flags:?} {path}/{bytes}");
            }
        }
    }
}

#[test]
fn clients_in_the_file_system_get_them_too() {
    let site = Site::new();
    let socket = site.beside("shortline.sock");
    let listen = format!("unix:{}", socket.display());
    let server = start(&site, &["--listen", &listen], "");
    let before = server.pipes();
    let mut stream = wait_for("the socket", || UnixStream::connect(&socket).ok());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    for path in ["/tcp", "/unix/pieces"] {
        ask(&mut stream, &format!("{path}/{LONG_BYTES}"));
        wait_for("a pipe", || (server.pipes() > before).then_some(()));
        assert!(read_one(&mut stream).body == pattern(LONG_BYTES), "{path}");
    }
}

#[test]
fn requests_sent_ahead_are_answered_in_their_order() {
    let site = Site::new().with("page.txt", "page");
    let server = start(&site, &[], "");
    let mut stream = connect(server.address());
    let long = format!("/tcp/{LONG_BYTES}");
    let asked = [
        &long,
        "/page.txt",
        &long,
        &long,
        "/large.bin",
        "/tcp/10",
        &long,
    ];
    let file = get(server.address(), "/large.bin").body;
    asked.iter().for_each(|path| ask(&mut stream, path));
    // All of them wait for this client.
    std::thread::sleep(Duration::from_millis(100));
    for path in asked {
        let body = read_one(&mut stream).body;
        match path {
            "/page.txt" => assert_eq!(body, b"page"),
            "/large.bin" => assert!(body == file),
            "/tcp/10" => assert!(body == pattern(10)),
            _ => assert!(body == pattern(LONG_BYTES), "{path}"),
        }
    }
}

#[test]
fn what_breaks_off_in_a_pipe_does_not_look_whole() {
    let site = Site::new();
    let server = start(&site, &[], "");
    for path in ["/tcp/cut", "/unix/cut"] {
        let mut stream = connect(server.address());
        ask(&mut stream, &format!("{path}/{LONG_BYTES}"));
        let response = parse(&read_to_end(&mut stream));
        assert!(response.body.len() <= LONG_BYTES / 2);
        assert!(pattern(LONG_BYTES).starts_with(&response.body), "{path}");
    }
}

#[test]
fn a_client_that_takes_nothing_holds_a_pipe_until_it_goes() {
    let site = Site::new();
    let server = start(&site, &[], "");
    let before = server.pipes();
    let mut clients: Vec<_> = (0..3).map(|_| connect(server.address())).collect();
    for client in &mut clients {
        // More than sockets and a pipe hold.
        ask(client, "/tcp/30000000");
    }
    // Each has two ends.
    let pipes = wait_for("pipes", || {
        Some(server.pipes()).filter(|count| *count >= before + 6)
    });
    assert_eq!(pipes, before + 6);
    let mut patient = clients.pop().unwrap();
    drop(clients);
    wait_for("two pipes to go", || {
        (server.pipes() == before + 2).then_some(())
    });
    patient.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(read_one(&mut patient).body == pattern(30_000_000));
    wait_for("the last pipe to go", || {
        (server.pipes() == before).then_some(())
    });
}

#[test]
fn a_long_file_passes_through_a_pipe_too() {
    let whole = pattern(30_000_000);
    let site = Site::new().with("image.iso", &whole);
    let scheduled = ["--uplink-loopback", "--uplink", "800mbit"];
    for flags in [&[][..], &scheduled] {
        let server = Server::start(&site, flags);
        let before = server.pipes();
        let mut stream = connect(server.address());
        for (range, bytes) in [
            ("", whole.len()),
            ("Range: bytes=0-29999998\r\n", whole.len() - 1),
        ] {
            let request = format!("GET /image.iso HTTP/1.1\r\nHost: a\r\n{range}\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            assert!(stream.peek(&mut [0]).unwrap() > 0);
            wait_for("a pipe", || (server.pipes() == before + 2).then_some(()));
            assert!(
                read_one(&mut stream).body == whole[..bytes],
                "{flags:?} {range}"
            );
        }
        // Where it begins and ends in the middle of pages.
        let fields = "Range: bytes=1001-2999999\r\n";
        let part = request(server.address(), "GET", "/image.iso", fields).body;
        assert!(part == whole[1001..3_000_000], "{flags:?}");
        drop(stream);
        wait_for("the pipes to go", || {
            (server.pipes() == before).then_some(())
        });
    }
}

#[test]
fn what_is_read_on_its_way_passes_through_no_pipe() {
    let site = Site::new();
    let server = start(&site, &[], "[route.cache]");
    let before = server.pipes();
    let mut client = connect(server.address());
    ask(&mut client, "/tcp/30000000");
    assert!(client.peek(&mut [0]).unwrap() > 0);
    assert_eq!(server.pipes(), before);
}
