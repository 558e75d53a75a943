//! The types of the statements that a connection has prepared.

use std::collections::HashMap;

use ahash::RandomState;

use crate::classify::Class;

/// The effect of executing a prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// It only begins or ends a transaction.
    Control,
    /// Work of this class.
    Work(Class),
}

/// The longest name that is kept, in bytes (PostgreSQL's NAMEDATALEN - 1).
const NAME_BYTES_MAX: usize = 63;

/// A bounded table of statements by name. Statements beyond the bound are unknown later and share a type.
#[derive(Debug)]
pub struct Statements {
    unnamed: Option<Prepared>,
    named: HashMap<Box<[u8]>, Prepared, RandomState>,
    named_max: usize,
}

impl Statements {
    /// An empty table for at most `named_max` named statements.
    pub fn new(named_max: usize) -> Self {
        Self {
            unnamed: None,
            named: HashMap::default(),
            named_max,
        }
    }

    /// The effect of executing the statement, if it is known.
    pub fn get(&self, name: &[u8]) -> Option<Prepared> {
        if name.is_empty() {
            return self.unnamed.clone();
        }
        self.named.get(name).cloned()
    }

    /// Notes that the client prepares a statement.
    pub fn prepare(&mut self, name: &[u8], prepared: Prepared) {
        if name.is_empty() {
            self.unnamed = Some(prepared);
        } else if let Some(known) = self.named.get_mut(name) {
            *known = prepared;
        } else if self.named.len() < self.named_max && name.len() <= NAME_BYTES_MAX {
            self.named.insert(name.into(), prepared);
        }
    }

    /// Forgets a statement that the client closes.
    pub fn close(&mut self, name: &[u8]) {
        if name.is_empty() {
            self.unnamed = None;
        } else if self.named.remove(name).is_some() && self.named.is_empty() {
            self.named = HashMap::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_bounded() {
        let mut statements = Statements::new(2);
        for name in [b"a", b"b", b"c"] {
            statements.prepare(name, Prepared::Control);
        }
        statements.prepare(b"", Prepared::Control);
        let known = |statements: &Statements| {
            [&b"a"[..], b"b", b"c", b""].map(|name| statements.get(name).is_some())
        };
        assert_eq!(known(&statements), [true, true, false, true]);
        statements.close(b"a");
        statements.close(b"");
        statements.prepare(b"c", Prepared::Control);
        assert_eq!(known(&statements), [false, true, true, false]);
    }
}
