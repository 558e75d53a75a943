//! Reads a client's command: the shape of its response, and whether it is work that needs
//! admission. Sources: MySQL's source documentation, "Command Phase"; MariaDB's knowledge base,
//! "Client Server Protocol Commands".
//!
//! Any command that executes statements is work. Everything else passes at once, for one of three
//! reasons. It is cheap: a statement is only prepared, a session reset, or rows fetched from a cursor
//! that was filled when it was opened. It must not wait (KILL). Or it is replication, which does not
//! follow commands and responses.

use super::control::{self, Control};
use super::reply::Shape;
use super::value;

const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const FIELD_LIST: u8 = 0x04;
const PROCESS_INFO: u8 = 0x0a;
const PROCESS_KILL: u8 = 0x0c;
const CHANGE_USER: u8 = 0x11;
const BINLOG_DUMP: u8 = 0x12;
const STMT_PREPARE: u8 = 0x16;
const STMT_EXECUTE: u8 = 0x17;
const STMT_SEND_LONG_DATA: u8 = 0x18;
const STMT_CLOSE: u8 = 0x19;
const STMT_FETCH: u8 = 0x1c;
const BINLOG_DUMP_GTID: u8 = 0x1e;
const RESET_CONNECTION: u8 = 0x1f;
const CLONE: u8 = 0x20;
const SUBSCRIBE_GROUP_REPLICATION: u8 = 0x21;
/// MariaDB only.
const STMT_BULK_EXECUTE: u8 = 0xfa;

/// A command, as far as its first bytes show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Statements to execute.
    Query(&'a [u8]),
    /// Kills a connection, or its statement.
    Kill {
        /// The connection.
        thread_id: u32,
        /// The shape of the response.
        shape: Shape,
    },
    /// A statement that only begins or ends a transaction.
    Control,
    /// A statement to prepare.
    Prepare(&'a [u8]),
    /// A prepared statement to execute, once or in bulk.
    Execute(u32),
    /// A prepared statement to close. It has no response.
    Close(u32),
    /// Data for a prepared statement, or a goodbye. It has no response.
    Unanswered,
    /// Resets the session, including its prepared statements.
    Reset(Shape),
    /// A cheap command.
    Other(Shape),
    /// From now on the connection no longer alternates commands and responses.
    Stream,
}

/// How many bytes of a message's payload [`Command::read`] needs, if it has that many.
pub fn wanted_bytes(command: u8, statement_bytes_max: usize) -> usize {
    match command {
        QUERY | STMT_PREPARE => statement_bytes_max,
        STMT_EXECUTE | STMT_BULK_EXECUTE | STMT_CLOSE | PROCESS_KILL => 5,
        _ => 1,
    }
}

impl<'a> Command<'a> {
    /// Reads the start of a message.
    pub fn read(start: &'a [u8], has_query_attributes: bool) -> Self {
        let Some((&command, body)) = start.split_first() else {
            // The server reads this as COM_SLEEP and returns an error.
            return Self::Other(Shape::Single);
        };
        let number = value::integer(&mut &body[..], 4).map(|number| number as u32);
        match (command, number) {
            (QUERY, _) => Self::statement(query_text(body, has_query_attributes)),
            (STMT_PREPARE, _) => Self::Prepare(body),
            (STMT_EXECUTE | STMT_BULK_EXECUTE, Some(statement)) => Self::Execute(statement),
            (STMT_CLOSE, Some(statement)) => Self::Close(statement),
            (STMT_CLOSE | STMT_SEND_LONG_DATA | QUIT, _) => Self::Unanswered,
            (PROCESS_KILL, Some(thread_id)) => Self::Kill {
                thread_id,
                shape: Shape::Single,
            },
            (CHANGE_USER, _) => Self::Reset(Shape::Authentication),
            (RESET_CONNECTION, _) => Self::Reset(Shape::Single),
            (STMT_EXECUTE | STMT_BULK_EXECUTE | PROCESS_INFO, _) => Self::Other(Shape::Results),
            (STMT_FETCH | FIELD_LIST, _) => Self::Other(Shape::UntilEnd),
            (BINLOG_DUMP | BINLOG_DUMP_GTID | CLONE | SUBSCRIBE_GROUP_REPLICATION, _) => {
                Self::Stream
            }
            _ => Self::Other(Shape::Single),
        }
    }

    fn statement(text: &'a [u8]) -> Self {
        match control::read(text) {
            Control::None => Self::Query(text),
            Control::Transaction => Self::Control,
            Control::Kill(thread_id) => Self::Kill {
                thread_id,
                shape: Shape::Results,
            },
        }
    }
}

/// The text after the attributes of a `COM_QUERY`. If the attributes cannot be read, the whole
/// body: it is then its own type, and the server answers it with an error.
fn query_text(body: &[u8], has_attributes: bool) -> &[u8] {
    if !has_attributes {
        return body;
    }
    let mut rest = body;
    match skip_attributes(&mut rest) {
        Some(()) => rest,
        None => body,
    }
}

fn skip_attributes(rest: &mut &[u8]) -> Option<()> {
    let count = usize::try_from(value::length_encoded(rest)?).ok()?;
    value::length_encoded(rest)?;
    // Each takes at least two bytes.
    if count == 0 || count > rest.len() {
        return (count == 0).then_some(());
    }
    let nulls = value::take(rest, count.div_ceil(8))?;
    if value::byte(rest)? != 1 {
        return None;
    }
    let mut types = Vec::with_capacity(count);
    for _ in 0..count {
        types.push(value::integer(rest, 2)? as u8);
        value::length_encoded_bytes(rest)?;
    }
    for (number, kind) in types.into_iter().enumerate() {
        if nulls[number / 8] & 1 << (number % 8) == 0 {
            skip_value(kind, rest)?;
        }
    }
    Some(())
}

/// Skips a value (MySQL's source documentation, "Binary Protocol Value").
fn skip_value(kind: u8, rest: &mut &[u8]) -> Option<()> {
    let fixed = match kind {
        // NULL
        0x06 => 0,
        // TINY
        0x01 => 1,
        // SHORT, YEAR
        0x02 | 0x0d => 2,
        // LONG, INT24, FLOAT
        0x03 | 0x09 | 0x04 => 4,
        // LONGLONG, DOUBLE
        0x08 | 0x05 => 8,
        // DATE, DATETIME, TIMESTAMP, TIME: a length of one byte
        0x07 | 0x0a | 0x0b | 0x0c => value::byte(rest)?.into(),
        _ => return value::length_encoded_bytes(rest).map(|_| ()),
    };
    value::take(rest, fixed).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_are_told_apart() {
        let plain = |start| Command::read(start, false);
        assert_eq!(plain(b"\x03select 1"), Command::Query(b"select 1"));
        assert_eq!(plain(b"\x03begin"), Command::Control);
        assert_eq!(plain(b"\x16select ?"), Command::Prepare(b"select ?"));
        assert_eq!(plain(b"\x17\x01\x02\0\0\0\x01"), Command::Execute(0x201));
        assert_eq!(plain(b"\xfa\x01\0\0\0"), Command::Execute(1));
        assert_eq!(plain(b"\x19\x01\0\0\0"), Command::Close(1));
        assert_eq!(plain(b"\x18\x01\0\0\0\0\0data"), Command::Unanswered);
        assert_eq!(plain(b"\x1f"), Command::Reset(Shape::Single));
        assert_eq!(plain(b"\x11root\0"), Command::Reset(Shape::Authentication));
        assert_eq!(plain(b"\x12"), Command::Stream);
        assert_eq!(plain(b"\x01"), Command::Unanswered);
        assert_eq!(
            plain(b"\x1c\x01\0\0\0\x01\0\0\0"),
            Command::Other(Shape::UntilEnd)
        );
        assert_eq!(plain(b"\x0e"), Command::Other(Shape::Single));
        assert_eq!(plain(b""), Command::Other(Shape::Single));
        let kills = [
            (&b"\x0c\x05\0\0\0"[..], Shape::Single),
            (b"\x03kill 5", Shape::Results),
        ];
        for (start, shape) in kills {
            assert_eq!(
                plain(start),
                Command::Kill {
                    thread_id: 5,
                    shape
                }
            );
        }
    }

    #[test]
    fn a_text_stands_behind_its_attributes() {
        let text = |start| Command::read(start, true);
        assert_eq!(text(b"\x03\0\x01select 1"), Command::Query(b"select 1"));
        // From MySQL's documentation.
        let documented = b"\x03\x01\x01\x00\x01\xfe\x00\x01a\x011select @@version_comment limit 1";
        assert_eq!(
            text(documented),
            Command::Query(b"select @@version_comment limit 1")
        );
        let typed = b"\x03\x03\x01\x02\x01\x08\0\x01a\x08\0\x01b\x0c\0\x01c\x01\0\0\0\0\0\0\0\x04\x01\x02\x03\x04begin";
        assert_eq!(text(typed), Command::Control);
        assert_eq!(text(b"\x03\x05\x01"), Command::Query(b"\x05\x01"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..100), command: u8) {
            for has_attributes in [false, true] {
                Command::read(&bytes, has_attributes);
                Command::read(&[&[command], bytes.as_slice()].concat(), has_attributes);
            }
        }
    }
}
