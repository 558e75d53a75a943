//! The pool before a real MariaDB: who gets in, what sessions find, and what the server sees of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::*;
use mysql_async::{Conn, OptsBuilder};
use shortline_gate::classify::{Client, Terms};
use shortline_gate::pool::{PoolMode, Shown};

use crate::gated::{Gated, code};
use crate::raw::{MYSQL, PLAIN, Raw};
use crate::server::{Server, client, shared};

fn as_native(options: OptsBuilder) -> OptsBuilder {
    options.user(Some("native")).pass(Some("secret"))
}

async fn pooled(server: &Server, size: usize) -> Gated {
    Gated::pooled(server.address, PoolMode::Transaction, size).await
}

fn pinned(gated: &Gated) -> usize {
    gated.pool.as_ref().unwrap().pinned()
}

async fn one<T: FromRow + Send + 'static>(conn: &mut Conn, statement: &str) -> T {
    conn.query_first(statement).await.unwrap().unwrap()
}

#[tokio::test]
async fn many_clients_share_few_connections() {
    let Some(server) = shared() else { return };
    let gated = pooled(server, 3).await;
    let mut clients = Vec::new();
    for _ in 0..30 {
        clients.push(gated.try_connect(as_native).await.unwrap());
    }
    let asking = clients.into_iter().map(|mut conn| {
        tokio::spawn(async move {
            let mut used = BTreeSet::new();
            for number in 0..10_u32 {
                let statement = format!("SELECT {number} + SLEEP(0.001), CONNECTION_ID()");
                let (found, connection): (u32, u64) = one(&mut conn, &statement).await;
                assert_eq!(found, number);
                used.insert(connection);
            }
            (conn, used)
        })
    });
    let asking: Vec<_> = asking.collect();
    let (mut kept, mut used) = (Vec::new(), BTreeSet::new());
    for asked in asking {
        let (conn, its) = asked.await.unwrap();
        kept.push(conn);
        used.extend(its);
    }
    assert!(used.len() <= 3, "{used:?}");
    gated.until_empty().await;
    assert_eq!(gated.pool.as_ref().unwrap().counts().waiting, 0);
}

#[tokio::test]
async fn who_is_not_known_is_refused_alike() {
    let Some(server) = shared() else { return };
    let gated = pooled(server, 2).await;
    let mut told = Vec::new();
    for (user, password) in [("native", "wrong"), ("nobody", "secret"), ("root", "wrong")] {
        let error = gated
            .try_connect(|options| options.user(Some(user)).pass(Some(password)))
            .await
            .unwrap_err();
        assert_eq!(code(&error), Some(1045), "{error}");
        told.push(error.to_string().replace(user, "X"));
    }
    assert!(told.windows(2).all(|pair| pair[0] == pair[1]), "{told:?}");
    // In the list, but not at the server; and at the server by a method that the gate does not know.
    for (user, expected) in [("ghost", 1045), ("ed", 1429)] {
        let refused = gated
            .try_connect(|options| options.user(Some(user)).pass(Some("secret")))
            .await
            .unwrap_err();
        assert_eq!(code(&refused), Some(expected), "{refused}");
    }
    let nowhere = gated
        .try_connect(|options| as_native(options).db_name(Some("nowhere")))
        .await
        .unwrap_err();
    assert_eq!(code(&nowhere), Some(1049), "{nowhere}");
    let mut conn = gated
        .try_connect(|options| as_native(options).db_name(Some("shop")))
        .await
        .unwrap();
    assert_eq!(
        one::<String>(&mut conn, "SELECT CONCAT(CURRENT_USER(), DATABASE())").await,
        "native@%shop"
    );
}

#[tokio::test]
async fn the_mariadb_program_works_through_it() {
    let Some(server) = shared() else { return };
    let gated = pooled(server, 2).await;
    let mut program = client(
        gated.address,
        "native",
        &[
            "--skip-ssl",
            "-N",
            "-e",
            "USE shop; SELECT DATABASE(); SET NAMES latin1; SELECT @@character_set_client; BEGIN; SELECT 1; COMMIT",
        ],
    );
    let output = tokio::task::spawn_blocking(move || program.output().unwrap())
        .await
        .unwrap();
    let (out, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(out, "shop\nlatin1\n1\n", "{error}");
}

#[tokio::test]
async fn a_transaction_keeps_its_connection_and_a_bare_begin_has_none() {
    let Some(server) = shared() else { return };
    server.query("CREATE TABLE shop.pool_begun (n INT) ENGINE=InnoDB");
    let gated = pooled(server, 2).await;
    let mut waiting = Vec::new();
    for _ in 0..5 {
        let mut conn = gated.connect().await;
        conn.query_drop("BEGIN").await.unwrap();
        waiting.push(conn);
    }
    // None of the five has a connection, so another gets one.
    let mut writer = gated.connect().await;
    writer.query_drop("START TRANSACTION").await.unwrap();
    writer
        .query_drop("INSERT INTO shop.pool_begun VALUES (1)")
        .await
        .unwrap();
    let seen = waiting.first_mut().unwrap();
    assert_eq!(
        one::<u32>(seen, "SELECT COUNT(*) FROM shop.pool_begun").await,
        0
    );
    seen.query_drop("COMMIT").await.unwrap();
    writer.query_drop("ROLLBACK").await.unwrap();
    let mut writer = waiting.pop().unwrap();
    writer
        .query_drop("INSERT INTO shop.pool_begun VALUES (2)")
        .await
        .unwrap();
    writer.query_drop("COMMIT").await.unwrap();
    assert_eq!(server.query("SELECT n FROM shop.pool_begun").trim(), "2");
    // An error in the middle of a transaction does not end it.
    writer.query_drop("BEGIN").await.unwrap();
    assert!(writer.query_drop("SELECT nothing").await.is_err());
    writer
        .query_drop("INSERT INTO shop.pool_begun VALUES (3)")
        .await
        .unwrap();
    writer.query_drop("ROLLBACK").await.unwrap();
    assert_eq!(
        server.query("SELECT COUNT(*) FROM shop.pool_begun").trim(),
        "1"
    );
    gated.until_empty().await;
}

#[tokio::test]
async fn what_cannot_be_followed_keeps_its_connection_until_it_is_gone() {
    let Some(server) = shared() else { return };
    let gated = pooled(server, 3).await;
    let mut conn = gated.connect().await;
    let mut other = gated.connect().await;
    server.query("CREATE TABLE shop.pool_locked (n INT)");
    for (set, found, end) in [
        (
            "LOCK TABLES shop.pool_locked WRITE",
            "SELECT 1",
            "UNLOCK TABLES",
        ),
        (
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SELECT 1",
            "COMMIT",
        ),
    ] {
        conn.query_drop(set).await.unwrap();
        gated.until(set, |_| pinned(&gated) == 1).await;
        assert_eq!(one::<u32>(&mut other, found).await, 1);
        if end == "COMMIT" {
            conn.query_drop("BEGIN").await.unwrap();
        }
        conn.query_drop(end).await.unwrap();
        gated.until(end, |_| pinned(&gated) == 0).await;
    }
    conn.query_drop("SET @mine = 7").await.unwrap();
    gated.until("kept", |_| pinned(&gated) == 1).await;
    assert_eq!(
        one::<Option<u32>>(&mut other, "SELECT @@autocommit - 1 + NULL").await,
        None
    );
    assert_eq!(one::<u32>(&mut conn, "SELECT @mine").await, 7);
    conn.reset().await.unwrap();
    gated.until("given back", |_| pinned(&gated) == 0).await;
    // All but one of the connections may be kept.
    let mut keepers = Vec::new();
    for number in 0..3 {
        let mut keeper = gated.connect().await;
        let kept = keeper.query_drop("SET @a = 1").await;
        // The third is told that it did, and ends.
        assert!(kept.is_ok() || number == 2, "{kept:?}");
        keepers.push(keeper);
    }
    assert!(pinned(&gated) <= 2);
    assert!(
        keepers
            .last_mut()
            .unwrap()
            .query_drop("SELECT 1")
            .await
            .is_err()
    );
    assert_eq!(one::<u32>(&mut other, "SELECT 1").await, 1);
}

#[tokio::test]
async fn kill_by_the_numbers_that_clients_were_given() {
    let Some(server) = shared() else { return };
    let gated = pooled(server, 2).await;
    let mut conn = gated.try_connect(as_native).await.unwrap();
    let mut killer = gated.try_connect(as_native).await.unwrap();
    let mut root = gated.connect().await;
    let id = conn.id();
    assert!(id >= 0x8000_0000);
    let working = tokio::spawn(async move {
        let found: Result<Option<u32>, _> = conn.query_first("SELECT SLEEP(60)").await;
        (conn, found)
    });
    gated.until("at work", |now| now.active == 1).await;
    // The statement may not have reached the server yet.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let denied = root
        .query_drop(format!("KILL QUERY {id}"))
        .await
        .unwrap_err();
    assert_eq!(code(&denied), Some(1095), "{denied}");
    killer.query_drop(format!("KILL QUERY {id}")).await.unwrap();
    let (mut conn, found) = tokio::time::timeout(Duration::from_secs(20), working)
        .await
        .unwrap()
        .unwrap();
    // SLEEP says 1 if it was interrupted, or the statement fails.
    assert!(
        found
            .as_ref()
            .map_or_else(|error| code(error) == Some(1317), |found| *found == Some(1)),
        "{found:?} {:?}",
        gated.registry.counts()
    );
    assert_eq!(one::<u32>(&mut conn, "SELECT 2").await, 2);
    let gone = killer
        .query_drop("KILL QUERY 4294967295")
        .await
        .unwrap_err();
    assert_eq!(code(&gone), Some(1094), "{gone}");
    killer.query_drop(format!("KILL {id}")).await.unwrap();
    assert!(conn.query_drop("SELECT 1").await.is_err());
    gated.until_empty().await;
}

#[tokio::test]
async fn a_client_that_leaves_leaves_nothing() {
    let Some(server) = shared() else { return };
    server.query("CREATE TABLE shop.pool_left (n INT) ENGINE=InnoDB");
    let gated = pooled(server, 1).await;
    for _ in 0..3 {
        let mut conn = gated.connect().await;
        conn.query_drop("BEGIN").await.unwrap();
        conn.query_drop("INSERT INTO shop.pool_left VALUES (1)")
            .await
            .unwrap();
        drop(conn);
        let mut next = gated.connect().await;
        assert_eq!(
            one::<u32>(&mut next, "SELECT COUNT(*) FROM shop.pool_left").await,
            0
        );
    }
    gated.until_empty().await;
}

#[tokio::test]
async fn a_session_has_its_connection_to_the_end_in_session_mode() {
    let Some(server) = shared() else { return };
    let gated = Gated::pooled(server.address, PoolMode::Session, 1).await;
    let mut conn = gated.connect().await;
    conn.query_drop("SET @mine = 5").await.unwrap();
    assert_eq!(one::<u32>(&mut conn, "SELECT @mine").await, 5);
    conn.disconnect().await.unwrap();
    let mut next = gated.connect().await;
    assert_eq!(one::<Option<u32>>(&mut next, "SELECT @mine").await, None);
}

/// Without `CLIENT_DEPRECATE_EOF`.
#[tokio::test]
async fn an_old_client_finds_what_it_has_set() {
    let Some(server) = shared() else { return };
    let gated = pooled(server, 2).await;
    let mut other = gated.connect().await;
    let mut client = Raw::connect(gated.address, PLAIN | MYSQL).await;
    client.query("SET time_zone = '+07:00'").await;
    assert_eq!(client.read().await, (1, b"\0\0\0\x02\0\0\0".to_vec()));
    assert_eq!(
        one::<String>(&mut other, "SELECT @@time_zone").await,
        "SYSTEM"
    );
    client.query("SELECT @@time_zone").await;
    let mut said = Vec::new();
    // A number of columns, one of them, EOF, a row, EOF.
    for _ in 0..5 {
        said.push(client.read().await.1);
    }
    assert_eq!(said[3], b"\x06+07:00");
    assert_eq!((said[2][0], said[4][0]), (0xfe, 0xfe));
    // COM_PING, COM_STMT_EXECUTE of what nobody prepared, COM_CHANGE_USER.
    for (command, first) in [
        (b"\x0e".as_slice(), 0),
        (b"\x17\x01\0\0\0\0\x01\0\0\0", 0xff),
        (b"\x11root\0\0\0", 0xff),
    ] {
        client.write(0, command).await;
        assert_eq!(client.read().await.1[0], first, "{command:?}");
    }
    gated.until_empty().await;
}

#[tokio::test]
async fn a_client_has_no_connection_any_more_when_it_is_given_back() {
    let Some(server) = shared() else { return };
    let gated = Gated::pooled(server.address, PoolMode::Transaction, 2).await;
    let link = || gated.registry.clients()[0].link;
    let mut conn = gated.connect().await;
    conn.query_drop("SELECT 1").await.unwrap();
    gated.until("given back", |_| link().is_none()).await;
    // It keeps one until it resets itself.
    conn.query_drop("SET @a = 1").await.unwrap();
    gated.until_empty().await;
    assert!(link().is_some());
    conn.reset().await.unwrap();
    gated.until("given back", |_| link().is_none()).await;
}

#[tokio::test]
async fn a_client_whose_pool_is_one_of_sessions_keeps_its_connection() {
    let Some(server) = shared() else { return };
    let gated = Gated::clustered(server.address, None, PoolMode::Transaction, 2, |config| {
        config.terms_of = Arc::new(|client: &Client<'_>| Terms {
            pool: (client.user == Some("native")).then_some(PoolMode::Session),
            ..Terms::default()
        });
    })
    .await;
    let mut whole = gated.try_connect(as_native).await.unwrap();
    let connection: u64 = one(&mut whole, "SELECT CONNECTION_ID()").await;
    gated.until("kept", |_| pinned(&gated) == 1).await;
    let mut other = gated.connect().await;
    for _ in 0..3 {
        assert_ne!(
            one::<u64>(&mut other, "SELECT CONNECTION_ID()").await,
            connection
        );
        assert_eq!(
            one::<u64>(&mut whole, "SELECT CONNECTION_ID()").await,
            connection
        );
    }
    // The last connection is for all others.
    assert!(
        gated.try_connect(as_native).await.is_err(),
        "the driver's own first statements"
    );
    assert_eq!(one::<u32>(&mut other, "SELECT 2").await, 2);
    drop(whole);
    gated.until("given back", |_| pinned(&gated) == 0).await;
    assert_eq!(one::<u32>(&mut other, "SELECT 3").await, 3);
}

/// A reset of the connection does not take a role away in MariaDB.
#[tokio::test]
async fn a_role_leaves_with_its_session_in_a_pool_of_sessions_too() {
    let Some(server) = shared() else { return };
    server.query("CREATE ROLE pool_role; GRANT pool_role TO native@'%'");
    let gated = Gated::pooled(server.address, PoolMode::Session, 1).await;
    let mut conn = gated.try_connect(as_native).await.unwrap();
    conn.query_drop("SET ROLE pool_role").await.unwrap();
    let role: Option<String> = one(&mut conn, "SELECT CURRENT_ROLE()").await;
    assert_eq!(role.as_deref(), Some("pool_role"));
    drop(conn);
    let mut next = gated.try_connect(as_native).await.unwrap();
    let role: Option<String> = one(&mut next, "SELECT CURRENT_ROLE()").await;
    assert_eq!(role, None);
}
