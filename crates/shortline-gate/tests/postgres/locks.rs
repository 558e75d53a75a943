//! A wait for a lock inside PostgreSQL is no service of the statement that waits.

use std::time::{Duration, Instant};

use shortline_gate::relay::tls::UpstreamTls;
use shortline_gate::{GateConfig, locks};

use crate::cluster::Cluster;
use crate::relay::{Relay, connect, soon};

const STATEMENT: &str = "update locked set n = n + 1";

/// The estimate of a statement of which one has waited for a lock, and how long that was held.
async fn estimate_after_a_lock(cluster: &Cluster, is_watched: bool) -> (Duration, Duration) {
    let gate = GateConfig {
        watches_locks: is_watched,
        ..GateConfig::default()
    };
    let relay = Relay::start(cluster.port, gate, |_| {});
    let url = format!(
        "postgres://watcher:secret@127.0.0.1:{}/postgres",
        cluster.port
    );
    let config = locks::MonitorConfig {
        url: url.parse().unwrap(),
        tls: UpstreamTls::prefer().unwrap(),
    };
    let watching = is_watched.then(|| tokio::spawn(locks::watch(relay.gate.clone(), config)));
    let holder = connect(cluster.port, "user=postgres").await.unwrap();
    holder
        .batch_execute("begin; update locked set n = 0")
        .await
        .unwrap();
    let client = relay.client().await;
    let begun = Instant::now();
    let waits = tokio::spawn(async move { client.batch_execute(STATEMENT).await });
    if is_watched {
        let second = 1_000_000_000;
        relay
            .until("seen to wait", |gate| {
                gate.totals.locked_ns_sum >= 2 * second
            })
            .await;
    } else {
        relay.until("at work", |gate| gate.active == 1).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // The load stays: nobody else is let in for a wait.
    let seen = relay.gate.snapshot();
    assert!(seen.load_ns > 0 && seen.active == 1, "{seen:?}");
    let held = begun.elapsed();
    holder.batch_execute("commit").await.unwrap();
    soon(waits).await.unwrap().unwrap();
    relay.until_at_rest().await;
    if let Some(watching) = watching {
        watching.abort();
    }
    let types = relay.gate.snapshot().types;
    let found = types.iter().find(|view| STATEMENT.starts_with(&view.name));
    (Duration::from_nanos(found.unwrap().estimate_ns), held)
}

#[tokio::test]
async fn a_wait_for_a_row_is_no_service_where_the_monitor_sees_it() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let setup = "create table locked (n int); insert into locked values (0);
        create role watcher login password 'secret' in role pg_read_all_stats";
    let made = cluster.psql(cluster.port, &[], &["-c", setup]);
    assert!(made.status.success(), "{made:?}");
    let (estimate, held) = estimate_after_a_lock(&cluster, true).await;
    assert!(estimate < held / 2, "{estimate:?} of {held:?}");
    let (estimate, held) = estimate_after_a_lock(&cluster, false).await;
    assert!(estimate > held / 2, "{estimate:?} of {held:?}");
}
