//! Prepared statements through a pool before a real MariaDB: random sessions on few connections, each answer compared
//! with that of a connection of one's own; how many statements the server has; and what ties a session.

use mysql_async::prelude::*;
use mysql_async::{Conn, Params, Row, Statement, Value};
use rand::Rng;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use shortline_gate::pool::{PoolMode, Shown};

use crate::gated::{Gated, PATIENCE, code, connect, limits};
use crate::server::{Server, shared};

const SESSIONS: usize = 5;
/// Fewer than sessions, so that statements are prepared on connections that others used.
const CONNECTIONS: usize = 3;
/// Fewer than texts, so that connections give some up.
const STATEMENTS_MAX: usize = 4;
const STEPS: usize = 150;
const SEEDS: u64 = 20;

/// What a session may say, with nothing that ties it to its connection.
const SAYS: &[&str] = &[
    "SELECT 1",
    "BEGIN",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SET sql_mode = 'ANSI'",
    "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
    "SET sql_mode = DEFAULT",
    "SET NAMES latin1",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    "SET NAMES utf8mb4",
    "SET time_zone = '+0{n}:00'",
    "SET div_precision_increment = {n}",
    "USE {db}_a",
    "USE {db}_b",
    "INSERT INTO {db}_a.all_of_them (n) VALUES ({n})",
    "ALTER TABLE {db}_a.changing ADD COLUMN IF NOT EXISTS more INT DEFAULT {n}",
    "ALTER TABLE {db}_a.changing DROP COLUMN IF EXISTS more",
    "RESET",
];

/// Whether a statement may have to wait for another session's transaction.
fn locks(statement: &str) -> bool {
    ["BEGIN", "INSERT", "UPDATE", "ALTER"]
        .iter()
        .any(|word| statement.starts_with(word))
}

/// What it may prepare. The meaning of many depends on the database, or on what is set.
const TEXTS: &[&str] = &[
    "SELECT ?, ?",
    "SELECT ? + 1, CONCAT(?, 'x')",
    "SELECT \"n\", ? FROM here WHERE n < ?",
    "SELECT 'a' || 'b', ?, ?",
    "SELECT 'a\\\\', ?, ?",
    "SELECT COLLATION('x'), CHARSET(?), ?",
    "SELECT DATABASE(), ?, ?",
    "SELECT COUNT(*) FROM here WHERE n = ? OR n = ?",
    "SELECT 1 / 3, @@time_zone, ?, ?",
    "SELECT LAST_INSERT_ID(), ?, ?",
    "SELECT * FROM {db}_a.changing WHERE n <> ? AND n <> ?",
    "INSERT INTO {db}_a.all_of_them (n) VALUES (?), (?)",
    "UPDATE {db}_a.all_of_them SET n = n + ? WHERE n = ?",
    "SELECT nothing, ?, ?",
];

/// One session, on a connection of the pool and on one of its own.
struct Play {
    pooled: Conn,
    own: Conn,
    prepared: Vec<(Statement, Statement)>,
    /// Which of them may wait for another session's transaction.
    locking: Vec<bool>,
    said: Vec<String>,
}

fn value(random: &mut ChaCha8Rng) -> Value {
    match random.random_range(0..6) {
        0 => Value::NULL,
        1 => Value::Int(random.random_range(-3..3)),
        2 => Value::UInt(random.random_range(0..3)),
        3 => Value::Double(f64::from(random.random_range(0..5)) / 2.0),
        4 => Value::Bytes(b"2".to_vec()),
        _ => Value::Date(2026, 1, 2, 3, 4, 5, 0),
    }
}

/// All that a client is told.
fn told(answer: Result<Vec<Row>, mysql_async::Error>) -> Vec<String> {
    match answer {
        Ok(rows) => rows
            .into_iter()
            .map(|row| format!("{:?} {:?}", row.columns_ref().len(), row.unwrap()))
            .collect(),
        Err(mysql_async::Error::Server(error)) => vec![format!("{} {}", error.code, error.message)],
        Err(error) => panic!("{error}"),
    }
}

async fn say(conn: &mut Conn, statement: &str) -> Vec<String> {
    let saying = async {
        match statement {
            "RESET" => conn.reset().await.map(|_| Vec::new()),
            statement => conn.query(statement).await,
        }
    };
    told(tokio::time::timeout(PATIENCE, saying).await.unwrap())
}

async fn execute(conn: &mut Conn, statement: &Statement, values: &[Value]) -> Vec<String> {
    let executing = conn.exec(statement, Params::Positional(values.to_vec()));
    let mut told = told(tokio::time::timeout(PATIENCE, executing).await.unwrap());
    told.push(format!(
        "{} {:?}",
        conn.affected_rows(),
        conn.last_insert_id()
    ));
    told
}

fn make_databases(server: &Server) {
    for db in ["lent", "mine"] {
        server.query(&format!(
            "CREATE DATABASE {db}_a; CREATE DATABASE {db}_b; CREATE TABLE {db}_a.here (n INT); CREATE TABLE {db}_b.here (n INT);
             INSERT INTO {db}_a.here VALUES (1), (2); INSERT INTO {db}_b.here VALUES (2), (2), (3);
             CREATE TABLE {db}_a.all_of_them (id INT AUTO_INCREMENT PRIMARY KEY, n INT) ENGINE=InnoDB;
             CREATE TABLE {db}_a.changing (n INT); INSERT INTO {db}_a.changing VALUES (7)"
        ));
    }
}

async fn begin(server: &Server, gated: &Gated, number: usize) -> Play {
    let options = |db: &'static str| {
        let begins = format!("{db}_{}", ["a", "b"][number % 2]);
        move |options: mysql_async::OptsBuilder| options.db_name(Some(begins)).stmt_cache_size(0)
    };
    Play {
        pooled: gated.try_connect(options("lent")).await.unwrap(),
        own: connect(server.address, options("mine")).await.unwrap(),
        prepared: Vec::new(),
        locking: Vec::new(),
        said: Vec::new(),
    }
}

impl Play {
    /// Takes a random step. Returns what both were told.
    async fn step(
        &mut self,
        random: &mut ChaCha8Rng,
        may_lock: bool,
    ) -> (Vec<String>, Vec<String>) {
        let number = random.random_range(1..4).to_string();
        match random.random_range(0..10) {
            0..3 => {
                let says = SAYS.iter().filter(|says| may_lock || !locks(says));
                let says: Vec<_> = says.collect();
                let says = says.choose(random).unwrap().replace("{n}", &number);
                self.said.push(says.clone());
                (
                    say(&mut self.pooled, &says.replace("{db}", "lent")).await,
                    say(&mut self.own, &says.replace("{db}", "mine")).await,
                )
            }
            3..5 => {
                let text = TEXTS.choose(random).unwrap();
                self.said.push(format!("PREPARE {text}"));
                let there = self.pooled.prep(text.replace("{db}", "lent")).await;
                let here = self.own.prep(text.replace("{db}", "mine")).await;
                match (there, here) {
                    (Ok(there), Ok(here)) => {
                        let shape = |statement: &Statement| {
                            let columns = statement.columns();
                            let names = columns.iter();
                            let names = names.map(|column| column.name_str().into_owned());
                            vec![format!(
                                "{} {:?}",
                                statement.num_params(),
                                names.collect::<Vec<_>>()
                            )]
                        };
                        let shapes = (shape(&there), shape(&here));
                        self.prepared.push((there, here));
                        self.locking.push(locks(text));
                        shapes
                    }
                    (there, here) => (
                        told(there.map(|_| Vec::new())),
                        told(here.map(|_| Vec::new())),
                    ),
                }
            }
            5 if !self.prepared.is_empty() => {
                let at = random.random_range(0..self.prepared.len());
                let (there, here) = self.prepared.swap_remove(at);
                self.locking.swap_remove(at);
                self.said.push(format!("CLOSE {at}"));
                self.pooled.close(there).await.unwrap();
                self.own.close(here).await.unwrap();
                Default::default()
            }
            _ if !self.prepared.is_empty() => {
                let at = random.random_range(0..self.prepared.len());
                if self.locking[at] && !may_lock {
                    return Default::default();
                }
                let (there, here) = &self.prepared[at];
                let values = [value(random), value(random)];
                self.said.push(format!("EXECUTE {at} {values:?}"));
                (
                    execute(&mut self.pooled, there, &values).await,
                    execute(&mut self.own, here, &values).await,
                )
            }
            _ => Default::default(),
        }
    }
}

#[tokio::test]
async fn a_prepared_statement_is_what_it_is_on_a_connection_of_ones_own() {
    let Some(server) = shared() else { return };
    make_databases(server);
    let limits = limits(PoolMode::Transaction, CONNECTIONS, STATEMENTS_MAX);
    let gated = Gated::lending(server.address, None, limits, |_| {}).await;
    for seed in 0..SEEDS {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut sessions = Vec::new();
        for number in 0..SESSIONS {
            sessions.push(begin(server, &gated, number).await);
        }
        // One at most has a connection for a transaction, and one is taken now and then, so that sessions change theirs.
        let mut open = None;
        let (mut taker, mut has_taken) = (gated.connect().await, false);
        for step in 0..STEPS {
            if random.random_bool(0.3) {
                let says = if has_taken {
                    "COMMIT"
                } else {
                    "BEGIN; SELECT 1"
                };
                taker.query_drop(says).await.unwrap();
                has_taken = !has_taken;
            }
            let number = random.random_range(0..SESSIONS);
            let session = &mut sessions[number];
            let may_lock = open.is_none_or(|open| open == number);
            let (there, here) = session.step(&mut random, may_lock).await;
            let there: Vec<_> = there
                .iter()
                .map(|line| line.replace("lent", "mine"))
                .collect();
            assert_eq!(
                there, here,
                "seed {seed}, step {step}, session {number}: {:#?}",
                session.said
            );
            match session.said.last().map(String::as_str) {
                Some("RESET") => {
                    session.prepared.clear();
                    session.locking.clear();
                    open = open.filter(|open| *open != number);
                }
                Some("BEGIN") => open = Some(number),
                Some("COMMIT" | "ROLLBACK") => open = open.filter(|open| *open != number),
                _ => {}
            }
            assert_eq!(
                gated.pool.as_ref().unwrap().pinned(),
                0,
                "{:#?}",
                session.said
            );
        }
        taker.disconnect().await.unwrap();
        for session in sessions {
            session.pooled.disconnect().await.unwrap();
            session.own.disconnect().await.unwrap();
        }
        gated.until_empty().await;
    }
}

/// As many as connections may have, however many clients prepare.
#[tokio::test]
async fn the_servers_statements_are_bounded() {
    let Some(server) = Server::own() else { return };
    let limits = limits(PoolMode::Transaction, 2, 3);
    let gated = Gated::lending(server.address, None, limits, |_| {}).await;
    let mut clients = Vec::new();
    for _ in 0..6 {
        let mut conn = gated.connect().await;
        let mut prepared = Vec::new();
        for number in 0..8 {
            prepared.push(conn.prep(format!("SELECT ? + {number}")).await.unwrap());
        }
        clients.push((conn, prepared));
    }
    for _ in 0..3 {
        let asking = clients.into_iter().map(|(mut conn, prepared)| {
            tokio::spawn(async move {
                for (number, statement) in prepared.iter().enumerate() {
                    let found: Option<usize> = conn.exec_first(statement, (1,)).await.unwrap();
                    assert_eq!(found, Some(number + 1));
                }
                (conn, prepared)
            })
        });
        let asking: Vec<_> = asking.collect();
        clients = Vec::new();
        for asked in asking {
            clients.push(asked.await.unwrap());
        }
    }
    let count = server.query("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'");
    let count: usize = count.split_whitespace().last().unwrap().parse().unwrap();
    assert!((1..=6).contains(&count), "{count}");
    let pool = gated.pool.as_ref().unwrap();
    assert_eq!((pool.statements(), pool.pinned()), (8, 0));
    drop(clients);
    gated.until("forgotten", |_| pool.statements() <= 6).await;
}

#[tokio::test]
async fn what_is_executed_ties_a_session_as_a_query_does() {
    let Some(server) = shared() else { return };
    let gated = Gated::pooled(server.address, PoolMode::Transaction, 3).await;
    let pinned = || gated.pool.as_ref().unwrap().pinned();
    let mut conn = gated.connect().await;
    let mut other = gated.connect().await;
    let statement = conn.prep("SET @mine = ?").await.unwrap();
    gated.until_empty().await;
    assert_eq!(pinned(), 0, "it is only prepared");
    conn.exec_drop(&statement, (7,)).await.unwrap();
    gated.until("kept", |_| pinned() == 1).await;
    let asked = conn.prep("SELECT @mine + ?").await.unwrap();
    let found: Option<Option<u32>> = conn.exec_first(&asked, (1,)).await.unwrap();
    assert_eq!(found, Some(Some(8)));
    let others: Option<u32> = other.query_first("SELECT 1").await.unwrap();
    assert_eq!(others, Some(1));
    conn.reset().await.unwrap();
    gated.until("given back", |_| pinned() == 0).await;
    let gone = conn.exec_drop(&asked, (1,)).await.unwrap_err();
    assert_eq!(code(&gone), Some(1243), "{gone}");
    // What reads another statement's results has to stay where those are.
    let shows = conn.prep("SHOW WARNINGS").await.unwrap();
    gated.until("kept", |_| pinned() == 1).await;
    conn.query_drop("SELECT CAST('x' AS INT)").await.unwrap();
    let warnings: Vec<Row> = conn.exec(&shows, ()).await.unwrap();
    assert_eq!(warnings.len(), 1);
    conn.close(shows).await.unwrap();
    gated.until("given back", |_| pinned() == 0).await;
    // No connection leaves its database for none again.
    let names = conn.prep("SELECT DATABASE()").await.unwrap();
    gated.until("kept", |_| pinned() == 1).await;
    conn.query_drop("USE shop").await.unwrap();
    let found: Option<Option<String>> = conn.exec_first(&names, ()).await.unwrap();
    assert_eq!(found, Some(None));
}

/// Of a pool of sessions, a session's statements are its own.
#[tokio::test]
async fn a_session_of_its_own_has_more_statements_than_are_shared() {
    let Some(server) = shared() else { return };
    let limits = limits(PoolMode::Session, 1, 2);
    let gated = Gated::lending(server.address, None, limits, |_| {}).await;
    let mut conn = gated.connect().await;
    let mut prepared = Vec::new();
    for number in 0..5 {
        prepared.push(conn.prep(format!("SELECT ? - {number}")).await.unwrap());
    }
    for (number, statement) in prepared.iter().enumerate() {
        let found: Option<usize> = conn.exec_first(statement, (9,)).await.unwrap();
        assert_eq!(found, Some(9 - number));
    }
    conn.disconnect().await.unwrap();
    let mut next = gated.connect().await;
    let found: Option<u32> = next.exec_first("SELECT ? - 1", (3,)).await.unwrap();
    assert_eq!(found, Some(2));
}
