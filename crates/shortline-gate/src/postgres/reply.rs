//! The gate's own messages to a client (PostgreSQL's documentation, 55.7 and 55.8).

use super::conversation::Status;
use crate::relay::{Denied, End, Side, Stream};
use shortline_sched::admission::Refusal;

/// An error with a code from appendix A of PostgreSQL's documentation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sqlstate}: {message}")]
pub struct Complaint {
    /// SQLSTATE: five letters and digits.
    pub sqlstate: &'static str,
    /// The text, one line.
    pub message: String,
}

impl Complaint {
    /// An error of this kind.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self {
            sqlstate,
            message: message.into(),
        }
    }

    /// The gate is shutting down.
    pub fn shutting_down() -> Self {
        Self::new(
            "57P01",
            "terminating connection due to administrator command",
        )
    }

    /// The error at the end of a session. None if the client already has one or has left.
    pub fn of_end(end: &End<Self>) -> Option<Self> {
        match end {
            End::ClientLeft | End::ServerLeft { was_told: true } | End::Departed => None,
            End::ServerLeft { was_told: false } => Some(Self::new(
                "08006",
                "the backend closed the connection; if a transaction was being committed, its outcome is unknown",
            )),
            End::Refused(complaint) => Some(complaint.clone()),
            End::IdleInTransaction => Some(Self::new(
                "25P03",
                "terminating connection due to idle-in-transaction timeout",
            )),
            End::Stopped => Some(Self::shutting_down()),
        }
    }

    /// As an ErrorResponse that ends the statement.
    pub fn error(&self) -> Vec<u8> {
        report(b'E', "ERROR", self.sqlstate, &self.message)
    }

    /// As an ErrorResponse that ends the connection.
    pub fn fatal(&self) -> Vec<u8> {
        report(b'E', "FATAL", self.sqlstate, &self.message)
    }
}

/// Sends the client a last error and closes the connection.
pub(super) async fn say_last(client: Stream, complaint: &Complaint) {
    Side::new(client).close(&complaint.fatal()).await;
}

/// The error for a unit that does not start. Poolers and servers send 53300 (too many connections) when there
/// is no room, and drivers try again later. 57014 (query canceled) is the code of a statement timeout and of
/// a cancel request.
impl From<&Denied> for Complaint {
    fn from(denied: &Denied) -> Self {
        match denied {
            Denied::Cancelled => Self::new("57014", "canceling statement due to user request"),
            Denied::Refused(refused @ Refusal::WaitedTooLong { .. }) => {
                Self::new("57014", refused.to_string())
            }
            Denied::Refused(refused) => Self::new("53300", refused.to_string()),
        }
    }
}

/// A NoticeResponse.
pub fn notice(message: &str) -> Vec<u8> {
    report(b'N', "NOTICE", "00000", message)
}

/// A ReadyForQuery.
pub fn ready_for_query(status: Status) -> [u8; 6] {
    [b'Z', 0, 0, 0, 5, status.byte()]
}

/// A CommandComplete.
pub fn command_complete(tag: &str) -> Vec<u8> {
    message(b'C', &[tag.as_bytes(), b"\0"])
}

/// A Query.
pub fn query(statement: &str) -> Vec<u8> {
    message(b'Q', &[statement.as_bytes(), b"\0"])
}

/// A message whose body consists of these parts.
pub fn message(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body: usize = parts.iter().map(|part| part.len()).sum();
    let length = u32::try_from(body + 4).expect("what the gate says is short");
    let mut message = Vec::with_capacity(body + 5);
    message.push(tag);
    message.extend(length.to_be_bytes());
    for part in parts {
        message.extend_from_slice(part);
    }
    message
}

fn report(tag: u8, severity: &str, sqlstate: &str, text: &str) -> Vec<u8> {
    let fields = [
        ('S', severity),
        // The severity again, never translated.
        ('V', severity),
        ('C', sqlstate),
        ('M', text),
        ('R', "shortline"),
    ];
    let mut body = Vec::new();
    for (field, value) in fields {
        body.push(field as u8);
        body.extend(value.bytes().filter(|byte| *byte != 0));
        body.push(0);
    }
    body.push(0);
    message(tag, &[&body])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_message() {
        let bytes = Complaint::new("53300", "too\0 many").fatal();
        let body = b"SFATAL\0VFATAL\0C53300\0Mtoo many\0Rshortline\0\0";
        assert_eq!(bytes, [b"E\0\0\0\x2f".as_slice(), body].concat());
        assert_eq!(ready_for_query(Status::Failed), *b"Z\0\0\0\x05E");
        assert_eq!(query("a"), b"Q\0\0\0\x06a\0");
    }
}
