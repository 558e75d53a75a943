//! What fails leaves a line in the log: the operator must not have to guess.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::client::{connect, exchange, get, read_one};
use crate::process::{PATIENCE, PROGRAM, Server, Site, wait_for};

/// An application that gives every request that answer, and none where it is empty.
fn application(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                while stream.read(&mut request).is_ok_and(|bytes| bytes > 0) {
                    // Whoever asked may have gone.
                    let _ = stream.write_all(answer.as_bytes());
                }
            });
        }
    });
    address
}

fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// A proxy for `/api`, with these backends and more keys of the route.
fn proxy(site: &Site, backends: &[SocketAddr], keys: &str) -> Server {
    let backends: Vec<String> = backends.iter().map(|at| format!("\"{at}\"")).collect();
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\npath = \"/api\"\nupstream = [{}]\n{keys}\n",
        backends.join(", ")
    );
    let file = site.beside("shortline.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("serve").arg("--config").arg(file);
    Server::spawn(&mut command)
}

#[test]
fn a_502_503_or_504_leaves_a_line_with_route_backend_reason_and_times() {
    let site = Site::new();
    let (absent, silent) = (nobody(), application(""));
    let busy = application("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    for (backend, keys, status, reason) in [
        (absent, "", 502, "cannot connect to"),
        (silent, "first-byte-time-max = \"100ms\"", 504, "in time"),
        (busy, "", 503, "the backend answers so itself"),
    ] {
        let mut server = proxy(&site, &[backend], keys);
        assert_eq!(get(server.address(), "/api/x").status, status);
        let line = server.line_with("a request failed");
        for part in [
            "WARN",
            "route=\"/api\"",
            &format!("backend=\"{backend}\""),
            &format!("status={status}"),
            reason,
            "connect_ms=",
            "backend_ms=",
            "total_ms=",
            "untold=0",
        ] {
            assert!(line.contains(part), "no `{part}` in {line}");
        }
    }
}

#[test]
fn a_kept_connection_has_no_time_of_connecting() {
    let site = Site::new();
    let busy = application("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    let mut server = proxy(&site, &[busy], "");
    wait_for("a line of a kept connection", || {
        assert_eq!(get(server.address(), "/api/x").status, 503);
        let line = server.line_with("a request failed");
        // Fewer lines a second than are told at most.
        std::thread::sleep(Duration::from_millis(100));
        (!line.contains("connect_ms=")).then_some(())
    });
}

#[test]
fn a_request_that_the_gate_refuses_leaves_a_line() {
    let site = Site::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let backend = listener.local_addr().unwrap();
    let gate = "[route.gate]\ncapacity = \"1ns\"\nwait-max = \"100ms\"\n";
    let mut server = proxy(&site, &[backend], gate);
    let mut first = connect(server.address());
    first
        .write_all(b"GET /api/first HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    // It runs now, and gets no answer.
    let _at_the_backend = listener.accept().unwrap();
    assert_eq!(get(server.address(), "/api/second").status, 503);
    let line = server.line_with("a request failed");
    for part in ["route=\"/api\"", "status=503", "not admitted", "wait_ms="] {
        assert!(line.contains(part), "no `{part}` in {line}");
    }
}

#[test]
fn failures_without_end_leave_ten_lines_a_second_and_say_how_many_more_there_were() {
    let site = Site::new();
    let mut server = proxy(&site, &[nobody()], "");
    let address = server.address();
    let told = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !told.load(Ordering::Relaxed) {
                assert_eq!(get(address, "/api/x").status, 502);
            }
        });
        let until = Instant::now() + PATIENCE;
        let mut line = server.line_with("a request failed");
        while line.contains("untold=0") && Instant::now() < until {
            line = server.line_with("a request failed");
        }
        told.store(true, Ordering::Relaxed);
        assert!(!line.contains("untold=0"), "{line}");
    });
}

#[test]
fn a_response_that_breaks_off_leaves_a_line() {
    let site = Site::new();
    let backend = application("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello");
    let mut server = proxy(&site, &[backend], "idle-time-max = \"100ms\"");
    let request = "GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n";
    let bytes = exchange(server.address(), request);
    assert!(bytes.ends_with(b"hello"));
    let line = server.line_with("a response broke off");
    assert!(line.contains(&format!("backend=\"{backend}\"")), "{line}");
    assert!(line.contains("silent for 0.1 s"), "{line}");
}

#[test]
fn a_recovery_is_no_warning() {
    let site = Site::new();
    let health = "health-path = \"/health\"\nhealth-every = \"100ms\"";
    let address = nobody();
    let mut server = proxy(&site, &[address], health);
    let is_down = "down, says its health check";
    // On a busy machine it is told before the server listens.
    let told = server.said.iter().find(|line| line.contains(is_down));
    let down = told.cloned().unwrap_or_else(|| server.line_with(is_down));
    assert!(down.contains("WARN"), "{down}");
    assert!(down.contains("cannot connect"), "{down}");
    let listener = TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let up = server.line_with("up again");
    assert!(up.contains("INFO") && !up.contains("WARN"), "{up}");
}

#[test]
fn a_broken_file_does_not_keep_the_log_from_being_opened_anew() {
    let site = Site::new();
    let (log, rotated) = (site.beside("access.log"), site.beside("access.log.1"));
    let file = site.beside("shortline.toml");
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[site]\nroot = \"{}\"\n[log]\naccess = \"{}\"\n",
        site.root().display(),
        log.display()
    );
    std::fs::write(&file, &text).unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("serve").arg("--config").arg(&file);
    let mut server = Server::spawn(&mut command);
    get(server.address(), "/first");
    std::fs::rename(&log, &rotated).unwrap();
    std::fs::write(&file, format!("{text}polcy = 1\n")).unwrap();
    server.signal(Signal::HUP);
    let line = server.line_with("not reloaded");
    assert!(line.contains("log.polcy"), "{line}");
    get(server.address(), "/second");
    wait_for("the second line", || {
        let text = std::fs::read_to_string(&log).ok()?;
        text.contains("/second").then_some(())
    });
    let rotated = std::fs::read_to_string(&rotated).unwrap();
    assert!(
        rotated.contains("/first") && !rotated.contains("/second"),
        "{rotated}"
    );
}

/// A command that may read no more than its user's files, though the user be root.
fn without_privileges() -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(PROGRAM);
    }
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-dac_override,-dac_read_search", PROGRAM]);
    command
}

#[test]
fn a_file_that_may_not_be_read_leaves_a_line() {
    let site = Site::new();
    let path = site.root().join("hello.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = without_privileges();
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .arg(site.root());
    let mut server = Server::spawn(&mut command);
    assert_eq!(get(server.address(), "/hello.txt").status, 403);
    let line = server.line_with("a file cannot be opened");
    for part in ["path=\"hello.txt\"", "status=403", "Permission denied"] {
        assert!(line.contains(part), "no `{part}` in {line}");
    }
}

#[test]
fn an_admin_address_open_to_every_network_is_warned_about() {
    let site = Site::new();
    let mut command = Command::new(PROGRAM);
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0"])
        .arg(site.root());
    let server = Server::spawn(&mut command);
    let warned = |line: &String| line.contains("WARN") && line.contains("open to every network");
    assert!(server.said.iter().any(warned), "{:?}", server.said);
    let private = Server::start(&site, &[]);
    assert!(!private.said.iter().any(warned), "{:?}", private.said);
}

#[test]
fn a_502_for_a_request_whose_body_was_not_read_says_that_the_connection_closes() {
    let site = Site::new();
    let server = proxy(&site, &[nobody()], "");
    let ask = |length: usize| {
        let mut stream = connect(server.address());
        let head = format!("POST /api HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        read_one(&mut stream)
    };
    let told = ask(10_000);
    assert_eq!(
        (told.status, told.field("connection")),
        (502, Some("close"))
    );
    let told = ask(0);
    assert_eq!((told.status, told.field("connection")), (502, None));
}
