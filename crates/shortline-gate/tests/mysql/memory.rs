//! What idle connections cost the relay.

use tokio::net::{TcpListener, TcpStream};

use crate::caching_sha2::{GREETING, OK};
use crate::ledger::Process;
use crate::raw::{MYSQL, PLAIN, Raw};

/// Needs twice as many descriptors here, and as many in the relay.
const CONNECTIONS: usize = 5000;
const MEMORY_BYTES_MAX: u64 = 100 << 20;

/// The backend is a stub that speaks as much of the protocol as this takes.
#[tokio::test]
#[ignore = "wants 20,000 descriptors: `ulimit -n 20000`"]
async fn idle_connections_cost_little() {
    let backend = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = backend.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = backend.accept().await {
            tokio::spawn(serve(socket));
        }
    });
    let mut relay = Process::start(address).await;
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = Raw::connect(relay.address, PLAIN | MYSQL).await;
        client.query("DO 1").await;
        assert_eq!(client.read().await, (1, OK.to_vec()));
        clients.push(client);
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", relay.child.id())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    relay.kill();
    println!("{CONNECTIONS} idle connections: {} MiB", kib >> 10);
    assert!(kib << 10 <= MEMORY_BYTES_MAX, "{line}");
}

/// Greets, takes anybody, and answers what comes.
async fn serve(socket: TcpStream) {
    let mut server = Raw { socket };
    server.write(0, GREETING).await;
    let (number, _) = server.read().await;
    server.write(number + 1, OK).await;
    server.read().await;
    server.write(1, OK).await;
    // Up to its end.
    server.is_closed().await;
}
