//! `gate http`: its connections are counted, its certificate is exchanged while it runs, and who is
//! refused is told so as docs/gate.md says.

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Signal;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::application::{application, gate, ok};
use crate::bad_requests::{
    self, refuse_chunks, refuse_hosts, refuse_pseudo_trailers, refuse_targets,
};
use crate::client::{Response, connect, exchange, get, parse, read_one, read_to_end};
use crate::process::{Server, wait_for};
use crate::relayed::status;

fn metric(server: &Server, name: &str) -> f64 {
    let text = String::from_utf8(get(server.admin.unwrap(), "/metrics").body).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("shortline_{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {text}"))
        .parse()
        .unwrap()
}

#[test]
fn connections_are_counted() {
    let server = gate(application(|_| ok("yes")), &["--capacity", "1s"]);
    let mut stream = connect(server.address());
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert_eq!(read_one(&mut stream).status, 200);
    assert_eq!(get(server.address(), "/").status, 200);
    wait_for("the second to be gone", || {
        let counts = status(server.admin.unwrap())["connections"].clone();
        (counts["open"] == 1 && counts["total"] == 2).then_some(())
    });
    assert_eq!(metric(&server, "gate_connections"), 1.0);
    assert_eq!(metric(&server, "gate_connections_total"), 2.0);
}

/// A certificate for localhost in `folder`, over what is there.
fn write_certificate(folder: &std::path::Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("a.crt"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("a.key"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

/// What a client that trusts nothing but `certificate` gets; `None` if it is shown another.
fn ask_over_tls(server: &Server, certificate: &CertificateDer<'static>) -> Option<u16> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, connect(server.address()));
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .ok()?;
    Some(parse(&read_to_end(&mut stream)).status)
}

#[test]
fn sighup_exchanges_the_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let old = write_certificate(folder.path());
    let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
    let (cert, key) = (path("a.crt"), path("a.key"));
    let mut server = gate(
        application(|_| ok("yes")),
        &["--tls-cert", &cert, "--tls-key", &key],
    );
    assert_eq!(ask_over_tls(&server, &old), Some(200));
    let new = write_certificate(folder.path());
    assert_eq!(ask_over_tls(&server, &new), None);
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    assert_eq!(ask_over_tls(&server, &new), Some(200));
    assert_eq!(ask_over_tls(&server, &old), None);

    // What cannot be used leaves what is there.
    std::fs::write(folder.path().join("a.key"), "nonsense").unwrap();
    server.signal(Signal::HUP);
    server.line_with("not reloaded");
    assert_eq!(ask_over_tls(&server, &new), Some(200));
}

/// The column HTTP of the table in docs/gate.md, row by row.
fn documented() -> Vec<(String, String)> {
    let docs = include_str!("../../../../docs/gate.md");
    let (_, table) = docs
        .split_once("## What clients get when they are refused")
        .unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let rows = cells.map(|cells| (cells[1].to_owned(), cells[3].to_owned()));
    rows.skip(1)
        .take_while(|(when, _)| !when.starts_with("--"))
        .collect()
}

/// What the docs say of a case.
fn told(when: &str) -> String {
    let rows = documented();
    let row = rows.iter().find(|(case, _)| case == when);
    row.unwrap_or_else(|| panic!("no `{when}` in {rows:?}"))
        .1
        .clone()
}

fn assert_unavailable(response: &Response, when: &str) {
    assert_eq!(told(when), "503, `Retry-After`");
    assert_eq!(response.status, 503, "{when}");
    assert_eq!(response.field("retry-after"), Some("1"), "{when}");
}

/// A gate with a request in its application until the sender is dropped, and flags.
fn busy(flags: &[&str]) -> (Server, JoinHandle<u16>, std::sync::mpsc::Sender<()>) {
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let upstream = application(move |path| {
        if path == "/hold" {
            let _ = released.lock().recv();
        }
        ok("yes")
    });
    let server = gate(upstream, &[&["--capacity", "1ns"], flags].concat());
    let address = server.address();
    let first = std::thread::spawn(move || get(address, "/hold").status);
    wait_for("the first to run", || {
        (status(server.admin.unwrap())["admission"]["running"] == 1).then_some(())
    });
    (server, first, release)
}

#[test]
fn who_may_not_wait_or_has_waited_gets_503_and_when_to_try_again() {
    let (server, first, release) = busy(&["--queue-max", "1", "--wait-max", "500ms"]);
    let address = server.address();
    let second = std::thread::spawn(move || get(address, "/x"));
    wait_for("the second to wait", || {
        (status(server.admin.unwrap())["admission"]["waiting"] == 1).then_some(())
    });
    assert_unavailable(&get(address, "/x"), "the queue is full, or `--shed`");
    let late = second.join().unwrap();
    assert_unavailable(&late, "waited for longer than `--wait-max`");
    drop(release);
    assert_eq!(first.join().unwrap(), 200);
}

#[test]
fn a_backend_that_cannot_be_reached_is_502() {
    let when = "the backend cannot be reached";
    assert_eq!(told(when), "502");
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut server = gate(closed, &["--connect-time-max", "1s"]);
    assert_eq!(get(server.address(), "/").status, 502);
    let line = server.line_with("a request failed");
    for part in ["route=\"/\"", &closed.to_string(), "status=502", "refused"] {
        assert!(line.contains(part), "no `{part}` in {line}");
    }
}

#[test]
fn what_is_no_http_is_400() {
    assert_eq!(told("bytes that are no protocol"), "400");
    let server = gate(application(|_| ok("yes")), &[]);
    let got = parse(&exchange(server.address(), "nonsense\r\n\r\n"));
    assert_eq!(got.status, 400);
}

#[test]
fn one_connection_more_waits_in_the_kernel() {
    assert_eq!(told("too many connections"), "waits in the kernel");
    let server = gate(application(|_| ok("yes")), &["--connections-max", "1"]);
    let mut first = connect(server.address());
    first
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert_eq!(read_one(&mut first).status, 200);
    let mut second = connect(server.address());
    second
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(status(server.admin.unwrap())["connections"]["total"], 1);
    drop(first);
    assert_eq!(read_one(&mut second).status, 200);
}

#[test]
fn the_end_of_the_gate_closes_what_waits() {
    assert_eq!(told("the gate ends"), "the connection closes");
    let (mut server, first, release) = busy(&["--drain", "200ms"]);
    let address = server.address();
    let waits = std::thread::spawn(move || exchange(address, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"));
    wait_for("the second to wait", || {
        (status(server.admin.unwrap())["admission"]["waiting"] == 1).then_some(())
    });
    server.signal(Signal::TERM);
    assert!(waits.join().unwrap().is_empty());
    assert!(server.wait().success());
    drop((first, release));
}

#[test]
fn what_is_no_request_gets_400_at_the_gate() {
    let server = gate(bad_requests::application(), &[]);
    refuse_hosts(server.address(), "/x");
    refuse_targets(server.address(), "/x");
    refuse_chunks(server.address(), "/x", 200);
    refuse_pseudo_trailers(server.address(), "/x");
}

#[test]
fn plain_http_at_a_gate_with_tls_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    write_certificate(folder.path());
    let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
    let (cert, key) = (path("a.crt"), path("a.key"));
    let flags = ["--tls-cert", &cert, "--tls-key", &key];
    let server = gate(application(|_| ok("yes")), &flags);
    let got = get(server.address(), "/");
    assert_eq!(got.status, 400);
    let told = format!("ask for https://{}/ instead.\n", server.address());
    assert!(got.body.ends_with(told.as_bytes()));
}
