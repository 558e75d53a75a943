//! What each form of log comes to, whole and torn.
#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

fn read(log: &[u8]) -> (Vec<Entry>, PassedOver) {
    let mut reader = Reader::default();
    let mut entries = Vec::new();
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        reader.line(line, &mut |entry| entries.push(entry));
    }
    reader.end(&mut |entry| entries.push(entry));
    (entries, reader.passed)
}

/// Duration and text of each.
fn statements(log: &str) -> Vec<(f64, String)> {
    let (entries, passed) = read(log.as_bytes());
    assert_eq!(passed.bad, 0, "{passed:?}");
    let shown = |entry: &Entry| {
        let text = String::from_utf8_lossy(&entry.text).into_owned();
        (entry.duration_ms, text)
    };
    entries.iter().map(shown).collect()
}

#[test]
fn the_text_log_of_postgresql_is_read() {
    let log = "\
2026-11-26 16:43:35.100 UTC [7] LOG:  database system is ready
2026-11-26 16:43:35.123 UTC [7] LOG:  duration: 0.421 ms  statement: SELECT 1,
\t  'a: b'
2026-11-26 16:43:35.124 UTC [7] LOG:  duration: 0.100 ms  parse s1: SELECT $1
2026-11-26 16:43:35.124 UTC [7] LOG:  duration: 0.100 ms  bind s1: SELECT $1
2026-11-26 16:43:35.125 UTC [7] LOG:  duration: 7 ms  execute s1/p: SELECT $1
2026-11-26 16:43:35.125 UTC [7] DETAIL:  parameters: $1 = '5'
2026-11-26 16:43:35.126 UTC [7] LOG:  duration: 9 ms
";
    let want = [
        (0.421, "SELECT 1,\n  'a: b'".to_owned()),
        (7.0, "SELECT $1".to_owned()),
    ];
    assert_eq!(statements(log), want);
    let told = read(log.as_bytes()).1.told();
    assert_eq!(
        told,
        [
            "5 left out that are no statement with its duration: 2 other messages, 2 parse and bind steps, 1 without a statement"
        ]
    );
}

#[test]
fn prefixes_and_indents_of_all_sorts_are_read() {
    let log = "\
2021-05-27 17:00:00 UTC:192.0.2.7:u@d:[24743]:LOG: duration: 0.054 ms statement: SELECT 1
2021-05-27 17:00:01 UTC [7] u@d LOG:  duration: 0.055 ms  statement: SELECT
        2
2021-05-27 17:00:02 UTC [7] u@d ERROR:  no \"LOG:  duration: 1 ms  statement: SELECT 3\"
";
    let want = [
        (0.054, "SELECT 1".to_owned()),
        (0.055, "SELECT\n        2".to_owned()),
    ];
    assert_eq!(statements(log), want);
}

const CSV: &str = "\
2026-11-26 16:43:35.123 UTC,\"u\",\"d\",7,\"[local]\",6a,1,\"SELECT\",2026-11-26 16:43:35 UTC,3/2,0,LOG,00000,\"duration: 0.421 ms  \
statement: SELECT \"\"a\"\",\n  1\",,,,,,,,,\"psql\",\"client backend\",,0\n";

#[test]
fn csvlog_and_jsonlog_are_read() {
    assert_eq!(statements(CSV), [(0.421, "SELECT \"a\",\n  1".to_owned())]);
    let json = concat!(
        r#"{"timestamp":"2026-11-26 16:43:35.123 UTC","error_severity":"LOG","#,
        r#""message":"duration: 0.421 ms  statement: SELECT \"a\"\n"}"#
    );
    assert_eq!(statements(json), [(0.421, "SELECT \"a\"\n".to_owned())]);
}

#[test]
fn slow_query_logs_are_read() {
    let mysql = "\
/usr/sbin/mysqld, Version: 8.4.0. started with:
Tcp port: 3306  Unix socket: /tmp/s
Time                 Id Command    Argument
# Time: 2026-11-26T16:43:35.123456Z
# User@Host: app[app] @ localhost [192.0.2.7]  Id:     8
# Query_time: 0.000421  Lock_time: 0.000002 Rows_sent: 1  Rows_examined: 1
use shop;
SET timestamp=1795711415;
SELECT 1
  FROM t;
# Time: 2026-11-26T16:43:36.000001Z
# User@Host: app[app] @ localhost []  Id:     8
# Query_time: 1.5  Lock_time: 0
SET timestamp=1795711416;
# administrator command: Quit;
";
    assert_eq!(
        statements(mysql),
        [(0.421, "SELECT 1\n  FROM t;".to_owned())]
    );
    let mariadb = "\
# Time: 261126 16:43:35
# User@Host: app[app] @ localhost []
# Thread_id: 5  Schema: shop  QC_hit: No
# Query_time: 0.002000  Lock_time: 0.000012  Rows_sent: 1  Rows_examined: 0
# Rows_affected: 0  Bytes_sent: 60
SET timestamp=1795711415;
SELECT 2;
# User@Host: app[app] @ localhost []
# Query_time: 0.003  Lock_time: 0
SELECT 3;
";
    let (entries, _) = read(mariadb.as_bytes());
    let ends: Vec<_> = entries
        .iter()
        .map(|entry| (entry.end.unix_us / 1_000_000, entry.end.is_whole))
        .collect();
    assert_eq!(ends, [(1_795_711_415, true); 2]);
    assert_eq!(statements(mariadb).len(), 2);
}

#[test]
fn what_is_torn_or_mixed_costs_what_it_is() {
    let whole = "2026-11-26 16:43:35.123 UTC [7] LOG:  duration: 1 ms  statement: SELECT 1\n";
    let torn = [
        // The beginning and the end of lines that were cut.
        "16:43:35.123 UTC [7] LOG:  duration: 1 ms  statement: SELECT 1\n",
        &whole[..40],
        "\n",
        // A record whose quote stays open, and a whole one.
        &CSV[..130],
        "\n",
        CSV,
        whole,
        "{\"timestamp\":\n",
        "# Query_time: soon\n",
        whole,
    ]
    .concat();
    let (entries, passed) = read(torn.as_bytes());
    assert_eq!(entries.len(), 3, "{entries:?}");
    assert_eq!(
        (passed.bad, passed.left_out[&LeftOut::NoTime]),
        (3, 1),
        "{passed:?}"
    );
    let garbage = [&[0xff, 0, 0x80, b'\n'][..], whole.as_bytes(), &[0x1f, 0x8b]].concat();
    let (entries, passed) = read(&garbage);
    assert_eq!((entries.len(), passed.bad), (1, 2));
}

proptest! {
    #[test]
    fn no_log_panics_and_texts_are_bounded(
        pieces in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            Just(CSV.as_bytes().to_vec()),
            Just(b"# Query_time: 1\nSELECT 1;\n".to_vec()),
            Just(b"2026-11-26 16:43:35.123 UTC [7] LOG:  duration: 1 ms  statement: SELECT\n\t1\n".to_vec()),
            Just(b"\n".to_vec()),
        ], 0..12)
    ) {
        let (entries, passed) = read(&pieces.concat());
        prop_assert!(entries.iter().all(|entry| entry.text.len() <= STATEMENT_BYTES_MAX));
        prop_assert!(passed.told().iter().all(|line| line.lines().count() == 1));
    }
}
