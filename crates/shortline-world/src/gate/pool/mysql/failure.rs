//! An error of MySQL's protocol, and what it says.

use std::fmt;

use super::super::excuse::{self, Reason};
use super::packets::ERR;

/// KILL QUERY has ended a statement.
pub const INTERRUPTED: u16 = 1317;
/// KILL has ended a session.
pub const KILLED: u16 = 1927;
/// Somebody ends.
pub const SHUTDOWN: u16 = 1053;

/// An error that a client is told.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    /// Its number.
    pub code: u16,
    text: String,
}

impl Failure {
    /// Whether somebody has ended a statement or a session.
    pub fn is_of_kill(&self) -> bool {
        [INTERRUPTED, KILLED].contains(&self.code)
    }

    /// Reads a packet, if it is of an error.
    pub fn of(payload: &[u8]) -> Option<Self> {
        let code = payload.get(1..3).filter(|_| payload[0] == ERR)?;
        // The first packet of a connection has no SQLSTATE.
        let text = match payload.get(3) {
            Some(b'#') => payload.get(9..),
            _ => payload.get(3..),
        };
        Some(Self {
            code: u16::from_le_bytes([code[0], code[1]]),
            text: String::from_utf8_lossy(text.unwrap_or_default()).into_owned(),
        })
    }
}

impl excuse::Failure for Failure {
    fn is(&self, reason: Reason) -> bool {
        let is = |code: u16, text: &str| self.code == code && self.text.contains(text);
        match reason {
            Reason::Queue => is(1226, "queue"),
            Reason::Wait => is(1205, "within"),
            Reason::Busy => is(1040, "became free within"),
            Reason::Login => is(1429, "") || is(SHUTDOWN, ""),
            Reason::Stop => is(SHUTDOWN, "") || is(KILLED, ""),
            Reason::Lost => is(1835, "nobody has asked for"),
            Reason::Garbled => is(1835, ""),
            Reason::Keepers => is(1226, "too many do"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.text)
    }
}
