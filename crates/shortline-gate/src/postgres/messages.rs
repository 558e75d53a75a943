//! The fields of a client's messages that the gate reads (PostgreSQL's documentation, 55.7).
//! A body may be cut. Then the field that is cut ends there.

use super::frame::{HEADER_BYTES, Header};

/// The part of the body that `bytes` contain. They begin with the header.
pub fn body(header: Header, bytes: &[u8]) -> &[u8] {
    &bytes[HEADER_BYTES.min(bytes.len())..header.message_bytes().min(bytes.len())]
}

/// The text of a Query.
pub fn query_text(body: &[u8]) -> &[u8] {
    text(body).0
}

/// A Parse, which prepares a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parse<'a> {
    /// The statement's name. Empty for the unnamed statement.
    pub name: &'a [u8],
    /// The statement's text.
    pub text: &'a [u8],
}

impl<'a> Parse<'a> {
    /// Reads a body.
    pub fn read(body: &'a [u8]) -> Self {
        let (name, rest) = text(body);
        Self {
            name,
            text: text(rest).0,
        }
    }
}

/// A Bind, which gives a prepared statement its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind<'a> {
    /// The statement's name.
    pub statement: &'a [u8],
}

impl<'a> Bind<'a> {
    /// Reads a body.
    pub fn read(body: &'a [u8]) -> Self {
        let (_portal, rest) = text(body);
        Self {
            statement: text(rest).0,
        }
    }
}

/// The name of the statement in a Close or Describe. None for a portal.
pub fn closed_statement(body: &[u8]) -> Option<&[u8]> {
    match body.split_first() {
        Some((b'S', name)) => Some(text(name).0),
        _ => None,
    }
}

/// The text up to a zero byte, and the bytes after it.
pub fn text(bytes: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(0, bytes) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_with_their_body() {
        let parse = Parse::read(b"name\0select $1\0\0\x01\0\0\0\x17");
        assert_eq!((parse.name, parse.text), (&b"name"[..], &b"select $1"[..]));
        assert_eq!(Parse::read(b"name\0sel").text, b"sel");
        assert_eq!(Parse::read(b"na").text, b"");
        assert_eq!(Bind::read(b"portal\0name\0\0\0").statement, b"name");
        assert_eq!(closed_statement(b"Sname\0"), Some(&b"name"[..]));
        assert_eq!(closed_statement(b"Pname\0"), None);
        assert_eq!(closed_statement(b""), None);
        assert_eq!(query_text(b"select 1\0"), b"select 1");
    }
}
