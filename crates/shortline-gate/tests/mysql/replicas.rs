//! Several servers behind one gate: two MariaDBs, one of which replicates the other.

use std::sync::Arc;
use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::*;
use shortline_gate::classify::{Class, Client, Reads};
use shortline_gate::cluster::ClusterConfig;
use shortline_gate::pool::{NodeView, PoolMode, Shown};
use shortline_gate::relay::Upstream;

use crate::gated::{Gated, PATIENCE, code};
use crate::server::Server;

/// What a rule of the tests takes for a read, whatever it is.
const VOUCHED_FOR: &[u8] = b"/*read*/";

async fn gate(servers: [&Server; 2]) -> Gated {
    let upstream = |server: &Server| Upstream {
        host: "127.0.0.1".to_owned(),
        port: server.address.port(),
    };
    let config = ClusterConfig {
        servers: servers.map(upstream).into(),
        user: "root".to_owned(),
        every: Duration::from_millis(100),
        answer_time_max: Duration::from_secs(10),
        lag_max: PATIENCE,
        primary_wait_max: PATIENCE,
    };
    let address = servers[0].address;
    Gated::clustered(address, Some(config), PoolMode::Transaction, 4, |config| {
        config.classify = Arc::new(|statement: &[u8], _: &Client<'_>| Class {
            reads: match statement.starts_with(VOUCHED_FOR) {
                true => Reads::Transaction,
                false => Reads::Unsaid,
            },
            ..Class::from("statement")
        });
    })
    .await
}

async fn until(gated: &Gated, what: &str, is_so: impl Fn(&[NodeView]) -> bool) {
    let nodes = || gated.pool.as_ref().unwrap().nodes();
    let waiting = async {
        while !is_so(&nodes()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
        panic!("never {what}: {:?}", nodes());
    }
}

async fn port(conn: &mut Conn) -> u16 {
    conn.query_first("SELECT @@port").await.unwrap().unwrap()
}

async fn error_of(conn: &mut Conn, statement: &str) -> Option<u16> {
    code(&conn.query_drop(statement).await.unwrap_err())
}

/// Makes `second` follow `first` from now on.
fn replicate(first: &Server, second: &Server) {
    let status = first.query("SHOW MASTER STATUS");
    let mut fields = status.split_whitespace();
    let (file, position) = (fields.next().unwrap(), fields.next().unwrap());
    second.query(&format!(
        "SET GLOBAL server_id = 2; SET GLOBAL read_only = 1; \
         CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'native', \
         MASTER_PASSWORD = 'secret', MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {position}; START SLAVE",
        first.address.port()
    ));
}

#[tokio::test]
async fn writes_follow_the_primary_and_reads_go_to_its_replica() {
    let (Some(mut first), Some(second)) = (Server::own(), Server::own()) else {
        return;
    };
    replicate(&first, &second);
    first.query("CREATE TABLE shop.orders (id INT) ENGINE InnoDB");
    let gated = gate([&first, &second]).await;
    let (at_first, at_second) = (first.address.port(), second.address.port());
    until(&gated, "a fresh replica", |nodes| {
        nodes[0].state.is_written && nodes[1].state.is_read
    })
    .await;
    let mut conn = gated.connect().await;
    assert_eq!(port(&mut conn).await, at_first);
    conn.query_drop("START TRANSACTION READ ONLY")
        .await
        .unwrap();
    assert_eq!(port(&mut conn).await, at_second);
    conn.query_drop("COMMIT").await.unwrap();
    // A session that reads by default.
    conn.query_drop("SET SESSION TRANSACTION READ ONLY")
        .await
        .unwrap();
    assert_eq!(port(&mut conn).await, at_second);
    conn.query_drop("SET SESSION TRANSACTION READ WRITE")
        .await
        .unwrap();
    assert_eq!(port(&mut conn).await, at_first);
    // A rule that is wrong: root may write in spite of `read_only`, and does not.
    let wrong = "/*read*/ INSERT INTO shop.orders VALUES (1)";
    assert_eq!(error_of(&mut conn, wrong).await, Some(1792));
    let rule = conn.query_first("/*read*/ SELECT @@port").await.unwrap();
    assert_eq!(rule, Some(at_second));
    // A prepared statement goes where its text would.
    let rule = conn.exec_first("/*read*/ SELECT @@port", ()).await.unwrap();
    assert_eq!(rule, Some(at_second));
    let at_all = conn.exec_first("SELECT @@port", ()).await.unwrap();
    assert_eq!(at_all, Some(at_first));
    let wrong = "/*read*/ INSERT INTO shop.orders VALUES (?)";
    let refused = conn.exec_drop(wrong, (1,)).await.unwrap_err();
    assert_eq!(code(&refused), Some(1792), "{refused}");

    // The roles change hands. Meanwhile a write waits.
    first.query("SET GLOBAL read_only = 1");
    until(&gated, "without a primary", |nodes| {
        !nodes.iter().any(|node| node.state.is_written)
    })
    .await;
    let writing = tokio::spawn(async move {
        conn.query_drop("INSERT INTO shop.orders VALUES (2)")
            .await
            .unwrap();
        conn
    });
    second.query("STOP SLAVE; SET GLOBAL read_only = 0");
    let mut conn = tokio::time::timeout(PATIENCE, writing)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(port(&mut conn).await, at_second);
    let count = |server: &Server| {
        server
            .query("SELECT COUNT(*) FROM shop.orders")
            .trim()
            .to_owned()
    };
    assert_eq!(
        (count(&first), count(&second)),
        ("0".to_owned(), "1".to_owned())
    );
    // The old one goes, and comes back as a primary that nobody asked for.
    first.kill();
    assert_eq!(port(&mut conn).await, at_second);
    first.run();
    until(&gated, "two primaries", |nodes| {
        nodes[0].state.role_name() == "primary"
    })
    .await;
    assert_eq!(port(&mut conn).await, at_second);
    drop(conn);
    gated.until_empty().await;
    assert!(gated.end().await);
}
