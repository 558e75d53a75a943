//! The ledger: transactions write their number, while connections, the backend and the gate's process
//! are killed at random points. What a client was told committed is in the table, and what it was told
//! failed is not. A connection that broke has told nothing of its COMMIT.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mysql_async::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_gate::Gate;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use crate::gated::{Gated, PATIENCE, admission, connect};
use crate::server::{Server, shared};

/// Set for the process that is the relay: the backend's port.
const RELAY_BACKEND: &str = "SHORTLINE_TEST_MYSQL_BACKEND";
/// Set for the process that is the relay: its own port.
const RELAY_PORT: &str = "SHORTLINE_TEST_MYSQL_PORT";
const WRITERS: u64 = 6;

#[tokio::test]
async fn no_outcome_is_told_wrongly_when_the_gate_is_killed() {
    play(20, 1, false).await;
}

#[tokio::test]
async fn no_outcome_is_told_wrongly_when_the_backend_is_killed() {
    play(3, 2, true).await;
}

#[tokio::test]
#[ignore = "takes minutes"]
async fn no_outcome_is_told_wrongly_in_2000_kills() {
    play(2000, 3, false).await;
    play(100, 4, true).await;
}

/// Is the relay, when started by [`Process`]; as a test it does nothing.
#[tokio::test]
async fn relay_process() {
    let (Ok(backend), Ok(port)) = (std::env::var(RELAY_BACKEND), std::env::var(RELAY_PORT)) else {
        return;
    };
    let listener = TcpListener::bind(format!("127.0.0.1:{port}"))
        .await
        .unwrap();
    let gate = Gate::new(admission("1ms"));
    let config = crate::gated::config(format!("127.0.0.1:{backend}").parse().unwrap());
    // The tests' end is this input's end.
    let end_of_input = async { drop(tokio::io::stdin().read_u8().await) };
    shortline_gate::mysql::run(listener, config, None, gate, end_of_input)
        .await
        .unwrap();
}

/// A relay in a process of its own, which can be killed.
pub struct Process {
    pub address: SocketAddr,
    pub child: Child,
}

impl Process {
    /// One before `backend`.
    pub async fn start(backend: SocketAddr) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ledger::relay_process", "--nocapture"])
            .env(RELAY_BACKEND, backend.port().to_string())
            .env(RELAY_PORT, address.port().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let reached = async {
            while TcpStream::connect(address).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reached).await.unwrap();
        Self { address, child }
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Kills the gate's process, or the backend, so many times.
async fn play(kills: u64, seed: u64, kills_backend: bool) {
    let mut own = None;
    let address = if kills_backend {
        own = Server::own();
        own.as_ref().map(|server| server.address)
    } else {
        shared().map(|server| server.address)
    };
    let Some(address) = address else { return };
    let table = format!("shop.ledger{seed}");
    let mut direct = connect(address, |options| options).await.unwrap();
    direct
        .query_drop(format!("CREATE TABLE {table} (a BIGINT PRIMARY KEY)"))
        .await
        .unwrap();
    drop(direct);
    let (mut committed, mut failed) = (HashSet::new(), HashSet::new());
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    for kill in 0..kills {
        let pause = Duration::from_millis(chance.random_range(50..300));
        let first = (kill * WRITERS) << 32;
        if let Some(server) = &mut own {
            let gated = Gated::new(address, admission("1ms")).await;
            let writers = start(gated.address, &table, first);
            tokio::time::sleep(pause).await;
            server.kill();
            hear(writers, &mut committed, &mut failed).await;
            gated.until_empty().await;
            assert!(gated.end().await);
            server.run();
        } else {
            let mut process = Process::start(address).await;
            let writers = start(process.address, &table, first);
            tokio::time::sleep(pause).await;
            process.kill();
            hear(writers, &mut committed, &mut failed).await;
        }
    }
    let mut direct = connect(address, |options| options).await.unwrap();
    // Waits for what the backend still works on.
    direct
        .query_drop(format!("LOCK TABLES {table} READ"))
        .await
        .unwrap();
    let kept: Vec<u64> = direct
        .query(format!("SELECT a FROM {table}"))
        .await
        .unwrap();
    let kept: HashSet<u64> = kept.into_iter().collect();
    let lost: Vec<_> = committed.difference(&kept).collect();
    let risen: Vec<_> = failed.intersection(&kept).collect();
    let counts = (committed.len(), failed.len(), kept.len());
    println!("{kills} kills: {counts:?} committed, failed, kept");
    assert!(
        lost.is_empty() && risen.is_empty(),
        "lost {lost:?}, risen {risen:?}"
    );
    assert!(!committed.is_empty());
}

type Writers = Vec<tokio::task::JoinHandle<Reported>>;

fn start(address: SocketAddr, table: &str, first: u64) -> Writers {
    (0..WRITERS)
        .map(|writer| tokio::spawn(write(address, table.to_owned(), first + (writer << 32))))
        .collect()
}

async fn hear(writers: Writers, committed: &mut HashSet<u64>, failed: &mut HashSet<u64>) {
    for writer in writers {
        let told = tokio::time::timeout(PATIENCE, writer)
            .await
            .unwrap()
            .unwrap();
        committed.extend(told.committed);
        failed.extend(told.failed);
    }
}

/// What a writer was told.
#[derive(Default)]
struct Reported {
    committed: Vec<u64>,
    failed: Vec<u64>,
}

/// Writes numbers until the connection ends. One whose COMMIT was sent and not answered may be
/// there or not.
async fn write(address: SocketAddr, table: String, first: u64) -> Reported {
    let mut told = Reported::default();
    let Ok(mut conn) = connect(address, |options| options).await else {
        return told;
    };
    for number in first.. {
        if number % 3 == 0 {
            // By itself: what was not answered is unknown.
            match conn
                .query_drop(format!("INSERT INTO {table} VALUES ({number})"))
                .await
            {
                Ok(()) => told.committed.push(number),
                Err(mysql_async::Error::Server(_)) => told.failed.push(number),
                Err(_) => return told,
            }
            continue;
        }
        let inserted = async {
            conn.query_drop("BEGIN").await?;
            conn.exec_drop(format!("INSERT INTO {table} VALUES (?)"), (number,))
                .await
        };
        if inserted.await.is_err() {
            told.failed.push(number);
            return told;
        }
        match conn.query_drop("COMMIT").await {
            Ok(()) => told.committed.push(number),
            Err(_) => return told,
        }
    }
    told
}
