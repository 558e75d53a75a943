//! The prepared statements of a connection, and the effect of executing each of them.

use std::collections::HashMap;

use crate::classify::Class;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// It only begins or ends a transaction.
    Control,
    /// Work of this class. It names its type and tenant, because a full table forgets their numbers.
    Work(Class),
}

/// In MariaDB, the number of the last statement that was prepared.
const LAST: u32 = u32::MAX;

/// A bounded table by number. Statements beyond the bound are unknown later and share a type.
#[derive(Debug)]
pub struct Statements {
    last: Option<Prepared>,
    known: HashMap<u32, Prepared>,
    known_max: usize,
}

impl Statements {
    /// An empty table for at most `known_max` statements.
    pub fn new(known_max: usize) -> Self {
        Self {
            last: None,
            known: HashMap::new(),
            known_max,
        }
    }

    /// The effect of executing the statement, if it is known.
    pub fn get(&self, statement: u32) -> Option<Prepared> {
        match statement {
            LAST => self.last.clone(),
            _ => self.known.get(&statement).cloned(),
        }
    }

    /// Notes that the server has prepared a statement.
    pub fn prepared(&mut self, statement: u32, prepared: Prepared) {
        self.last = Some(prepared.clone());
        if self.known.len() < self.known_max || self.known.contains_key(&statement) {
            self.known.insert(statement, prepared);
        }
    }

    /// Forgets a statement that the client has closed.
    pub fn close(&mut self, statement: u32) {
        self.known.remove(&statement);
        if self.known.is_empty() {
            self.known = HashMap::new();
        }
    }

    /// Forgets all statements, because the session is reset.
    pub fn clear(&mut self) {
        self.last = None;
        self.known = HashMap::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_bounded() {
        let mut statements = Statements::new(2);
        for statement in 1..=3 {
            statements.prepared(statement, Prepared::Control);
        }
        let known =
            |statements: &Statements| [1, 2, 3, LAST].map(|id| statements.get(id).is_some());
        assert_eq!(known(&statements), [true, true, false, true]);
        statements.close(1);
        statements.prepared(3, Prepared::Control);
        assert_eq!(known(&statements), [false, true, true, true]);
        statements.clear();
        assert_eq!(known(&statements), [false; 4]);
    }
}
