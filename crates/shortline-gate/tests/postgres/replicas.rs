//! Several servers behind one gate: a primary and a replica, with PostgreSQL's own replication.

use std::time::{Duration, Instant};

use shortline_gate::cluster::ClusterConfig;
use shortline_gate::pool::{NodeView, PoolMode, Shown};
use shortline_gate::relay::Upstream;
use shortline_gate::relay::tls::UpstreamTls;
use shortline_gate::{GateConfig, locks};
use tokio_postgres::Client;

use super::cluster::Cluster;
use super::pool::{POSTGRES, USERS, text};
use super::relay::{Relay, connect, runtime, soon};

/// How long what must come is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gate before these servers, which watches them closely.
fn gate(servers: &[&Cluster], lag_max: Duration) -> Relay {
    gate_that_waits(servers, lag_max, PATIENCE)
}

/// The same, whose transactions wait so long while no primary is known.
fn gate_that_waits(servers: &[&Cluster], lag_max: Duration, primary_wait_max: Duration) -> Relay {
    gate_with(servers, lag_max, primary_wait_max, GateConfig::default())
}

fn gate_with(
    servers: &[&Cluster],
    lag_max: Duration,
    primary_wait_max: Duration,
    gate: GateConfig,
) -> Relay {
    let upstream = |port| Upstream {
        host: "127.0.0.1".to_owned(),
        port,
    };
    let config = ClusterConfig {
        servers: servers.iter().map(|server| upstream(server.port)).collect(),
        user: "postgres".to_owned(),
        every: Duration::from_millis(100),
        answer_time_max: Duration::from_secs(10),
        lag_max,
        primary_wait_max,
    };
    let port = servers[0].port;
    Relay::clustered(port, Some(config), PoolMode::Transaction, 5, USERS, gate)
}

/// Waits until the servers look like that.
async fn until(relay: &Relay, what: &str, is_so: impl Fn(&[NodeView]) -> bool) {
    let begun = Instant::now();
    loop {
        let nodes = relay.pool.as_ref().unwrap().nodes();
        if is_so(&nodes) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "never {what}: {nodes:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn until_replicated(relay: &Relay) {
    until(relay, "a fresh replica", |nodes| {
        nodes[0].state.is_written && nodes[1].state.is_read
    })
    .await;
}

/// Waits until the replica has all that the primary has.
async fn until_replayed(primary: &Cluster, replica: &Cluster) {
    let ask = |cluster: &Cluster, statement: &str| {
        let answer = cluster.psql(cluster.port, &[], &["-c", statement]);
        assert!(answer.status.success(), "{answer:?}");
        String::from_utf8_lossy(&answer.stdout).trim().to_owned()
    };
    let position = ask(primary, "select pg_current_wal_lsn()");
    let has_all = format!("select pg_last_wal_replay_lsn() >= '{position}'");
    let begun = Instant::now();
    while ask(replica, &has_all) != "t" {
        assert!(begun.elapsed() < PATIENCE, "it never replays {position}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

const WHERE: &str = "select inet_server_port()";

/// Where a transaction runs that says it only reads.
async fn reads_at(client: &Client) -> String {
    text(client, "begin read only").await;
    let port = text(client, WHERE).await;
    text(client, "commit").await;
    port
}

/// The code of the error that a statement ends with.
async fn error_of(client: &Client, statement: &str) -> String {
    let error = soon(client.simple_query(statement)).await.unwrap_err();
    error
        .code()
        .map_or_else(String::new, |code| code.code().to_owned())
}

#[test]
fn writes_follow_the_primary_through_a_failover() {
    let Some(first) = Cluster::start() else {
        return;
    };
    let second = Cluster::replica_of(&first).unwrap();
    let relay = gate(&[&first, &second], PATIENCE);
    let impatient = gate_that_waits(&[&first, &second], PATIENCE, Duration::ZERO);
    let (at_first, at_second) = (first.port.to_string(), second.port.to_string());
    runtime().block_on(async {
        until_replicated(&relay).await;
        until_replicated(&impatient).await;
        let refused = impatient.client_as(POSTGRES).await;
        let client = relay.client_as(POSTGRES).await;
        let prepared = soon(client.prepare("select $1::int4 + 1")).await.unwrap();
        text(&client, "create table orders (id int)").await;
        until_replayed(&first, &second).await;
        text(&client, "set timezone = 'Asia/Tokyo'").await;
        let insert =
            |id: i32| format!("insert into orders values ({id}) returning inet_server_port()");
        assert_eq!(text(&client, &insert(1)).await, at_first);
        assert_eq!(text(&client, WHERE).await, at_first);
        assert_eq!(reads_at(&client).await, at_second);

        // Reads go on without a primary; a write waits, and what runs there is lost.
        let busy = relay.client_as(POSTGRES).await;
        text(&busy, "begin").await;
        text(&busy, &insert(2)).await;
        until_replayed(&first, &second).await;
        first.tell("crash");
        assert!(soon(busy.simple_query("commit")).await.is_err());
        until(&relay, "without a primary", |nodes| {
            !nodes.iter().any(|node| node.state.is_written)
        })
        .await;
        let reader = relay.client_as_read_only().await;
        assert_eq!(text(&reader, WHERE).await, at_second);
        until(&impatient, "without a primary", |nodes| {
            !nodes.iter().any(|node| node.state.is_written)
        })
        .await;
        assert_eq!(error_of(&refused, &insert(9)).await, "57P03");
        assert_eq!(reads_at(&refused).await, at_second);
        let writes = tokio::spawn(async move {
            let written_at = text(&client, &insert(3)).await;
            (client, written_at)
        });
        let promoted = second.psql(second.port, &[], &["-c", "select pg_promote()"]);
        assert!(promoted.status.success(), "{promoted:?}");
        let (client, written_at) = soon(writes).await.unwrap();
        assert_eq!(written_at, at_second);
        assert_eq!(text(&client, "show timezone").await, "Asia/Tokyo");
        let row = soon(client.query_one(&prepared, &[&1])).await.unwrap();
        assert_eq!(row.get::<_, i32>(0), 2);
        assert_eq!(
            text(
                &client,
                "select string_agg(id::text, ' ' order by id) from orders"
            )
            .await,
            "1 3"
        );

        // The old one comes back as a replica.
        first.tell(&format!("follow {}", second.port));
        first.tell("start");
        until(&relay, "a replica again", |nodes| nodes[0].state.is_read).await;
        assert_eq!(text(&client, &insert(4)).await, at_second);
        assert_eq!(reads_at(&client).await, at_first);
    });
}

#[test]
fn a_primary_that_comes_back_as_it_was_gets_no_writes() {
    let Some(first) = Cluster::start() else {
        return;
    };
    let second = Cluster::replica_of(&first).unwrap();
    let relay = gate(&[&first, &second], PATIENCE);
    let at_second = second.port.to_string();
    runtime().block_on(async {
        until_replicated(&relay).await;
        let client = relay.client_as(POSTGRES).await;
        text(&client, "create table orders (id int)").await;
        until_replayed(&first, &second).await;
        first.tell("crash");
        let promoted = second.psql(second.port, &[], &["-c", "select pg_promote()"]);
        assert!(promoted.status.success(), "{promoted:?}");
        let insert = "insert into orders values (1) returning inet_server_port()";
        assert_eq!(text(&client, insert).await, at_second);
        first.tell("start");
        until(&relay, "two primaries", |nodes| {
            nodes[0].state.role_name() == "primary" && nodes[1].state.is_written
        })
        .await;
        for _ in 0..10 {
            assert_eq!(text(&client, insert).await, at_second);
        }
    });
    let lost = first.psql(first.port, &[], &["-c", "select count(*) from orders"]);
    assert_eq!(String::from_utf8_lossy(&lost.stdout).trim(), "0");
}

#[test]
fn only_what_surely_reads_goes_to_a_replica() {
    let Some(first) = Cluster::start() else {
        return;
    };
    let second = Cluster::replica_of(&first).unwrap();
    let relay = gate(&[&first, &second], PATIENCE);
    let (at_first, at_second) = (first.port.to_string(), second.port.to_string());
    runtime().block_on(async {
        until_replicated(&relay).await;
        let mut client = relay.client_as(POSTGRES).await;
        text(&client, "create table orders (id int)").await;
        until_replayed(&first, &second).await;
        for statement in [WHERE, "begin; select inet_server_port(); commit"] {
            assert_eq!(text(&client, statement).await, at_first, "{statement}");
        }
        // In the extended protocol, too; and what follows is no longer read only.
        let reading = client.build_transaction().read_only(true).start();
        let reading = soon(reading).await.unwrap();
        let row = soon(reading.query_one("select inet_server_port() + $1::int4", &[&0])).await;
        assert_eq!(row.unwrap().get::<_, i32>(0).to_string(), at_second);
        soon(reading.commit()).await.unwrap();
        let row = soon(client.query_one("select inet_server_port() + $1::int4", &[&0])).await;
        assert_eq!(row.unwrap().get::<_, i32>(0).to_string(), at_first);
        // Pipelined behind one another.
        let (begun, read, ended, wrote) = tokio::join!(
            client.simple_query("begin read only"),
            client.simple_query("select count(*) from orders"),
            client.simple_query("commit"),
            client.simple_query("insert into orders values (1)"),
        );
        assert!(begun.is_ok() && read.is_ok() && ended.is_ok());
        wrote.unwrap();
        // A session that reads by default, until it says otherwise.
        text(
            &client,
            "set session characteristics as transaction read only",
        )
        .await;
        assert_eq!(text(&client, WHERE).await, at_second);
        assert_eq!(
            error_of(&client, "insert into orders values (2)").await,
            "25006"
        );
        assert_eq!(text(&client, "begin read write").await, "");
        text(&client, "insert into orders values (3)").await;
        text(&client, "commit").await;
        text(&client, "set default_transaction_read_only = off").await;
        assert_eq!(text(&client, WHERE).await, at_first);
        // What would tie a session to a replica ends it.
        let reader = relay.client_as_read_only().await;
        assert_eq!(text(&reader, WHERE).await, at_second);
        assert!(
            soon(reader.simple_query("select pg_advisory_lock(1)"))
                .await
                .is_ok()
        );
        assert!(soon(reader.simple_query(WHERE)).await.is_err());
        relay.until_at_rest().await;
    });
}

#[test]
fn a_replica_that_lags_gets_nothing() {
    let Some(first) = Cluster::start() else {
        return;
    };
    let second = Cluster::replica_of(&first).unwrap();
    let relay = gate(&[&first, &second], Duration::from_millis(400));
    let (at_first, at_second) = (first.port.to_string(), second.port.to_string());
    runtime().block_on(async {
        until_replicated(&relay).await;
        let client = relay.client_as(POSTGRES).await;
        text(&client, "create table orders (id int)").await;
        until_replayed(&first, &second).await;
        until_replicated(&relay).await;
        let replica = connect(second.port, "user=postgres").await.unwrap();
        text(&replica, "select pg_wal_replay_pause()").await;
        let begun = Instant::now();
        while relay.pool.as_ref().unwrap().nodes()[1].state.is_read {
            assert!(begun.elapsed() < PATIENCE, "it never lags");
            text(&client, "insert into orders values (1)").await;
        }
        assert_eq!(reads_at(&client).await, at_first);
        text(&replica, "select pg_wal_replay_resume()").await;
        until_replicated(&relay).await;
        assert_eq!(reads_at(&client).await, at_second);
        // An idle primary makes no lag.
        second.tell("stop");
        until(&relay, "without a replica", |nodes| !nodes[1].state.is_read).await;
        assert_eq!(reads_at(&client).await, at_first);
    });
}

#[test]
fn a_runaway_on_a_replica_is_cancelled_there() {
    let Some(first) = Cluster::start() else {
        return;
    };
    let second = Cluster::replica_of(&first).unwrap();
    let ask = |statement: &str| {
        let done = first.psql(first.port, &[], &["-c", statement]);
        assert!(done.status.success(), "{done:?}");
    };
    // Only a superuser may cancel a superuser's statement.
    ask("create role watcher login superuser password 'secret'");
    ask("create table naps (seconds float); insert into naps values (0.001)");
    let mut gate = GateConfig {
        watches_locks: true,
        ..GateConfig::default()
    };
    gate.admission.runaway = Some("cancel:5".parse().unwrap());
    let relay = gate_with(&[&first, &second], PATIENCE, PATIENCE, gate);
    runtime().block_on(async {
        until_replicated(&relay).await;
        until_replayed(&first, &second).await;
        for (server, cluster) in [&first, &second].into_iter().enumerate() {
            let url = format!(
                "postgres://watcher:secret@127.0.0.1:{}/postgres",
                cluster.port
            );
            let config = locks::MonitorConfig {
                url: url.parse().unwrap(),
                server,
                tls: UpstreamTls::prefer().unwrap(),
            };
            tokio::spawn(locks::watch(relay.gate.clone(), config));
        }
        let reader = relay.client_as_read_only().await;
        assert_eq!(text(&reader, WHERE).await, second.port.to_string());
        let nap = "select pg_sleep(seconds) from naps";
        for _ in 0..20 {
            reader.batch_execute(nap).await.unwrap();
        }
        ask("update naps set seconds = 300");
        until_replayed(&first, &second).await;
        assert_eq!(error_of(&reader, nap).await, "57014");
    });
}
