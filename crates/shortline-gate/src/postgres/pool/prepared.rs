//! Prepared statements of clients whose connections change.
//!
//! A statement with the same text and parameter types has one name on all connections to the backend. It does not
//! matter which clients prepared it, and under which names (as in PgBouncer since 1.21). A connection that lacks
//! the statement gets it before it is used. The unnamed statement stays unnamed. A connection gets it again if it
//! has another one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::super::reply::message;
use super::leaving::leaves_state;
use super::login::Kind;

/// The prefix of statement names on the backend's connections.
pub const SHARED: &[u8] = b"shortline_";

/// All statements that a client or connection has, by the body of a Parse after the name.
#[derive(Debug, Default)]
pub struct Table {
    known: Mutex<HashMap<Arc<[u8]>, Weak<Statement>>>,
    next: AtomicU64,
}

/// A statement.
#[derive(Debug)]
pub struct Statement {
    /// Its number, which is never reused.
    pub id: u64,
    /// Its text and parameter types, as in a Parse.
    body: Arc<[u8]>,
    /// Whether it may change session state that outlasts its transaction.
    pub leaves_state: bool,
    /// The kinds of connections on which it was prepared without an error.
    proven: Mutex<Vec<Arc<Kind>>>,
    table: Weak<Table>,
}

/// The most kinds of connections that are remembered for a statement.
const PROVEN_MAX: usize = 16;

impl Table {
    /// The statement with this text and these types. Adds it if it is new.
    pub fn enter(self: &Arc<Self>, body: &[u8]) -> Arc<Statement> {
        let mut known = self.known.lock();
        // It must not be dropped under the lock, because its drop takes the lock.
        let there = known.get(body).and_then(Weak::upgrade);
        if let Some(statement) = there {
            return statement;
        }
        let text = super::super::messages::text(body).0;
        let statement = Arc::new(Statement {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            body: body.into(),
            leaves_state: leaves_state(text),
            proven: Mutex::default(),
            table: Arc::downgrade(self),
        });
        known.insert(Arc::clone(&statement.body), Arc::downgrade(&statement));
        statement
    }

    /// The statement with this text and these types, if a client or connection has it.
    pub fn get(&self, body: &[u8]) -> Option<Arc<Statement>> {
        self.known.lock().get(body).and_then(Weak::upgrade)
    }

    /// Has whoever prepares the statement's text next get another statement, which is new to all connections.
    pub fn retire(&self, statement: &Statement) {
        let mut known = self.known.lock();
        let is_it = |known: &Weak<Statement>| std::ptr::eq(known.as_ptr(), statement);
        if known.get(&statement.body).is_some_and(is_it) {
            known.remove(&statement.body);
        }
    }

    /// The number of statements.
    pub fn len(&self) -> usize {
        self.known.lock().len()
    }
}

impl Statement {
    /// Its name on the backend's connections.
    pub fn name(&self) -> Vec<u8> {
        [SHARED, self.id.to_string().as_bytes()].concat()
    }

    /// Text and parameter types, as in a Parse.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Its text.
    pub fn text(&self) -> &[u8] {
        super::super::messages::text(&self.body).0
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

    /// A Parse that prepares it under this name.
    pub fn parse(&self, name: &[u8]) -> Vec<u8> {
        message(b'P', &[name, b"\0", &self.body])
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        if let Some(table) = self.table.upgrade() {
            let mut known = table.known.lock();
            // Another statement with the same text may have taken its place.
            if known
                .get(&self.body)
                .is_some_and(|other| other.strong_count() == 0)
            {
                known.remove(&self.body);
            }
        }
    }
}

/// A client's prepared statements, by its own names.
#[derive(Debug, Default)]
pub struct OfClient {
    unnamed: Option<Arc<Statement>>,
    named: HashMap<Box<[u8]>, Arc<Statement>>,
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
        match name {
            b"" => self.unnamed = None,
            name => drop(self.named.remove(name)),
        }
        if self.named.is_empty() {
            self.named = HashMap::new();
        }
    }

    /// Forgets all named statements.
    pub fn close_named(&mut self) {
        self.named = HashMap::new();
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
    /// The named statements by number.
    named: HashMap<u64, Named>,
    uses: u64,
}

/// A named statement of a connection.
#[derive(Debug)]
struct Named {
    statement: Arc<Statement>,
    /// The count of uses at its last use.
    used: u64,
    /// The connection may have lost it. It is closed before it is prepared again, which is no error in either case.
    is_doubtful: bool,
}

impl OfConnection {
    /// Whether the connection surely has the named statement of this number. Counts as a use.
    pub fn uses(&mut self, id: u64) -> bool {
        self.uses += 1;
        let uses = self.uses;
        let named = self.named.get_mut(&id).filter(|named| !named.is_doubtful);
        named.map(|named| named.used = uses).is_some()
    }

    /// The same, where that is no use.
    pub fn has(&self, id: u64) -> bool {
        self.named.get(&id).is_some_and(|named| !named.is_doubtful)
    }

    /// The named statement of this number, if the connection has it.
    pub fn get(&self, id: u64) -> Option<&Arc<Statement>> {
        self.named.get(&id).map(|named| &named.statement)
    }

    /// A Query of the simple protocol runs on it, which removes the unnamed statement (PostgreSQL's documentation,
    /// 55.2.3).
    pub fn note_query(&mut self) {
        self.unnamed = None;
    }

    /// Adds a named statement. Returns the one that must be closed first: itself, if the connection may have it, or
    /// another one, if the connection already has `named_max`.
    pub fn give(&mut self, statement: &Arc<Statement>, named_max: usize) -> Option<Arc<Statement>> {
        let mut closed = self.named.remove(&statement.id);
        if closed.is_none() && self.named.len() >= named_max {
            let oldest = self
                .named
                .iter()
                .min_by_key(|(id, named)| (named.used, **id));
            let oldest = oldest.map(|(id, _)| *id);
            closed = oldest.and_then(|id| self.named.remove(&id));
        }
        self.uses += 1;
        self.insert(statement, self.uses, false);
        closed.map(|named| named.statement)
    }

    /// Removes a statement that was not prepared because of an error.
    pub fn forget(&mut self, id: u64) {
        self.named.remove(&id);
    }

    /// Adds a statement again that was not closed because of an error.
    pub fn keep(&mut self, statement: &Arc<Statement>) {
        self.insert(statement, 0, true);
    }

    /// Notes that the connection may have lost any of its named statements.
    pub fn doubt_named(&mut self) {
        for named in self.named.values_mut() {
            named.is_doubtful = true;
        }
    }

    fn insert(&mut self, statement: &Arc<Statement>, used: u64, is_doubtful: bool) {
        let named = Named {
            statement: Arc::clone(statement),
            used,
            is_doubtful,
        };
        self.named.insert(statement.id, named);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_same_text_is_one_statement_as_long_as_somebody_has_it() {
        let table = Arc::<Table>::default();
        let first = table.enter(b"select 1\0\0\0");
        assert_eq!(table.enter(b"select 1\0\0\0").id, first.id);
        assert_ne!(table.enter(b"select $1\0\0\x01\0\0\0\x17").id, first.id);
        assert_eq!(table.len(), 1, "nobody has the other");
        assert_eq!(
            first.parse(&first.name()),
            b"P\0\0\0\x1bshortline_0\0select 1\0\0\0"
        );
        drop(first);
        assert_eq!(table.len(), 0);
        assert!(table.enter(b"set a = 1\0\0\0").leaves_state);
    }

    #[test]
    fn a_connection_gives_up_what_it_used_longest_ago() {
        let table = Arc::<Table>::default();
        let [a, b, c] = [b"a\0\0\0", b"b\0\0\0", b"c\0\0\0"].map(|body| table.enter(body));
        let mut connection = OfConnection::default();
        assert!(connection.give(&a, 2).is_none() && connection.give(&b, 2).is_none());
        assert!(connection.uses(a.id));
        assert_eq!(connection.give(&c, 2).unwrap().id, b.id);
        assert!(connection.uses(a.id) && connection.uses(c.id) && !connection.uses(b.id));
    }

    #[test]
    fn what_a_connection_may_have_lost_is_closed_before_it_is_given_again() {
        let table = Arc::<Table>::default();
        let [a, b] = [b"a\0\0\0", b"b\0\0\0"].map(|body| table.enter(body));
        let mut connection = OfConnection::default();
        assert!(connection.give(&a, 2).is_none() && connection.give(&b, 2).is_none());
        connection.doubt_named();
        assert!(!connection.uses(a.id));
        assert_eq!(connection.give(&a, 2).unwrap().id, a.id);
        assert!(connection.uses(a.id) && !connection.uses(b.id));
        // An error came before the Close, and before the Parse.
        connection.forget(a.id);
        connection.keep(&a);
        assert_eq!(connection.give(&a, 2).unwrap().id, a.id);
    }

    #[test]
    fn the_unnamed_statement_is_one_of_a_kind() {
        let table = Arc::<Table>::default();
        let mut client = OfClient::default();
        client.prepare(b"", table.enter(b"a\0\0\0"));
        client.prepare(b"x", table.enter(b"b\0\0\0"));
        client.close_named();
        assert!(client.get(b"").is_some() && client.get(b"x").is_none());
        client.close(b"");
        assert_eq!(
            (client.get(b"").is_none(), client.named(), table.len()),
            (true, 0, 0)
        );
    }
}
