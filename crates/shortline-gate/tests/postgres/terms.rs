//! Sessions that are served otherwise than all, in front of a real PostgreSQL: pool mode and idle transactions.

use shortline_gate::pool::PoolMode;

use super::cluster::Cluster;
use super::pool::{POSTGRES, USERS, text};
use super::relay::{Relay, runtime, soon};

#[test]
fn a_client_whose_pool_is_one_of_sessions_keeps_its_connection() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::pooled(cluster.port, PoolMode::Transaction, 2, USERS);
    let whole = format!("{POSTGRES} application_name=whole");
    runtime().block_on(async {
        let one = relay.client_as(&whole).await;
        let process = text(&one, "select pg_backend_pid()").await;
        let other = relay.client_as(POSTGRES).await;
        for _ in 0..3 {
            assert_ne!(text(&other, "select pg_backend_pid()").await, process);
            assert_eq!(text(&one, "select pg_backend_pid()").await, process);
        }
        // The last connection is for all others.
        let second = relay.client_as(&whole).await;
        let ended = soon(second.simple_query("select 1")).await.unwrap_err();
        assert!(
            ended.is_closed() || ended.code().is_some_and(|code| code.code() == "53300"),
            "{ended}"
        );
        assert_eq!(text(&other, "select 2").await, "2");
        // What it has set leaves with it.
        text(&one, "set statement_timeout = 12345").await;
        drop(one);
        relay.until_at_rest().await;
        assert_ne!(text(&other, "show statement_timeout").await, "12345ms");
    });
}

#[test]
fn an_idle_transaction_ends_in_the_time_of_its_client() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::pooled(cluster.port, PoolMode::Transaction, 3, USERS);
    runtime().block_on(async {
        let patient = relay.client_as(POSTGRES).await;
        text(&patient, "begin; select 1").await;
        let hurried = format!("{POSTGRES} application_name=hurried");
        let hurried = relay.client_as(&hurried).await;
        text(&hurried, "begin; select 1").await;
        relay.until("one left", |gate| gate.running == 1).await;
        assert!(soon(hurried.simple_query("select 1")).await.is_err());
        assert_eq!(text(&patient, "select 2").await, "2");
    });
}
