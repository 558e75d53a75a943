//! Finds by its text whether a statement may change the session. If so, the server must be asked afterwards, and
//! about which parameters.
//!
//! In doubt, the server is asked. A function of the user's that changes the session goes unnoticed. Poolers that
//! parse SQL do not notice it either.

use super::super::control::{behind_blanks, is_of_name};
use super::super::messages::text;

/// Whether a statement may change session state that outlasts its transaction. It does if it, or a part after a
/// semicolon, begins with one of certain words. It also does if a name of certain functions and of temporary
/// tables occurs anywhere.
pub fn leaves_state(statement: &[u8]) -> bool {
    let mut parts = statement.split(|byte| *byte == b';');
    parts.any(begins_with_state) || names_state(statement)
}

/// Whether a command with this tag (of CommandComplete) may have changed session state.
pub fn tag_leaves_state(tag: &[u8]) -> bool {
    let (tag, _) = text(tag);
    let first = tag.split(|byte| *byte == b' ').next().unwrap_or_default();
    FIRST.iter().any(|word| word.as_bytes() == first)
}

/// First words, in capitals.
const FIRST: [&str; 12] = [
    "SET",
    "RESET",
    "LISTEN",
    "UNLISTEN",
    "PREPARE",
    "DEALLOCATE",
    "DECLARE",
    "CLOSE",
    "LOAD",
    "DISCARD",
    "DO",
    "CALL",
];

/// Words after `SET` that limit it to the transaction.
const OF_TRANSACTION: [&str; 3] = ["LOCAL", "TRANSACTION", "CONSTRAINTS"];

fn begins_with_state(part: &[u8]) -> bool {
    let (word, rest) = first_word(part);
    let is = |one: &[u8], other: &str| one.eq_ignore_ascii_case(other.as_bytes());
    if !FIRST.iter().any(|first| is(word, first)) {
        return false;
    }
    let (second, _) = first_word(rest);
    !is(word, "SET") || !OF_TRANSACTION.iter().any(|scope| is(second, scope))
}

fn first_word(bytes: &[u8]) -> (&[u8], &[u8]) {
    let bytes = behind_blanks(bytes);
    let end = bytes.iter().position(|byte| !is_of_name(*byte));
    bytes.split_at(end.unwrap_or(bytes.len()))
}

/// Names in lower case, and whether longer names with this prefix count, too.
const NAMES: [(&[u8], bool); 8] = [
    (b"temp", false),
    (b"temporary", false),
    (b"pg_temp", true),
    (b"set_config", false),
    (b"pg_advisory_lock", true),
    (b"pg_try_advisory_lock", true),
    (b"pg_advisory_unlock", true),
    (b"dblink", true),
];

fn names_state(statement: &[u8]) -> bool {
    let mut at = 0;
    while at < statement.len() {
        let rest = &statement[at..];
        let length = rest
            .iter()
            .position(|byte| !is_of_name(*byte))
            .unwrap_or(rest.len());
        let name = &rest[..length];
        let is_named = NAMES.iter().any(|(known, is_prefix)| {
            let begins =
                name.len() >= known.len() && name[..known.len()].eq_ignore_ascii_case(known);
            begins && (*is_prefix || name.len() == known.len())
        });
        if is_named {
            return true;
        }
        at += length.max(1);
    }
    false
}

/// The names with a dot anywhere in a statement, also in strings, in lower case. A name whose parts are quoted
/// separately is not found. None if a name may be computed.
pub fn own_names(statement: &[u8]) -> Option<Vec<Box<[u8]>>> {
    let is_of_name = |byte: &u8| is_of_name(*byte) || *byte == b'.';
    let mut names: Vec<Box<[u8]>> = Vec::new();
    let mut at = 0;
    while at < statement.len() {
        let rest = &statement[at..];
        let length = rest.iter().position(|byte| !is_of_name(byte));
        let length = length.unwrap_or(rest.len());
        let name = rest[..length].to_ascii_lowercase();
        if name.ends_with(b"set_config") && !has_literal_argument(&rest[length..]) {
            return None;
        }
        let is_own = name[..length.saturating_sub(1)].contains(&b'.') && !name.starts_with(b".");
        if is_own && !name[0].is_ascii_digit() && !names.iter().any(|known| **known == *name) {
            names.push(name.into());
        }
        at += length.max(1);
    }
    (names.len() <= OWN_NAMES_MAX).then_some(names)
}

/// The most names with a dot in one statement that the server is asked about.
const OWN_NAMES_MAX: usize = 64;

/// Whether a function's first argument is a plain string literal.
fn has_literal_argument(bytes: &[u8]) -> bool {
    let blank = |bytes: &[u8]| {
        bytes
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count()
    };
    let open = blank(bytes);
    let Some(rest) = bytes[open..].strip_prefix(b"(") else {
        // The name without parentheses is not a call.
        return true;
    };
    let Some(rest) = rest[blank(rest)..].strip_prefix(b"'") else {
        return false;
    };
    let Some(end) = rest.iter().position(|byte| *byte == b'\'') else {
        return false;
    };
    let behind = &rest[end + 1..];
    behind[blank(behind)..].starts_with(b",")
        && rest[..end]
            .iter()
            .all(|byte| is_of_name(*byte) || *byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_may_outlast_its_transaction_is_seen() {
        for statement in [
            "SET search_path = a",
            "  /* why */ set timezone to 'UTC'",
            "select 1; SET x = 1",
            "-- a\nRESET ALL",
            "LISTEN jobs",
            "CREATE TEMP TABLE a ()",
            "select * into temporary a from b",
            "create function pg_temp.f() returns int",
            "select pg_catalog.set_config('a', 'b', false)",
            "SELECT pg_advisory_lock_shared(1)",
            "PREPARE a AS SELECT 1",
            "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
            "DISCARD ALL",
            "DO $$ begin end $$",
            "call p()",
        ] {
            assert!(leaves_state(statement.as_bytes()), "{statement}");
        }
        for statement in [
            "UPDATE a SET b = 1",
            "update a\nset b = ';'",
            "SET LOCAL a = 1",
            "set transaction read only",
            "SET CONSTRAINTS ALL DEFERRED",
            "SELECT template, temperature FROM attempts",
            "SELECT pg_advisory_xact_lock(1)",
            "BEGIN; INSERT INTO a VALUES (1)",
            "",
        ] {
            assert!(!leaves_state(statement.as_bytes()), "{statement}");
        }
        assert!(tag_leaves_state(b"SET\0") && tag_leaves_state(b"DECLARE CURSOR\0"));
        assert!(!tag_leaves_state(b"SELECT 1\0") && !tag_leaves_state(b"CREATE TABLE\0"));
    }

    #[test]
    fn names_with_a_dot_are_found_wherever_they_are() {
        let names = |statement: &str| {
            let names = own_names(statement.as_bytes())?;
            Some(
                names
                    .iter()
                    .map(|name| String::from_utf8_lossy(name).into_owned())
                    .collect::<Vec<_>>(),
            )
        };
        let found = |found: &[&str]| {
            Some(
                found
                    .iter()
                    .map(|name| (*name).to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(names("SET My.Own = 1.5"), found(&["my.own"]));
        assert_eq!(
            names("select pg_catalog.set_config('a.b', c.d, false)"),
            found(&["pg_catalog.set_config", "a.b", "c.d"])
        );
        assert_eq!(
            names("do $$ begin perform set_config( 'a.b' , '1', true); end $$"),
            found(&["a.b"])
        );
        assert_eq!(names("select set_config($1, $2, false)"), None);
        assert_eq!(names("select set_config('a.' || b, c, false)"), None);
        assert_eq!(names("select set_config('a.b' || b, c, false)"), None);
        assert_eq!(names("set timezone = 'UTC'"), found(&[]));
        let many: Vec<String> = (0..65).map(|number| format!("a.b{number}")).collect();
        assert_eq!(names(&many.join(" ")), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            leaves_state(&bytes);
            own_names(&bytes);
            tag_leaves_state(&bytes);
        }

        /// Text before a semicolon hides nothing after it.
        #[test]
        fn a_later_part_is_seen(before in "[a-z' ]{0,20}") {
            let statement = format!("{before};set a = 1");
            prop_assert!(leaves_state(statement.as_bytes()));
        }
    }
}
