//! Prepared statements of clients whose connection changes.
//!
//! A statement of the same text and parameter types has one name on all of the backend's connections,
//! whichever clients prepared it by whichever names (as in PgBouncer since 1.21). A connection that does not
//! have it is given it first. The unnamed statement stays unnamed, and is given to a connection that has
//! another's.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::super::reply::message;
use super::leaving::leaves_state;
use super::login::Kind;

/// What the names of statements on the backend's connections begin with.
pub const SHARED: &[u8] = b"shortline_";

/// All statements that some client or connection has, by what a Parse says behind the name.
#[derive(Debug, Default)]
pub struct Table {
    known: Mutex<HashMap<Arc<[u8]>, Weak<Statement>>>,
    next: AtomicU64,
}

/// A statement.
#[derive(Debug)]
pub struct Statement {
    /// Its number; no other ever has it.
    pub id: u64,
    /// Text and parameter types, as in a Parse.
    body: Arc<[u8]>,
    /// Whether it may change what outlasts its transaction.
    pub leaves_state: bool,
    /// Where it was prepared without an error.
    proven: Mutex<Vec<Arc<Kind>>>,
    table: Weak<Table>,
}

/// Kinds of connections that are remembered of a statement.
const PROVEN_MAX: usize = 16;

impl Table {
    /// The statement of this text and these types.
    pub fn enter(self: &Arc<Self>, body: &[u8]) -> Arc<Statement> {
        let mut known = self.known.lock();
        // Not dropped under the lock, which its end takes.
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

    /// The statement of this text and these types, if somebody has it.
    pub fn get(&self, body: &[u8]) -> Option<Arc<Statement>> {
        self.known.lock().get(body).and_then(Weak::upgrade)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.lock().len()
    }
}

impl Statement {
    /// Its name on the backend's connections.
    pub fn name(&self) -> Vec<u8> {
        [SHARED, self.id.to_string().as_bytes()].concat()
    }

    /// Its text.
    pub fn text(&self) -> &[u8] {
        super::super::messages::text(&self.body).0
    }

    /// It was prepared on a connection of this kind.
    pub fn prove(&self, kind: &Arc<Kind>) {
        let mut proven = self.proven.lock();
        if proven.len() < PROVEN_MAX && !proven.contains(kind) {
            proven.push(Arc::clone(kind));
        }
    }

    /// Whether it can be prepared on connections of this kind, as far as is known.
    pub fn is_proven(&self, kind: &Kind) -> bool {
        self.proven.lock().iter().any(|proven| **proven == *kind)
    }

    /// A Parse that prepares it by this name.
    pub fn parse(&self, name: &[u8]) -> Vec<u8> {
        message(b'P', &[name, b"\0", &self.body])
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        if let Some(table) = self.table.upgrade() {
            let mut known = table.known.lock();
            // Another of the same text may have taken its place.
            if known
                .get(&self.body)
                .is_some_and(|other| other.strong_count() == 0)
            {
                known.remove(&self.body);
            }
        }
    }
}

/// What a client has prepared, by its own names.
#[derive(Debug, Default)]
pub struct OfClient {
    unnamed: Option<Arc<Statement>>,
    named: HashMap<Box<[u8]>, Arc<Statement>>,
}

impl OfClient {
    /// The statement of that name.
    pub fn get(&self, name: &[u8]) -> Option<&Arc<Statement>> {
        match name {
            b"" => self.unnamed.as_ref(),
            name => self.named.get(name),
        }
    }

    /// The client prepares a statement.
    pub fn prepare(&mut self, name: &[u8], statement: Arc<Statement>) {
        match name {
            b"" => self.unnamed = Some(statement),
            name => drop(self.named.insert(name.into(), statement)),
        }
    }

    /// It gives one back, or it was not prepared after all.
    pub fn close(&mut self, name: &[u8]) {
        match name {
            b"" => self.unnamed = None,
            name => drop(self.named.remove(name)),
        }
        if self.named.is_empty() {
            self.named = HashMap::new();
        }
    }

    /// It gives all back that have names.
    pub fn close_named(&mut self) {
        self.named = HashMap::new();
    }

    /// How many have names.
    pub fn named(&self) -> usize {
        self.named.len()
    }
}

/// What a connection to the backend has.
#[derive(Debug, Default)]
pub struct OfConnection {
    /// The unnamed one.
    pub unnamed: Option<u64>,
    /// By number, with when it was used last.
    named: HashMap<u64, (Arc<Statement>, u64)>,
    uses: u64,
}

impl OfConnection {
    /// Whether the connection has it by its name; it counts as used.
    pub fn uses(&mut self, id: u64) -> bool {
        self.uses += 1;
        let uses = self.uses;
        self.named
            .get_mut(&id)
            .map(|(_, used)| *used = uses)
            .is_some()
    }

    /// The statement of this number, if it has it.
    pub fn get(&self, id: u64) -> Option<&Arc<Statement>> {
        self.named.get(&id).map(|(statement, _)| statement)
    }

    /// The connection is given it. Returns what must be closed for it, if it has `named_max` already.
    pub fn give(&mut self, statement: &Arc<Statement>, named_max: usize) -> Option<Arc<Statement>> {
        let mut closed = None;
        if self.named.len() >= named_max {
            let oldest = self.named.iter().min_by_key(|(_, (_, used))| *used);
            let oldest = oldest.map(|(id, _)| *id);
            closed = oldest
                .and_then(|id| self.named.remove(&id))
                .map(|(statement, _)| statement);
        }
        self.uses += 1;
        self.named
            .insert(statement.id, (Arc::clone(statement), self.uses));
        closed
    }

    /// It does not have it after all.
    pub fn forget(&mut self, id: u64) {
        self.named.remove(&id);
    }

    /// It has none that has a name.
    pub fn forget_named(&mut self) {
        self.named = HashMap::new();
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
