//! Which statements have equal fingerprints, by example and by property.
#![allow(clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn postgres(sql: &str) -> String {
    fingerprint(sql.as_bytes(), Dialect::Postgres)
}

fn mysql(sql: &str) -> String {
    fingerprint(sql.as_bytes(), Dialect::MySql)
}

#[test]
fn a_fingerprint_reads_like_the_statement() {
    for (sql, expected) in [
        (
            "SELECT * FROM Item WHERE a='x' AND b > -1.5 LIMIT 10;",
            "select * from item where a = ? and b > ? limit ?",
        ),
        ("select a - 1, -b, - 1", "select a - ?, - b, ?"),
        (
            "SELECT count( * ) FROM \"T x\" . y",
            "select count(*) from \"T x\".y",
        ),
        (
            "select x from t where id IN (1, $2,'c')",
            "select x from t where id in (...)",
        ),
        (
            "select x where id = ANY($1::int[])",
            "select x where id = any(?[])",
        ),
        (
            "insert into t (a,b) values (1,NULL), (2, true),(3,-4)",
            "insert into t(a, b) values (...)",
        ),
        (
            "insert into t values (1, now()), (2, now())",
            "insert into t values (?, now())",
        ),
        (
            "select array[1,2], f(a, 1, 2, 3)",
            "select array[...], f(a, ?, ...)",
        ),
        ("select 'a'::text::int, b::int", "select ?, b::int"),
        (
            "where a is not NULL and b = null",
            "where a is not null and b = ?",
        ),
        ("begin; select 1;; -- done", "begin; select ?"),
        ("update t set a = a + 1", "update t set a = a + ?"),
        ("(select 1) union (select 2)", "(select ?) union (select ?)"),
        ("", ""),
        (" ;; /* nothing */ ", ""),
    ] {
        assert_eq!(postgres(sql), expected, "{sql}");
    }
    assert_eq!(
        mysql("SELECT `a` FROM `t` WHERE b=\"x\" AND c=@d AND e IN (?,?) # why"),
        "select `a` from `t` where b = ? and c = @d and e in (...)"
    );
}

#[test]
fn where_a_statement_is_cut_makes_no_difference() {
    let whole = postgres("insert into t(a, b) values (1, 'x'), (2, 'y')");
    for cut in [
        "values (1, 'x'), (2, 'y",
        "values (1, 'x'), (2,",
        "values (1, 'x",
    ] {
        assert_eq!(
            postgres(&format!("insert into t(a, b) {cut}")),
            whole,
            "{cut}"
        );
    }
    let long = format!("insert into t(a, b) values (1, '{}')", "x".repeat(1 << 20));
    assert_eq!(postgres(&long), whole);
    let many = format!(
        "insert into t(a, b) values {}(0, 0)",
        "(1, 2), ".repeat(100_000)
    );
    assert_eq!(postgres(&many), whole);
}

#[test]
fn a_long_name_is_cut_and_told_apart_by_its_hash() {
    let columns = (0..40).map(|column| format!("column_{column}"));
    let columns = columns.collect::<Vec<_>>().join(", ");
    let one = postgres(&format!("select {columns} from item where i_id = 7"));
    let other = postgres(&format!("select {columns}, x from item where i_id = 7"));
    assert!(
        one.starts_with("select … from item where i_id = ?… "),
        "{one}"
    );
    assert_ne!(one, other);
    // Estimates are stored under this name, so it must not change between releases.
    assert_eq!(one, "select … from item where i_id = ?… 7cc2a98014");
    let name = postgres(&format!("select * from {}", "ä".repeat(100)));
    assert!(name.len() <= NAME_BYTES_MAX, "{name}");
}

/// A statement in pieces: code stays, constants may be exchanged, lists may grow.
#[derive(Clone, Debug)]
enum Piece {
    Code(&'static str),
    Constant(usize),
    List(usize, usize),
}

/// Constants of which any may replace another.
const CONSTANTS: [&str; 12] = [
    "1",
    "-1",
    "+ 2.5e-3",
    "'x'",
    "'it''s -- /* no comment'",
    "NULL",
    "true",
    "$1",
    "'1'::int",
    "X'1F'",
    "0x10",
    "''",
];
const BLANKS: [&str; 6] = [" ", "\n\t", " /* why */ ", " -- why\n", "  ", "/**/ "];
/// A constant with a sign behind another operand would be a subtraction.
const AFTER_OPERAND: &str = " =";
const CODE: [&str; 8] = [
    "select a from t where b =",
    "and c in",
    "or f(d) <",
    "order by e limit",
    "union all select",
    "values",
    "\"Quoted\" ||",
    "case when g then",
];

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        prop::sample::select(&CODE[..]).prop_map(Piece::Code),
        (0..CONSTANTS.len()).prop_map(Piece::Constant),
        (1..5_usize, 0..CONSTANTS.len()).prop_map(|(length, first)| Piece::List(length, first)),
    ]
}

/// The pieces as text. Each `seed` has its own constants and blanks; an odd one is in upper case.
fn written(pieces: &[Piece], seed: usize) -> String {
    let mut text = String::new();
    let mut number = seed;
    let mut pick = |from: &[&'static str]| {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695);
        from[(number >> 33) % from.len()]
    };
    for piece in pieces {
        match piece {
            Piece::Code(code) if code.contains('"') || seed.is_multiple_of(2) => {
                text.push_str(code)
            }
            Piece::Code(code) => text.push_str(&code.to_uppercase()),
            Piece::Constant(constant) => {
                text.push_str(CONSTANTS[(constant + seed) % CONSTANTS.len()]);
                text.push_str(AFTER_OPERAND);
            }
            Piece::List(length, first) => {
                let elements = (0..(length + seed) % 7 + 1)
                    .map(|at| CONSTANTS[(first + at + seed) % CONSTANTS.len()]);
                text.push_str(&format!(
                    "({})",
                    elements.collect::<Vec<_>>().join(pick(&[",", " , "]))
                ));
                text.push_str(AFTER_OPERAND);
            }
        }
        text.push_str(pick(&BLANKS));
    }
    text
}

proptest! {
    #[test]
    fn equal_up_to_constants_is_equal(pieces in vec(piece(), 0..20), a: u32, b: u32) {
        let (one, other) = (written(&pieces, a as usize), written(&pieces, b as usize));
        prop_assert_eq!(postgres(&one), postgres(&other), "{}\n{}", one, other);
    }

    #[test]
    fn other_code_is_other(pieces in vec(piece(), 0..10), at in 0..10_usize, seed: u32) {
        let mut changed = pieces.clone();
        changed.insert(at.min(pieces.len()), Piece::Code("and another_column is"));
        let (one, other) = (written(&pieces, seed as usize), written(&changed, seed as usize));
        prop_assert_ne!(postgres(&one), postgres(&other));
    }

    #[test]
    fn any_bytes_have_a_short_name_in_one_line(bytes: Vec<u8>, is_mysql: bool) {
        let dialect = if is_mysql { Dialect::MySql } else { Dialect::Postgres };
        let name = fingerprint(&bytes, dialect);
        prop_assert!(name.len() <= NAME_BYTES_MAX);
        prop_assert!(!name.contains(['\n', '\r', '\t']), "{:?}", name);
    }

    #[test]
    fn any_text_of_tokens_has_a_name(text in r#"[-'"`$/*!#\\a1e.?@:()\[\],;\n ]{0,60}"#, is_mysql: bool) {
        let dialect = if is_mysql { Dialect::MySql } else { Dialect::Postgres };
        prop_assert!(fingerprint(text.as_bytes(), dialect).len() <= NAME_BYTES_MAX);
    }
}
