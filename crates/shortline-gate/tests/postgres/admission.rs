//! Who waits, in which order, and what becomes of those that wait in vain.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shortline_gate::GateConfig;
use shortline_sched::admission::OldestShare;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use super::cluster::Cluster;
use super::raw;
use super::relay::{Relay, one_at_a_time, soon};

/// Keeps the backend busy until it is dropped or released.
struct Occupant(tokio::task::JoinHandle<()>, Client);

impl Occupant {
    /// Holds a lock, and has a statement run that waits for it: the gate has no room meanwhile.
    async fn enter(cluster: &Cluster, relay: &Relay, lock: i64) -> Self {
        let holder = super::relay::connect(cluster.port, "user=postgres")
            .await
            .unwrap();
        holder
            .query("select pg_advisory_lock($1)", &[&lock])
            .await
            .unwrap();
        let client = relay.client().await;
        let waits = tokio::spawn(async move {
            client
                .batch_execute(&format!(
                    "select pg_advisory_lock({lock}), pg_advisory_unlock({lock})"
                ))
                .await
                .unwrap();
        });
        relay.until("occupied", |gate| gate.active == 1).await;
        Self(waits, holder)
    }

    async fn leave(self, lock: i64) {
        self.1
            .query("select pg_advisory_unlock($1)", &[&lock])
            .await
            .unwrap();
        soon(self.0).await.unwrap();
    }
}

fn no_queue() -> GateConfig {
    let mut config = one_at_a_time();
    config.admission.queue_max = 0;
    config
}

#[tokio::test]
async fn the_shorter_go_first() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let mut config = one_at_a_time();
    config.admission.oldest_share = OldestShare::NONE;
    let relay = Relay::start(cluster.port, config, |_| {});
    let long = "select pg_sleep(0.15) /* long */";
    let short = "select /* short */ 1";
    let client = relay.client().await;
    // Twice each: a type of which one request has ended is still new, and is tried early.
    for text in [long, short, long, short] {
        client.batch_execute(text).await.unwrap();
    }
    let occupant = Occupant::enter(cluster, &relay, 1).await;
    let ended = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for (place, text) in [long, long, short, short].into_iter().enumerate() {
        let (client, ended) = (relay.client().await, Arc::clone(&ended));
        tasks.push(tokio::spawn(async move {
            client.batch_execute(text).await.unwrap();
            ended.lock().push(place);
        }));
        relay
            .until("queued", |gate| gate.waiting == place + 1)
            .await;
    }
    occupant.leave(1).await;
    for task in tasks {
        soon(task).await.unwrap();
    }
    assert_eq!(*ended.lock(), [2, 3, 0, 1]);
    relay.until_at_rest().await;
}

#[tokio::test]
async fn a_bare_begin_passes_and_the_next_statement_waits_as_what_it_is() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::start(cluster.port, one_at_a_time(), |_| {});
    let occupant = Occupant::enter(cluster, &relay, 2).await;
    let mut client = relay.client().await;
    let transaction = soon(client.transaction()).await.unwrap();
    let mut statement = Box::pin(transaction.query("select 5 /* in it */", &[]));
    tokio::select! {
        _ = &mut statement => panic!("it was not held"),
        () = relay.until("waiting", |gate| gate.waiting == 1) => {}
    }
    occupant.leave(2).await;
    soon(statement).await.unwrap();
    // Idle in its transaction it is no load, and it is not queued again.
    relay
        .until("idle", |gate| gate.running == 1 && gate.active == 0)
        .await;
    let again = Occupant::enter(cluster, &relay, 2).await;
    soon(transaction.query("select 6", &[])).await.unwrap();
    soon(transaction.commit()).await.unwrap();
    again.leave(2).await;
    relay.until_at_rest().await;
    assert_eq!(relay.completed("select 5 /* in it */"), 1);
    let types = relay.gate.snapshot().types;
    assert!(
        !types.iter().any(|view| view.name.starts_with("BEGIN")),
        "{types:?}"
    );
}

#[tokio::test]
async fn a_full_queue_is_an_error_that_the_connection_survives() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::start(cluster.port, no_queue(), |_| {});
    let mut client = relay.client().await;
    let known = client.prepare("select 9").await.unwrap();
    let occupant = Occupant::enter(cluster, &relay, 3).await;
    // Simple and extended, prepared and not, small and larger than what is held.
    let simple = client.batch_execute("select 1").await.unwrap_err();
    assert_eq!(simple.code(), Some(&SqlState::TOO_MANY_CONNECTIONS));
    let extended = client.query("select 2", &[]).await.unwrap_err();
    assert_eq!(extended.code(), Some(&SqlState::TOO_MANY_CONNECTIONS));
    let prepared = client.query(&known, &[]).await.unwrap_err();
    assert_eq!(prepared.code(), Some(&SqlState::TOO_MANY_CONNECTIONS));
    let large = format!("select '{}'", "x".repeat(1_000_000));
    let refused = soon(client.batch_execute(&large)).await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::TOO_MANY_CONNECTIONS));
    // Inside a transaction: it has failed, in the backend too.
    let transaction = client.transaction().await.unwrap();
    let refused = transaction.batch_execute("select 3").await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::TOO_MANY_CONNECTIONS));
    occupant.leave(3).await;
    relay.until_at_rest().await;
    let failed = transaction.batch_execute("select 4").await.unwrap_err();
    assert_eq!(failed.code(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION));
    transaction.rollback().await.unwrap();
    client.batch_execute("select 5").await.unwrap();
    assert_eq!(client.query(&known, &[]).await.unwrap().len(), 1);
    relay.until_at_rest().await;
}

#[tokio::test]
async fn a_refused_segment_is_answered_at_its_sync() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::start(cluster.port, no_queue(), |_| {});
    let occupant = Occupant::enter(cluster, &relay, 4).await;
    let mut socket = raw::session(relay.port);
    let parse = raw::message(b'P', b"\0select 1\0\0\0");
    let bind = raw::message(b'B', b"\0\0\0\0\0\0\0\0");
    let execute = raw::message(b'E', b"\0\0\0\0\0");
    let (flush, sync) = (raw::message(b'H', b""), raw::message(b'S', b""));
    let closing = raw::message(b'C', b"Snone\0");
    // What costs nothing is answered by the backend, before the refusal of what follows it.
    socket
        .write_all(
            &[&closing, &sync, &parse, &bind, &execute, &flush]
                .map(Vec::as_slice)
                .concat(),
        )
        .unwrap();
    assert_eq!(raw::tags(&raw::until_ready(&mut socket)), "3ZI");
    let error = raw::next(&mut socket).unwrap();
    assert_eq!(raw::sqlstate(&[error]).unwrap(), "53300");
    socket.write_all(&[bind, execute, sync].concat()).unwrap();
    assert_eq!(raw::tags(&raw::until_ready(&mut socket)), "ZI");
    occupant.leave(4).await;
    relay.until_at_rest().await;
}

#[tokio::test]
async fn whoever_waits_for_too_long_is_told() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let mut gate = one_at_a_time();
    gate.wait_max = Duration::from_secs(2);
    let relay = Relay::start(cluster.port, gate, |_| {});
    let occupant = Occupant::enter(cluster, &relay, 5).await;
    let client = relay.client().await;
    let error = soon(client.query("select 1", &[])).await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    occupant.leave(5).await;
    client.query("select 1", &[]).await.unwrap();
    relay.until_at_rest().await;
}

#[tokio::test]
async fn cancel_reaches_what_waits_and_what_runs() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::start(cluster.port, one_at_a_time(), |_| {});
    let occupant = Occupant::enter(cluster, &relay, 6).await;
    let client = relay.client().await;
    let token = client.cancel_token();
    let waiting = async { client.query("select 1", &[]).await.unwrap_err() };
    let cancelling = async {
        relay.until("waiting", |gate| gate.waiting == 1).await;
        token.cancel_query(NoTls).await.unwrap();
    };
    let (error, ()) = soon(async { tokio::join!(waiting, cancelling) }).await;
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    occupant.leave(6).await;
    let running = async {
        client
            .batch_execute("select pg_sleep(60)")
            .await
            .unwrap_err()
    };
    let cancelling = async {
        relay.until("running", |gate| gate.active == 1).await;
        // The statement may not have reached the backend yet, and then the request does nothing.
        while relay.gate.snapshot().active == 1 {
            token.cancel_query(NoTls).await.unwrap();
        }
    };
    let (error, ()) = soon(async { tokio::join!(running, cancelling) }).await;
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    relay.until_at_rest().await;
}

#[tokio::test]
async fn a_client_that_dies_gives_its_place_back() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::start(cluster.port, one_at_a_time(), |_| {});
    let occupant = Occupant::enter(cluster, &relay, 7).await;
    // In the queue.
    let mut waiting = raw::session(relay.port);
    waiting.write_all(&raw::query("select 1")).unwrap();
    relay.until("waiting", |gate| gate.waiting == 1).await;
    drop(waiting);
    relay.until("left", |gate| gate.waiting == 0).await;
    occupant.leave(7).await;
    relay.until_at_rest().await;
    // Idle in a transaction, in the middle of a statement's text, and of a COPY.
    let setup = relay.client().await;
    setup
        .batch_execute("create table if not exists dying (number int4)")
        .await
        .unwrap();
    let half = |text: &str| raw::query(text)[..text.len()].to_vec();
    let large = "select 1 /*".to_owned() + &"x".repeat(40_000);
    for (first, then) in [
        ("begin; select 1", Vec::new()),
        ("begin; select 1", half("select 2")),
        ("select 1", half(&large)),
        ("copy dying from stdin", raw::message(b'd', b"1\n")),
        (
            "copy dying from stdin",
            raw::message(b'd', b"1\n")[..6].to_vec(),
        ),
    ] {
        let mut dying = raw::session(relay.port);
        dying.write_all(&raw::query(first)).unwrap();
        raw::next(&mut dying).unwrap();
        dying.write_all(&then).unwrap();
        drop(dying);
        relay.until_at_rest().await;
    }
    let row = setup
        .query_one("select count(*) from dying", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
    // While its statement runs: the backend goes on with it, and the place is its own meanwhile.
    let mut dying = raw::session(relay.port);
    dying
        .write_all(&raw::query("insert into dying select 1 from pg_sleep(0.2)"))
        .unwrap();
    relay.until("running", |gate| gate.active == 1).await;
    drop(dying);
    relay.until_at_rest().await;
    let row = setup
        .query_one("select count(*) from dying", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
    setup.batch_execute("drop table dying").await.unwrap();
}

#[tokio::test]
async fn a_long_wait_is_told_if_that_is_wanted() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::start(cluster.port, one_at_a_time(), |config| {
        config.notice_after = Some(Duration::from_millis(1));
    });
    let occupant = Occupant::enter(cluster, &relay, 8).await;
    let mut socket = raw::session(relay.port);
    socket.write_all(&raw::query("select 1")).unwrap();
    let notice = raw::next(&mut socket).unwrap();
    assert_eq!(raw::tags(&[notice]), "N");
    occupant.leave(8).await;
    assert_eq!(raw::tags(&raw::until_ready(&mut socket)), "TDCZI");
}

#[tokio::test]
async fn preparing_is_a_type_of_its_own() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::open(cluster);
    let client = relay.client().await;
    let statement = client.prepare("select 1 /* executed */").await.unwrap();
    assert_eq!(
        (
            relay.completed("prepare"),
            relay.completed("select 1 /* executed */")
        ),
        (1, 0)
    );
    client.query(&statement, &[]).await.unwrap();
    relay.until_at_rest().await;
    assert_eq!(
        (
            relay.completed("prepare"),
            relay.completed("select 1 /* executed */")
        ),
        (1, 1)
    );
}
