//! What clients do through a relay is what they do without one, and the unit of work ends with it.

use std::io::Write;

use futures_util::{SinkExt, StreamExt, TryStreamExt, pin_mut};
use tokio_postgres::{AsyncMessage, NoTls, SimpleQueryMessage};

use super::cluster::Cluster;
use super::raw;
use super::relay::{Relay, soon};

#[tokio::test]
async fn statements_of_both_protocols_pass() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::open(cluster);
    let mut client = relay.client().await;
    let answers = client
        .simple_query("select 1; begin; select 2; commit; select 3")
        .await
        .unwrap();
    let rows: Vec<&str> = answers
        .iter()
        .filter_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        })
        .collect();
    assert_eq!(rows, ["1", "2", "3"]);
    let statement = client.prepare("select $1::int4 + 1").await.unwrap();
    for number in 0..20 {
        let row = client.query_one(&statement, &[&number]).await.unwrap();
        assert_eq!(row.get::<_, i32>(0), number + 1);
    }
    let error = client.query("select 1 / 0", &[]).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "22012");
    client
        .batch_execute("create temp table sums (number int4)")
        .await
        .unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction
        .execute("insert into sums values (1)", &[])
        .await
        .unwrap();
    assert!(
        transaction
            .execute("insert into nosuch values (1)", &[])
            .await
            .is_err()
    );
    let failed = transaction.query("select 1", &[]).await.unwrap_err();
    assert_eq!(failed.code().unwrap().code(), "25P02");
    transaction.rollback().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction
        .execute("insert into sums values (2)", &[])
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    let row = client
        .query_one("select count(*), max(number) from sums", &[])
        .await
        .unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i32>(1)), (1, 2));
    relay.until_at_rest().await;
}

#[tokio::test]
async fn large_statements_and_rows_pass() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::open(cluster);
    let client = relay.client().await;
    let large = "x".repeat(5_000_000);
    let row = client
        .query_one("select $1::text, length($1::text)", &[&large])
        .await
        .unwrap();
    assert!(row.get::<_, &str>(0) == large);
    let text = format!("select length('{large}')");
    let answers = client.simple_query(&text).await.unwrap();
    let found = answers.iter().any(
        |answer| matches!(answer, SimpleQueryMessage::Row(row) if row.get(0) == Some("5000000")),
    );
    assert!(found);
    relay.until_at_rest().await;
}

#[tokio::test]
async fn a_pipeline_is_answered_in_its_order() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::start(cluster.port, super::relay::one_at_a_time(), |config| {
        config.relay.limits.pipelined_max = 7;
    });
    let client = relay.client().await;
    let statement = client.prepare("select 100 / $1::int4").await.unwrap();
    let numbers: Vec<i32> = (0..200).map(|number| number % 10).collect();
    let answers = numbers.iter().map(|number| {
        let (client, statement) = (&client, &statement);
        async move { client.query_one(statement, &[number]).await }
    });
    let answers = soon(futures_util::future::join_all(answers)).await;
    for (number, answer) in numbers.iter().zip(answers) {
        match answer {
            Ok(row) => assert_eq!(row.get::<_, i32>(0), 100 / number),
            Err(error) => assert_eq!((*number, error.code().unwrap().code()), (0, "22012")),
        }
    }
    relay.until_at_rest().await;
}

#[tokio::test]
async fn copies_pass_both_ways_and_end_their_unit() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::open(cluster);
    let client = relay.client().await;
    client
        .batch_execute("create temp table copied (number int4)")
        .await
        .unwrap();
    let sink = client.copy_in("copy copied from stdin").await.unwrap();
    pin_mut!(sink);
    for number in 0..20_000 {
        sink.as_mut()
            .feed(bytes::Bytes::from(format!("{number}\n")))
            .await
            .unwrap();
    }
    assert_eq!(sink.finish().await.unwrap(), 20_000);
    relay.until_at_rest().await;
    let copied: Vec<bytes::Bytes> = client
        .copy_out("copy copied to stdout")
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    assert_eq!(copied.len(), 20_000);
    // Data that cannot be: the backend stops in the middle of it.
    let sink = client.copy_in("copy copied from stdin").await.unwrap();
    pin_mut!(sink);
    sink.send(bytes::Bytes::from_static(b"1\nno number\n2\n"))
        .await
        .unwrap();
    assert_eq!(
        sink.finish().await.unwrap_err().code().unwrap().code(),
        "22P02"
    );
    relay.until_at_rest().await;
    // A client that changes its mind.
    {
        let sink = client
            .copy_in::<_, bytes::Bytes>("copy copied from stdin")
            .await
            .unwrap();
        pin_mut!(sink);
        sink.send(bytes::Bytes::from_static(b"1\n")).await.unwrap();
    }
    let row = client
        .query_one("select count(*) from copied", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), 20_000);
    relay.until_at_rest().await;
}

#[tokio::test]
async fn a_copy_that_fails_early_ends_its_unit_though_its_data_goes_on() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::open(cluster);
    let mut socket = raw::session(relay.port);
    let socket = &mut socket;
    socket
        .write_all(&raw::query("create temp table early (number int4)"))
        .unwrap();
    assert_eq!(raw::tags(&raw::until_ready(socket)), "CZI");
    let data = raw::message(b'd', &b"no number\n".repeat(10_000));
    socket
        .write_all(&raw::query("copy early from stdin"))
        .unwrap();
    for _ in 0..20 {
        socket.write_all(&data).unwrap();
    }
    assert_eq!(raw::tags(&raw::until_ready(socket)), "GEZI");
    // Half a message when the last answer has come already.
    let (first, second) = data.split_at(500);
    socket.write_all(first).unwrap();
    relay
        .until("half a message behind", |gate| gate.waiting == 0)
        .await;
    socket.write_all(second).unwrap();
    socket.write_all(&raw::message(b'c', b"")).unwrap();
    relay.until_at_rest().await;
    socket.write_all(&raw::query("select 1")).unwrap();
    assert_eq!(raw::tags(&raw::until_ready(socket)), "TDCZI");
    relay.until_at_rest().await;
}

#[tokio::test]
async fn messages_cut_anywhere_pass() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::open(cluster);
    let mut socket = raw::session(relay.port);
    let parse = raw::message(b'P', b"s\0select 7\0\0\0");
    let bind = raw::message(b'B', b"\0s\0\0\0\0\0\0\0");
    let execute = raw::message(b'E', b"\0\0\0\0\0");
    let sync = raw::message(b'S', b"");
    let begin = raw::query("begin /* a comment */;");
    let all = [
        &begin,
        &raw::query("select 1"),
        &parse,
        &bind,
        &execute,
        &sync,
        &raw::query("commit"),
    ]
    .map(Vec::as_slice)
    .concat();
    for byte in &all {
        socket.write_all(&[*byte]).unwrap();
    }
    let mut tags = String::new();
    for _ in 0..4 {
        tags += &raw::tags(&raw::until_ready(&mut socket));
    }
    assert_eq!(tags, "CZTTDCZT12DCZTCZI");
    relay.until_at_rest().await;
}

#[tokio::test]
async fn notifications_and_notices_pass() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::open(cluster);
    let parameters = format!(
        "host=127.0.0.1 port={} user=postgres dbname=postgres",
        relay.port
    );
    let (listener, mut connection) = tokio_postgres::connect(&parameters, NoTls).await.unwrap();
    let messages = tokio::spawn(async move {
        let mut messages = Vec::new();
        let mut stream =
            futures_util::stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = stream.next().await {
            match message {
                AsyncMessage::Notice(notice) => messages.push(notice.message().to_owned()),
                AsyncMessage::Notification(told) => {
                    messages.push(told.payload().to_owned());
                    break;
                }
                _ => {}
            }
        }
        messages
    });
    listener
        .batch_execute("listen news; do $$begin raise notice 'noted'; end$$")
        .await
        .unwrap();
    relay.until_at_rest().await;
    relay
        .client()
        .await
        .batch_execute("notify news, 'told'")
        .await
        .unwrap();
    assert_eq!(soon(messages).await.unwrap(), ["noted", "told"]);
    relay.until_at_rest().await;
}

#[tokio::test]
async fn the_programs_of_postgresql_work() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::open(cluster);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows");
    let copy = |way: &str| format!("\\copy programs {way} '{}'", file.display());
    let fill = "create table programs as select generate_series(1, 50000) as number";
    let (to, from) = (copy("to"), copy("from"));
    let commands = [
        "-c",
        fill,
        "-c",
        &to,
        "-c",
        "truncate programs",
        "-c",
        &from,
        "-c",
        "select sum(number) from programs",
        "-c",
        "drop table programs",
    ];
    let output = cluster.psql(relay.port, &[], &commands);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "1250025000",
        "{output:?}"
    );
    let initialised = cluster.program("pgbench", relay.port, &[], &["-i", "-q"]);
    assert!(initialised.status.success(), "{initialised:?}");
    for mode in ["simple", "extended", "prepared"] {
        let output = cluster.program(
            "pgbench",
            relay.port,
            &[],
            &["-n", "-c", "4", "-t", "50", "-M", mode],
        );
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("processed: 200/200"), "{output:?}");
    }
    relay.until_at_rest().await;
}

#[tokio::test]
async fn replication_is_not_gated() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = Relay::start(cluster.port, super::relay::one_at_a_time(), |_| {});
    let mut socket = raw::connect(relay.port);
    let parameters = b"\0\x03\0\0user\0postgres\0replication\0database\0database\0postgres\0\0";
    let length = (parameters.len() as u32 + 4).to_be_bytes();
    socket
        .write_all(&[&length, parameters.as_slice()].concat())
        .unwrap();
    raw::until_ready(&mut socket);
    socket.write_all(&raw::query("IDENTIFY_SYSTEM")).unwrap();
    assert_eq!(raw::tags(&raw::until_ready(&mut socket)), "TDCZI");
    let types = relay.gate.snapshot().types;
    assert!(types.iter().all(|view| view.completed == 0), "{types:?}");
}
