//! Without a gap: addresses that change at a reload, and a new process in the place of a running one (`--handover`),
//! while clients work.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use rustix::process::Signal;

use crate::client::{begin, connect, get, parse, read_one, read_to_end};
use crate::process::{PROGRAM, Server, Site, pattern, wait_for};
use crate::tls::write_certificate;

const LARGE_BYTES: usize = 1_000_000;

/// An address of this process alone, so that no other test takes it.
fn host() -> Ipv4Addr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 77, high, low)
}

/// A free port of it.
fn free_port() -> u16 {
    let listener = TcpListener::bind((host(), 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn at(port: u16) -> SocketAddr {
    (host(), port).into()
}

fn spawn(site: &Site, config: &str) -> Server {
    std::fs::write(site.beside("a.toml"), config).unwrap();
    let mut command = Command::new(PROGRAM);
    command
        .arg("serve")
        .arg("--config")
        .arg(site.beside("a.toml"));
    Server::spawn(&mut command)
}

/// A server at these ports, which hands over.
fn config(site: &Site, ports: &[u16], more: &str) -> String {
    let mut text = String::new();
    for port in ports {
        text += &format!("[[listen]]\naddress = \"{}\"\n", at(*port));
    }
    let (root, path) = (site.root(), site.beside("handover"));
    text += &format!("[site]\nroot = \"{}\"\n", root.display());
    text += &format!("[handover]\npath = \"unix:{}\"\n", path.display());
    text + more
}

/// At the rate of a slow uplink, so that a download lasts.
const SLOW: &str = "[uplink]\nrate = \"4mbit\"\nloopback = true\n";

fn is_open(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok()
}

/// Clients that ask again and again over connections that stay open as long as the server lets them. Each response
/// must be whole.
struct Visitors {
    threads: Vec<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
}

impl Visitors {
    fn start(address: SocketAddr, count: usize) -> Self {
        let (is_over, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let threads = (0..count).map(|_| {
            let (is_over, answered) = (Arc::clone(&is_over), Arc::clone(&answered));
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    visit(address, &is_over, &answered);
                }
            })
        });
        Self {
            threads: threads.collect(),
            is_over,
            answered,
        }
    }

    /// Waits for more responses.
    fn go_on(&self) {
        let before = self.answered.load(Ordering::Relaxed);
        wait_for("more responses", || {
            let failed = self.threads.iter().any(JoinHandle::is_finished);
            assert!(!failed, "a visitor has failed");
            (self.answered.load(Ordering::Relaxed) >= before + 20).then_some(())
        });
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

/// One connection from beginning to end.
fn visit(address: SocketAddr, is_over: &AtomicBool, answered: &AtomicUsize) {
    let mut stream = connect(address);
    while !is_over.load(Ordering::Relaxed) {
        stream
            .write_all(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        let response = read_one(&mut stream);
        assert_eq!(
            (response.status, &response.body[..]),
            (200, &b"hello\n"[..])
        );
        answered.fetch_add(1, Ordering::Relaxed);
        if response.field("connection") == Some("close") {
            return;
        }
    }
}

#[test]
fn a_new_process_takes_the_place_of_a_running_one_without_a_lost_request() {
    let site = Site::new();
    let config = config(&site, &[free_port()], SLOW);
    let mut server = spawn(&site, &config);
    let address = server.address();
    let visitors = Visitors::start(address, 4);
    for _ in 0..5 {
        visitors.go_on();
        let (mut download, mut bytes) = begin(address);
        let next = spawn(&site, &config);
        server.line_with("handing over");
        visitors.go_on();
        bytes.extend(read_whole(&mut download, bytes.len()));
        assert!(parse(&bytes).body == pattern(LARGE_BYTES));
        drop(download);
        assert!(server.wait().success(), "{:?}", server.said);
        server = next;
    }
    visitors.go_on();
    visitors.end();
}

/// The rest of the large file, and the response's head if that is not there.
fn read_whole(stream: &mut TcpStream, there: usize) -> Vec<u8> {
    let mut rest = Vec::new();
    let mut piece = [0; 65536];
    while there + rest.len() < LARGE_BYTES + 100 {
        let read = stream.read(&mut piece).unwrap();
        if read == 0 {
            break;
        }
        rest.extend(&piece[..read]);
    }
    rest
}

#[test]
fn the_old_process_goes_on_if_the_new_one_dies() {
    let site = Site::new();
    // The old process is to be there still when a busy machine comes to end the new one.
    let slower = SLOW.replace("4mbit", "1mbit");
    let config = config(&site, &[free_port()], &slower) + "[admin]\naddress = \"127.0.0.1:0\"\n";
    let mut server = spawn(&site, &config);
    let (mut download, mut bytes) = begin(server.address());
    let next = spawn(&site, &config);
    server.line_with("handing over");
    assert_eq!(get(server.address(), "/hello.txt").status, 200);
    drop(next);
    server.line_with("the new process has ended");
    assert_eq!(get(server.address(), "/hello.txt").status, 200);
    server.line_with("admin on");
    assert_eq!(get(server.admin.unwrap(), "/healthz").status, 200);
    bytes.extend(read_whole(&mut download, bytes.len()));
    assert!(parse(&bytes).body == pattern(LARGE_BYTES));
}

#[test]
fn what_takes_too_long_in_the_old_process_is_ended() {
    let site = Site::new();
    let config = config(&site, &[free_port()], SLOW);
    let config = config.replace("[handover]\n", "[handover]\ntime-max = \"100ms\"\n");
    let config = config + "[limits]\ndrain = \"100ms\"\n";
    let mut server = spawn(&site, &config);
    let (mut download, mut bytes) = begin(server.address());
    let _next = spawn(&site, &config);
    bytes.extend(read_to_end(&mut download));
    let response = parse(&bytes);
    assert!(response.body.len() < response.content_length());
    assert!(server.wait().success());
}

#[test]
fn an_address_that_the_new_process_does_not_name_is_closed() {
    let site = Site::new();
    let (stays, goes, comes) = (free_port(), free_port(), free_port());
    let server = spawn(&site, &config(&site, &[stays, goes], SLOW));
    let (_download, _) = begin(server.address());
    let gone = at(goes);
    assert!(is_open(gone));
    let mut next = spawn(&site, &config(&site, &[comes, stays], SLOW));
    next.line_with("listening on");
    wait_for("the address to be given up", || {
        (!is_open(gone)).then_some(())
    });
    for port in [stays, comes] {
        assert_eq!(get(at(port), "/hello.txt").status, 200);
    }
}

#[test]
fn nothing_is_handed_to_what_serves_something_else() {
    let site = Site::new();
    let mut server = spawn(&site, &config(&site, &[free_port()], ""));
    let path = format!("unix:{}", site.beside("handover").display());
    let gate = Command::new(PROGRAM)
        .args([
            "gate",
            "postgres",
            "--upstream",
            "127.0.0.1:1",
            "--listen",
            "127.0.0.1:0",
        ])
        .args(["--handover", &path])
        .output()
        .unwrap();
    let said = String::from_utf8(gate.stderr).unwrap();
    assert!(said.contains("serves something else"), "{said}");
    server.line_with("nothing was handed over");
    assert_eq!(get(server.address(), "/hello.txt").status, 200);
}

#[test]
fn a_reload_adds_addresses_and_gives_others_up() {
    let site = Site::new();
    let (stays, goes, comes) = (free_port(), free_port(), free_port());
    let mut server = spawn(&site, &config(&site, &[stays, goes], ""));
    let gone = at(goes);
    let mut waiting: Vec<TcpStream> = (0..50).map(|_| connect(gone)).collect();

    let next = config(
        &site,
        &[stays, comes],
        "[admin]\naddress = \"127.0.0.1:0\"\n",
    );
    std::fs::write(site.beside("a.toml"), next).unwrap();
    server.signal(Signal::HUP);
    server.line_with("listening no more on");
    server.line_with("reloaded");
    wait_for("the address to be closed", || {
        (!is_open(gone)).then_some(())
    });
    for port in [stays, comes] {
        assert_eq!(get(at(port), "/hello.txt").status, 200);
    }
    let admin = server.admin.unwrap();
    assert_eq!(get(admin, "/healthz").status, 200);
    for stream in &mut waiting {
        stream
            .write_all(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        assert_eq!(read_one(stream).status, 200);
    }

    std::fs::write(site.beside("a.toml"), config(&site, &[stays, comes], "")).unwrap();
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    wait_for("the admin endpoint to end", || {
        (!is_open(admin)).then_some(())
    });
}

#[test]
fn a_reload_that_cannot_have_an_address_changes_nothing() {
    let site = Site::new();
    let (stays, free) = (free_port(), free_port());
    let mut server = spawn(&site, &config(&site, &[stays], ""));
    let holder = TcpListener::bind((host(), 0)).unwrap();
    let held = holder.local_addr().unwrap().port();
    std::fs::write(site.beside("a.toml"), config(&site, &[free, held], "")).unwrap();
    server.signal(Signal::HUP);
    let line = server.line_with("not reloaded");
    assert!(line.contains("in use"), "{line}");
    assert_eq!(get(server.address(), "/hello.txt").status, 200);
    assert!(!is_open(at(free)));
}

#[test]
fn a_reload_turns_an_address_to_tls_and_back() {
    let site = Site::new();
    let port = free_port();
    let plain = config(&site, &[port], "");
    let mut server = spawn(&site, &plain);
    let (cert, key) = write_certificate(&site);
    let address = format!("address = \"{}\"\n", at(port));
    let with_certificate = format!(
        "{address}tls-cert = \"{}\"\ntls-key = \"{}\"\n",
        cert.display(),
        key.display()
    );
    for (text, status) in [
        (plain.replace(&address, &with_certificate), 400),
        (plain.clone(), 200),
    ] {
        std::fs::write(site.beside("a.toml"), text).unwrap();
        server.signal(Signal::HUP);
        server.line_with("reloaded");
        // Plain HTTP on a port that speaks TLS gets a 400. Each worker follows in its own time.
        wait_for("all workers to follow", || {
            let answer = |_| get(server.address(), "/hello.txt").status == status;
            (0..20).all(answer).then_some(())
        });
    }
}
