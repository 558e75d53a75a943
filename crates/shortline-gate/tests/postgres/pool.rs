//! Many clients on few connections (`--pool`), in front of a real PostgreSQL.

use std::io::Write;
use std::num::NonZeroUsize;
use std::time::Duration;

use shortline_gate::pool::{PoolMode, Shown};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::cluster::Cluster;
use super::relay::{Relay, connect, runtime, soon};

/// The server trusts `postgres`, and asks the two others.
pub const USERS: &str =
    "\"postgres\" \"any\"\n\"scram\" \"secret\"\n\"md5\" \"md55d80d273267dec78b5d118f9cae7cd26\"\n";
pub const POSTGRES: &str = "user=postgres password=any";

pub async fn text(client: &Client, statement: &str) -> String {
    let answers = soon(client.simple_query(statement)).await.unwrap();
    let rows = answers.iter().filter_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
        _ => None,
    });
    rows.collect::<Vec<_>>().join(",")
}

fn transactions(cluster: &Cluster, size: usize) -> Relay {
    Relay::pooled(cluster.port, PoolMode::Transaction, size, USERS)
}

#[test]
fn a_crowd_gets_by_with_few_connections_and_nobody_fails() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 3);
    runtime().block_on(async {
        let crowd = (0..100).map(|number| {
            let port = relay.port;
            tokio::spawn(async move {
                let name = format!("{POSTGRES} application_name=crowd");
                let client = connect(port, &name).await.unwrap();
                for round in 0..3 {
                    let row = client
                        .query_one("select $1::int4 + $2::int4", &[&number, &round])
                        .await
                        .unwrap();
                    assert_eq!(row.get::<_, i32>(0), number + round);
                }
                client
            })
        });
        let mut clients = Vec::new();
        for client in crowd.collect::<Vec<_>>() {
            clients.push(soon(client).await.unwrap());
        }
        let direct = connect(cluster.port, "user=postgres").await.unwrap();
        let open = text(
            &direct,
            "select count(*) from pg_stat_activity where application_name = 'crowd'",
        )
        .await;
        assert!((1..=3).contains(&open.parse::<i32>().unwrap()), "{open}");
        drop(clients);
        relay.until_at_rest().await;
    });
}

#[test]
fn a_bare_begin_takes_no_connection() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 1);
    runtime().block_on(async {
        let (idle, busy) = (
            relay.client_as(POSTGRES).await,
            relay.client_as(POSTGRES).await,
        );
        text(&idle, "begin").await;
        assert_eq!(text(&busy, "select 1").await, "1");
        text(&busy, "begin").await;
        text(&busy, "rollback").await;
        assert_eq!(text(&idle, "select 2").await, "2");
        let waits = tokio::spawn(async move { text(&busy, "select 3").await });
        relay.until("waiting", |gate| gate.waiting == 1).await;
        text(&idle, "commit").await;
        assert_eq!(soon(waits).await.unwrap(), "3");
    });
}

#[test]
fn users_are_known_by_what_is_stored_of_them() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 4);
    let stored = cluster.psql(
        cluster.port,
        &[],
        &["-c", "select rolpassword from pg_authid where rolname in ('scram', 'md5') order by rolname desc"],
    );
    let stored = String::from_utf8(stored.stdout).unwrap();
    let [scram, md5] = stored.lines().collect::<Vec<_>>()[..] else {
        panic!("{stored}")
    };
    let keys = format!("\"scram\" \"{scram}\"\n\"md5\" \"{md5}\"\n");
    let by_keys = Relay::pooled(cluster.port, PoolMode::Transaction, 4, &keys);
    runtime().block_on(async {
        // These are in no file but in the database.
        let by_query = "\"postgres\" \"any\"\n";
        let by_query = Relay::pooled(cluster.port, PoolMode::Transaction, 4, by_query);
        for (relay, user) in [
            (&relay, "scram"),
            (&by_keys, "scram"),
            (&by_keys, "md5"),
            (&by_query, "scram"),
            (&by_query, "md5"),
        ] {
            let client = relay
                .client_as(&format!("user={user} password=secret"))
                .await;
            assert_eq!(text(&client, "select current_user").await, user);
        }
        // Who is not known is told what one with another password is.
        for user in ["scram", "nobody"] {
            let refused = connect(relay.port, &format!("user={user} password=wrong")).await;
            let refused = refused.map(|_| ()).unwrap_err();
            let refused = refused.as_db_error().unwrap();
            assert_eq!(refused.code().code(), "28P01");
            assert_eq!(
                refused.message(),
                format!("password authentication failed for user \"{user}\"")
            );
        }
    });
}

#[test]
fn prepared_statements_follow_their_client() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 2);
    runtime().block_on(async {
        let (one, other) = (
            relay.client_as(POSTGRES).await,
            relay.client_as(POSTGRES).await,
        );
        let mut prepared = Vec::new();
        // More than a connection keeps, and both clients use the same names for others.
        for number in 0..30 {
            let mine = one
                .prepare(&format!("select {number} + $1::int4"))
                .await
                .unwrap();
            let others = other
                .prepare(&format!("select {number} - $1::int4"))
                .await
                .unwrap();
            prepared.push((mine, others));
        }
        one.batch_execute("begin; select 1").await.unwrap();
        for (number, (mine, others)) in (0..30).zip(&prepared) {
            assert_eq!(
                other
                    .query_one(others, &[&7])
                    .await
                    .unwrap()
                    .get::<_, i32>(0),
                number - 7
            );
            assert_eq!(
                one.query_one(mine, &[&7]).await.unwrap().get::<_, i32>(0),
                number + 7
            );
        }
        one.batch_execute("commit").await.unwrap();
        // What another connection forgets is prepared anew.
        other.batch_execute("deallocate all").await.unwrap();
        for (number, (mine, _)) in (0..30).zip(&prepared) {
            assert_eq!(
                one.query_one(mine, &[&1]).await.unwrap().get::<_, i32>(0),
                number + 1
            );
        }
        let wrong = one.prepare("select no_such_column").await.unwrap_err();
        assert_eq!(wrong.code().unwrap().code(), "42703");
        assert_eq!(text(&one, "select 5").await, "5");
        relay.until_at_rest().await;
    });
}

#[test]
fn a_cancel_request_ends_the_statement_of_its_client_only() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 2);
    runtime().block_on(async {
        let (one, other) = (
            relay.client_as(POSTGRES).await,
            relay.client_as(POSTGRES).await,
        );
        let (cancel, cancel_other) = (one.cancel_token(), other.cancel_token());
        // Of one that has no connection nothing is ended, whoever has it.
        let sleeps =
            tokio::spawn(async move { (one.simple_query("select pg_sleep(600)").await, one) });
        relay.until("running", |gate| gate.running == 1).await;
        soon(cancel_other.cancel_query(tokio_postgres::NoTls))
            .await
            .unwrap();
        assert_eq!(text(&other, "select 1").await, "1");
        assert!(!sleeps.is_finished());
        let ended = loop {
            soon(cancel.cancel_query(tokio_postgres::NoTls))
                .await
                .unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            if sleeps.is_finished() {
                break soon(sleeps).await.unwrap();
            }
        };
        assert_eq!(ended.0.unwrap_err().code().unwrap().code(), "57014");
        assert_eq!(text(&ended.1, "select 2").await, "2");
    });
}

#[test]
fn what_ties_a_session_to_its_connection_keeps_it_there() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 4);
    runtime().block_on(async {
        let (keeps, other) = (
            relay.client_as(POSTGRES).await,
            relay.client_as(POSTGRES).await,
        );
        for (begins, ends) in [
            ("listen jobs", "unlisten *"),
            ("create temp table kept (a int)", "drop table kept"),
            (
                "create function pg_temp.kept() returns int language sql as 'select 1'",
                "drop function pg_temp.kept",
            ),
            (
                "create collation pg_temp.kept (locale = 'C')",
                "drop collation pg_temp.kept",
            ),
            (
                "select pg_advisory_lock(4711)",
                "select pg_advisory_unlock(4711)",
            ),
            ("prepare kept as select 1", "deallocate kept"),
            ("declare kept cursor with hold for select 1", "close kept"),
            ("set role scram", "reset role"),
        ] {
            text(&keeps, begins).await;
            let process = text(&keeps, "select pg_backend_pid()").await;
            for _ in 0..3 {
                assert_ne!(
                    text(&other, "select pg_backend_pid()").await,
                    process,
                    "{begins}"
                );
                assert_eq!(
                    text(&keeps, "select pg_backend_pid()").await,
                    process,
                    "{begins}"
                );
            }
            text(&keeps, ends).await;
            // Once the server was asked what is left, both get the connection that was given back last.
            soon(async {
                let asks = "select pg_backend_pid()";
                while text(&keeps, asks).await != text(&other, asks).await {}
            })
            .await;
        }
        relay.until_at_rest().await;
    });
}

#[test]
fn too_many_sessions_that_keep_connections_are_told_so() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 2);
    runtime().block_on(async {
        let [one, other, third] = [
            relay.client_as(POSTGRES).await,
            relay.client_as(POSTGRES).await,
            relay.client_as(POSTGRES).await,
        ];
        text(&one, "listen a").await;
        // It waits until the server was asked what the first has left.
        text(&one, "select 1").await;
        text(&other, "listen b").await;
        let ended = soon(other.simple_query("select 1")).await.unwrap_err();
        assert!(
            ended.is_closed() || ended.code().is_some_and(|code| code.code() == "53300"),
            "{ended}"
        );
        assert_eq!(text(&third, "select 3").await, "3");
        assert_eq!(text(&one, "select 1").await, "1");
        drop(one);
        text(&third, "listen c").await;
        assert_eq!(text(&third, "select 3").await, "3");
    });
}

#[test]
fn a_connection_that_breaks_ends_its_own_session_only() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 2);
    runtime().block_on(async {
        let direct = connect(cluster.port, "user=postgres").await.unwrap();
        let (one, other) = (
            relay.client_as(POSTGRES).await,
            relay.client_as(POSTGRES).await,
        );
        let process = text(&one, "select pg_backend_pid()").await;
        let kill = |process: String| format!("select pg_terminate_backend({process}, 5000)");
        assert_eq!(text(&direct, &kill(process)).await, "t");
        assert_eq!(text(&one, "select 1").await, "1");
        text(&one, "begin").await;
        let process = text(&one, "select pg_backend_pid()").await;
        assert_eq!(text(&direct, &kill(process)).await, "t");
        let ended = soon(one.simple_query("select 1")).await.unwrap_err();
        assert!(
            ended.is_closed() || ended.code().is_some_and(|code| code.code() == "57P01"),
            "{ended}"
        );
        assert_eq!(text(&other, "select 2").await, "2");
        relay.until_at_rest().await;
    });
}

#[test]
fn a_client_that_leaves_leaves_no_transaction_behind() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 1);
    runtime().block_on(async {
        for _ in 0..5 {
            let leaves = relay.client_as(POSTGRES).await;
            text(&leaves, "begin").await;
            text(&leaves, "set local timezone = 'Asia/Tokyo'").await;
            drop(leaves);
            let stays = relay.client_as(POSTGRES).await;
            assert_ne!(text(&stays, "show timezone").await, "Asia/Tokyo");
        }
        relay.until_at_rest().await;
    });
}

#[test]
fn a_session_pooled_whole_is_clean_for_the_next() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::pooled(cluster.port, PoolMode::Session, 1, USERS);
    runtime().block_on(async {
        let one = relay.client_as(POSTGRES).await;
        text(
            &one,
            "set timezone = 'Asia/Tokyo'; create temp table a (b int)",
        )
        .await;
        let process = text(&one, "select pg_backend_pid()").await;
        assert_eq!(text(&one, "show timezone").await, "Asia/Tokyo");
        let next = relay.client_as(POSTGRES).await;
        let waits = tokio::spawn(async move {
            let zone = text(&next, "show timezone").await;
            let tables = text(
                &next,
                "select count(*) from pg_class where relnamespace = pg_my_temp_schema()",
            )
            .await;
            (zone, tables, text(&next, "select pg_backend_pid()").await)
        });
        relay.until("running", |gate| gate.running == 1).await;
        drop(one);
        let (zone, tables, same) = soon(waits).await.unwrap();
        assert_ne!(zone, "Asia/Tokyo");
        assert_eq!((tables.as_str(), same), ("0", process));
    });
}

/// Sessions that waited for a connection once went on waiting when a reload made room for them.
#[test]
fn a_larger_pool_serves_those_that_wait() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::pooled(cluster.port, PoolMode::Session, 1, USERS);
    let pool: &dyn Shown = relay.pool.as_deref().unwrap();
    let mut users = tempfile::NamedTempFile::new().unwrap();
    users.write_all(USERS.as_bytes()).unwrap();
    runtime().block_on(async {
        let one = relay.client_as(POSTGRES).await;
        let process = text(&one, "select pg_backend_pid()").await;
        let port = relay.port;
        let waits = tokio::spawn(async move {
            let next = connect(port, POSTGRES).await.unwrap();
            text(&next, "select pg_backend_pid()").await
        });
        while pool.counts().waiting == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let size = NonZeroUsize::new(2).unwrap();
        let reload = pool.reload(size, Duration::from_secs(30), users.path());
        reload.unwrap()();
        assert_ne!(soon(waits).await.unwrap(), process);
        assert_eq!(pool.counts().waiting, 0);
    });
}

/// Each has settings of its own, which are put on the connection before its statement.
#[test]
fn a_statement_is_one_unit_whatever_its_connection_had_before() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 1);
    runtime().block_on(async {
        let one = relay
            .client_as(&format!("{POSTGRES} application_name=one"))
            .await;
        let other = relay
            .client_as(&format!("{POSTGRES} application_name=other"))
            .await;
        for _ in 0..10 {
            assert_eq!(text(&one, "show application_name").await, "one");
            assert_eq!(text(&other, "show application_name").await, "other");
        }
        relay.until_at_rest().await;
        assert_eq!(relay.completed("show application_name"), 20);
    });
}

/// A long INSERT is no reason to keep a connection.
#[test]
fn a_long_statement_goes_through_whole() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = transactions(cluster, 2);
    runtime().block_on(async {
        let client = relay.client_as(POSTGRES).await;
        for bytes in [10_000, 100_000, 1_000_000, 3_000_000] {
            let statement = format!("select length('{}')", "x".repeat(bytes));
            assert_eq!(text(&client, &statement).await, bytes.to_string());
            let length = client
                .query_one("select length($1)", &[&"y".repeat(bytes)])
                .await
                .unwrap();
            assert_eq!(length.get::<_, i32>(0), bytes as i32);
        }
        relay.until_at_rest().await;
    });
}
