//! Prepared statements that sessions share, for all protocols: each is known by what was prepared (its text, and what
//! the meaning of the text depends on), whoever prepares it. A connection has some of them, and gives up the one used
//! longest ago for another.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use ahash::RandomState;
use parking_lot::Mutex;

/// All statements that a client or connection has, by what was prepared.
#[derive(Debug)]
pub struct Table<B: Eq + Hash + ?Sized, N> {
    known: Mutex<ByBody<B, N>>,
    next: AtomicU64,
}

type ByBody<B, N> = HashMap<Arc<B>, Weak<Statement<B, N>>, RandomState>;

/// A statement.
#[derive(Debug)]
pub struct Statement<B: Eq + Hash + ?Sized, N> {
    /// Its number, which is never reused.
    pub id: u64,
    /// What was prepared.
    body: Arc<B>,
    /// What the protocol knows of it.
    pub notes: N,
    table: Weak<Table<B, N>>,
}

impl<B: Eq + Hash + ?Sized, N> Default for Table<B, N> {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            next: AtomicU64::default(),
        }
    }
}

impl<B: Eq + Hash + ?Sized, N> Table<B, N> {
    /// The statement with this body. Adds it, with these notes, if it is new.
    pub fn enter<K: Borrow<B> + Into<Arc<B>>>(
        self: &Arc<Self>,
        body: K,
        notes: impl FnOnce(&B) -> N,
    ) -> Arc<Statement<B, N>> {
        let mut known = self.known.lock();
        // It must not be dropped under the lock, because its drop takes the lock.
        let there = known.get(body.borrow()).and_then(Weak::upgrade);
        if let Some(statement) = there {
            return statement;
        }
        let statement = Arc::new(Statement {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            notes: notes(body.borrow()),
            body: body.into(),
            table: Arc::downgrade(self),
        });
        known.insert(Arc::clone(&statement.body), Arc::downgrade(&statement));
        statement
    }

    /// The statement with this body, if a client or connection has it.
    pub fn get(&self, body: &B) -> Option<Arc<Statement<B, N>>> {
        self.known.lock().get(body).and_then(Weak::upgrade)
    }

    /// Has whoever prepares the same next get another statement, which is new to all connections.
    pub fn retire(&self, statement: &Statement<B, N>) {
        let mut known = self.known.lock();
        let is_it = |known: &Weak<Statement<B, N>>| std::ptr::eq(known.as_ptr(), statement);
        if known.get(&statement.body).is_some_and(is_it) {
            known.remove(&statement.body);
        }
    }

    /// The number of statements.
    pub fn len(&self) -> usize {
        self.known.lock().len()
    }
}

impl<B: Eq + Hash + ?Sized, N> Statement<B, N> {
    /// What was prepared.
    pub fn body(&self) -> &B {
        &self.body
    }
}

impl<B: Eq + Hash + ?Sized, N> Drop for Statement<B, N> {
    fn drop(&mut self) {
        if let Some(table) = self.table.upgrade() {
            let mut known = table.known.lock();
            // Another statement with the same body may have taken its place.
            if known
                .get(&self.body)
                .is_some_and(|other| other.strong_count() == 0)
            {
                known.remove(&self.body);
            }
        }
    }
}

/// The shared statements that a connection to the backend has, each with what the backend calls it.
#[derive(Debug)]
pub struct OfConnection<B: Eq + Hash + ?Sized, N, T> {
    /// By number.
    known: HashMap<u64, Known<B, N, T>, RandomState>,
    uses: u64,
}

/// A statement of a connection.
#[derive(Debug)]
struct Known<B: Eq + Hash + ?Sized, N, T> {
    statement: Arc<Statement<B, N>>,
    there: T,
    /// The count of uses at its last use.
    used: u64,
    /// The connection may have lost it. It is closed before it is prepared again, which is no error in either case.
    is_doubtful: bool,
}

/// A statement that a connection gives up, and what the backend calls it.
pub type GivenUp<B, N, T> = (Arc<Statement<B, N>>, T);

impl<B: Eq + Hash + ?Sized, N, T> Default for OfConnection<B, N, T> {
    fn default() -> Self {
        Self {
            known: HashMap::default(),
            uses: 0,
        }
    }
}

impl<B: Eq + Hash + ?Sized, N, T> OfConnection<B, N, T> {
    /// What the backend calls the statement of this number, if the connection surely has it. Counts as a use.
    pub fn uses(&mut self, id: u64) -> Option<&T> {
        self.uses += 1;
        let uses = self.uses;
        let known = self.known.get_mut(&id).filter(|known| !known.is_doubtful)?;
        known.used = uses;
        Some(&known.there)
    }

    /// Whether the connection surely has it. This is no use.
    pub fn has(&self, id: u64) -> bool {
        self.known.get(&id).is_some_and(|known| !known.is_doubtful)
    }

    /// The statement of this number, if the connection has it.
    pub fn get(&self, id: u64) -> Option<&Arc<Statement<B, N>>> {
        self.known.get(&id).map(|known| &known.statement)
    }

    /// Makes room for a statement, which has this number if it is shared. Returns the one that must be closed first: itself,
    /// if the connection may have it, or another one, if the connection already has as many as it may.
    pub fn make_room(&mut self, id: Option<u64>, known_max: usize) -> Option<GivenUp<B, N, T>> {
        let mut closed = id.and_then(|id| self.known.remove(&id));
        if closed.is_none() && self.known.len() >= known_max {
            let oldest = self
                .known
                .iter()
                .min_by_key(|(id, known)| (known.used, **id));
            let oldest = oldest.map(|(id, _)| *id);
            closed = oldest.and_then(|id| self.known.remove(&id));
        }
        closed.map(|known| (known.statement, known.there))
    }

    /// Adds a statement that is being prepared or was.
    pub fn give(&mut self, statement: Arc<Statement<B, N>>, there: T) {
        self.uses += 1;
        self.insert(statement, there, self.uses, false);
    }

    /// Removes a statement. Returns what the backend calls it.
    pub fn forget(&mut self, id: u64) -> Option<T> {
        self.known.remove(&id).map(|known| known.there)
    }

    /// Adds a statement again that was not closed because of an error.
    pub fn keep(&mut self, statement: Arc<Statement<B, N>>, there: T) {
        self.insert(statement, there, 0, true);
    }

    /// Notes that the connection may have lost any of them.
    pub fn doubt(&mut self) {
        for known in self.known.values_mut() {
            known.is_doubtful = true;
        }
    }

    fn insert(&mut self, statement: Arc<Statement<B, N>>, there: T, used: u64, is_doubtful: bool) {
        let known = Known {
            there,
            used,
            is_doubtful,
            statement,
        };
        self.known.insert(known.statement.id, known);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    type Texts = Table<str, ()>;

    fn enter(table: &Arc<Texts>, text: &str) -> Arc<Statement<str, ()>> {
        table.enter(text, |_| ())
    }

    #[test]
    fn the_same_body_is_one_statement_as_long_as_somebody_has_it() {
        let table = Arc::<Texts>::default();
        let first = enter(&table, "a");
        assert_eq!(enter(&table, "a").id, first.id);
        assert_ne!(enter(&table, "b").id, first.id);
        assert_eq!(table.len(), 1, "nobody has the other");
        table.retire(&first);
        let second = enter(&table, "a");
        assert_ne!(second.id, first.id);
        drop(first);
        assert_eq!(table.get("a").unwrap().id, second.id);
        drop(second);
        assert_eq!((table.len(), table.get("a").is_none()), (0, true));
    }

    #[test]
    fn a_connection_gives_up_what_it_used_longest_ago() {
        let table = Arc::<Texts>::default();
        let [a, b, c] = ["a", "b", "c"].map(|text| enter(&table, text));
        let mut connection = OfConnection::default();
        for (number, statement) in [&a, &b].into_iter().enumerate() {
            assert!(connection.make_room(Some(statement.id), 2).is_none());
            connection.give(Arc::clone(statement), number);
        }
        assert_eq!(connection.uses(a.id), Some(&0));
        let (closed, there) = connection.make_room(Some(c.id), 2).unwrap();
        assert_eq!((closed.id, there), (b.id, 1));
        connection.give(Arc::clone(&c), 2);
        assert!(connection.has(a.id) && connection.has(c.id) && !connection.has(b.id));
        assert_eq!(
            (connection.known.len(), connection.forget(c.id)),
            (2, Some(2))
        );
        assert_eq!(connection.known.len(), 1);
    }

    #[test]
    fn what_a_connection_may_have_lost_is_closed_before_it_is_given_again() {
        let table = Arc::<Texts>::default();
        let [a, b] = ["a", "b"].map(|text| enter(&table, text));
        let mut connection = OfConnection::default();
        connection.give(Arc::clone(&a), ());
        connection.give(Arc::clone(&b), ());
        connection.doubt();
        assert!(connection.uses(a.id).is_none());
        assert_eq!(connection.make_room(Some(a.id), 2).unwrap().0.id, a.id);
        connection.give(Arc::clone(&a), ());
        assert!(connection.has(a.id) && !connection.has(b.id));
        // An error came before the close, and before it was prepared.
        connection.forget(a.id);
        connection.keep(Arc::clone(&a), ());
        assert_eq!(connection.make_room(Some(a.id), 2).unwrap().0.id, a.id);
    }
}
