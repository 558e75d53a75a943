//! What idle connections cost the relay.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use super::cluster::free_port;
use super::raw;

/// As in the ledger: the ports for the process that is the relay.
const RELAY_PORTS: &str = "SHORTLINE_TEST_RELAY";
/// Needs as many descriptors here, and twice as many in the relay.
const CONNECTIONS: usize = 5000;
const MEMORY_BYTES_MAX: u64 = 100 << 20;

/// The backend is a stub that speaks as much of the protocol as this takes.
#[test]
#[ignore = "wants 15,000 descriptors: `ulimit -n 20000`"]
fn idle_connections_cost_little() {
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let backend_port = backend.local_addr().unwrap().port();
    std::thread::spawn(move || serve_all(&backend));
    let port = free_port();
    let mut relay = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ledger::relay_process", "--nocapture"])
        .env(RELAY_PORTS, format!("{port} {backend_port}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = raw::session(port);
        client.write_all(&raw::query("select 1")).unwrap();
        assert_eq!(raw::tags(&raw::until_ready(&mut client)), "CZI");
        clients.push(client);
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", relay.id())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    relay.kill().unwrap();
    relay.wait().unwrap();
    println!("{CONNECTIONS} idle connections: {} MiB", kib >> 10);
    assert!(kib << 10 <= MEMORY_BYTES_MAX, "{line}");
}

/// One thread for all: it answers each connection's first packet and first query at once.
fn serve_all(backend: &TcpListener) {
    let mut sockets = Vec::new();
    while let Ok((mut socket, _)) = backend.accept() {
        let mut bytes = [0; 1024];
        let _ = socket.read(&mut bytes).unwrap();
        let ready = raw::message(b'Z', b"I");
        socket
            .write_all(&[raw::message(b'R', &[0; 4]), ready.clone()].concat())
            .unwrap();
        if socket.read(&mut bytes).unwrap() > 0 {
            socket
                .write_all(&[raw::message(b'C', b"SELECT 1\0"), ready].concat())
                .unwrap();
        }
        sockets.push(socket);
    }
}
