//! What the monitor does with MariaDB: a wait for a lock there is no service of the statement that waits,
//! and a runaway is cancelled.

use std::time::{Duration, Instant};

use mysql_async::prelude::*;
use shortline_gate::relay::tls::UpstreamTls;
use shortline_gate::{GateConfig, locks};

use crate::gated::{Gated, connect};
use crate::server::{Server, shared};

/// Takes as long as a table says.
const ROUNDS: &str = "SELECT BENCHMARK((SELECT n FROM shop.rounds), SHA1('a'))";

/// The estimate of a statement of which one has waited for a lock, and how long that was held.
async fn estimate_after_a_lock(
    server: &Server,
    hold: &str,
    give_back: &str,
    statement: &'static str,
) -> (Duration, Duration) {
    let gate = GateConfig {
        watches_locks: true,
        ..GateConfig::default()
    };
    let gated = Gated::new(server.address, gate).await;
    let config = locks::MonitorConfig {
        server: 0,
        url: format!("mysql://watcher:secret@{}", server.address)
            .parse()
            .unwrap(),
        tls: UpstreamTls::Disable,
    };
    let watching = tokio::spawn(locks::watch(gated.gate.clone(), config));
    let mut holder = connect(server.address, |options| options).await.unwrap();
    for part in hold.split(';') {
        holder.query_drop(part).await.unwrap();
    }
    let mut client = gated.connect().await;
    let begun = Instant::now();
    let waits = tokio::spawn(async move { client.query_drop(statement).await });
    gated
        .until("seen to wait", |now| {
            now.totals.locked_ns_sum >= 2_000_000_000
        })
        .await;
    assert!(gated.snapshot().load_ns > 0);
    let held = begun.elapsed();
    holder.query_drop(give_back).await.unwrap();
    waits.await.unwrap().unwrap();
    gated.until_empty().await;
    watching.abort();
    let types = gated.snapshot().types;
    let found = types.iter().find(|view| view.name == statement).unwrap();
    (Duration::from_nanos(found.estimate_ns), held)
}

#[tokio::test]
async fn a_wait_for_a_row_or_a_table_is_no_service_where_the_monitor_sees_it() {
    let Some(server) = shared() else { return };
    server.query(
        "CREATE TABLE shop.locked (n INT) ENGINE=InnoDB; INSERT INTO shop.locked VALUES (0);
         CREATE USER watcher@'%' IDENTIFIED BY 'secret'; GRANT PROCESS ON *.* TO watcher@'%'",
    );
    for (hold, give_back, statement) in [
        (
            "BEGIN;UPDATE shop.locked SET n = 0 - n",
            "COMMIT",
            "UPDATE shop.locked SET n = n + 1",
        ),
        (
            "LOCK TABLES shop.locked WRITE",
            "UNLOCK TABLES",
            "SELECT COUNT(*) FROM shop.locked",
        ),
    ] {
        let (estimate, held) = estimate_after_a_lock(server, hold, give_back, statement).await;
        assert!(estimate < held / 2, "{statement}: {estimate:?} of {held:?}");
    }
}

#[tokio::test]
async fn a_runaway_is_cancelled_and_the_next_like_it_is_of_its_class() {
    let Some(server) = shared() else { return };
    server.query(
        "CREATE TABLE shop.rounds (n BIGINT); INSERT INTO shop.rounds VALUES (10);
         CREATE USER killer@'%' IDENTIFIED BY 'secret'; GRANT PROCESS, CONNECTION ADMIN ON *.* TO killer@'%'",
    );
    let mut gate = GateConfig {
        watches_locks: true,
        ..GateConfig::default()
    };
    gate.admission.runaway = Some("cancel:5".parse().unwrap());
    let gated = Gated::new(server.address, gate).await;
    let config = locks::MonitorConfig {
        server: 0,
        url: format!("mysql://killer:secret@{}", server.address)
            .parse()
            .unwrap(),
        tls: UpstreamTls::Disable,
    };
    let watching = tokio::spawn(locks::watch(gated.gate.clone(), config));
    let mut client = gated.connect().await;
    for _ in 0..20 {
        client.query_drop(ROUNDS).await.unwrap();
    }
    server.query("UPDATE shop.rounds SET n = 4000000000");
    let begun = Instant::now();
    // MariaDB ends BENCHMARK without an error; by itself this would take a quarter of an hour.
    let _ = client.query_drop(ROUNDS).await;
    let took = begun.elapsed();
    assert!((2..60).contains(&took.as_secs()), "{took:?}");
    gated.until_empty().await;
    watching.abort();
    assert_eq!(gated.snapshot().totals.runaways, 1);
    let types = gated.snapshot().types;
    let own = types.iter().find(|view| view.completed >= 20).unwrap();
    let class = gated.gate.type_of("runaway");
    assert_eq!(gated.gate.type_of(&own.name), class);
}
