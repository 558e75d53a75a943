//! Tenants in front of a real PostgreSQL: their connections, their share, and transactions that are left open.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use shortline_gate::GateConfig;
use shortline_gate::classify::{Client, Terms};
use shortline_gate::postgres::PostgresConfig;
use shortline_sched::admission::TenantLimits;

use crate::cluster::Cluster;
use crate::relay::{Relay, connect, one_at_a_time};

/// Each user is a tenant.
fn by_user(config: &mut PostgresConfig) {
    config.relay.terms_of = Arc::new(|client: &Client<'_>| Terms {
        tenant: client.user.map(Arc::from),
        ..Terms::default()
    });
}

#[tokio::test]
async fn a_tenant_has_so_many_connections_and_others_their_own() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let mut gate = GateConfig::default();
    gate.tenants.others = TenantLimits {
        connections_max: NonZeroUsize::new(1),
        ..TenantLimits::default()
    };
    let relay = Relay::start(cluster.port, gate, by_user);
    let first = relay.client().await;
    let refused = connect(relay.port, "user=postgres").await.unwrap_err();
    let told = refused.as_db_error().unwrap();
    assert_eq!(told.code().code(), "53300");
    assert!(told.message().contains("connections-max"), "{told}");
    let other = relay.client_as("user=md5 password=secret").await;
    other.batch_execute("select 1").await.unwrap();
    first.batch_execute("select 1").await.unwrap();
    relay.until_at_rest().await;
    let tenants = relay.gate.snapshot().tenants;
    let connections = |name: &str| {
        let tenant = tenants.iter().find(|tenant| tenant.name == name).unwrap();
        (
            tenant.connections,
            tenant.admitted,
            tenant.connections_refused,
        )
    };
    assert_eq!(connections("postgres"), (1, 1, 1));
    assert_eq!(connections("md5"), (1, 1, 0));
    drop(first);
    relay
        .until("it has left", |gate| gate.tenants[1].connections == 0)
        .await;
    let again = relay.client().await;
    again.batch_execute("select 1").await.unwrap();
}

#[tokio::test]
async fn a_transaction_that_is_left_open_ends_and_lets_others_go_on() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let relay = Relay::start(cluster.port, one_at_a_time(), |config| {
        config.relay.limits.idle_transaction_time_max = Some(Duration::from_millis(300));
    });
    let setter = relay.client().await;
    setter
        .batch_execute("create table held (a int); insert into held values (1)")
        .await
        .unwrap();
    let open = relay.client().await;
    open.batch_execute("begin; update held set a = 2")
        .await
        .unwrap();
    // Waits for the lock, and goes on when the transaction has been ended.
    setter.batch_execute("update held set a = 3").await.unwrap();
    let ended = open.batch_execute("commit").await.unwrap_err();
    let code = ended
        .as_db_error()
        .map(|error| error.code().code().to_owned());
    assert!(code.is_none_or(|code| code == "25P03"), "{ended}");
    let row = setter.query_one("select a from held", &[]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 3);
    // Idle without a transaction is nothing.
    tokio::time::sleep(Duration::from_millis(600)).await;
    setter.batch_execute("select 1").await.unwrap();
    relay.until_at_rest().await;
}
