//! Recognises statements that are not work: those that only begin or end a transaction, and KILL,
//! which must not wait for the statement that it is to end.
//!
//! A bare BEGIN hides the type of its transaction, takes neither a snapshot nor a lock, and costs
//! the server almost nothing. So does the end of a transaction that did nothing. Such statements go
//! to the server at once, and the client's next statement is held, as in front of PostgreSQL. `SET
//! autocommit` (which every driver sends), `SET TRANSACTION` and `SET NAMES` are treated the same
//! way. `WITH CONSISTENT SNAPSHOT` is not, since its snapshot would be taken before the wait.
//!
//! The words are those of MySQL's and MariaDB's grammar. Words in an order outside the grammar cost
//! the server only a syntax error. The content of `/*! */` is executed, so a statement that
//! contains it is none of these.

/// The effect of a statement besides work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// None: it is work.
    None,
    /// Begins or ends a transaction, or sets its properties.
    Transaction,
    /// Kills a connection, or its statement.
    Kill(u32),
}

/// Words that may follow BEGIN, START TRANSACTION, COMMIT and ROLLBACK.
const AFTER_BEGIN: [&str; 9] = [
    "work",
    "transaction",
    "read",
    "only",
    "write",
    "and",
    "chain",
    "no",
    "release",
];
/// Words that may follow SET TRANSACTION.
const AFTER_SET: [&str; 9] = [
    "read",
    "only",
    "write",
    "isolation",
    "level",
    "committed",
    "uncommitted",
    "repeatable",
    "serializable",
];

/// Reads a statement, or the start of a long one.
pub fn read(statement: &[u8]) -> Control {
    let mut words = Words(statement);
    let is_transaction = match words.name().as_deref() {
        Some("begin" | "commit" | "rollback") => words.are_all(&AFTER_BEGIN),
        Some("start") => {
            words.name().as_deref() == Some("transaction") && words.are_all(&AFTER_BEGIN)
        }
        Some("set") => words.sets_transaction(),
        Some("kill") => return words.killed().map_or(Control::None, Control::Kill),
        _ => false,
    };
    if is_transaction {
        Control::Transaction
    } else {
        Control::None
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Word<'a> {
    /// Letters, digits, `_`, `$`, `@`, or a text in single or double quotes.
    Name(&'a [u8]),
    Sign(u8),
}

/// The words of a statement without white space and comments.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    /// The next word in lower case, if it is a name.
    fn name(&mut self) -> Option<String> {
        match self.next()? {
            Word::Name(name) => Some(String::from_utf8_lossy(name).to_ascii_lowercase()),
            Word::Sign(_) => None,
        }
    }

    /// Whether only these words and commas follow.
    fn are_all(&mut self, names: &[&str]) -> bool {
        loop {
            match self.next() {
                None => return true,
                Some(Word::Sign(b';')) => return self.is_ended(),
                Some(Word::Sign(b',')) => {}
                Some(Word::Name(name)) if is_one_of(name, names) => {}
                Some(_) => return false,
            }
        }
    }

    fn is_ended(&mut self) -> bool {
        self.all(|word| word == Word::Sign(b';'))
    }

    /// Whether this is the rest of SET autocommit = x, SET TRANSACTION ... or SET NAMES x.
    fn sets_transaction(&mut self) -> bool {
        let mut name = self.name();
        if matches!(
            name.as_deref(),
            Some("session" | "local" | "@@session" | "@@local")
        ) {
            name = self.name();
            // @@session.autocommit is read as three words.
            if name.is_none() {
                name = self.name();
            }
        }
        match name.as_deref() {
            Some("transaction") => self.are_all(&AFTER_SET),
            Some("autocommit" | "@@autocommit") => {
                let mut sign = self.next();
                if sign == Some(Word::Sign(b':')) {
                    sign = self.next();
                }
                sign == Some(Word::Sign(b'='))
                    && matches!(
                        self.name().as_deref(),
                        Some("0" | "1" | "on" | "off" | "true" | "false")
                    )
                    && self.are_all(&[])
            }
            Some("names") => {
                let mut is_named = self.name().is_some();
                let rest = Words(self.0);
                if self.name().as_deref() == Some("collate") {
                    is_named &= self.name().is_some();
                } else {
                    *self = rest;
                }
                is_named && self.are_all(&[])
            }
            _ => false,
        }
    }

    /// The connection in the rest of a KILL: `[HARD | SOFT] [CONNECTION | QUERY] id`. Other forms
    /// (`USER name`, `QUERY ID id`, an expression) are left to the server.
    fn killed(&mut self) -> Option<u32> {
        loop {
            match self.name()?.as_str() {
                "hard" | "soft" | "connection" | "query" => {}
                number => {
                    let number = number.parse().ok()?;
                    return self.are_all(&[]).then_some(number);
                }
            }
        }
    }
}

fn is_one_of(name: &[u8], names: &[&str]) -> bool {
    names
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        self.0 = behind_blanks(self.0);
        let (&first, rest) = self.0.split_first()?;
        if matches!(first, b'\'' | b'"') {
            let end = rest.iter().position(|byte| *byte == first);
            if let Some(end) = end {
                self.0 = &rest[end + 1..];
                return Some(Word::Name(&rest[..end]));
            }
        }
        let length = self.0.iter().take_while(|byte| is_of_name(**byte)).count();
        if length > 0 {
            let (name, rest) = self.0.split_at(length);
            self.0 = rest;
            return Some(Word::Name(name));
        }
        self.0 = rest;
        Some(Word::Sign(first))
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@') || byte >= 0x80
}

/// The text after white space and comments. A comment that is executed, or that has no end, is not
/// skipped.
fn behind_blanks(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        let is_line = text.starts_with(b"#")
            || text.starts_with(b"--") && text.get(2).is_none_or(u8::is_ascii_whitespace);
        if is_line {
            let end = text.iter().position(|byte| *byte == b'\n');
            text = &text[end.unwrap_or(text.len())..];
        } else if let Some(rest) = behind_comment(text) {
            text = rest;
        } else {
            return text;
        }
    }
}

fn behind_comment(text: &[u8]) -> Option<&[u8]> {
    let body = text.strip_prefix(b"/*")?;
    if body.starts_with(b"!") || body.starts_with(b"M!") {
        return None;
    }
    let end = body.windows(2).position(|pair| pair == b"*/")?;
    Some(&body[end + 2..])
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
            "START TRANSACTION READ ONLY",
            "start transaction read write",
            "/* route='/cart' */ BEGIN -- now",
            "BEGIN /*action='buy'*/;",
            "COMMIT",
            "COMMIT AND NO CHAIN NO RELEASE",
            "ROLLBACK # over",
            "SET autocommit=0",
            "set @@session.autocommit := ON;",
            "SET SESSION autocommit = 1",
            "SET @@autocommit=false",
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "SET NAMES utf8mb4",
            "SET NAMES 'utf8mb4' COLLATE utf8mb4_bin",
        ] {
            assert_eq!(
                read(statement.as_bytes()),
                Control::Transaction,
                "{statement}"
            );
        }
    }

    #[test]
    fn what_does_more() {
        for statement in [
            "",
            ";",
            "START",
            "START SLAVE",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            "BEGIN; SELECT 1",
            "BEGIN NOT ATOMIC SELECT 1; END",
            "BEGIN /*! NOT ATOMIC SELECT 1 */",
            "BEGIN /*M! SELECT 1 */",
            "ROLLBACK TO SAVEPOINT a",
            "ROLLBACK TO a",
            "SAVEPOINT a",
            "SET autocommit = (SELECT 1)",
            "SET autocommit=0, @a = (SELECT SLEEP(1))",
            "SET NAMES utf8, @a = 1",
            "SET GLOBAL autocommit=0",
            "SET @autocommit=0",
            "BEGIN /* no end",
            "BEGIN --1",
            "SELECT 1",
            "kill user root",
            "kill query id 5",
            "kill 1+1",
            "kill 99999999999",
        ] {
            assert_eq!(read(statement.as_bytes()), Control::None, "{statement}");
        }
    }

    #[test]
    fn who_is_killed() {
        for statement in [
            "KILL 7",
            "kill query 7;",
            "KILL HARD CONNECTION 7",
            "/* a */ kill soft 7",
        ] {
            assert_eq!(read(statement.as_bytes()), Control::Kill(7), "{statement}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(prop::sample::select(b"begin; set/*!-#\n,='\"\xff@k7".to_vec()), 0..60)) {
            read(&bytes);
            read(&[b"begin ".as_slice(), &bytes].concat());
            read(&[b"set autocommit".as_slice(), &bytes].concat());
            read(&[b"kill ".as_slice(), &bytes].concat());
        }
    }
}
