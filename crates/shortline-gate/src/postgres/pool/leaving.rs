//! Finds by its text whether a statement may change the session. If so, the server must be asked afterwards, and
//! about which parameters.
//!
//! In doubt, the server is asked. A function of the user's that changes the session goes unnoticed. Poolers that
//! parse SQL do not notice it either.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::super::control::is_of_name;
use super::super::messages::text;

/// Matches each statement that may change the session by more than its first word, and few others. Of a statement that it does
/// not match, which are nearly all, nothing else need be read.
static MAY: LazyLock<Regex> = LazyLock::new(|| {
    let may = r#"(?i-u)temp|set_config|pg_settings|pg_(?:try_)?advisory_|dblink|u&["']|;\s*[^\s;]|\*/|--"#;
    Regex::new(may).expect("invariant: the pattern is well formed")
});

/// Whether a statement may change session state that outlasts its transaction. It does if one of certain words
/// begins it. A statement may begin after a semicolon or a comment, also of a string. It also does if a name of
/// certain functions and of temporary tables occurs anywhere, or an identifier with escapes (`U&"..."`).
pub fn leaves_state(statement: &[u8]) -> bool {
    match MAY.is_match(statement) {
        true => leaves_state_by_words(statement),
        false => {
            let first = words(statement).next();
            first.is_some_and(|word| word.begins_with_state())
        }
    }
}

fn leaves_state_by_words(statement: &[u8]) -> bool {
    has_escaped_name(statement)
        || words(statement).any(|word| word.begins_with_state() || word.is_of_state())
}

/// Functions of large objects, by `pg_proc.oid`. Programs call them without SQL (libpq's `lo_open` and its like).
const OF_LARGE_OBJECTS: [u32; 13] = [
    715, 952, 953, 954, 955, 956, 957, 958, 964, 1004, 3170, 3171, 3172,
];

/// Whether a FunctionCall with this body may change session state. Any function may, but for those of large objects.
pub fn call_leaves_state(body: &[u8]) -> bool {
    let function = body.first_chunk().map(|oid| u32::from_be_bytes(*oid));
    !function.is_some_and(|function| OF_LARGE_OBJECTS.contains(&function))
}

/// Whether one of the statements is a DO that executes a text which it may compute.
pub fn runs_text(statement: &[u8]) -> bool {
    words(statement).any(|word| word.is_first && word.is("do"))
        && words(statement).any(|word| word.is("execute"))
}

/// Whether an identifier or a string with Unicode escapes may occur.
pub fn has_escaped_name(statement: &[u8]) -> bool {
    memchr::memchr_iter(b'&', statement).any(|at| {
        let (before, behind) = (statement[..at].last(), statement.get(at + 1));
        matches!((before, behind), (Some(b'u' | b'U'), Some(b'"' | b'\'')))
    })
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

/// A name anywhere in a statement.
struct Word<'a> {
    name: &'a [u8],
    /// A statement may begin with it.
    is_first: bool,
    /// What follows.
    rest: &'a [u8],
}

/// The names of a statement. Strings and comments are not told from the rest.
fn words(statement: &[u8]) -> Words<'_> {
    let mut dashes = memchr::memchr_iter(b'-', statement);
    Words {
        has_dashes: dashes.any(|at| statement.get(at + 1) == Some(&b'-')),
        rest: statement,
        is_first: true,
    }
}

/// See [`words`].
struct Words<'a> {
    rest: &'a [u8],
    is_first: bool,
    /// A comment may end with its line.
    has_dashes: bool,
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let mut is_first = self.is_first;
        loop {
            let (&byte, behind) = self.rest.split_first()?;
            if is_of_name(byte) {
                let length = behind.iter().position(|byte| !is_of_name(*byte));
                let (name, rest) = self.rest.split_at(length.unwrap_or(behind.len()) + 1);
                (self.rest, self.is_first) = (rest, false);
                return Some(Word {
                    name,
                    is_first,
                    rest,
                });
            }
            self.rest = behind;
            match byte {
                b' ' => {}
                b';' => is_first = true,
                b'*' if behind.first() == Some(&b'/') => {
                    self.rest = &behind[1..];
                    is_first = true;
                }
                b'\n' | b'\r' if self.has_dashes => is_first = true,
                byte if is_blank(byte) => {}
                _ => is_first = false,
            }
        }
    }
}

impl Word<'_> {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    fn begins_with_state(&self) -> bool {
        if !self.is_first || !FIRST.iter().any(|first| self.is(first)) {
            return false;
        }
        !self.is("SET") || !is_of_transaction(self.rest)
    }

    fn is_of_state(&self) -> bool {
        // Most words begin with another letter.
        if !self
            .name
            .first()
            .is_some_and(|first| INITIALS[usize::from(*first)])
        {
            return false;
        }
        NAMES.iter().any(|(known, is_prefix)| {
            let begins = self
                .name
                .get(..known.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(known));
            begins && (*is_prefix || self.name.len() == known.len())
        })
    }
}

/// Whether a word after `SET` limits it to the transaction. It may also be the first part of a parameter's name
/// (`SET local.a = 1`).
fn is_of_transaction(behind_set: &[u8]) -> bool {
    let second = &behind_set[blanks(behind_set)..];
    OF_TRANSACTION.iter().any(|scope| {
        let Some((word, rest)) = second.split_at_checked(scope.len()) else {
            return false;
        };
        let rest_begins = rest.get(blanks(rest)).copied().unwrap_or(b'.');
        word.eq_ignore_ascii_case(scope.as_bytes())
            && rest.first().is_some_and(|byte| is_blank(*byte))
            && (is_of_name(rest_begins) || rest_begins == b'"')
    })
}

/// Whether PostgreSQL reads this byte as white space.
pub fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// The length of the white space at the beginning.
pub fn blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_blank(**byte)).count()
}

/// Names in lower case, and whether longer names with this prefix count, too.
const NAMES: [(&[u8], bool); 9] = [
    (b"temp", false),
    (b"temporary", false),
    (b"pg_temp", true),
    (b"set_config", false),
    // An UPDATE of this view calls `set_config`.
    (b"pg_settings", false),
    (b"pg_advisory_lock", true),
    (b"pg_try_advisory_lock", true),
    (b"pg_advisory_unlock", true),
    (b"dblink", true),
];

/// The first letters of `NAMES`, in lower case and in capitals.
static INITIALS: [bool; 256] = {
    let mut initials = [false; 256];
    let mut at = 0;
    while at < NAMES.len() {
        let first = NAMES[at].0[0];
        initials[first as usize] = true;
        initials[first.to_ascii_uppercase() as usize] = true;
        at += 1;
    }
    initials
};

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
            "/* ; */ SET a.b = 1",
            "-- ;\nSET a.b = 1",
            "/* /* */ */ SET a.b = 1",
            "SET local.a = 1",
            "SET transaction . a = 1",
            "SET\x0b\"local\" = 1",
            "select U&\"set\\005fconfig\"('a.b', 'c', false)",
            "select \"pg_catalog\".\"set_config\"('a.b', 'c', false)",
            "update pg_settings set setting = 'a' where name = 'search_path'",
            "with a as (select set_config('a.b', 'c', false)) select 1",
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
        assert!(call_leaves_state(&2078_u32.to_be_bytes()) && call_leaves_state(b""));
        assert!(!call_leaves_state(&952_u32.to_be_bytes()));
        assert!(tag_leaves_state(b"SET\0") && tag_leaves_state(b"DECLARE CURSOR\0"));
        assert!(!tag_leaves_state(b"SELECT 1\0") && !tag_leaves_state(b"CREATE TABLE\0"));
    }

    proptest! {
        #[test]
        fn no_statement_is_passed_over(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "set", "SET ", "select", "temp", "TEMPorary", "set_config", "pg_settings", "pg_temp_1", "pg_advisory_lock",
                    "PG_TRY_advisory_lock", "pg_advisory_unlock_all", "dblink_exec", "u&", "U", "&", "\"", "'", ";", "*/", "/*",
                    "--", "-", "\n", " ", "\u{b}", "(", "do", "x", "_", "1", "é",
                ]),
                0..12,
            )
        ) {
            let statement = parts.concat();
            prop_assert_eq!(leaves_state(statement.as_bytes()), leaves_state_by_words(statement.as_bytes()));
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            leaves_state(&bytes);
            runs_text(&bytes);
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
