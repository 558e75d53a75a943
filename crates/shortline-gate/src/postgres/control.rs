//! Recognises statements that only begin or end a transaction.
//!
//! A bare BEGIN does not show the work to come. It takes neither a snapshot nor a lock, and costs
//! the backend almost nothing. The same holds for the end of a transaction that did nothing. Such
//! a statement goes to the backend at once, and the client's next message is held. A client may
//! notice two things. `now()` is the time of its BEGIN, so it is earlier than the admission. A
//! server's `idle_in_transaction_session_timeout` runs during the wait. An answer from the gate
//! would save a round trip. It would be wrong about `now()`, on standbys and under hooks.
//!
//! The words are those of PostgreSQL's grammar (`TransactionStmt` in `gram.y`). An order of words
//! outside the grammar costs the backend only a syntax error. Statements about prepared
//! transactions and savepoints do not count.

/// Words that may follow the first one.
const FURTHER: [&str; 16] = [
    "and",
    "chain",
    "committed",
    "deferrable",
    "isolation",
    "level",
    "no",
    "not",
    "only",
    "read",
    "repeatable",
    "serializable",
    "transaction",
    "uncommitted",
    "work",
    "write",
];

/// Whether `statement` only begins or ends a transaction.
pub fn is_transaction_control(statement: &[u8]) -> bool {
    let mut words = Words(statement);
    let begins = match words.next() {
        Some(Word::Name(name))
            if is_one_of(name, &["begin", "commit", "end", "rollback", "abort"]) =>
        {
            true
        }
        Some(Word::Name(name)) if name.eq_ignore_ascii_case(b"start") => {
            matches!(words.next(), Some(Word::Name(name)) if name.eq_ignore_ascii_case(b"transaction"))
        }
        _ => false,
    };
    let mut is_ended = false;
    begins
        && words.all(|word| match word {
            Word::Semicolon => {
                is_ended = true;
                true
            }
            Word::Comma => !is_ended,
            Word::Name(name) => !is_ended && is_one_of(name, &FURTHER),
            Word::Other => false,
        })
}

/// A statement that the gate can answer without a server. It begins a transaction and cannot fail, or it ends a
/// transaction that did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Begins a transaction. Has the tag of its CommandComplete.
    Begin(&'static str),
    /// Ends a transaction. Has the tag of its CommandComplete.
    End(&'static str),
}

impl Control {
    /// Reads a statement. None if it is neither. BEGIN with modes is neither, because a standby refuses some modes.
    pub fn of(statement: &[u8]) -> Option<Self> {
        let mut words = Words(statement);
        let Some(Word::Name(first)) = words.next() else {
            return None;
        };
        let is = |word: &str| first.eq_ignore_ascii_case(word.as_bytes());
        let control = if is("begin") {
            Self::Begin("BEGIN")
        } else if is("start") {
            Self::Begin("START TRANSACTION")
        } else if is("commit") || is("end") {
            Self::End("COMMIT")
        } else if is("rollback") || is("abort") {
            Self::End("ROLLBACK")
        } else {
            return None;
        };
        let mut next = words.next();
        let scope = match next {
            Some(Word::Name(scope)) => is_one_of(scope, &["transaction", "work"]),
            _ => false,
        };
        if is("start")
            && !matches!(next, Some(Word::Name(scope)) if scope.eq_ignore_ascii_case(b"transaction"))
        {
            return None;
        }
        if scope {
            next = words.next();
        }
        let is_end = |word: Option<Word<'_>>| matches!(word, None | Some(Word::Semicolon));
        (is_end(next) && words.all(|word| word == Word::Semicolon)).then_some(control)
    }
}

fn is_one_of(name: &[u8], names: &[&str]) -> bool {
    names
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// A word of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    Name(&'a [u8]),
    Comma,
    Semicolon,
    /// The first byte of anything else.
    Other,
}

/// The words of a statement without white space and comments.
pub(super) struct Words<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        self.0 = behind_blanks(self.0);
        let (first, rest) = self.0.split_first()?;
        let (word, rest) = match first {
            b',' => (Word::Comma, rest),
            b';' => (Word::Semicolon, rest),
            b'a'..=b'z' | b'A'..=b'Z' => {
                let end = self.0.iter().position(|byte| !is_of_name(*byte));
                let (name, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
                (Word::Name(name), rest)
            }
            _ => (Word::Other, rest),
        };
        self.0 = rest;
        Some(word)
    }
}

/// Whether a byte may be part of an unquoted name. A look-up: each byte of each statement is asked about.
pub(super) fn is_of_name(byte: u8) -> bool {
    OF_NAMES[usize::from(byte)]
}

static OF_NAMES: [bool; 256] = {
    let mut of_names = [false; 256];
    let mut byte = 0;
    while byte < of_names.len() {
        let is_letter = (byte as u8).is_ascii_alphanumeric();
        of_names[byte] =
            is_letter || byte == b'_' as usize || byte == b'$' as usize || byte >= 0x80;
        byte += 1;
    }
    of_names
};

/// The text after white space and comments. A comment without an end is not skipped.
pub(super) fn behind_blanks(mut text: &[u8]) -> &[u8] {
    loop {
        let blank = text
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c))
            .count();
        text = &text[blank..];
        if text.starts_with(b"--") {
            let end = text.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            text = &text[end.unwrap_or(text.len())..];
        } else if let Some(rest) = behind_comment(text) {
            text = rest;
        } else {
            return text;
        }
    }
}

/// The text after a comment between `/*` and `*/`. Comments nest.
fn behind_comment(text: &[u8]) -> Option<&[u8]> {
    if !text.starts_with(b"/*") {
        return None;
    }
    let (mut at, mut depth) = (2, 1_usize);
    while depth > 0 {
        match text.get(at..at + 2)? {
            b"*/" => (at, depth) = (at + 2, depth - 1),
            b"/*" => (at, depth) = (at + 2, depth + 1),
            _ => at += 1,
        }
    }
    Some(&text[at..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_only_begins_or_ends_a_transaction() {
        for statement in [
            "BEGIN",
            "begin;",
            " Begin Work ;; ",
            "START TRANSACTION ISOLATION LEVEL repeatable read, READ ONLY",
            "BEGIN TRANSACTION NOT DEFERRABLE",
            "/* route='/cart' /* nested */ */ BEGIN -- now",
            "BEGIN /*action='buy'*/;",
            "COMMIT",
            "end transaction",
            "ROLLBACK AND NO CHAIN;",
            "abort",
        ] {
            assert!(is_transaction_control(statement.as_bytes()), "{statement}");
        }
    }

    #[test]
    fn what_can_be_answered_without_a_server() {
        for (statement, control) in [
            ("BEGIN", Some(Control::Begin("BEGIN"))),
            ("/* a */ begin work;", Some(Control::Begin("BEGIN"))),
            (
                "START TRANSACTION",
                Some(Control::Begin("START TRANSACTION")),
            ),
            ("COMMIT;;", Some(Control::End("COMMIT"))),
            ("end transaction", Some(Control::End("COMMIT"))),
            ("ROLLBACK", Some(Control::End("ROLLBACK"))),
            ("abort", Some(Control::End("ROLLBACK"))),
            ("START", None),
            ("START WORK", None),
            ("BEGIN READ WRITE", None),
            ("BEGIN; COMMIT", None),
            ("COMMIT AND CHAIN", None),
            ("ROLLBACK TO a", None),
            ("select 1", None),
            ("", None),
        ] {
            assert_eq!(Control::of(statement.as_bytes()), control, "{statement}");
        }
    }

    #[test]
    fn what_does_more() {
        for statement in [
            "",
            ";",
            "START",
            "START REPLICATION",
            "BEGIN; SELECT 1",
            "BEGIN; COMMIT",
            "BEGINNING",
            "begin_work()",
            "ROLLBACK TO SAVEPOINT a",
            "ROLLBACK TO a",
            "ROLLBACK PREPARED 'a'",
            "COMMIT PREPARED 'a'",
            "PREPARE TRANSACTION 'a'",
            "SAVEPOINT a",
            "BEGIN /* no end",
            "SELECT 1",
            "BEGIN \"a\"",
        ] {
            assert!(!is_transaction_control(statement.as_bytes()), "{statement}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(statement in prop::collection::vec(prop::sample::select(b"begin; /*-\n,\"'\xff".to_vec()), 0..60)) {
            let more = [statement.as_slice(), b"; select"].concat();
            prop_assert!(!is_transaction_control(&more) || more.windows(2).any(|pair| pair == b"--" || pair == b"/*"));
            is_transaction_control(&statement);
        }
    }
}
