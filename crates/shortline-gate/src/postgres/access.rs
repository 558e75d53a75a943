//! Whether a transaction only reads, as far as its first statements say: `BEGIN READ ONLY`, `START TRANSACTION ...
//! READ ONLY`, `SET TRANSACTION READ ONLY` (PostgreSQL's grammar, `transaction_mode_item`).
//!
//! It errs towards not knowing. What is behind a semicolon is not read: it may be another transaction.

use super::control::{Word, Words};
use super::frame::Header;
use super::messages::{self, Bind, Parse};
use super::statements::{Prepared, Statements};

/// What a client says of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nothing: its session's default holds.
    #[default]
    Unsaid,
    /// It sets something, which may be that default.
    Unsure,
    /// It reads only; the server holds it to that.
    Read,
    /// It may write.
    Write,
}

/// How a transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opens {
    /// What is said of it.
    pub access: Access,
    /// It goes on behind its first statement.
    pub is_explicit: bool,
    /// All that has come is of this transaction.
    pub is_single: bool,
}

impl Opens {
    /// A statement alone.
    const ALONE: Self = Self {
        access: Access::Unsaid,
        is_explicit: false,
        is_single: true,
    };
    /// More than can be seen.
    const UNSEEN: Self = Self {
        access: Access::Unsure,
        is_explicit: true,
        is_single: false,
    };

    /// What a statement's text says.
    pub fn of(statement: &[u8]) -> Self {
        let mut words = Words(statement);
        let first = words.next();
        let is = |word: &Option<Word<'_>>, name: &str| matches!(word, Some(Word::Name(is)) if is.eq_ignore_ascii_case(name.as_bytes()));
        let begins = is(&first, "begin") || is(&first, "start");
        let sets = ["set", "reset", "discard"]
            .iter()
            .any(|set| is(&first, set));
        let (mut second, mut last) = (None, None);
        let mut modes = (false, false);
        let mut is_ended = false;
        let mut is_single = !has_semicolon_inside(statement);
        for word in words {
            is_ended |= word == Word::Semicolon;
            is_single &= !is_ended || word == Word::Semicolon;
            if !is_ended {
                let word = Some(word);
                modes.0 |= is(&last, "read") && is(&word, "only");
                modes.1 |= is(&last, "read") && is(&word, "write");
                second = second.or_else(|| word.clone());
                last = word;
            }
        }
        let sets_transaction = is(&first, "set") && is(&second, "transaction");
        let access = match modes {
            _ if !begins && !sets => Access::Unsaid,
            (_, true) => Access::Write,
            (true, false) if begins || sets_transaction => Access::Read,
            _ if sets => Access::Unsure,
            _ => Access::Unsaid,
        };
        Self {
            access,
            is_explicit: begins,
            is_single,
        }
    }

    /// What the client's next messages say, as far as they have come. `statements` are those that it has prepared.
    pub fn of_messages(bytes: &[u8], body_bytes_max: u32, statements: &Statements) -> Self {
        let mut opens = Self::ALONE;
        let mut parsed: Vec<&[u8]> = Vec::new();
        let mut at = 0;
        while let Ok(Some(header)) = Header::first_of(&bytes[at..], body_bytes_max) {
            let message = &bytes[at..];
            if message.len() < header.message_bytes() {
                return Self::UNSEEN;
            }
            let body = messages::body(header, message);
            match header.tag {
                b'Q' => return opens.and(Self::of(messages::query_text(body))),
                b'P' => {
                    let Parse { name, text } = Parse::read(body);
                    parsed.push(name);
                    opens = opens.and(Self::of(text));
                }
                // The text of a BEGIN that was prepared before is not kept.
                b'B' => {
                    let name = Bind::read(body).statement;
                    let is_control = statements.get(name) == Some(Prepared::Control);
                    opens.is_explicit |= is_control && !parsed.contains(&name);
                }
                b'S' | b'H' => return opens,
                b'E' | b'D' | b'C' => {}
                _ => return Self::UNSEEN,
            }
            at += header.message_bytes();
        }
        Self::UNSEEN
    }

    fn and(self, other: Self) -> Self {
        Self {
            access: self.access.max(other.access),
            is_explicit: self.is_explicit || other.is_explicit,
            is_single: self.is_single && other.is_single,
        }
    }
}

/// Whether there is a semicolon anywhere but at the end.
fn has_semicolon_inside(statement: &[u8]) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
    let end = statement.iter().rposition(|byte| !is_end(byte));
    statement[..end.map_or(0, |end| end + 1)].contains(&b';')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::postgres::reply::{message, query};

    #[test]
    fn what_a_first_statement_says() {
        use Access::*;
        for (statement, access, is_explicit, is_single) in [
            ("BEGIN READ ONLY", Read, true, true),
            ("/* a */ begin work read  only;", Read, true, true),
            (
                "START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE",
                Read,
                true,
                true,
            ),
            ("BEGIN READ WRITE", Write, true, true),
            ("BEGIN READ ONLY, READ WRITE", Write, true, true),
            ("BEGIN", Unsaid, true, true),
            (
                "BEGIN READ ONLY; SELECT 1; COMMIT; DELETE FROM a",
                Read,
                true,
                false,
            ),
            ("SET TRANSACTION READ ONLY", Read, false, true),
            ("SET TRANSACTION READ WRITE", Write, false, true),
            (
                "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
                Unsure,
                false,
                true,
            ),
            (
                "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
                Write,
                false,
                true,
            ),
            (
                "SET default_transaction_read_only = off",
                Unsure,
                false,
                true,
            ),
            ("RESET ALL", Unsure, false, true),
            ("select 'read only'", Unsaid, false, true),
            ("select 1;;", Unsaid, false, true),
            ("select 1; delete from a", Unsaid, false, false),
            ("select ';'", Unsaid, false, false),
            ("", Unsaid, false, true),
        ] {
            let opens = Opens::of(statement.as_bytes());
            assert_eq!(opens.access, access, "{statement}");
            assert_eq!(opens.is_explicit, is_explicit, "{statement}");
            assert_eq!(opens.is_single, is_single, "{statement}");
        }
    }

    #[test]
    fn messages_say_it_together() {
        let statements = Statements::new(4);
        let of = |bytes: &[u8]| Opens::of_messages(bytes, 1 << 20, &statements);
        assert_eq!(of(&query("begin read only")).access, Access::Read);
        let parse = |text: &str| message(b'P', &[b"\0", text.as_bytes(), b"\0\0\0"]);
        let bind = message(b'B', &[b"\0\0\0\0\0\0\0\0"]);
        let sync = message(b'S', &[]);
        let parts = [parse("BEGIN READ ONLY"), bind.clone(), parse("SELECT 1")].concat();
        let opens = of(&[&parts[..], &bind, &sync].concat());
        assert_eq!((opens.access, opens.is_explicit), (Access::Read, true));
        assert_eq!(of(&parts), Opens::UNSEEN);
        let write = [
            parse("BEGIN READ ONLY"),
            parse("SET TRANSACTION READ WRITE"),
        ]
        .concat();
        assert_eq!(of(&[&write[..], &sync].concat()).access, Access::Write);
    }

    #[test]
    fn a_begin_that_was_prepared_is_one() {
        let mut statements = Statements::new(4);
        statements.prepare(b"b", Prepared::Control);
        let bind = message(b'B', &[b"\0b\0\0\0\0\0\0\0"]);
        let bytes = [bind, message(b'S', &[])].concat();
        assert!(Opens::of_messages(&bytes, 1 << 20, &statements).is_explicit);
    }

    proptest! {
        /// Whatever a statement has inside, a second one behind a semicolon is never overlooked.
        #[test]
        fn a_second_statement_is_seen(first in "[a-z'/* -]{0,30}", second in "[a-z]{1,9}") {
            let text = format!("{first};{second}");
            prop_assert!(!Opens::of(text.as_bytes()).is_single);
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            Opens::of(&bytes);
            Opens::of_messages(&bytes, 1 << 20, &Statements::new(4));
        }
    }
}
