//! What the gate itself says to a client: ERR packets (MySQL's source documentation, "ERR_Packet").
//!
//! | what | code, SQLSTATE | why this one |
//! |---|---|---|
//! | more connections than allowed | 1040, 08004 | what the server says |
//! | the backend cannot be reached, or not with TLS | 1429, HY000 | "unable to connect to foreign data source" |
//! | no TLS where it is required | 3159, HY000 | what the server says |
//! | no handshake, or none this gate reads | 1043, 08S01 | what the server says |
//! | packets before the end of authentication out of order, as of no client of MySQL's | 1156, 08S01 | what the server says |
//! | the gate ends | 1053, 08S01 | what the server says; the connection ends |
//! | a message above the limit | 1153, 08S01 | what the server says; the connection ends |
//! | packets that cannot be read | 1835, HY000 | what the server says; the connection ends |
//! | waited for too long | 1205, HY000 | "lock wait timeout": drivers know to try again |
//! | the queue is full, or the gate sheds | 1226, 42000 | "resource limit": at once again is in vain |
//! | KILL QUERY while it waits | 1317, 70100 | what the server says |
//!
//! The codes from 2000 to 2999 are the clients' own: MariaDB's call a packet that has one malformed.
//! After the last three the connection lives on, and an open transaction stays open, as after any
//! statement that fails in MySQL. A backend that dies says nothing that it has not said itself: the
//! connection is closed, which drivers report as 2013, the outcome unknown.

use super::packet::packet;
use crate::relay::Denied;
use shortline_sched::admission::Refusal;

/// An error with its code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Complaint {
    /// MySQL's number of the error.
    pub code: u16,
    /// SQLSTATE: five letters and digits.
    pub sqlstate: &'static str,
    /// One line.
    pub message: String,
}

impl Complaint {
    /// An error of this kind.
    pub fn new(code: u16, sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            sqlstate,
            message: message.into(),
        }
    }

    /// Too many connections.
    pub fn too_many_connections(limit: usize) -> Self {
        Self::new(
            1040,
            "08004",
            format!("Too many connections: the gate takes {limit}"),
        )
    }

    /// No connection to the backend.
    pub fn unreachable(what: impl std::fmt::Display) -> Self {
        Self::new(
            1429,
            "HY000",
            format!("Unable to connect to the database: {what}"),
        )
    }

    /// Bytes that begin no session.
    pub fn bad_handshake(what: &str) -> Self {
        Self::new(1043, "08S01", format!("Bad handshake: {what}"))
    }

    /// Packets that come when they should not.
    pub fn out_of_order() -> Self {
        Self::new(1156, "08S01", "Got packets out of order")
    }

    /// The gate ends.
    pub fn shutting_down() -> Self {
        Self::new(1053, "08S01", "Server shutdown in progress: the gate ends")
    }

    /// Bytes that are no messages.
    pub fn malformed(what: impl std::fmt::Display) -> Self {
        Self::new(
            1835,
            "HY000",
            format!("Malformed communication packet: {what}"),
        )
    }

    /// A message above the limit, in bytes.
    pub fn too_long(limit: u64) -> Self {
        let message = format!("Got a packet bigger than the gate's limit of {limit} bytes");
        Self::new(1153, "08S01", message)
    }

    /// As a packet with this sequence number.
    pub fn packet(&self, sequence: u8) -> Vec<u8> {
        let mut payload = vec![0xff];
        payload.extend(self.code.to_le_bytes());
        payload.push(b'#');
        payload.extend_from_slice(self.sqlstate.as_bytes());
        payload.extend_from_slice(self.message.as_bytes());
        packet(sequence, &payload)
    }

    /// As the first packet of a connection: without SQLSTATE, which is not agreed on yet.
    pub fn first_packet(&self) -> Vec<u8> {
        let mut payload = vec![0xff];
        payload.extend(self.code.to_le_bytes());
        payload.extend_from_slice(self.message.as_bytes());
        packet(0, &payload)
    }
}

impl From<&Denied> for Complaint {
    fn from(denied: &Denied) -> Self {
        match denied {
            Denied::Cancelled => Self::new(1317, "70100", "Query execution was interrupted"),
            Denied::Refused(refused @ Refusal::WaitedTooLong { .. }) => {
                Self::new(1205, "HY000", refused.to_string())
            }
            Denied::Refused(refused) => Self::new(1226, "42000", refused.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_packet() {
        let complaint = Complaint::new(1040, "08004", "no");
        assert_eq!(complaint.packet(3), b"\x0b\0\0\x03\xff\x10\x04#08004no");
        assert_eq!(complaint.first_packet(), b"\x05\0\0\0\xff\x10\x04no");
        let late = Denied::Refused(Refusal::WaitedTooLong { wait_ns: 5_000_000 });
        let refused = Complaint::from(&late);
        assert_eq!(refused.code, 1205);
    }
}
