//! What MariaDB 10.11 reports of a session in its OK packets, as observed.
//!
//! What has changed is reported in the OK packet of a statement that changes something, together with whatever has
//! changed before and could not be reported: an error has no place for it, nor has an EOF packet.

use std::collections::BTreeMap;

use super::packets::text;

/// The variables that are reported unless all are.
const BY_ITSELF: [&str; 5] = [
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "time_zone",
];

/// What has changed and is not reported.
#[derive(Clone, Debug, Default)]
pub struct Track {
    /// Whether the client can be told.
    is_heard: bool,
    /// Whether it wants to hear of everything.
    is_all: bool,
    variables: BTreeMap<String, String>,
    schema: Option<String>,
    has_state: bool,
    characteristics: Option<String>,
    transaction: Option<String>,
    /// Something has changed in this statement.
    is_new: bool,
}

impl Track {
    /// For a session whose client has the capability or not.
    pub fn new(is_heard: bool) -> Self {
        Self {
            is_heard,
            ..Self::default()
        }
    }

    /// Everything is reported from now on, or only what is by itself.
    pub fn tell_all(&mut self, is_all: bool) {
        *self = Self {
            is_all,
            ..Self::new(self.is_heard)
        };
    }

    /// A statement begins.
    pub fn begin(&mut self) {
        self.is_new = false;
    }

    /// A variable was set.
    pub fn variable(&mut self, name: &str, value: &str) {
        if self.is_all || BY_ITSELF.contains(&name) {
            self.variables.insert(name.to_owned(), value.to_owned());
            self.is_new = true;
        }
        self.state();
    }

    /// Another database was chosen.
    pub fn schema(&mut self, name: &str) {
        self.schema = Some(name.to_owned());
        self.is_new = true;
        self.state();
    }

    /// Something has changed.
    pub fn state(&mut self) {
        self.has_state |= self.is_all;
        self.is_new |= self.is_all;
    }

    /// What the next or open transaction is like.
    pub fn characteristics(&mut self, text: String) {
        if self.is_all {
            self.characteristics = Some(text);
            self.is_new = true;
        }
    }

    /// The state of the transaction.
    pub fn transaction(&mut self, state: String) {
        if self.is_all {
            self.transaction = Some(state);
            self.is_new = true;
        }
    }

    /// Whether this statement's packets have the flag.
    pub fn is_changed(&self) -> bool {
        self.is_heard && self.is_new
    }

    /// What an OK packet reports.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if !self.is_changed() {
            return None;
        }
        let mut changes = Vec::new();
        let mut change = |kind: u8, body: Vec<u8>| {
            changes.push(kind);
            changes.extend(text(&body));
        };
        for (name, value) in std::mem::take(&mut self.variables) {
            change(0, [text(name.as_bytes()), text(value.as_bytes())].concat());
        }
        let texts = [
            (1, self.schema.take()),
            (5, self.transaction.take()),
            (4, self.characteristics.take()),
        ];
        for (kind, said) in texts {
            if let Some(said) = said {
                change(kind, text(said.as_bytes()));
            }
        }
        if std::mem::take(&mut self.has_state) {
            change(2, b"1".to_vec());
        }
        self.is_new = false;
        Some(changes)
    }
}
