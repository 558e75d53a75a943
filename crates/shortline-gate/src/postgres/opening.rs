//! Reads the first messages of a client without an admitted transaction. They are either work of
//! some type, or need no admission.
//!
//! In the simple protocol the Query decides. In the extended protocol nothing is answered before
//! the Sync or Flush that ends a segment. So the whole segment is read before any of it is sent.
//! There are two reasons: drivers send a bare BEGIN and the first statement together, and a Parse
//! does not show whether its statement will be executed.

use crate::classify::Class;

use super::control::is_transaction_control;
use super::frame::{FrameError, Header};
use super::messages::{self, Bind, Parse};
use super::statements::{Prepared, Statements};

/// What the client's next messages ask for.
#[derive(Debug, PartialEq, Eq)]
pub enum Opening<'a> {
    /// More bytes are needed to decide.
    Incomplete,
    /// This many bytes need no admission: whole messages that cost the backend nothing. It may be
    /// more than has come.
    Passes(usize),
    /// Needs admission.
    Work(Named<'a>),
}

/// The source of the work's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// A statement, or the part of it that has come.
    Statement(&'a [u8]),
    /// A statement prepared earlier, by its class.
    Prepared(Class),
    /// Statements are prepared or described, and none is executed. This is a type of its own. Otherwise a
    /// statement's estimate would be as short as its parsing.
    Preparation,
    /// A function called by its number, or a statement whose text is unknown.
    Unknown,
}

/// Bytes that no client of PostgreSQL sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpeningError {
    /// The framing is broken.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The message type does not exist.
    #[error("invalid frontend message type {0}")]
    Tag(u8),
}

/// Reads a client's messages.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'s> {
    /// The statements that the connection has prepared.
    pub statements: &'s Statements,
    /// The longest body of a message, in bytes.
    pub body_bytes_max: u32,
    /// Once this many bytes have come, they decide.
    pub held_bytes_max: usize,
    /// A transaction is open, so the Sync does not end it.
    pub is_open: bool,
}

impl Reader<'_> {
    /// Reads the front of `bytes`, which starts with a message.
    ///
    /// # Errors
    /// [`OpeningError`]
    pub fn read<'a>(&self, bytes: &'a [u8]) -> Result<Opening<'a>, OpeningError> {
        let mut passed = 0;
        while let Some(rest) = bytes.get(passed..) {
            match self.read_first(rest)? {
                Opening::Passes(length) => passed += length,
                _ if passed > 0 => break,
                opening => return Ok(opening),
            }
        }
        Ok(Opening::Passes(passed))
    }

    fn read_first<'a>(&self, bytes: &'a [u8]) -> Result<Opening<'a>, OpeningError> {
        let Some(header) = Header::first_of(bytes, self.body_bytes_max)? else {
            return Ok(Opening::Incomplete);
        };
        match header.tag {
            // No work: Flush, Sync, Terminate, the rest of a failed COPY, and an unexpected answer
            // to authentication.
            b'H' | b'S' | b'X' | b'd' | b'c' | b'f' | b'p' => {
                Ok(Opening::Passes(header.message_bytes()))
            }
            b'Q' => Ok(self.read_query(header, bytes)),
            b'F' if self.is_there(header, bytes) => Ok(Opening::Work(Named::Unknown)),
            b'F' => Ok(Opening::Incomplete),
            b'P' | b'B' | b'E' | b'D' | b'C' => self.read_segment(bytes),
            tag => Err(OpeningError::Tag(tag)),
        }
    }

    /// Whether the message at the front of `bytes` is complete, or enough of it has come.
    fn is_there(&self, header: Header, bytes: &[u8]) -> bool {
        bytes.len() >= header.message_bytes() || self.is_enough(bytes)
    }

    fn is_enough(&self, bytes: &[u8]) -> bool {
        bytes.len() >= self.held_bytes_max
    }

    fn read_query<'a>(&self, header: Header, bytes: &'a [u8]) -> Opening<'a> {
        if !self.is_there(header, bytes) {
            return Opening::Incomplete;
        }
        let text = messages::query_text(messages::body(header, bytes));
        if bytes.len() >= header.message_bytes() && is_transaction_control(text) {
            return Opening::Passes(header.message_bytes());
        }
        Opening::Work(Named::Statement(text))
    }

    /// Reads messages of the extended protocol up to a Sync or Flush.
    fn read_segment<'a>(&self, bytes: &'a [u8]) -> Result<Opening<'a>, OpeningError> {
        let mut segment = Segment::default();
        let mut at = 0;
        while let Some(header) = Header::first_of(&bytes[at..], self.body_bytes_max)? {
            let message = &bytes[at..];
            let is_whole = message.len() >= header.message_bytes();
            if !is_whole && !self.is_enough(bytes) {
                return Ok(Opening::Incomplete);
            }
            let body = messages::body(header, message);
            match header.tag {
                b'S' | b'H' | b'Q' | b'F' | b'X' => {
                    return Ok(segment.ends(header, at, self.is_open));
                }
                b'd' | b'c' | b'f' | b'p' => {}
                b'P' | b'B' | b'E' | b'D' | b'C' => segment.take(header.tag, body, self.statements),
                tag => return Err(OpeningError::Tag(tag)),
            }
            at += header.message_bytes();
            if !is_whole || segment.work.is_some() && self.is_enough(bytes) {
                break;
            }
        }
        if self.is_enough(bytes) {
            return Ok(Opening::Work(segment.work_so_far()));
        }
        Ok(Opening::Incomplete)
    }
}

/// The messages up to a Sync.
#[derive(Debug, Default)]
struct Segment<'a> {
    /// Statements prepared here: name and text.
    parsed: Vec<(&'a [u8], &'a [u8])>,
    /// A statement is prepared or described.
    prepares: bool,
    /// A statement is bound or executed.
    executes: bool,
    /// The first statement bound that does more than begin or end a transaction.
    work: Option<Named<'a>>,
}

/// The number of prepared statements that are kept for one segment.
const PARSED_MAX: usize = 64;

impl<'a> Segment<'a> {
    fn take(&mut self, tag: u8, body: &'a [u8], statements: &Statements) {
        match tag {
            b'P' => {
                self.prepares = true;
                let Parse { name, text } = Parse::read(body);
                if self.parsed.len() < PARSED_MAX {
                    self.parsed.push((name, text));
                }
            }
            b'D' => self.prepares = true,
            b'B' if self.work.is_none() => {
                self.executes = true;
                self.work = self.bound(Bind::read(body).statement, statements);
            }
            b'B' | b'E' => self.executes = true,
            // Closing is no work.
            _ => {}
        }
    }

    /// The work of binding the statement `name`. None if it only begins or ends a transaction.
    fn bound(&self, name: &[u8], statements: &Statements) -> Option<Named<'a>> {
        let here = self.parsed.iter().rev().find(|(known, _)| *known == name);
        match (here, statements.get(name)) {
            (Some((_, text)), _) if is_transaction_control(text) => None,
            (Some((_, text)), _) => Some(Named::Statement(text)),
            (None, Some(Prepared::Control)) => None,
            (None, Some(Prepared::Work(class))) => Some(Named::Prepared(class)),
            (None, None) => Some(Named::Unknown),
        }
    }

    /// Decides about a segment that ends with the message `header` at `at`.
    fn ends(&self, header: Header, at: usize, is_open: bool) -> Opening<'a> {
        // A Sync or Flush that ends the segment passes with it. Any other message is decided
        // separately.
        let own = match header.tag {
            b'S' | b'H' => header.message_bytes(),
            _ => 0,
        };
        match &self.work {
            Some(work) => Opening::Work(work.clone()),
            // Statements that only begin or end a transaction, sent as Parse and Bind.
            None if self.executes && self.is_control() => Opening::Passes(at + own),
            // The transaction continues, most likely by executing the prepared statement.
            None if self.executes || self.prepares && (is_open || header.tag == b'H') => {
                Opening::Work(self.work_so_far())
            }
            None if self.prepares => Opening::Work(Named::Preparation),
            None => Opening::Passes(at + own),
        }
    }

    /// Whether every statement prepared here only begins or ends a transaction.
    fn is_control(&self) -> bool {
        self.parsed.len() < PARSED_MAX
            && self
                .parsed
                .iter()
                .all(|(_, text)| is_transaction_control(text))
    }

    /// The work, as far as the messages so far show it.
    fn work_so_far(&self) -> Named<'a> {
        let parsed = || self.parsed.iter().map(|(_, text)| *text);
        self.work
            .clone()
            .or_else(|| {
                parsed()
                    .find(|text| !is_transaction_control(text))
                    .map(Named::Statement)
            })
            .unwrap_or(Named::Unknown)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::postgres::reply::message;
    use proptest::prelude::*;

    fn query(text: &str) -> Vec<u8> {
        message(b'Q', &[text.as_bytes(), b"\0"])
    }

    fn parse(name: &str, text: &str) -> Vec<u8> {
        message(b'P', &[name.as_bytes(), b"\0", text.as_bytes(), b"\0\0\0"])
    }

    fn bind(name: &str) -> Vec<u8> {
        message(b'B', &[b"\0", name.as_bytes(), b"\0\0\0\0\0\0\0"])
    }

    fn execute() -> Vec<u8> {
        message(b'E', &[b"\0\0\0\0\0"])
    }

    fn close() -> Vec<u8> {
        message(b'C', &[b"Sa\0"])
    }

    fn sync() -> Vec<u8> {
        message(b'S', &[])
    }

    fn read_within(bytes: &[u8], held_bytes_max: usize) -> Result<Opening<'_>, OpeningError> {
        let mut statements = Statements::new(10);
        statements.prepare(b"begin", Prepared::Control);
        Reader {
            statements: &statements,
            body_bytes_max: 1 << 20,
            held_bytes_max,
            is_open: false,
        }
        .read(bytes)
    }

    fn read(bytes: &[u8]) -> Opening<'_> {
        read_within(bytes, 4096).unwrap()
    }

    #[test]
    fn a_query_is_waited_for_until_it_is_whole() {
        let bytes = query("select 1");
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), Opening::Incomplete);
        }
        assert_eq!(read(&bytes), Opening::Work(Named::Statement(b"select 1")));
        let long = query(&"x".repeat(9000));
        assert_eq!(read(&long[..4000]), Opening::Incomplete);
        assert_eq!(
            read(&long[..4096]),
            Opening::Work(Named::Statement(&long[5..4096]))
        );
    }

    #[test]
    fn what_costs_nothing_passes_up_to_the_first_that_does() {
        let passing = [sync(), query("begin"), message(b'd', &[&[0; 300]])].concat();
        let bytes = [passing.clone(), query("select 1")].concat();
        assert_eq!(read(&bytes), Opening::Passes(passing.len()));
        assert_eq!(read(&bytes[..100]), Opening::Passes(passing.len()));
        assert_eq!(
            read(&bytes[passing.len()..]),
            Opening::Work(Named::Statement(b"select 1"))
        );
    }

    #[test]
    fn a_segment_is_read_to_its_end() {
        let first = [parse("", "begin"), bind(""), execute()].concat();
        let second = [parse("", "select 2"), bind(""), execute()].concat();
        let bytes = [first.clone(), second.clone(), sync()].concat();
        assert_eq!(read(&bytes[..bytes.len() - 5]), Opening::Incomplete);
        assert_eq!(read(&bytes), Opening::Work(Named::Statement(b"select 2")));
        let alone = [first, sync()].concat();
        assert_eq!(read(&alone), Opening::Passes(alone.len()));
        let prepared = [bind("begin"), execute(), sync()].concat();
        assert_eq!(read(&prepared), Opening::Passes(prepared.len()));
        let unknown = [bind("a"), execute(), sync()].concat();
        assert_eq!(read(&unknown), Opening::Work(Named::Unknown));
        let preparation = [parse("a", "select 3"), sync()].concat();
        assert_eq!(read(&preparation), Opening::Work(Named::Preparation));
        let flushed = [parse("a", "select 3"), message(b'H', &[])].concat();
        assert_eq!(read(&flushed), Opening::Work(Named::Statement(b"select 3")));
        let closing = [close(), sync()].concat();
        assert_eq!(read(&closing), Opening::Passes(closing.len()));
    }

    #[test]
    fn a_segment_that_is_too_long_is_told_by_its_start() {
        let bytes = [parse("", &"y".repeat(9000)), bind(""), execute(), sync()].concat();
        let text = &bytes[6..5000];
        assert_eq!(read(&bytes[..5000]), Opening::Work(Named::Statement(text)));
    }

    #[test]
    fn what_no_client_sends_is_told() {
        assert_eq!(
            read_within(b"y\0\0\0\x04", 10),
            Err(OpeningError::Tag(b'y'))
        );
        assert!(read_within(b"Q\0\0\0\0", 10).is_err());
        assert!(read_within(b"Q\x7f\0\0\0", 10).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(
            bytes in prop::collection::vec(prop::sample::select(b"QPBEDCSHX\0\0\0\x04\x05\x08begin;".to_vec()), 0..300),
            held_bytes_max in 1..400_usize,
        ) {
            if let Ok(Opening::Passes(length)) = read_within(&bytes, held_bytes_max) {
                prop_assert!(length >= 5);
            }
            if bytes.len() >= held_bytes_max.max(5) {
                prop_assert_ne!(read_within(&bytes, held_bytes_max), Ok(Opening::Incomplete));
            }
        }
    }
}
