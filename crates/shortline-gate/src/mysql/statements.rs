//! What executing the statements is that a connection has prepared.

use std::collections::HashMap;
use std::sync::Arc;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// It only begins or ends a transaction.
    Control,
    /// Work of the type of this name: a full table of types forgets what a number stands for.
    Work(Arc<str>),
}

/// MariaDB: the statement that was prepared last.
const LAST: u32 = u32::MAX;

/// A bounded table by number. Statements beyond the bound are not known later and share a type.
#[derive(Debug)]
pub struct Statements {
    last: Option<Prepared>,
    known: HashMap<u32, Prepared>,
    known_max: usize,
}

impl Statements {
    /// Nothing is prepared.
    pub fn new(known_max: usize) -> Self {
        Self {
            last: None,
            known: HashMap::new(),
            known_max,
        }
    }

    /// What executing the statement is, if it is known.
    pub fn get(&self, statement: u32) -> Option<Prepared> {
        match statement {
            LAST => self.last.clone(),
            _ => self.known.get(&statement).cloned(),
        }
    }

    /// The server has prepared a statement.
    pub fn prepared(&mut self, statement: u32, prepared: Prepared) {
        self.last = Some(prepared.clone());
        if self.known.len() < self.known_max || self.known.contains_key(&statement) {
            self.known.insert(statement, prepared);
        }
    }

    /// The client gives a statement back.
    pub fn close(&mut self, statement: u32) {
        self.known.remove(&statement);
        if self.known.is_empty() {
            self.known = HashMap::new();
        }
    }

    /// The session begins anew.
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
