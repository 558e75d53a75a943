//! What passes, passes as without a gate.

use mysql_async::Compression;
use mysql_async::prelude::*;

use shortline_gate::relay::RelayConfig;

use crate::gated::{Gated, PATIENCE, code, connect, narrow};
use crate::raw::{DEPRECATE_EOF, MARIADB, MYSQL, PLAIN, Raw};
use crate::server::{client, shared};

#[tokio::test]
async fn the_program_gets_its_answers() {
    let Some(server) = shared() else { return };
    let gated = Gated::new(server.address, narrow()).await;
    let mut program = client(
        gated.address,
        "root",
        &["-N", "-e", "SELECT 6 * 7; SELECT 'b'"],
    );
    let output = tokio::task::spawn_blocking(move || program.output().unwrap())
        .await
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "42\nb\n");
    gated.until_empty().await;
    assert_eq!(gated.ended("SELECT 6 * 7"), (1, 0));
    assert!(gated.end().await);
}

#[tokio::test]
async fn text_and_binary_protocol_pass() {
    let Some(server) = shared() else { return };
    let gated = Gated::new(server.address, narrow()).await;
    let mut conn = gated.connect().await;
    let rows: Vec<(u64, String)> = conn
        .query("SELECT seq, REPEAT('x', seq) FROM shop.seq_1_to_1000")
        .await
        .unwrap();
    assert_eq!((rows.len(), rows[999].1.len()), (1000, 1000));
    let rows: Vec<(u64, Option<String>)> = conn
        .exec(
            "SELECT seq, IF(seq > ?, NULL, 'a') FROM shop.seq_1_to_10",
            (5,),
        )
        .await
        .unwrap();
    assert_eq!(rows.iter().filter(|row| row.1.is_none()).count(), 5);
    let missing = conn
        .query_drop("SELECT * FROM shop.missing")
        .await
        .unwrap_err();
    assert_eq!(code(&missing), Some(1146));
    let mut results = conn
        .query_iter("SELECT 1; DO 1; SELECT 2 UNION SELECT 3")
        .await
        .unwrap();
    let first: Vec<u8> = results.collect().await.unwrap();
    let none: Vec<u8> = results.collect().await.unwrap();
    let last: Vec<u8> = results.collect().await.unwrap();
    assert_eq!((first, none, last), (vec![1], vec![], vec![2, 3]));
    drop(results);
    conn.ping().await.unwrap();
    conn.reset().await.unwrap();
    conn.disconnect().await.unwrap();
    gated.until_empty().await;
    assert!(gated.end().await);
}

#[tokio::test]
async fn packets_above_16_mb_pass_both_ways_compressed_or_not() {
    let Some(server) = shared() else { return };
    let gated = Gated::new(server.address, narrow()).await;
    for compression in [None, Some(Compression::fast())] {
        let mut conn = gated
            .try_connect(|options| options.compression(compression))
            .await
            .unwrap();
        for length in [(1 << 24) - 1, (1 << 24) - 30, 40_000_000] {
            let sent = "ab".repeat(length / 2);
            let (back, count): (String, usize) = conn
                .exec_first("SELECT ?, LENGTH(?)", (&sent, &sent))
                .await
                .unwrap()
                .unwrap();
            assert!(
                back == sent && count == sent.len(),
                "{length} {compression:?}"
            );
        }
        let text = format!("SELECT LENGTH('{}')", "c".repeat(20_000_000));
        let length: Option<usize> = conn.query_first(text).await.unwrap();
        assert_eq!(length, Some(20_000_000));
        conn.disconnect().await.unwrap();
    }
    gated.until_empty().await;
}

#[tokio::test]
async fn the_program_compresses_and_loads_files() {
    let Some(server) = shared() else { return };
    let gated = Gated::new(server.address, narrow()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows");
    let rows: String = (0..200_000)
        .map(|row| format!("{row}\tname of {row}\n"))
        .collect();
    std::fs::write(&file, rows).unwrap();
    for option in ["--compress", "--skip-compress"] {
        let statements = format!(
            "CREATE OR REPLACE TABLE shop.rows (id INT, name TEXT);
             LOAD DATA LOCAL INFILE '{}' INTO TABLE shop.rows; SELECT 'next';
             SELECT COUNT(*), SUM(id) FROM shop.rows; SELECT * FROM shop.rows ORDER BY id DESC",
            file.display()
        );
        let options = ["-N", "--local-infile=1", option, "-e", &statements];
        let mut program = client(gated.address, "root", &options);
        let output = tokio::task::spawn_blocking(move || program.output().unwrap())
            .await
            .unwrap();
        let (text, error) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(
            text.starts_with("next\n200000\t19999900000\n199999\t"),
            "{option} {error}"
        );
        assert_eq!(text.lines().count(), 200_002);
    }
    gated.until_empty().await;
}

/// Commands as they go over the wire, each on a fresh connection, answered the same with and
/// without a gate. Every one is followed by another before its answer was read.
#[tokio::test]
async fn every_command_is_answered_as_without_a_gate() {
    let Some(server) = shared() else { return };
    let mut direct = connect(server.address, |options| options).await.unwrap();
    for statement in [
        "CREATE TABLE shop.t (a INT, b TEXT)",
        "INSERT INTO shop.t VALUES (1, 'x'), (2, NULL), (3, 'y')",
        "CREATE PROCEDURE shop.two() BEGIN SELECT a FROM shop.t; SELECT b FROM shop.t; END",
    ] {
        direct.query_drop(statement).await.unwrap();
    }
    let gated = Gated::new(server.address, narrow()).await;
    let prepare = |text: &str| [b"\x16", text.as_bytes()].concat();
    let execute = |flags: u8| [b"\x17\x01\0\0\0", &[flags][..], b"\x01\0\0\0"].concat();
    let select = prepare("SELECT a, b FROM shop.t");
    let cases: Vec<Vec<Vec<u8>>> = vec![
        vec![b"\x03SELECT 1, 'a' FROM shop.t".to_vec()],
        vec![b"\x03SELECT 1; SELECT 2; DO 1".to_vec()],
        vec![b"\x03SELECT 1; SELECT nope; SELECT 2".to_vec()],
        vec![
            b"\x03CALL shop.two()".to_vec(),
            prepare("CALL shop.two()"),
            execute(0),
        ],
        vec![
            b"\x03DO 1".to_vec(),
            b"\x03".to_vec(),
            b"".to_vec(),
            b"\x55".to_vec(),
        ],
        vec![
            select.clone(),
            execute(0),
            execute(0),
            b"\x1a\x01\0\0\0".to_vec(),
        ],
        // With a cursor: one row, then the rest; and without one the fetch fails.
        vec![
            select.clone(),
            execute(1),
            b"\x1c\x01\0\0\0\x01\0\0\0".to_vec(),
            b"\x1c\x01\0\0\0\x09\0\0\0".to_vec(),
            b"\x1c\x01\0\0\0\x09\0\0\0".to_vec(),
        ],
        vec![select.clone(), b"\x19\x01\0\0\0".to_vec(), execute(0)],
        vec![
            prepare("SELECT ?"),
            b"\x18\x01\0\0\0\0\0long".to_vec(),
            b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\xfe\0".to_vec(),
        ],
        vec![
            prepare("nonsense"),
            prepare("BEGIN"),
            execute(0),
            b"\x03ROLLBACK".to_vec(),
        ],
        vec![
            prepare("SELECT a FROM shop.t"),
            b"\x17\xff\xff\xff\xff\0\x01\0\0\0".to_vec(),
        ],
        vec![
            b"\x02shop".to_vec(),
            b"\x04t\0".to_vec(),
            b"\x04missing\0".to_vec(),
            b"\x02nope".to_vec(),
        ],
        vec![
            b"\x0e".to_vec(),
            b"\x1b\x01\0".to_vec(),
            b"\x0d".to_vec(),
            b"\x1f".to_vec(),
        ],
        vec![select, b"\x1f".to_vec(), execute(0)],
        vec![
            b"\x0c\xff\xff\xff\x7f".to_vec(),
            b"\x03KILL 123456".to_vec(),
        ],
        // As somebody else: a user without a password, then nobody.
        vec![
            b"\x11root\0\0shop\0\x2d\0mysql_native_password\0".to_vec(),
            b"\x03SELECT DATABASE()".to_vec(),
        ],
        vec![
            b"\x03SET autocommit=0".to_vec(),
            b"\x03SELECT COUNT(*) FROM shop.t".to_vec(),
            b"\x03COMMIT".to_vec(),
        ],
        // Bulk execution of one column with two rows: types, no indicators.
        vec![
            b"\x03BEGIN".to_vec(),
            prepare("INSERT INTO shop.t (a) VALUES (?)"),
            b"\xfa\x01\0\0\0\x80\0\x03\0\0\x07\0\0\0\0\x08\0\0\0".to_vec(),
            b"\x03ROLLBACK".to_vec(),
        ],
    ];
    for capabilities in [
        PLAIN | MYSQL,
        PLAIN | MYSQL | DEPRECATE_EOF,
        PLAIN | MARIADB,
        PLAIN | MARIADB | DEPRECATE_EOF,
    ] {
        for commands in &cases {
            let mut direct = Raw::connect(server.address, capabilities).await;
            let mut through = Raw::connect(gated.address, capabilities).await;
            let (mut of_direct, mut of_through) = (1, 1);
            for command in commands {
                if command.starts_with(b"\x11") {
                    for raw in [&mut direct, &mut through] {
                        assert_eq!(change_user(raw, command).await, 0);
                    }
                    continue;
                }
                direct.write(0, &numbered(command, of_direct)).await;
                through.write(0, &numbered(command, of_through)).await;
                let expected = tokio::time::timeout(PATIENCE, direct.read_all()).await;
                let expected = expected.unwrap_or_else(|_| panic!("{command:x?} {capabilities:x}"));
                let expected = prepared(command, expected, &mut of_direct);
                let answer = tokio::time::timeout(PATIENCE, through.read_all()).await;
                let answer = answer.map(|answer| prepared(command, answer, &mut of_through));
                let what = String::from_utf8_lossy(command);
                assert_eq!(answer.as_ref(), Ok(&expected), "{what} {capabilities:x}");
            }
        }
    }
    gated.until_empty().await;
}

/// Authenticates anew, which is an exchange that nothing may come between; the verdict's first byte.
async fn change_user(raw: &mut Raw, command: &[u8]) -> u8 {
    raw.write(0, command).await;
    let (mut number, mut verdict) = raw.read().await;
    // The server names the method again; no password is an empty packet.
    if verdict.starts_with(&[0xfe]) {
        raw.write(number + 1, b"").await;
        (number, verdict) = raw.read().await;
        assert_eq!(number, 3);
    }
    verdict[0]
}

/// The command, with the number that the server gave the statement in the place of 1. A thread of
/// the server goes on counting with its next connection.
fn numbered(command: &[u8], statement: u32) -> Vec<u8> {
    let mut command = command.to_vec();
    let is_numbered = matches!(
        <[u8]>::first(&command),
        Some(0x17 | 0x18 | 0x19 | 0x1a | 0x1c | 0xfa)
    );
    if is_numbered && command[1..5] == 1_u32.to_le_bytes() {
        command[1..5].copy_from_slice(&statement.to_le_bytes());
    }
    command
}

/// The answer, with 1 in the place of the number that was given.
fn prepared(
    command: &[u8],
    mut answer: Vec<(u8, Vec<u8>)>,
    statement: &mut u32,
) -> Vec<(u8, Vec<u8>)> {
    if let (Some(&0x16), Some((_, first))) = (<[u8]>::first(command), answer.first_mut())
        && first[0] == 0
    {
        *statement = u32::from_le_bytes([first[1], first[2], first[3], first[4]]);
        first[1..5].copy_from_slice(&1_u32.to_le_bytes());
    }
    // The texts of errors name the number too: their codes will do.
    for (_, packet) in &mut answer {
        if packet.starts_with(&[0xff]) {
            packet.truncate(9);
        }
    }
    answer
}

/// A replica's connection: what follows is no exchange of commands and responses.
#[tokio::test]
async fn a_binlog_passes_untouched() {
    let Some(server) = shared() else { return };
    let gated = Gated::new(server.address, narrow()).await;
    let mut replica = Raw::connect(gated.address, PLAIN | MYSQL).await;
    replica.query("SET @master_binlog_checksum = 'NONE'").await;
    assert_eq!(replica.read().await.1[0], 0);
    let hold = gated.gate.admit(gated.gate.type_of("hold")).await.unwrap();
    let dump = [b"\x12\x04\0\0\0\0\0\x07\0\0\0".as_slice(), b"binlog.000001"].concat();
    replica.write(0, &dump).await;
    let mut events = Vec::new();
    while !String::from_utf8_lossy(&events).contains("CREATE DATABASE shop") {
        let (_, event) = replica.read().await;
        assert_eq!(event[0], 0, "{:?}", String::from_utf8_lossy(&event));
        events.extend(event);
    }
    drop(replica);
    drop(hold);
    gated.until_empty().await;
    assert!(gated.end().await);
}

#[tokio::test]
async fn the_server_is_told_who_the_client_is() {
    let Some(server) = shared() else { return };
    let announcing = |config: &mut RelayConfig| config.announces_clients = true;
    let gated = Gated::with(server.address, narrow(), announcing).await;
    let mut conn = gated.connect().await;
    let asked = "SELECT HOST FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()";
    let told: Option<String> = conn.query_first(asked).await.unwrap();
    let clients = gated.registry.clients();
    let peer = clients[0].about.peer.unwrap();
    assert_eq!((clients.len(), told), (1, Some(peer.to_string())));
    drop(conn);
    assert!(gated.end().await);
}
