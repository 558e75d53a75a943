//! The same in front of a real MariaDB, through the pool of `gate mysql`.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mysql_async::prelude::*;
use mysql_async::{Conn, Opts, OptsBuilder, TxOpts};
use shortline_bookstore::bed::{Bed, Sizing};
use shortline_bookstore::{Database, Kind};

use super::{POOL_SIZE, Writers, runtime, soon};
use crate::process::{PROGRAM, Server, wait_for};
use crate::relayed::status;

/// Where the gates of a test meet.
struct Place {
    folder: tempfile::TempDir,
    database: Database,
    _bed: Bed,
}

impl Place {
    async fn new() -> Option<Self> {
        if let Err(missing) = Bed::available(Kind::MariaDb) {
            eprintln!("skipped: {missing}");
            return None;
        }
        let bed = Bed::start(Kind::MariaDb, Sizing::default()).await.unwrap();
        let database = bed.database().clone();
        let folder = tempfile::tempdir().unwrap();
        let password = database.password.clone().unwrap_or_default();
        let users = format!("\"{}\" \"{password}\"\n", database.user);
        std::fs::write(folder.path().join("users"), users).unwrap();
        Some(Self {
            folder,
            database,
            _bed: bed,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A gate that listens at `port`, or whose predecessor does.
    fn gate(&self, port: u16) -> Server {
        let mut command = Command::new(PROGRAM);
        command
            .args(["gate", "mysql", "--admin", "127.0.0.1:0"])
            .args(["--upstream", &self.database.address.to_string()])
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .arg("--handover")
            .arg(format!("unix:{}", self.path("handover").display()))
            .args(["--pool", "transaction", "--drain", "120s"])
            .args(["--pool-size", &POOL_SIZE.to_string(), "--pool-users"])
            .arg(self.path("users"))
            .stdin(Stdio::null());
        Server::spawn(&mut command)
    }

    async fn connect(&self, port: u16) -> Conn {
        let options = OptsBuilder::default()
            .ip_or_hostname("127.0.0.1")
            .tcp_port(port)
            .user(Some(&self.database.user))
            .pass(self.database.password.as_deref())
            .db_name(Some(&self.database.name))
            .stmt_cache_size(0)
            .prefer_socket(false);
        soon(Conn::new(Opts::from(options))).await.unwrap()
    }

    /// Asks the server, past the gates.
    async fn ask<T: FromRow + Send + 'static>(&self, statement: &str) -> Vec<T> {
        let mut conn = self.connect(self.database.address.port()).await;
        conn.query(statement).await.unwrap()
    }
}

/// Writes transactions with prepared statements and variables of its own, of which each must be whole.
async fn write(
    mut conn: Conn,
    number: usize,
    written: Arc<Vec<AtomicUsize>>,
    is_over: Arc<AtomicBool>,
) -> usize {
    let zone = format!("+{:02}:00", number % 12 + 1);
    conn.query_drop(format!("SET time_zone = '{zone}'"))
        .await
        .unwrap();
    // The same text in two modes.
    let mut looks = Vec::new();
    for mode in ["ANSI", ""] {
        conn.query_drop(format!("SET sql_mode = '{mode}'"))
            .await
            .unwrap();
        let look = "SELECT \"round\", @@time_zone, LAST_INSERT_ID() FROM moved WHERE writer = ? ORDER BY id DESC LIMIT 1";
        looks.push(conn.prep(look).await.unwrap());
    }
    let insert = "INSERT INTO moved (writer, round) VALUES (?, ?)";
    let insert = conn.prep(insert).await.unwrap();
    let mut round = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        let mut transaction = conn.start_transaction(TxOpts::default()).await.unwrap();
        transaction
            .exec_drop(&insert, (number, round))
            .await
            .unwrap();
        let id = transaction.last_insert_id().unwrap();
        transaction.commit().await.unwrap();
        let got: Option<(u64, String, u64)> = conn.exec_first(&looks[0], (number,)).await.unwrap();
        assert_eq!(got, Some((round, zone.clone(), id)));
        let got: Option<(String, String, u64)> =
            conn.exec_first(&looks[1], (number,)).await.unwrap();
        assert_eq!(got, Some(("round".to_owned(), zone.clone(), id)));
        round += 1;
        written[number].fetch_add(1, Ordering::Relaxed);
    }
    round as usize
}

#[test]
fn thirty_clients_do_not_notice_three_restarts() {
    const CLIENTS: usize = 30;
    runtime().block_on(async {
        let Some(place) = Place::new().await else {
            return;
        };
        place
            .ask::<u32>(
                "CREATE TABLE moved (id BIGINT AUTO_INCREMENT PRIMARY KEY, writer INT, round INT, UNIQUE (writer, round))",
            )
            .await;
        let mut gate = place.gate(0);
        let port = gate.address().port();
        let writers = Writers::start(CLIENTS, async || place.connect(port).await, write).await;
        for _ in 0..3 {
            writers.have_written(1).await;
            let mut heir = place.gate(port);
            heir.line_with("the other gate has ended");
            assert!(gate.wait().success());
            gate = heir;
            writers.have_written(1).await;
        }
        let written = writers.end().await;
        let rows: Vec<(usize, usize)> = place
            .ask("SELECT COUNT(*), COUNT(DISTINCT writer) FROM moved")
            .await;
        assert_eq!(rows, [(written, CLIENTS)]);
        println!("{CLIENTS} clients, 3 restarts: {written} transactions, none failed, none lost");
    });
}

#[test]
fn a_client_at_rest_moves_with_all_that_it_has() {
    runtime().block_on(async {
        let Some(place) = Place::new().await else {
            return;
        };
        let mut old = place.gate(0);
        let port = old.address().port();
        let (mut conn, mut pinned) = (place.connect(port).await, place.connect(port).await);
        conn.query_drop("SET NAMES latin1, group_concat_max_len = 2000, autocommit = 0")
            .await
            .unwrap();
        conn.query_drop("USE mysql").await.unwrap();
        let names = conn.prep("SELECT DATABASE(), ? + 1").await.unwrap();
        conn.query_drop("USE information_schema").await.unwrap();
        conn.query_drop("SELECT LAST_INSERT_ID(77)").await.unwrap();
        conn.query_drop("COMMIT").await.unwrap();
        pinned.query_drop("SET @mine = 5").await.unwrap();
        let mut busy = place.connect(port).await;
        let id = busy.id();
        let sleeping = tokio::spawn(async move {
            let slept: Result<Option<u32>, _> = busy.query_first("SELECT SLEEP(1000)").await;
            (slept, busy)
        });
        let at_work = "SELECT COUNT(*) FROM information_schema.processlist WHERE info = 'SELECT SLEEP(1000)'";
        while place.ask::<u32>(at_work).await != [1] {}
        let mut new = place.gate(port);
        wait_for("the client at rest to move", || {
            let connections = status(new.admin.unwrap())["connections"].clone();
            (connections["open"] == 1).then_some(())
        });
        // A KILL that comes to the new gate, of a session that is at the old one.
        let mut killer = place.connect(port).await;
        killer.query_drop(format!("KILL QUERY {id}")).await.unwrap();
        let (slept, busy) = soon(sleeping).await.unwrap();
        assert!(slept.is_err() || slept.is_ok_and(|slept| slept == Some(1)));
        let all = "SELECT @@character_set_client, @@group_concat_max_len, @@autocommit, DATABASE(), LAST_INSERT_ID()";
        let found: Vec<(String, u32, u32, String, u32)> = soon(conn.query(all)).await.unwrap();
        let expected = ("latin1", 2000, 0, "information_schema", 77);
        let (set, length, commits, database, id) = &found[0];
        assert_eq!((&**set, *length, *commits, &**database, *id), expected);
        let found: Option<(String, u32)> = conn.exec_first(&names, (6,)).await.unwrap();
        assert_eq!(found, Some(("mysql".to_owned(), 7)));
        conn.query_drop("COMMIT").await.unwrap();
        // What keeps its connection stays, until it gives it up.
        let mine: Option<u32> = pinned.query_first("SELECT @mine").await.unwrap();
        assert_eq!(mine, Some(5));
        soon(pinned.reset()).await.unwrap();
        new.line_with("the other gate has ended; 3 sessions");
        drop((busy, killer));
        assert!(old.wait().success());
        // KILL by the number that the old gate gave.
        let id = conn.id();
        let sleeping = tokio::spawn(async move {
            let slept: Result<Option<u32>, _> = conn.query_first("SELECT SLEEP(1000)").await;
            slept
        });
        while place.ask::<u32>(at_work).await != [1] {}
        pinned.query_drop(format!("KILL QUERY {id}")).await.unwrap();
        let slept = soon(sleeping).await.unwrap();
        assert!(slept.is_err() || slept.is_ok_and(|slept| slept == Some(1)));
    });
}
