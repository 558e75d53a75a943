//! An error of PostgreSQL's protocol, and what it says.

use std::fmt;

use super::super::excuse::{self, Reason};

/// An error that a client is told.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    /// Whether its session is over.
    pub is_fatal: bool,
    /// The SQLSTATE.
    pub code: String,
    text: String,
}

impl Failure {
    /// Reads the body of an ErrorResponse.
    pub fn of(body: &[u8]) -> Self {
        let mut told = Self::default();
        for field in body.split(|byte| *byte == 0) {
            let text = || String::from_utf8_lossy(&field[1..]).into_owned();
            match field.first() {
                Some(b'S') => told.is_fatal = field == b"SFATAL",
                Some(b'C') => told.code = text(),
                Some(b'M') => told.text = text(),
                _ => {}
            }
        }
        told
    }
}

impl excuse::Failure for Failure {
    fn is(&self, reason: Reason) -> bool {
        let is = |code: &str, text: &str| self.code == code && self.text.contains(text);
        match reason {
            Reason::Queue => is("53300", "queue"),
            Reason::Wait => is("57014", "within"),
            Reason::Busy => is("53300", "became free within"),
            Reason::Login => self.code == "57P03" || is("08006", "backend"),
            Reason::Stop => self.code == "57P01",
            Reason::Lost => self.code == "08006" && !self.text.contains("cancel"),
            Reason::Garbled => is("08P01", "the backend does not speak"),
            Reason::Keepers => is("53300", "too many do"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.text)
    }
}
