//! The statements that clients of MySQL's pool send.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::gate::scenario::pick;

/// What is set, and to what.
const SETTINGS: [(&str, &[&str]); 11] = [
    (
        "time_zone",
        &["'+01:00'", "'-02:00'", "'SYSTEM'", "'nowhere'"],
    ),
    ("sql_mode", &["''", "'ANSI'", "'NO_BACKSLASH_ESCAPES'"]),
    ("autocommit", &["0", "0", "1", "OFF"]),
    ("sql_select_limit", &["0", "1", "2"]),
    ("max_statement_time", &["5", "0.5"]),
    ("completion_type", &["'CHAIN'", "0"]),
    (
        "tx_isolation",
        &["'SERIALIZABLE'", "'READ-COMMITTED'", "'NONE'"],
    ),
    ("tx_read_only", &["1", "0"]),
    ("group_concat_max_len", &["5000"]),
    ("lc_time_names", &["'de_DE'"]),
    ("collation_connection", &["'latin1_bin'", "'utf8mb4_bin'"]),
];

/// The number of a statement, how long it takes, and the bytes of its answer.
pub fn arguments(random: &mut ChaCha8Rng, number: &mut u64, may_be_long: bool) -> String {
    *number += 1;
    let us = match may_be_long && random.random_bool(0.3) {
        true => random.random_range(5_000..80_000),
        false => random.random_range(100..5_000),
    };
    let bytes = *pick(random, &[1, 1, 200, 9_000, 40_000]);
    format!("{number}, {us}, {bytes}")
}

/// A statement that works, fails or looks.
pub fn simple(random: &mut ChaCha8Rng, number: &mut u64) -> String {
    let arguments = arguments(random, number, true);
    match random.random_range(0..20) {
        0..8 => format!("select work({arguments})"),
        8..11 => format!("select state({arguments})"),
        11 | 12 => format!("select fail({arguments})"),
        13 | 14 => format!("insert into one.t set x=work({arguments})"),
        15 => format!("insert into one.t set x=fail({arguments})"),
        16 => format!("selec {number}"),
        17 => format!("select '@a, call; temporary', state({arguments})"),
        18 => format!("set statement max_statement_time=9 for select work({arguments})"),
        _ => looks(random).to_owned(),
    }
}

fn looks(random: &mut ChaCha8Rng) -> &'static str {
    let texts = [
        "select @@time_zone, @@session.sql_mode",
        "select database(), last_insert_id()",
        "select @@autocommit, @@tx_isolation, current_role()",
        "select @@character_set_results, @@collation_connection",
        "select @@nothing",
        "do 0",
    ];
    pick::<&str>(random, &texts)
}

/// All that a session sees of itself.
pub fn state(random: &mut ChaCha8Rng, number: &mut u64) -> String {
    format!("select state({})", arguments(random, number, false))
}

/// Changes the session, and leaves nothing at its connection.
pub fn set(random: &mut ChaCha8Rng, number: &mut u64) -> String {
    match random.random_range(0..24) {
        0..10 => format!("set {}", assignment(random)),
        10 | 11 => format!("set {}, {}", assignment(random), assignment(random)),
        12 | 13 => (*pick(
            random,
            &[
                "set names latin1",
                "set names 'utf8mb4' collate utf8mb4_bin",
                "set character_set_results=null",
                "set names klingon",
            ],
        ))
        .to_owned(),
        14 => "set session transaction isolation level read committed".to_owned(),
        15 => "set session transaction read only".to_owned(),
        16 => "set autocommit=1, completion_type=0, tx_read_only=0, sql_select_limit=default"
            .to_owned(),
        17 => format!("set last_insert_id={}", random.random_range(1..1000)),
        18 => format!("select last_insert_id({})", random.random_range(1..1000)),
        19 | 20 => (*pick(random, &["use one", "use two", "use nothing"])).to_owned(),
        _ => insert(random, number),
    }
}

fn insert(random: &mut ChaCha8Rng, number: &mut u64) -> String {
    let arguments = arguments(random, number, false);
    format!("insert into one.t set x=work({arguments})")
}

fn assignment(random: &mut ChaCha8Rng) -> String {
    let (name, values) = pick(random, &SETTINGS);
    match random.random_bool(0.2) {
        true => format!("{name}=default"),
        false => format!("{name}={}", pick(random, values)),
    }
}

/// Leaves something at the connection, or takes it away.
pub fn keeps(random: &mut ChaCha8Rng, index: usize, number: &mut u64) -> String {
    let texts = [
        "create temporary table t1".to_owned(),
        "select a from t1".to_owned(),
        "drop temporary table t1".to_owned(),
        "set @a=1".to_owned(),
        "select @a := 2".to_owned(),
        "/* it's */ select @b := 3".to_owned(),
        "select @a, @b".to_owned(),
        format!("select get_lock('l{index}', 0)"),
        format!("select release_lock('l{index}')"),
        "lock tables t write".to_owned(),
        "unlock tables".to_owned(),
        "prepare p from 'select 1'".to_owned(),
        "execute p".to_owned(),
        "deallocate prepare p".to_owned(),
        "set role boss".to_owned(),
        "set role none".to_owned(),
        "call leave()".to_owned(),
        "set rand_seed1=7".to_owned(),
        "set transaction read only".to_owned(),
        "set transaction isolation level serializable".to_owned(),
        "select @a := 5; selec".to_owned(),
        "select /*!50000 @c := 4 */".to_owned(),
        block(random, number),
    ];
    pick(random, &texts).clone()
}

/// Statements of which the last may fail when the first has set something.
fn block(random: &mut ChaCha8Rng, number: &mut u64) -> String {
    let what = *pick(random, &["work", "fail", "fail"]);
    let arguments = arguments(random, number, false);
    let set = assignment(random);
    format!("begin not atomic set {set}; select {what}({arguments}); end")
}

/// Several statements in one text.
pub fn several(random: &mut ChaCha8Rng, number: &mut u64) -> String {
    let parts = random.random_range(2..=3);
    let mut texts: Vec<String> = Vec::new();
    for _ in 0..parts {
        let text = match random.random_range(0..5) {
            // One alone can be interrupted.
            0 if !texts.iter().any(|text| text.contains('(')) => simple(random, number),
            1 => looks(random).to_owned(),
            2 => {
                let texts = [
                    "begin",
                    "commit",
                    "rollback",
                    "use two",
                    "select last_insert_id(5)",
                ];
                (*pick(random, &texts)).to_owned()
            }
            _ => format!("set {}", assignment(random)),
        };
        texts.push(text);
    }
    texts.join("; ")
}

/// The beginning and the end of a transaction.
pub fn begin(random: &mut ChaCha8Rng) -> &'static str {
    let texts = [
        "begin",
        "begin",
        "begin work",
        "begin ;",
        "/* why */ begin",
        "start transaction",
        "start transaction read only",
        "start transaction with consistent snapshot",
    ];
    pick::<&str>(random, &texts)
}

/// Its end.
pub fn end(random: &mut ChaCha8Rng) -> &'static str {
    let texts = [
        "commit",
        "commit",
        "rollback",
        "rollback work",
        "commit;",
        "/* why */ commit",
        "commit and chain",
        "commit and no chain",
    ];
    pick::<&str>(random, &texts)
}

/// A text to prepare, and whether it has a parameter.
pub fn to_prepare(random: &mut ChaCha8Rng) -> &'static str {
    let texts = [
        "select work(?)",
        "select work(?)",
        "select state(?)",
        "select fail(?)",
        "insert into one.t set x=work(?)",
        "selec ?",
        "set time_zone='+03:00'",
        "select @@time_zone, database()",
        "select last_insert_id(77)",
        "use two",
    ];
    pick::<&str>(random, &texts)
}
