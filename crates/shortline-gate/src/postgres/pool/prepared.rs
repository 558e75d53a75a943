//! Prepared statements of clients whose connections change.
//!
//! A statement with the same text and parameter types has one name on all connections to the backend. It does not
//! matter which clients prepared it, and under which names (as in PgBouncer since 1.21). A connection that lacks
//! the statement gets it before it is used. The unnamed statement stays unnamed. A connection gets it again if it
//! has another one.

use std::collections::HashMap;
use std::sync::Arc;

use ahash::RandomState;
use parking_lot::Mutex;

use super::super::messages::text;
use super::super::reply::message;
use super::leaving::leaves_state;
use super::login::Kind;
use crate::pool::statements;

/// The prefix of statement names on the backend's connections.
pub const SHARED: &[u8] = b"shortline_";

/// All statements that a client or connection has, by the body of a Parse after the name.
pub type Table = statements::Table<[u8], Notes>;
/// A statement: its text and parameter types, as in a Parse.
pub type Statement = statements::Statement<[u8], Notes>;

/// What is known of a statement.
#[derive(Debug)]
pub struct Notes {
    /// Whether it may change session state that outlasts its transaction.
    pub leaves_state: bool,
    /// The kinds of connections on which it was prepared without an error.
    proven: Mutex<Vec<Arc<Kind>>>,
}

/// The most kinds of connections that are remembered for a statement.
const PROVEN_MAX: usize = 16;

impl Notes {
    /// What is known of it from its body.
    pub fn of(body: &[u8]) -> Self {
        Self {
            leaves_state: leaves_state(text(body).0),
            proven: Mutex::default(),
        }
    }

    /// Notes that it was prepared on a connection of this kind.
    pub fn prove(&self, kind: &Arc<Kind>) {
        let mut proven = self.proven.lock();
        if proven.len() < PROVEN_MAX && !proven.contains(kind) {
            proven.push(Arc::clone(kind));
        }
    }

    /// Whether it was prepared on a connection of this kind before.
    pub fn is_proven(&self, kind: &Kind) -> bool {
        self.proven.lock().iter().any(|proven| **proven == *kind)
    }
}

impl Statement {
    /// Its name on the backend's connections.
    pub fn name(&self) -> Vec<u8> {
        [SHARED, self.id.to_string().as_bytes()].concat()
    }

    /// Its text.
    pub fn text(&self) -> &[u8] {
        text(self.body()).0
    }

    /// A Parse that prepares it under this name.
    pub fn parse(&self, name: &[u8]) -> Vec<u8> {
        message(b'P', &[name, b"\0", self.body()])
    }
}

/// A client's prepared statements, by its own names.
#[derive(Debug, Default)]
pub struct OfClient {
    unnamed: Option<Arc<Statement>>,
    named: HashMap<Box<[u8]>, Arc<Statement>, RandomState>,
}

impl OfClient {
    /// The statement of this name.
    pub fn get(&self, name: &[u8]) -> Option<&Arc<Statement>> {
        match name {
            b"" => self.unnamed.as_ref(),
            name => self.named.get(name),
        }
    }

    /// Notes that the client prepares a statement.
    pub fn prepare(&mut self, name: &[u8], statement: Arc<Statement>) {
        match name {
            b"" => self.unnamed = Some(statement),
            name => drop(self.named.insert(name.into(), statement)),
        }
    }

    /// All that have names, by the client's names for them.
    pub fn all_named(&self) -> impl Iterator<Item = (&[u8], &Arc<Statement>)> {
        self.named
            .iter()
            .map(|(name, statement)| (&**name, statement))
    }

    /// Forgets a statement that the client closes, or that was not prepared because of an error.
    pub fn close(&mut self, name: &[u8]) {
        if name.is_empty() {
            self.unnamed = None;
        } else if self.named.remove(name).is_some() && self.named.is_empty() {
            self.named = HashMap::default();
        }
    }

    /// Forgets all named statements.
    pub fn close_named(&mut self) {
        self.named = HashMap::default();
    }

    /// The number of named statements.
    pub fn named(&self) -> usize {
        self.named.len()
    }
}

/// The statements prepared on a connection to the backend.
#[derive(Debug, Default)]
pub struct OfConnection {
    /// The number of the unnamed statement. Each Query removes it, also one of the pool's own.
    pub unnamed: Option<u64>,
    /// The named statements. Their names are made of their numbers.
    pub named: statements::OfConnection<[u8], Notes, ()>,
}

impl OfConnection {
    /// A Query of the simple protocol runs on it, which removes the unnamed statement (PostgreSQL's documentation,
    /// 55.2.3).
    pub fn note_query(&mut self) {
        self.unnamed = None;
    }

    /// Adds a named statement. Returns the one that must be closed first: itself, if the connection may have it, or
    /// another one, if the connection already has `named_max`.
    pub fn give(&mut self, statement: &Arc<Statement>, named_max: usize) -> Option<Arc<Statement>> {
        let closed = self.named.make_room(Some(statement.id), named_max);
        self.named.give(Arc::clone(statement), ());
        closed.map(|(statement, ())| statement)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn enter(table: &Arc<Table>, body: &[u8]) -> Arc<Statement> {
        table.enter(body, Notes::of)
    }

    #[test]
    fn types_are_part_of_a_statement() {
        let table = Arc::<Table>::default();
        let first = enter(&table, b"select 1\0\0\0");
        assert_eq!(enter(&table, b"select 1\0\0\0").id, first.id);
        assert_ne!(enter(&table, b"select $1\0\0\x01\0\0\0\x17").id, first.id);
        assert_eq!(
            first.parse(&first.name()),
            b"P\0\0\0\x1bshortline_0\0select 1\0\0\0"
        );
        assert!(enter(&table, b"set a = 1\0\0\0").notes.leaves_state);
    }

    #[test]
    fn the_unnamed_statement_is_one_of_a_kind() {
        let table = Arc::<Table>::default();
        let mut client = OfClient::default();
        client.prepare(b"", enter(&table, b"a\0\0\0"));
        client.prepare(b"x", enter(&table, b"b\0\0\0"));
        client.close_named();
        assert!(client.get(b"").is_some() && client.get(b"x").is_none());
        client.close(b"");
        assert_eq!(
            (client.get(b"").is_none(), client.named(), table.len()),
            (true, 0, 0)
        );
    }
}
