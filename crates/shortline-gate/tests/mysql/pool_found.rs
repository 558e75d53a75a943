//! What the simulated worlds of the pool have found (docs/lab/worlds.md), before a real MariaDB.

use mysql_async::Conn;
use mysql_async::prelude::*;
use shortline_gate::pool::PoolMode;

use crate::gated::{Gated, PATIENCE, code};
use crate::raw::{MYSQL, PLAIN, Raw};
use crate::server::shared;

/// The status flag of a server whose strings have no escapes.
const NO_BACKSLASH_ESCAPES: u8 = 2;

async fn one<T: FromRow + Send + 'static>(conn: &mut Conn, statement: &str) -> T {
    let asking = conn.query_first(statement);
    let asked = tokio::time::timeout(PATIENCE, asking).await;
    asked.expect("it is answered").unwrap().unwrap()
}

async fn code_of(conn: &mut Conn, statement: &str) -> Option<u16> {
    let asked = tokio::time::timeout(PATIENCE, conn.query_drop(statement)).await;
    code(&asked.expect("it is answered").unwrap_err())
}

#[tokio::test]
async fn a_session_that_wants_no_rows_is_asked_for_its_variables() {
    let Some(server) = shared() else { return };
    let gated = Gated::pooled(server.address, PoolMode::Transaction, 1).await;
    let (mut conn, mut other) = (gated.connect().await, gated.connect().await);
    conn.query_drop("SET sql_select_limit = 0").await.unwrap();
    assert_eq!(one::<u32>(&mut other, "SELECT 7").await, 7);
    let none: Option<u32> = conn.query_first("SELECT 8").await.unwrap();
    assert_eq!(none, None);
}

#[tokio::test]
async fn what_fails_without_autocommit_keeps_its_transaction() {
    let Some(server) = shared() else { return };
    server.query("CREATE DATABASE IF NOT EXISTS found; CREATE TABLE IF NOT EXISTS found.t (n INT)");
    server.query("INSERT INTO found.t VALUES (1), (2)");
    let gated = Gated::pooled(server.address, PoolMode::Transaction, 3).await;
    let (mut conn, mut other) = (gated.connect().await, gated.connect().await);
    conn.query_drop("SET autocommit = 0").await.unwrap();
    let fails = "SELECT n FROM found.t WHERE n = (SELECT n FROM found.t)";
    assert_eq!(code_of(&mut conn, fails).await, Some(1242));
    assert_eq!(one::<u32>(&mut other, "SELECT @@in_transaction").await, 0);
    assert_eq!(one::<u32>(&mut conn, "SELECT @@in_transaction").await, 1);
    conn.query_drop("ROLLBACK").await.unwrap();
    assert_eq!(one::<u32>(&mut conn, "SELECT @@in_transaction").await, 0);
}

#[tokio::test]
async fn what_a_block_has_set_before_it_failed_stays_with_its_session() {
    let Some(server) = shared() else { return };
    let gated = Gated::pooled(server.address, PoolMode::Transaction, 2).await;
    let (mut conn, mut other) = (gated.connect().await, gated.connect().await);
    let block = "BEGIN NOT ATOMIC SET time_zone = '+05:00'; SELECT nothing; END";
    assert_eq!(code_of(&mut conn, block).await, Some(1054));
    let of_other: String = one(&mut other, "SELECT @@time_zone").await;
    assert_eq!(of_other, "SYSTEM");
    let own: String = one(&mut conn, "SELECT @@time_zone").await;
    assert_eq!(own, "+05:00");
}

#[tokio::test]
async fn a_commit_that_chains_begins_another_transaction() {
    let Some(server) = shared() else { return };
    let gated = Gated::pooled(server.address, PoolMode::Transaction, 2).await;
    let mut conn = gated.connect().await;
    conn.query_drop("SET completion_type = 'CHAIN'")
        .await
        .unwrap();
    conn.query_drop("COMMIT").await.unwrap();
    assert_eq!(one::<u32>(&mut conn, "SELECT @@in_transaction").await, 1);
}

#[tokio::test]
async fn a_kill_of_a_session_that_has_gone_waits_for_nothing() {
    let Some(server) = shared() else { return };
    let gated = Gated::pooled(server.address, PoolMode::Transaction, 1).await;
    let (mut conn, mut other) = (gated.connect().await, gated.connect().await);
    conn.query_drop("BEGIN").await.unwrap();
    assert_eq!(one::<u32>(&mut conn, "SELECT 1").await, 1);
    assert_eq!(code_of(&mut other, "KILL 4294967295").await, Some(1094));
}

/// Clients escape texts by what the last status says.
#[tokio::test]
async fn what_the_gate_answers_itself_says_how_strings_are_escaped() {
    let Some(server) = shared() else { return };
    let gated = Gated::pooled(server.address, PoolMode::Transaction, 1).await;
    let mut raw = Raw::connect(gated.address, PLAIN | MYSQL).await;
    raw.query("SET sql_mode = 'NO_BACKSLASH_ESCAPES'").await;
    raw.read().await;
    for command in [&b"\x0e"[..], b"\x03BEGIN", b"\x03COMMIT"] {
        raw.write(0, command).await;
        let (_, ok) = raw.read().await;
        assert_eq!((ok[0], ok[4]), (0, NO_BACKSLASH_ESCAPES), "{command:?}");
    }
}

#[tokio::test]
async fn an_option_of_a_connection_leaves_with_its_session() {
    let Some(server) = shared() else { return };
    let gated = Gated::pooled(server.address, PoolMode::Session, 1).await;
    let mut raw = Raw::connect(gated.address, PLAIN | MYSQL).await;
    raw.write(0, b"\x1b\x01\0").await;
    raw.read().await;
    drop(raw);
    let mut next = Raw::connect(gated.address, PLAIN | MYSQL).await;
    next.query("DO 1; DO 2").await;
    let (_, first) = next.read().await;
    assert_eq!(first[0], 0, "{:?}", String::from_utf8_lossy(&first));
}
