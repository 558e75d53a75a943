//! The fields of a client's messages that the gate looks at (PostgreSQL's documentation, 55.7).
//! Bodies may be cut: then a field ends where they do.

use super::frame::{HEADER_BYTES, Header};

/// As much of the body as `bytes`, which begin with the header, hold of it.
pub fn body(header: Header, bytes: &[u8]) -> &[u8] {
    &bytes[HEADER_BYTES.min(bytes.len())..header.message_bytes().min(bytes.len())]
}

/// The text of a Query.
pub fn query_text(body: &[u8]) -> &[u8] {
    text(body).0
}

/// A Parse: a statement is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parse<'a> {
    /// Its name; empty for the unnamed one.
    pub name: &'a [u8],
    /// Its text.
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

/// A Bind: a prepared statement gets its parameters.
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

/// The name of the statement that a Close is for, if it is for one.
pub fn closed_statement(body: &[u8]) -> Option<&[u8]> {
    match body.split_first() {
        Some((b'S', name)) => Some(text(name).0),
        _ => None,
    }
}

/// A text up to its zero byte, and what follows.
pub fn text(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == 0) {
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
