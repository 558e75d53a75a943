//! What is admitted as one, who goes first, who is refused.

use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::*;
use shortline_gate::{Admitted, GateConfig, Outcome};
use shortline_sched::admission::OldestShare;
use tokio::sync::mpsc;

use crate::gated::{Gated, PATIENCE, admission, code, narrow};
use crate::raw::{self, DEPRECATE_EOF, MYSQL, PLAIN, Raw};
use crate::server::{client, shared};

/// A unit of the test's own, so that with [`narrow`] nobody else's runs.
async fn hold(gated: &Gated) -> Admitted {
    gated.gate.admit(gated.gate.type_of("hold")).await.unwrap()
}

#[tokio::test]
async fn a_transaction_is_one_unit() {
    let Some(server) = shared() else { return };
    server.query("CREATE TABLE shop.orders (a INT)");
    let gated = Gated::new(server.address, narrow()).await;
    let mut conn = gated.connect().await;
    let held = hold(&gated).await;
    // Says nothing of the work to come, and does not wait.
    conn.query_drop("START TRANSACTION").await.unwrap();
    assert_eq!((gated.snapshot().running, gated.snapshot().waiting), (1, 0));
    held.finish(Outcome::Completed);
    let work = "INSERT INTO shop.orders VALUES (1)";
    conn.query_drop(work).await.unwrap();
    // Idle within: it counts as running, and not as load.
    gated
        .until("paused", |now| (now.running, now.active) == (1, 0))
        .await;
    let held = hold(&gated).await;
    // Admitted already, it is not queued again.
    conn.query_drop("INSERT INTO shop.orders VALUES (2)")
        .await
        .unwrap();
    let failed = conn.query_drop("INSERT INTO shop.nope VALUES (2)").await;
    assert_eq!(code(&failed.unwrap_err()), Some(1146));
    conn.query_drop("COMMIT").await.unwrap();
    drop(held);
    gated.until_empty().await;
    // With an error in it, it teaches nothing.
    assert_eq!(gated.ended(work), (0, 1));
    assert_eq!(server.query("SELECT SUM(a) FROM shop.orders"), "3\n");
}

#[tokio::test]
async fn a_statement_with_autocommit_is_a_unit() {
    let Some(server) = shared() else { return };
    server.query("CREATE TABLE shop.singles (a INT)");
    let gated = Gated::new(server.address, narrow()).await;
    let mut conn = gated.connect().await;
    for text in [
        "INSERT INTO shop.singles VALUES (1)",
        "SELECT a FROM shop.singles",
        "SELECT nope FROM shop.singles",
    ] {
        let is_good = conn.query_drop(text).await.is_ok();
        gated.until_empty().await;
        assert_eq!(
            gated.ended(text),
            if is_good { (1, 0) } else { (0, 1) },
            "{text}"
        );
    }
    conn.query_drop("SET autocommit=0").await.unwrap();
    conn.query_drop("INSERT INTO shop.singles VALUES (2)")
        .await
        .unwrap();
    gated.until("open", |now| now.running == 1).await;
    conn.query_drop("SELECT SUM(a) FROM shop.singles")
        .await
        .unwrap();
    assert_eq!(gated.snapshot().running, 1);
    conn.query_drop("ROLLBACK").await.unwrap();
    gated.until_empty().await;
    // Prepared: the type is that of the text.
    conn.query_drop("SET autocommit=1").await.unwrap();
    let prepared = "SELECT a FROM shop.singles WHERE a = ?";
    for a in 0..3 {
        conn.exec_drop(prepared, (a,)).await.unwrap();
    }
    gated.until_empty().await;
    assert_eq!(gated.ended(prepared), (3, 0));
}

#[tokio::test]
async fn who_waits_for_too_long_or_finds_the_queue_full_is_told_and_lives_on() {
    let Some(server) = shared() else { return };
    let mut config: GateConfig = narrow();
    config.admission.queue_max = 1;
    config.wait_max = Duration::from_secs(3);
    let gated = Gated::new(server.address, config).await;
    let mut first = gated.connect().await;
    let mut second = gated.connect().await;
    let held = hold(&gated).await;
    let waits = tokio::spawn(async move {
        let refused = first.query_drop("SELECT 1").await.unwrap_err();
        (first, refused)
    });
    gated.until("waiting", |now| now.waiting == 1).await;
    let full = second.query_drop("SELECT 2").await.unwrap_err();
    assert_eq!(code(&full), Some(1226), "{full}");
    let (mut first, late) = waits.await.unwrap();
    assert_eq!(code(&late), Some(1205), "{late}");
    // A refused command is dropped to its end, also one in several packets.
    second.query_drop("BEGIN").await.unwrap();
    let long = format!("SELECT '{}'", "a".repeat(20_000_000));
    let refused = second.query_drop(&long).await.unwrap_err();
    assert_eq!(code(&refused), Some(1205), "{refused}");
    drop(held);
    let answer: Option<u8> = first.query_first("SELECT 1").await.unwrap();
    assert_eq!(answer, Some(1));
    let answer: Option<u8> = second.query_first("SELECT 2").await.unwrap();
    assert_eq!(answer, Some(2));
    // The transaction that was begun is still open.
    gated
        .until("one open", |now| (now.running, now.active) == (1, 0))
        .await;
    second.query_drop("ROLLBACK").await.unwrap();
    gated.until_empty().await;
}

#[tokio::test]
async fn a_compressing_client_is_refused_in_its_frames() {
    let Some(server) = shared() else { return };
    let mut config = narrow();
    config.wait_max = Duration::from_millis(100);
    let gated = Gated::new(server.address, config).await;
    let mut conn = gated
        .try_connect(|options| options.compression(mysql_async::Compression::fast()))
        .await
        .unwrap();
    let held = hold(&gated).await;
    for text in [
        "SELECT 1".to_owned(),
        format!("SELECT '{}'", "a".repeat(20_000_000)),
    ] {
        let refused = conn.query_drop(&text).await.unwrap_err();
        assert_eq!(code(&refused), Some(1205), "{refused}");
    }
    drop(held);
    let answer: Option<u8> = conn.query_first("SELECT 1").await.unwrap();
    assert_eq!(answer, Some(1));
}

#[tokio::test]
async fn the_shorter_goes_first() {
    let Some(server) = shared() else { return };
    let mut config = narrow();
    config.admission.oldest_share = OldestShare::NONE;
    let gated = Arc::new(Gated::new(server.address, config).await);
    let (long, short) = ("SELECT SLEEP(0.2)", "SELECT SLEEP(0.001)");
    let mut conns = Vec::new();
    for text in [long, long, short, short] {
        let mut conn = gated.connect().await;
        conn.query_drop(text).await.unwrap();
        conns.push((conn, text));
    }
    let held = hold(&gated).await;
    let (tell, mut told) = mpsc::unbounded_channel();
    for (number, (mut conn, text)) in conns.into_iter().enumerate() {
        let tell = tell.clone();
        tokio::spawn(async move {
            conn.query_drop(text).await.unwrap();
            tell.send(text).unwrap();
            conn
        });
        gated.until("queued", |now| now.waiting == number + 1).await;
    }
    drop(held);
    let mut order = Vec::new();
    for _ in 0..4 {
        order.push(told.recv().await.unwrap());
    }
    assert_eq!(order, [short, short, long, long]);
}

#[tokio::test]
async fn kill_does_not_wait() {
    let Some(server) = shared() else { return };
    let gated = Gated::new(server.address, narrow()).await;
    let mut killer = gated.connect().await;
    let mut victim = gated.connect().await;
    let id = victim.id();
    // One that runs, and with it the gate is full.
    let runs = tokio::spawn(async move {
        let killed = victim.query_drop("SELECT SLEEP(60)").await;
        (victim, killed)
    });
    gated.until("running", |now| now.running == 1).await;
    // A backend shows a statement before it executes it, and what is killed then may not notice; it
    // sleeps when that is its state.
    let sleeping = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND state = 'User sleep'"
    );
    let asleep = async {
        while server.query(&sleeping) != "1\n" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asleep).await.unwrap();
    killer.query_drop(format!("KILL QUERY {id}")).await.unwrap();
    let (mut victim, killed) = runs.await.unwrap();
    assert_eq!(code(&killed.unwrap_err()), Some(1317));
    // One that waits, of which the backend knows nothing.
    let held = hold(&gated).await;
    let waits = tokio::spawn(async move {
        let killed = victim.query_drop("SELECT 1").await;
        (victim, killed)
    });
    gated.until("waiting", |now| now.waiting == 1).await;
    killer.query_drop(format!("KILL QUERY {id}")).await.unwrap();
    let (mut victim, killed) = waits.await.unwrap();
    assert_eq!(code(&killed.unwrap_err()), Some(1317));
    gated.until("empty", |now| now.waiting == 0).await;
    // A connection that waits.
    let waits = tokio::spawn(async move { victim.query_drop("SELECT 1").await });
    gated.until("waiting", |now| now.waiting == 1).await;
    killer.query_drop(format!("KILL {id}")).await.unwrap();
    assert!(waits.await.unwrap().is_err());
    drop(held);
    gated.until_empty().await;
}

#[tokio::test]
async fn a_file_that_the_server_waits_for_is_no_load() {
    let Some(server) = shared() else { return };
    server.query("CREATE TABLE shop.filed (a INT)");
    let gated = Gated::new(server.address, narrow()).await;
    let mut loader = Raw::connect(gated.address, PLAIN | MYSQL | DEPRECATE_EOF).await;
    loader
        .query("LOAD DATA LOCAL INFILE 'x' INTO TABLE shop.filed")
        .await;
    let (number, wanted) = loader.read().await;
    assert_eq!((number, wanted.as_slice()), (1, &b"\xfbx"[..]));
    gated
        .until("paused", |now| (now.running, now.active) == (1, 0))
        .await;
    let others = gated.gate.admit(gated.gate.type_of("other")).await.unwrap();
    loader.write(2, b"1\n2\n").await;
    loader.write(3, b"3\n").await;
    loader.write(4, b"").await;
    let (number, done) = loader.read().await;
    assert_eq!((number, done[0]), (5, 0), "{:?}", raw::code(&done));
    drop(others);
    gated.until_empty().await;
    assert_eq!(server.query("SELECT SUM(a) FROM shop.filed"), "6\n");
}

#[tokio::test]
async fn many_clients_share_a_gate_and_no_load_is_left() {
    let Some(server) = shared() else { return };
    server.query("CREATE TABLE shop.counters (a INT PRIMARY KEY, b INT); INSERT INTO shop.counters SELECT seq, 0 FROM shop.seq_1_to_20");
    let gated = Arc::new(Gated::new(server.address, admission("2ms")).await);
    let clients: Vec<_> = (0..20)
        .map(|number| {
            let gated = Arc::clone(&gated);
            tokio::spawn(async move {
                let mut conn = gated.connect().await;
                for _ in 0..20 {
                    conn.query_drop("BEGIN").await.unwrap();
                    conn.exec_drop(
                        "UPDATE shop.counters SET b = b + 1 WHERE a = ?",
                        (1 + number % 5,),
                    )
                    .await
                    .unwrap();
                    conn.query_drop("COMMIT").await.unwrap();
                    conn.query_drop("SELECT COUNT(*) FROM shop.counters")
                        .await
                        .unwrap();
                }
                conn.disconnect().await.unwrap();
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    gated.until_empty().await;
    assert_eq!(server.query("SELECT SUM(b) FROM shop.counters"), "400\n");
    assert_eq!(gated.ended("SELECT COUNT(*) FROM shop.counters").0, 400);
    let mut program = client(gated.address, "root", &["-e", "SELECT 1"]);
    let output = tokio::task::spawn_blocking(move || program.output().unwrap())
        .await
        .unwrap();
    assert!(output.status.success());
}
