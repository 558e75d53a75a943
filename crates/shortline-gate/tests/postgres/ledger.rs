//! The ledger: transactions write their number, while connections, backends, the whole server and
//! the gate's process are killed at random points. What a client was told must be in the table:
//! committed is there, refused is not. A connection that broke has told nothing of its COMMIT.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_gate::postgres::run;
use shortline_gate::{Gate, GateConfig};
use tokio::io::AsyncReadExt;
use tokio_postgres::{Client, Error};

use super::cluster::{Cluster, free_port};
use super::relay::{config, connect, one_at_a_time, runtime, soon};

/// Set for the process that is the relay: the port it listens on, and the backend's.
const RELAY_PORTS: &str = "SHORTLINE_TEST_RELAY";
const WRITERS: usize = 6;

#[test]
fn no_outcome_is_reported_falsely_in_100_kills() {
    play(100, 1);
}

#[test]
#[ignore = "takes minutes"]
fn no_outcome_is_reported_falsely_in_5000_kills() {
    play(5000, 2);
}

/// Is the relay, when started by [`Process`]; as a test it does nothing.
#[test]
fn relay_process() {
    let Ok(ports) = std::env::var(RELAY_PORTS) else {
        return;
    };
    let (port, backend) = ports.split_once(' ').unwrap();
    let mut gate: GateConfig = one_at_a_time();
    gate.admission.queue_max = 4;
    let gate = Gate::new(gate);
    let config = config(backend.parse().unwrap());
    runtime().block_on(async {
        let address = format!("127.0.0.1:{port}");
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        // The tests' end is this input's end.
        let end_of_input = async { drop(tokio::io::stdin().read_u8().await) };
        run(listener, config, gate, end_of_input).await.unwrap();
    });
}

/// A relay in a process of its own, which can be killed.
struct Process {
    port: u16,
    backend: u16,
    child: Child,
}

impl Process {
    fn start(port: u16, backend: u16) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ledger::relay_process", "--nocapture"])
            .env(RELAY_PORTS, format!("{port} {backend}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            port,
            backend,
            child,
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        *self = Self::start(self.port, self.backend);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a writer was told of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reported {
    Committed,
    Refused,
    Nothing,
}

/// What the writers and the one who kills share.
#[derive(Default)]
struct Ledger {
    told: Mutex<BTreeMap<i64, Reported>>,
    last: AtomicI64,
    is_over: AtomicBool,
}

fn play(kills: usize, seed: u64) {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let mut relay = Process::start(free_port(), cluster.port);
    let ledger = Arc::new(Ledger::default());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let direct = connect(cluster.port, "user=postgres").await.unwrap();
        direct
            .batch_execute("create table ledger (number int8 primary key)")
            .await
            .unwrap();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                tokio::spawn(write(
                    Arc::clone(&ledger),
                    relay.port,
                    seed * 100 + writer as u64,
                ))
            })
            .collect();
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        for _ in 0..kills {
            tokio::time::sleep(Duration::from_micros(chance.random_range(0..40_000))).await;
            kill(&mut chance, &cluster, &mut relay).await;
        }
        ledger.is_over.store(true, Ordering::Relaxed);
        for writer in writers {
            soon(writer).await.unwrap();
        }
    });
    let written = runtime.block_on(numbers(cluster.port));
    check(&ledger.told.lock(), &written);
}

/// One of the four that can die.
async fn kill(chance: &mut ChaCha8Rng, cluster: &Cluster, relay: &mut Process) {
    match chance.random_range(0..100) {
        0..60 => {
            let Ok(client) = connect(cluster.port, "user=postgres application_name=killer").await
            else {
                return;
            };
            let one = "select pg_terminate_backend(pid) from pg_stat_activity \
                       where application_name = 'writer' order by random() limit 1";
            client.batch_execute(one).await.unwrap();
        }
        60..97 => relay.kill(),
        _ => {
            cluster.tell("crash");
            cluster.tell("start");
        }
    }
}

/// Writes number after number, over one connection for as long as it lasts.
async fn write(ledger: Arc<Ledger>, port: u16, seed: u64) {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    while !ledger.is_over.load(Ordering::Relaxed) {
        let Ok(mut client) = connect(port, "user=postgres application_name=writer").await else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        while !ledger.is_over.load(Ordering::Relaxed) && !client.is_closed() {
            let number = ledger.last.fetch_add(1, Ordering::Relaxed);
            let told = match chance.random_range(0..4) {
                0 => in_one_statement(&client, number).await,
                1 => in_one_string(&client, number).await,
                2 => leave(&mut client, number).await,
                _ => in_transaction(&mut client, number).await,
            };
            ledger.told.lock().insert(number, told);
            if chance.random_range(0..10) == 0 {
                break;
            }
        }
    }
}

async fn in_one_statement(client: &Client, number: i64) -> Reported {
    let statement = "insert into ledger values ($1)";
    match soon(client.execute(statement, &[&number])).await {
        Ok(_) => Reported::Committed,
        Err(error) => told_by(&error),
    }
}

async fn in_one_string(client: &Client, number: i64) -> Reported {
    let text = format!("begin; insert into ledger values ({number}); commit");
    match soon(client.batch_execute(&text)).await {
        Ok(()) => Reported::Committed,
        // The error may be that of the string's end, with the commit behind it.
        Err(error) => told_by(&error),
    }
}

async fn in_transaction(client: &mut Client, number: i64) -> Reported {
    let work = async {
        let transaction = client.transaction().await?;
        transaction.batch_execute("select 1").await?;
        transaction
            .execute("insert into ledger values ($1)", &[&number])
            .await?;
        Ok::<_, Error>(transaction)
    };
    match soon(work).await {
        // Nothing was to be committed yet.
        Err(_) => Reported::Refused,
        Ok(transaction) => match soon(transaction.commit()).await {
            Ok(()) => Reported::Committed,
            Err(error) => told_by(&error),
        },
    }
}

/// A client that goes away in the middle.
async fn leave(client: &mut Client, number: i64) -> Reported {
    let work = async {
        let transaction = client.transaction().await?;
        transaction
            .execute("insert into ledger values ($1)", &[&number])
            .await?;
        transaction.rollback().await
    };
    // Dropped at some point of its way, with a rollback behind it at best.
    let _ = tokio::time::timeout(Duration::from_micros(500), work).await;
    Reported::Refused
}

/// An ERROR says that nothing was committed; the end of a connection says nothing.
fn told_by(error: &Error) -> Reported {
    match error.as_db_error() {
        Some(said) if said.severity() == "ERROR" => Reported::Refused,
        _ => Reported::Nothing,
    }
}

/// What is in the table, once the server is through its recovery.
async fn numbers(port: u16) -> Vec<i64> {
    let client = soon(async {
        loop {
            if let Ok(client) = connect(port, "user=postgres").await {
                return client;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    // Those of dead clients may still be at work.
    let at_work = "select count(*) from pg_stat_activity where application_name = 'writer' and state <> 'idle'";
    soon(async {
        while client
            .query_one(at_work, &[])
            .await
            .unwrap()
            .get::<_, i64>(0)
            > 0
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let rows = client
        .query("select number from ledger", &[])
        .await
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn check(told: &BTreeMap<i64, Reported>, written: &[i64]) {
    let count = |kind| told.values().filter(|told| **told == kind).count();
    println!(
        "{} transactions: {} committed, {} refused, {} unknown; {} written",
        told.len(),
        count(Reported::Committed),
        count(Reported::Refused),
        count(Reported::Nothing),
        written.len()
    );
    assert!(count(Reported::Committed) > 0);
    let wrong: Vec<_> = told
        .iter()
        .filter(|(number, told)| match told {
            Reported::Committed => !written.contains(number),
            Reported::Refused => written.contains(number),
            Reported::Nothing => false,
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
