//! Prepared statements of the binary protocol, of clients whose connections change (MySQL's source documentation,
//! "Prepared Statements").
//!
//! A server numbers the statements of each connection. A client gets numbers of the gate's own instead. Statements with
//! the same text and meaning share one statement of the server on each connection. A connection that lacks it gets it
//! before it is executed. What a server keeps between two commands (an open cursor, long data) is one client's: its
//! session then has the server's statement for its own.
//!
//! What a text means depends on the database, the SQL mode and some other variables at the time when it is prepared. The
//! server keeps that meaning however the session changes. So it is a part of what is shared, and is put on a
//! connection for as long as the statement is prepared there again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::execute::Types;
use super::leaving::{may_set_and_fail, names_insert_id, reason_to_keep};
use super::settings::{Schema, Settings};
use crate::pool::statements;

/// The commands of the binary protocol.
pub const COM_STMT_PREPARE: u8 = 0x16;
/// Executes a statement.
pub const COM_STMT_EXECUTE: u8 = 0x17;
/// A part of a parameter. It has no response.
pub const COM_STMT_SEND_LONG_DATA: u8 = 0x18;
/// It has no response.
pub const COM_STMT_CLOSE: u8 = 0x19;
/// Drops long data, and closes a cursor.
pub const COM_STMT_RESET: u8 = 0x1a;
/// Rows from a cursor.
pub const COM_STMT_FETCH: u8 = 0x1c;
/// MariaDB only.
pub const COM_STMT_BULK_EXECUTE: u8 = 0xfa;

/// In MariaDB, the number of the last statement that was prepared.
const LAST: u32 = u32::MAX;

/// All statements that a client or connection has.
pub type Table = statements::Table<Meaning, Notes>;
/// A statement.
pub type Statement = statements::Statement<Meaning, Notes>;
/// The shared statements prepared on a connection, with the server's numbers for them.
pub type OfConnection = statements::OfConnection<Meaning, Notes, u32>;

/// A text, and what its meaning depends on.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Meaning {
    /// The text.
    pub text: Box<[u8]>,
    /// The database in which it was prepared.
    pub schema: Schema,
    /// The variables, of those that matter ([`Settings::of_meaning`]).
    pub settings: Settings,
}

/// What is known of a statement from its text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notes {
    /// The reason why a session is pinned after it is executed.
    pub reason: Option<&'static str>,
    /// Whether it names LAST_INSERT_ID.
    pub names_insert_id: bool,
    /// Whether it may set something and then fail.
    pub may_set_and_fail: bool,
}

impl Notes {
    /// What is known of it.
    pub fn of(meaning: &Meaning) -> Self {
        Self::of_text(&meaning.text)
    }

    /// What is known of a statement.
    pub fn of_text(text: &[u8]) -> Self {
        Self {
            reason: reason_to_keep(text),
            names_insert_id: names_insert_id(text),
            may_set_and_fail: may_set_and_fail(text),
        }
    }
}

/// A client's prepared statement.
#[derive(Debug)]
pub struct Mine {
    /// What was prepared.
    pub statement: Arc<Statement>,
    /// The number of its parameters.
    pub parameters: u16,
    /// Their types at the last execution.
    pub types: Option<Types>,
    /// The server's statement, while it is this session's alone.
    own: Option<Own>,
    /// The payload of the error that became of its long data. It answers the execution.
    pub failed: Option<Vec<u8>>,
}

/// A server's statement that is one session's alone.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// Its number there.
    pub there: u32,
    /// Why it is the session's until it is closed.
    pub keeps: Option<&'static str>,
    /// It has an open cursor.
    pub has_cursor: bool,
    /// It has got long data for its next execution.
    pub has_long_data: bool,
    /// An execution with long data has failed. A server may refuse further ones until it is reset.
    pub has_failed: bool,
}

impl Own {
    /// The server's statement of this number.
    pub fn new(there: u32, keeps: Option<&'static str>) -> Self {
        Self {
            there,
            keeps,
            has_cursor: false,
            has_long_data: false,
            has_failed: false,
        }
    }

    fn is_in_use(&self) -> bool {
        self.keeps.is_some() || self.has_cursor || self.has_long_data || self.has_failed
    }
}

impl Mine {
    /// The statement of a client that the server has prepared.
    pub fn new(statement: Arc<Statement>, parameters: u16, own: Option<Own>) -> Self {
        Self {
            statement,
            parameters,
            types: None,
            own,
            failed: None,
        }
    }

    /// The server's statement, if it is this session's alone.
    pub fn own(&self) -> Option<Own> {
        self.own
    }
}

/// A client's prepared statements, by the numbers that it got.
#[derive(Debug, Default)]
pub struct OfClient {
    known: HashMap<u32, Mine>,
    /// Those that have a server's statement for their own.
    own: BTreeSet<u32>,
    last: Option<u32>,
    next: u32,
}

impl OfClient {
    /// The client's number for a statement that it names so. None if it has no such statement.
    pub fn number(&self, named: u32) -> Option<u32> {
        let number = match named {
            LAST => self.last?,
            number => number,
        };
        self.known.contains_key(&number).then_some(number)
    }

    /// The statement of this number.
    pub fn get(&self, number: u32) -> Option<&Mine> {
        self.known.get(&number)
    }

    /// The statement of this number, to be changed.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Mine> {
        self.known.get_mut(&number)
    }

    /// All of them, by number.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Mine)> {
        self.known.iter().map(|(number, mine)| (*number, mine))
    }

    /// The number of the last one that was prepared.
    pub fn last(&self) -> Option<u32> {
        self.last
    }

    /// Sets which was prepared last.
    pub fn set_last(&mut self, last: Option<u32>) {
        self.last = last;
    }

    /// The number of statements.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// The number for the next statement.
    pub fn next_number(&mut self) -> u32 {
        loop {
            self.next = self.next.wrapping_add(1);
            if !matches!(self.next, 0 | LAST) && !self.known.contains_key(&self.next) {
                return self.next;
            }
        }
    }

    /// Adds a statement that was prepared.
    pub fn add(&mut self, number: u32, mine: Mine) {
        if mine.own.is_some() {
            self.own.insert(number);
        }
        self.known.insert(number, mine);
        self.last = Some(number);
    }

    /// Forgets a statement that the client closes. Returns the server's, if it was the session's alone.
    pub fn close(&mut self, number: u32) -> Option<Own> {
        let closed = self.known.remove(&number);
        self.own.remove(&number);
        if self.known.is_empty() {
            self.known = HashMap::new();
        }
        closed?.own
    }

    /// Forgets all, because the session is reset.
    pub fn clear(&mut self) {
        *self = Self {
            next: self.next,
            ..Self::default()
        };
    }

    /// Changes a statement's use of the server's. Returns that if it was the session's alone and is no longer.
    pub fn set_own(
        &mut self,
        number: u32,
        there: u32,
        change: impl FnOnce(&mut Own),
    ) -> Option<Own> {
        let mine = self.known.get_mut(&number)?;
        let mut own = mine.own.unwrap_or(Own::new(there, None));
        change(&mut own);
        if own.is_in_use() {
            mine.own = Some(own);
            self.own.insert(number);
            return None;
        }
        self.own.remove(&number);
        mine.own.take()
    }

    /// The number of server's statements that are the session's alone.
    pub fn own_len(&self) -> usize {
        self.own.len()
    }

    /// Why the session keeps its connection for one of them.
    pub fn reason(&self) -> Option<&'static str> {
        self.owns().find_map(|own| {
            let cursor = own.has_cursor.then_some("it has an open cursor");
            let failed = own
                .has_failed
                .then_some("the long data of a statement has failed");
            own.keeps.or(cursor).or(failed)
        })
    }

    /// Whether one has got long data and waits for its execution.
    pub fn have_long_data(&self) -> bool {
        self.owns().any(|own| own.has_long_data)
    }

    fn owns(&self) -> impl Iterator<Item = Own> {
        self.own
            .iter()
            .filter_map(|number| self.known.get(number)?.own)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn mine(table: &Arc<Table>, text: &[u8], own: Option<Own>) -> Mine {
        let meaning = Meaning {
            text: text.into(),
            schema: None,
            settings: Settings::default(),
        };
        Mine::new(table.enter(meaning, Notes::of), 0, own)
    }

    #[test]
    fn the_last_prepared_has_a_name_of_its_own() {
        let table = Arc::<Table>::default();
        let mut client = OfClient::default();
        assert_eq!(client.number(LAST), None);
        for text in [&b"select 1"[..], b"select 2"] {
            let number = client.next_number();
            client.add(number, mine(&table, text, None));
        }
        assert_eq!((client.number(LAST), client.number(1)), (Some(2), Some(1)));
        client.set_last(None);
        assert_eq!((client.number(LAST), client.len()), (None, 2));
        client.clear();
        assert_eq!(
            (client.number(1), client.next_number(), table.len()),
            (None, 3, 0)
        );
    }

    #[test]
    fn a_statement_is_a_sessions_own_as_long_as_something_of_it_is() {
        let table = Arc::<Table>::default();
        let mut client = OfClient::default();
        client.add(1, mine(&table, b"select 1", None));
        client.add(2, mine(&table, b"select 2", Some(Own::new(9, Some("why")))));
        assert_eq!((client.reason(), client.own_len()), (Some("why"), 1));
        assert_eq!(client.close(2).unwrap().there, 9);
        assert!(client.set_own(1, 7, |own| own.has_cursor = true).is_none());
        assert_eq!(client.reason(), Some("it has an open cursor"));
        assert!(
            client
                .set_own(1, 8, |own| own.has_long_data = true)
                .is_none()
        );
        assert!(client.have_long_data());
        assert!(client.set_own(1, 0, |own| own.has_cursor = false).is_none());
        assert_eq!(client.reason(), None);
        let left = client.set_own(1, 0, |own| own.has_long_data = false);
        assert_eq!((left.unwrap().there, client.own_len()), (7, 0));
        assert!(client.set_own(1, 5, |_| ()).is_none());
        assert!(client.get(1).unwrap().own().is_none());
    }

    #[test]
    fn the_meaning_is_part_of_what_is_shared() {
        let table = Arc::<Table>::default();
        let enter = |schema: &str| {
            let meaning = Meaning {
                text: b"select 1".as_slice().into(),
                schema: Some(schema.as_bytes().into()),
                settings: Settings::default(),
            };
            table.enter(meaning, Notes::of)
        };
        let first = enter("a");
        assert_eq!(enter("a").id, first.id);
        assert_ne!(enter("b").id, first.id);
    }
}
