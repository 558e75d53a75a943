//! Finds the custom parameters (`my.own`) that a statement may set, by names with a dot in its text.
//!
//! The text is not parsed: PostgreSQL's settings say where its strings end, and a text may be executed. So a name
//! counts wherever it is, in strings and comments, too. The server is then asked about a parameter that it does not
//! have, which does no harm. If a name may be missed, the session is pinned.

use super::super::control::is_of_name;
use super::leaving::{blanks, has_escaped_name, runs_text};

/// The most names in one statement that the server is asked about.
const NAMES_MAX: usize = 64;
/// The most parts of a name that is quoted or has blanks.
const PARTS_MAX: usize = 4;
/// PostgreSQL cuts longer identifiers (NAMEDATALEN - 1), but not the names in strings.
const IDENTIFIER_BYTES_MAX: usize = 63;

/// The names with a dot anywhere in a statement, in lower case. None if a name may be computed, or is written in a
/// way that is not read here.
pub fn own_names(statement: &[u8]) -> Option<Vec<Box<[u8]>>> {
    if has_escaped_name(statement) || runs_text(statement) || has_comment_at_a_dot(statement) {
        return None;
    }
    let mut names: Vec<Box<[u8]>> = Vec::new();
    let mut at = 0;
    while at < statement.len() {
        let rest = &statement[at..];
        let run = plain_bytes(rest);
        if rest[..run].eq_ignore_ascii_case(b"set_config") && !has_literal_argument(&rest[run..]) {
            return None;
        }
        let name = Name::read(&statement[..at], rest)?;
        if name.parts.len() > 1 && !rest[0].is_ascii_digit() {
            for name in name.spellings() {
                if !names.iter().any(|known| **known == *name) {
                    names.push(name.into());
                }
            }
            if names.len() > NAMES_MAX {
                return None;
            }
        }
        at += match name.is_plain {
            true => name.bytes.max(1),
            false => run.max(1),
        };
    }
    Some(names)
}

/// What may be a name, with its parts between dots.
struct Name<'a> {
    parts: Vec<&'a [u8]>,
    /// It has neither quotes nor blanks.
    is_plain: bool,
    /// Its length in the statement.
    bytes: usize,
}

impl<'a> Name<'a> {
    /// Reads a name at the beginning of `text`, which follows `before`. It has no parts if there is none. None if it
    /// cannot be read.
    fn read(before: &[u8], text: &'a [u8]) -> Option<Self> {
        let mut name = Self {
            parts: Vec::new(),
            is_plain: true,
            bytes: 0,
        };
        // A doubled quote stands for one inside of a name.
        let mut is_doubled = before.last() == Some(&b'"') && text.first() == Some(&b'"');
        let mut at = 0;
        while let Some((part, bytes)) = part(&text[at..]) {
            name.is_plain &= part.len() == bytes;
            name.parts.push(part);
            at += bytes;
            name.bytes = at;
            let is_quoted = part.len() < bytes;
            is_doubled |= is_quoted && text.get(at) == Some(&b'"');
            let before_dot = blanks(&text[at..]);
            if text.get(at + before_dot) != Some(&b'.') {
                break;
            }
            at += before_dot + 1;
            let behind_dot = blanks(&text[at..]);
            at += behind_dot;
            name.is_plain &= before_dot + behind_dot == 0;
        }
        let is_readable = !is_doubled && (name.is_plain || name.parts.len() <= PARTS_MAX);
        (name.parts.len() < 2 || is_readable).then_some(name)
    }

    /// The name, and the name with its parts cut as identifiers are.
    fn spellings(&self) -> impl Iterator<Item = Vec<u8>> {
        let is_long = |part: &&[u8]| part.len() > IDENTIFIER_BYTES_MAX;
        let cut = |part: &&'a [u8]| &part[..part.len().min(IDENTIFIER_BYTES_MAX)];
        let whole = self.parts.join(&b'.').to_ascii_lowercase();
        let parts: Vec<&[u8]> = self.parts.iter().map(cut).collect();
        let is_cut = self.parts.iter().any(is_long);
        std::iter::once(whole).chain(is_cut.then(|| parts.join(&b'.').to_ascii_lowercase()))
    }
}

/// A part of a name at the beginning of `text`, and its length with its quotes.
fn part(text: &[u8]) -> Option<(&[u8], usize)> {
    if let Some(quoted) = text.strip_prefix(b"\"") {
        let end = quoted.iter().position(|byte| *byte == b'"')?;
        return Some((&quoted[..end], end + 2));
    }
    let run = plain_bytes(text);
    (run > 0).then(|| (&text[..run], run))
}

fn plain_bytes(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_of_name(**byte)).count()
}

/// Whether a comment may stand between the parts of a name.
fn has_comment_at_a_dot(statement: &[u8]) -> bool {
    let has_dashes = memchr::memmem::find(statement, b"--").is_some();
    // What precedes the last blanks.
    let (mut before, mut is_behind_blank) = (&statement[..0], false);
    let mut at = 0;
    while at < statement.len() {
        let blank = blanks(&statement[at..]);
        if blank == 0 && statement[at] == b'.' {
            let rest = &statement[at + 1..];
            let behind = &rest[blanks(rest)..];
            let begins = behind.starts_with(b"/*") || behind.starts_with(b"--");
            if begins || before.ends_with(b"*/") || has_dashes && is_behind_blank {
                return true;
            }
        }
        is_behind_blank = blank > 0;
        at += blank.max(1);
        if blank == 0 {
            before = &statement[..at];
        }
    }
    false
}

/// Whether the argument of a function whose name has just ended is a plain string literal, if it is called.
fn has_literal_argument(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\"").unwrap_or(bytes);
    let behind = &bytes[blanks(bytes)..];
    if behind.starts_with(b"/*") || behind.starts_with(b"--") {
        return false;
    }
    let Some(rest) = behind.strip_prefix(b"(") else {
        // The name without parentheses is not a call.
        return true;
    };
    let Some(rest) = rest[blanks(rest)..].strip_prefix(b"'") else {
        return false;
    };
    let Some(end) = rest.iter().position(|byte| *byte == b'\'') else {
        return false;
    };
    let behind = &rest[end + 1..];
    behind[blanks(behind)..].starts_with(b",")
        && rest[..end]
            .iter()
            .all(|byte| is_of_name(*byte) || *byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(statement: &str) -> Option<Vec<String>> {
        let names = own_names(statement.as_bytes())?.into_iter();
        let texts = names.map(|name| String::from_utf8_lossy(&name).into_owned());
        Some(texts.collect())
    }

    #[test]
    fn names_with_a_dot_are_found_wherever_they_are() {
        let long = "x".repeat(70);
        for (statement, found) in [
            ("SET My.Own = 1.5", &["my.own"][..]),
            ("SET \"app\".\"Tenant\" = 1", &["app.tenant"]),
            ("SET my . own = 1", &["my.own"]),
            ("SET my\n.\x0b\"own\" = 1", &["my.own"]),
            ("SET \"a.b\" = 1", &["a.b"]),
            ("SET a.b.c = 1", &["a.b.c"]),
            (
                "select pg_catalog.set_config('a.b', c.d, false)",
                &["pg_catalog.set_config", "a.b", "c.d"],
            ),
            (
                "select \"pg_catalog\".\"set_config\"('a.b', '1', false)",
                &["pg_catalog.set_config", "a.b"],
            ),
            (
                "do $$ begin perform set_config( 'a.b' , '1', true); end $$",
                &["a.b"],
            ),
            // Quotes in strings hide nothing.
            ("select 'a\"b', set_config('x.y', '\"', false)", &["x.y"]),
            ("set timezone = 'UTC'", &[]),
            ("select 1.5, .5", &[]),
        ] {
            let found: Vec<String> = found.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(names(statement), Some(found), "{statement}");
        }
        let cut = format!("{}.a", "x".repeat(63));
        assert_eq!(
            names(&format!("SET {long}.a = 1")),
            Some(vec![format!("{long}.a"), cut])
        );
    }

    #[test]
    fn what_may_be_another_name_is_not_read() {
        for statement in [
            "select set_config($1, $2, false)",
            "select set_config('a.' || b, c, false)",
            "select set_config('a.b' || b, c, false)",
            "select \"set_config\"($1, $2, false)",
            "select set_config /* why */ ($1, $2, false)",
            "select set_config -- why\n($1, $2, false)",
            "select set_config(/**/'a.b', c, false)",
            "select set_config(E'a\\x2eb', c, false)",
            "select set_config('a b.c', d, false)",
            "select query_to_xml('select set_config(''a.b'', ''c'', false)', true, true, '')",
            "SET U&\"\\0061\".b = 1",
            "SET a/**/.b = 1",
            "SET a. /**/b = 1",
            "SET a --\n.b = 1",
            "SET a. --\nb = 1",
            "SET \"a\"\"b\".c = 1",
            "SET a.\"b\"\"c\" = 1",
            "do $$ begin execute 'set a' || '.b = 1'; end $$",
        ] {
            assert_eq!(names(statement), None, "{statement}");
        }
        let many: Vec<String> = (0..65).map(|number| format!("a.b{number}")).collect();
        assert_eq!(names(&many.join(" ")), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            own_names(&bytes);
        }

        /// No text before it hides a name.
        #[test]
        fn a_name_is_found_behind_anything(before in "[a-z'\"./*; -]{0,20}", name in r#"(a|"a") ?\. ?(b|"b")"#) {
            let statement = format!("{before}; set {name} = 1");
            if let Some(names) = own_names(statement.as_bytes()) {
                prop_assert!(names.iter().any(|name| **name == *b"a.b"), "{statement}");
            }
        }
    }
}
