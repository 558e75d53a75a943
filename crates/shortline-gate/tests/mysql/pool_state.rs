//! Nobody meets what another session has left: random sessions through a pool of few connections, each statement's
//! answer compared with that of a connection of one's own (in other databases, where the same locks are others).

use mysql_async::prelude::*;
use mysql_async::{Conn, Row};
use rand::Rng;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use shortline_gate::pool::{PoolMode, Shown};

use crate::gated::{Gated, PATIENCE, connect};
use crate::server::{Server, shared};

const SESSIONS: usize = 5;
/// More than sessions, so that none waits for another that this test has not let go on.
const CONNECTIONS: usize = 7;
const STEPS: usize = 100;
const SEEDS: u64 = 40;

/// What a session may say. `{n}` is a small number, `{db}` begins the names of its databases, `{s}` is of the session,
/// and `{seed}` of the play: the server gives a lock back some time after its connection has gone.
const STATEMENTS: &[&str] = &[
    "SELECT {n}",
    "SELECT nothing",
    "BEGIN",
    "BEGIN",
    "START TRANSACTION",
    "START TRANSACTION READ ONLY",
    "COMMIT",
    "COMMIT",
    "ROLLBACK",
    "COMMIT AND CHAIN",
    "SAVEPOINT a",
    "ROLLBACK TO a",
    "SET autocommit = 0",
    "SET autocommit = 1",
    "SET NAMES latin1",
    "SET NAMES utf8mb4",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    "SET CHARACTER SET latin1",
    "SET character_set_results = NULL",
    "SET collation_connection = utf8mb4_german2_ci",
    "SET time_zone = '+0{n}:00'",
    "SET time_zone = DEFAULT",
    "SET sql_mode = 'ANSI'",
    "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
    "SET sql_mode = DEFAULT",
    "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET @@session.lock_wait_timeout = {n}00, time_zone = '-0{n}:00'",
    "SET sql_select_limit = {n}",
    "SET sql_select_limit = 0",
    "SET sql_select_limit = DEFAULT",
    "SET group_concat_max_len = {n}000",
    "SET timestamp = {n}",
    "SET timestamp = DEFAULT",
    "SET STATEMENT max_statement_time = {n} FOR SELECT 1",
    "SET time_zone = '+03:00'; SELECT nothing",
    "SET time_zone = '+04:00'; SET @a = 4; SELECT {n}",
    "SET @a = {n}",
    "SELECT @a := {n}",
    "SELECT {n} INTO @b",
    "USE {db}_a",
    "USE {db}_b",
    "USE nowhere",
    "CREATE TEMPORARY TABLE temp (n INT)",
    "CREATE TEMPORARY TABLE temp SELECT {n} n",
    "INSERT INTO temp VALUES ({n})",
    "DROP TEMPORARY TABLE temp",
    "INSERT INTO {db}_a.t{s} (n) VALUES ({n})",
    "INSERT INTO {db}_a.t{s} (n) VALUES ({n}), ({n})",
    "INSERT INTO {db}_a.t{s} VALUES (NULL, {n})",
    "UPDATE {db}_a.t{s} SET n = n + 1 WHERE n = {n}",
    "SELECT LAST_INSERT_ID({n})",
    "SET last_insert_id = {n}",
    "LOCK TABLES {db}_a.t{s} WRITE",
    "UNLOCK TABLES",
    "SELECT GET_LOCK('{db}{s}of{seed}', 0)",
    "SELECT RELEASE_LOCK('{db}{s}of{seed}')",
    "PREPARE p FROM 'SELECT {n} + 100'",
    "DEALLOCATE PREPARE p",
    "CALL {db}_a.p()",
    "HANDLER {db}_a.t{s} OPEN AS h",
    "HANDLER h CLOSE",
    "SET session_track_schema = OFF",
    "/*!50000SET @a = 5{n}*/",
    "SELECT /*!50000GET_LOCK('{db}{s}of{seed}', 0)*/",
    "CREATE /*M!100100TEMPORARY*/ TABLE temp SELECT {n} n",
    "/*!SET time_zone = '-0{n}:00'*/",
    "SET @@session.time_zone = '+0{n}:30', @b = {n}",
    "SET STATEMENT max_statement_time = 9 FOR EXECUTE p",
    "EXECUTE IMMEDIATE CONCAT('SET ', CHAR(64), 'a = {n}')",
    "BEGIN NOT ATOMIC EXECUTE IMMEDIATE CONCAT('SET ', CHAR(64), 'a = 6{n}'); END",
    "EXEC SELECT ? + {n}",
    "EXEC INSERT INTO {db}_a.t{s} (n) VALUES (?)",
    "EXEC SET time_zone = '+05:00', @b = ?",
    "BEGIN NOT ATOMIC SET time_zone = '+0{n}:45'; SELECT nothing; END",
    "SELECT n FROM {db}_a.t{s} WHERE n = (SELECT 1 UNION SELECT 2)",
    "SET completion_type = 'CHAIN'",
    "SET completion_type = DEFAULT",
    "RESET",
];

/// What shows what a session has.
const QUESTIONS: &[&str] = &[
    "SELECT @@autocommit, @@in_transaction",
    "SELECT @@time_zone, @@lock_wait_timeout, @@group_concat_max_len",
    "SELECT @@sql_mode, @@sql_select_limit, @@max_statement_time",
    "SELECT @@tx_isolation, @@tx_read_only",
    "SELECT @@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection",
    "SELECT @@timestamp < 10",
    "SELECT DATABASE()",
    "SELECT @a, @b",
    "SELECT LAST_INSERT_ID()",
    "SELECT COUNT(*), SUM(n) FROM {db}_a.t{s}",
    "SELECT SUM(n) FROM temp",
    "SELECT 1 FROM here",
    "EXECUTE p",
    "SELECT IS_USED_LOCK('{db}{s}of{seed}') = CONNECTION_ID()",
    "HANDLER h READ FIRST",
];

/// All that a client is told.
async fn answer(conn: &mut Conn, statement: &str) -> Vec<String> {
    match tokio::time::timeout(PATIENCE, ask(conn, statement)).await {
        Ok(Ok(told)) => told,
        Ok(Err(mysql_async::Error::Server(error))) => {
            vec![format!("{} {}", error.code, error.message)]
        }
        Ok(Err(error)) => panic!("{statement}: {error}"),
        Err(_) => panic!("{statement}: no answer"),
    }
}

async fn ask(conn: &mut Conn, statement: &str) -> mysql_async::Result<Vec<String>> {
    let mut told = Vec::new();
    if statement == "RESET" {
        conn.reset().await?;
        return Ok(told);
    }
    if let Some(statement) = statement.strip_prefix("EXEC ") {
        let rows: Vec<Row> = conn.exec(statement, (7,)).await?;
        return Ok(rows
            .into_iter()
            .map(|row| format!("{:?}", row.unwrap()))
            .collect());
    }
    let mut answers = conn.query_iter(statement).await?;
    loop {
        told.push(format!(
            "{} {:?}",
            answers.affected_rows(),
            answers.last_insert_id()
        ));
        let rows: Vec<Row> = answers.collect().await?;
        told.extend(rows.into_iter().map(|row| format!("{:?}", row.unwrap())));
        if answers.is_empty() {
            return Ok(told);
        }
    }
}

fn make_databases(server: &Server) {
    for db in ["pooled", "own"] {
        server.query(&format!(
            "CREATE DATABASE {db}_a; CREATE DATABASE {db}_b; CREATE TABLE {db}_b.here (n INT); INSERT INTO {db}_b.here VALUES (1);
             CREATE PROCEDURE {db}_a.p() SET @a = 99, time_zone = '+06:00'"
        ));
        for session in 0..SESSIONS {
            server.query(&format!(
                "CREATE TABLE {db}_a.t{session} (id INT AUTO_INCREMENT PRIMARY KEY, n INT) ENGINE=InnoDB"
            ));
        }
    }
}

#[tokio::test]
async fn nobody_meets_what_another_session_left() {
    let Some(server) = shared() else { return };
    make_databases(server);
    let gated = Gated::pooled(server.address, PoolMode::Transaction, CONNECTIONS).await;
    for seed in 0..SEEDS {
        play(server, &gated, seed).await;
        // What was left mid-transaction is rolled back before the next begins.
        gated.until_empty().await;
        let pool = gated.pool.as_ref().unwrap();
        gated
            .until("clean", |_| pool.counts().total == pool.counts().idle)
            .await;
    }
}

async fn play(server: &Server, gated: &Gated, seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut sessions = Vec::new();
    for number in 0..SESSIONS {
        let begins_in = |db: &str| (number % 2 == 0).then(|| format!("{db}_a"));
        let options = |db: &'static str| {
            let begins = begins_in(db);
            move |options: mysql_async::OptsBuilder| options.db_name(begins).stmt_cache_size(0)
        };
        let pooled = gated.try_connect(options("pooled")).await.unwrap();
        let own = connect(server.address, options("own")).await.unwrap();
        sessions.push((pooled, own, Vec::new()));
    }
    for step in 0..STEPS {
        let session = random.random_range(0..SESSIONS);
        let (pooled, own, said) = &mut sessions[session];
        let list = if random.random_bool(0.4) {
            QUESTIONS
        } else {
            STATEMENTS
        };
        let statement = list.choose(&mut random).unwrap();
        let statement = statement
            .replace("{n}", &random.random_range(1..4).to_string())
            .replace("{s}", &session.to_string())
            .replace("{seed}", &seed.to_string());
        let found = answer(pooled, &statement.replace("{db}", "pooled")).await;
        let expected = answer(own, &statement.replace("{db}", "own")).await;
        let found: Vec<String> = found
            .iter()
            .map(|line| line.replace("pooled", "own"))
            .collect();
        said.push(statement);
        assert_eq!(
            found, expected,
            "seed {seed}, step {step}, session {session} said {said:#?}"
        );
    }
    for (pooled, own, _) in sessions {
        // An error may still be on its way, of a second statement.
        let _ = (pooled.disconnect().await, own.disconnect().await);
    }
}
