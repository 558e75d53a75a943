//! The gate's own messages to a client: ERR packets (MySQL's source documentation, "ERR_Packet").
//!
//! | what | code, SQLSTATE | why this one |
//! |---|---|---|
//! | more connections than allowed | 1040, 08004 | as the server does |
//! | more connections of a tenant than allowed | 1203, 42000 | the server's code for a user with too many |
//! | a transaction without work for too long | 4031, HY000 | MySQL's code for an idle client; the connection ends |
//! | the backend cannot be reached, or not with TLS | 1429, HY000 | "unable to connect to foreign data source" |
//! | no TLS where it is required | 3159, HY000 | as the server does |
//! | no handshake, or one this gate cannot read | 1043, 08S01 | as the server does |
//! | packets out of order before the end of authentication (from no MySQL client) | 1156, 08S01 | as the server does |
//! | the gate shuts down | 1053, 08S01 | as the server does; the connection ends |
//! | a message above the limit | 1153, 08S01 | as the server does; the connection ends |
//! | packets that cannot be read | 1835, HY000 | as the server does; the connection ends |
//! | waited for too long | 1205, HY000 | "lock wait timeout": drivers try again |
//! | the queue is full, or the gate sheds | 1226, 42000 | "resource limit": retrying at once is useless |
//! | KILL QUERY during the wait | 1317, 70100 | as the server does |
//!
//! The codes from 2000 to 2999 belong to the clients. MariaDB's clients treat a packet with such a
//! code as malformed. After the last three errors the connection stays open, and so does an open
//! transaction, as after any failed statement in MySQL. If a backend dies, the gate adds no message
//! of its own. The connection is closed, which drivers report as 2013, outcome unknown.

use super::packet::packet;
use crate::relay::Denied;
use shortline_sched::admission::Refusal;

/// An error with its code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Complaint {
    /// MySQL's error number.
    pub code: u16,
    /// SQLSTATE: five letters and digits.
    pub sqlstate: &'static str,
    /// The text, one line.
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

    /// A tenant has as many connections as it may.
    pub fn too_many_of_tenant(refusal: &Refusal) -> Self {
        Self::new(1203, "42000", refusal.to_string())
    }

    /// A transaction was open without work for too long. The code is MySQL's for an idle client.
    pub fn idle_in_transaction() -> Self {
        Self::new(
            4031,
            "HY000",
            "The client was disconnected by the server because of inactivity: a transaction was idle for longer than \
             the gate allows (idle-transaction-max)",
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

    /// Bytes that do not begin a session.
    pub fn bad_handshake(what: &str) -> Self {
        Self::new(1043, "08S01", format!("Bad handshake: {what}"))
    }

    /// Packets that come at the wrong time.
    pub fn out_of_order() -> Self {
        Self::new(1156, "08S01", "Got packets out of order")
    }

    /// The gate is shutting down.
    pub fn shutting_down() -> Self {
        Self::new(1053, "08S01", "Server shutdown in progress: the gate ends")
    }

    /// Bytes that are not messages.
    pub fn malformed(what: impl std::fmt::Display) -> Self {
        Self::new(
            1835,
            "HY000",
            format!("Malformed communication packet: {what}"),
        )
    }

    /// A message above the limit, given in bytes.
    pub fn too_long(limit: u64) -> Self {
        let message = format!("Got a packet bigger than the gate's limit of {limit} bytes");
        Self::new(1153, "08S01", message)
    }

    /// The error as a packet with this sequence number.
    pub fn packet(&self, sequence: u8) -> Vec<u8> {
        let mut payload = vec![0xff];
        payload.extend(self.code.to_le_bytes());
        payload.push(b'#');
        payload.extend_from_slice(self.sqlstate.as_bytes());
        payload.extend_from_slice(self.message.as_bytes());
        packet(sequence, &payload)
    }

    /// The error as the first packet of a connection. It has no SQLSTATE, because no capabilities are
    /// agreed on yet.
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
