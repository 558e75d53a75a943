//! What the monitor does with PostgreSQL: a wait for a lock there is no service of the statement that waits,
//! and a runaway is cancelled.

use std::time::{Duration, Instant};

use shortline_gate::relay::tls::UpstreamTls;
use shortline_gate::{GateConfig, locks};

use crate::cluster::Cluster;
use crate::relay::{Relay, connect, soon};

const STATEMENT: &str = "update locked set n = n + 1";
/// Takes as long as a table says.
const NAP: &str = "select pg_sleep(seconds) from naps";

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
        server: 0,
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

#[tokio::test]
async fn a_runaway_is_cancelled_and_the_next_like_it_is_of_its_class() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let setup = "create role watcher login password 'secret' in role pg_read_all_stats;
        grant pg_signal_backend to watcher; create role app login;
        create table naps (seconds float); insert into naps values (0.001); grant select on naps to app";
    let made = cluster.psql(cluster.port, &[], &["-c", setup]);
    assert!(made.status.success(), "{made:?}");
    let mut gate = GateConfig {
        watches_locks: true,
        ..GateConfig::default()
    };
    gate.admission.runaway = Some("cancel:5".parse().unwrap());
    let relay = Relay::start(cluster.port, gate, |_| {});
    let config = locks::MonitorConfig {
        server: 0,
        url: format!(
            "postgres://watcher:secret@127.0.0.1:{}/postgres",
            cluster.port
        )
        .parse()
        .unwrap(),
        tls: UpstreamTls::prefer().unwrap(),
    };
    let watching = tokio::spawn(locks::watch(relay.gate.clone(), config));
    // A role that pg_signal_backend may signal.
    let client = connect(relay.port, "user=app dbname=postgres")
        .await
        .unwrap();
    for _ in 0..20 {
        client.batch_execute(NAP).await.unwrap();
    }
    let longer = cluster.psql(cluster.port, &[], &["-c", "update naps set seconds = 300"]);
    assert!(longer.status.success(), "{longer:?}");
    let runs = async move { client.batch_execute(NAP).await };
    let refused = soon(tokio::spawn(runs)).await.unwrap().unwrap_err();
    let code = refused.as_db_error().map(|error| error.code().clone());
    assert_eq!(code, Some(tokio_postgres::error::SqlState::QUERY_CANCELED));
    relay.until_at_rest().await;
    watching.abort();
    assert_eq!(relay.gate.snapshot().totals.runaways, 1);
    let types = relay.gate.snapshot().types;
    let own = types.iter().find(|view| view.completed >= 20).unwrap();
    let class = relay.gate.type_of("runaway");
    assert_eq!(relay.gate.type_of(&own.name), class);
}
