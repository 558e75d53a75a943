//! The fields of a head, read and written (RFC 9112, 5), and the trailers, which look like them (7.1.2).

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue, TRAILER, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};

use super::memory::Memory;

/// So many fields need no memory of their own while a head is read.
const FIELDS: usize = 128;

/// What is wrong with a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// It is longer than allowed.
    #[error("the head has more than {0} bytes, the most allowed")]
    TooLarge(usize),
    /// It has more fields than allowed.
    #[error("the head has more than {0} fields, the most allowed")]
    TooMany(usize),
    /// It is not a head.
    #[error("the head is malformed: {0}")]
    Malformed(httparse::Error),
    /// A field has bytes that it may not have.
    #[error("a field of the head is malformed")]
    Field,
    /// Its lengths differ, or are none.
    #[error("Content-Length is no length, or there are two that differ")]
    Length,
    /// HTTP/1.0 has no transfer codings.
    #[error("Transfer-Encoding in HTTP/1.0")]
    Coded,
}

impl HeadError {
    /// The parser's error, where so many fields are allowed.
    pub fn of(error: httparse::Error, fields_max: usize) -> Self {
        match error {
            httparse::Error::TooManyHeaders => Self::TooMany(fields_max),
            error => Self::Malformed(error),
        }
    }
}

/// Parses with room for so many fields.
pub fn with_room<'b, T>(
    fields_max: usize,
    parse: impl FnOnce(&mut [MaybeUninit<httparse::Header<'b>>]) -> T,
) -> T {
    let mut few = [const { MaybeUninit::uninit() }; FIELDS];
    match few.get_mut(..fields_max) {
        Some(room) => parse(room),
        None => {
            let mut many = Vec::new();
            many.resize_with(fields_max, MaybeUninit::uninit);
            parse(&mut many)
        }
    }
}

/// Where a field is in the text.
pub struct Place {
    name: (usize, usize),
    value: (usize, usize),
}

impl Place {
    /// The field as it is written, without the end of its line.
    pub fn line<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.name.0..self.value.1]
    }

    /// The field. It shares the text, rather than to copy each value.
    ///
    /// # Errors
    /// [`HeadError::Field`]
    pub fn of(&self, text: &Bytes) -> Result<(HeaderName, HeaderValue), HeadError> {
        let name = HeaderName::from_bytes(&text[self.name.0..self.name.1]);
        let value = HeaderValue::from_maybe_shared(text.slice(self.value.0..self.value.1));
        match (name, value) {
            (Ok(name), Ok(value)) => Ok((name, value)),
            _ => Err(HeadError::Field),
        }
    }
}

/// The fields at these places of a text.
///
/// # Errors
/// [`HeadError::Field`]
pub fn fields(text: &Bytes, places: &[Place], memory: &mut Memory) -> Result<HeaderMap, HeadError> {
    memory.begins();
    let mut fields = HeaderMap::with_capacity(places.len());
    for (number, place) in places.iter().enumerate() {
        let (name, value) = memory.field(number, text, place)?;
        fields.append(name, value);
    }
    Ok(fields)
}

/// Where fields are in the text of which they were parsed.
pub fn places(text: &[u8], parsed: &[httparse::Header<'_>]) -> Vec<Place> {
    let place = |part: &[u8]| place(text, part);
    let field = |field: &httparse::Header<'_>| Place {
        name: place(field.name.as_bytes()),
        value: place(field.value),
    };
    parsed.iter().map(field).collect()
}

/// Where a part of a text begins and ends in it.
pub fn place(text: &[u8], part: &[u8]) -> (usize, usize) {
    let from = part.as_ptr() as usize - text.as_ptr() as usize;
    (from, from + part.len())
}

/// The fields behind the last chunk, with the line that ends them.
///
/// # Errors
/// [`HeadError`]
pub fn trailers(text: &Bytes, fields_max: usize) -> Result<HeaderMap, HeadError> {
    let mut space = vec![httparse::EMPTY_HEADER; fields_max];
    match httparse::parse_headers(text, &mut space) {
        Ok(httparse::Status::Complete((_, parsed))) => {
            fields(text, &places(text, parsed), &mut Memory::default())
        }
        Ok(httparse::Status::Partial) => Err(HeadError::Field),
        Err(error) => Err(HeadError::of(error, fields_max)),
    }
}

/// The trailers that a head announces (RFC 9110, 6.6.2). Others are not sent on.
pub fn announced(headers: &HeaderMap) -> Vec<HeaderName> {
    let named = headers.get_all(TRAILER).iter().flat_map(listed);
    let names = named.filter_map(|name| HeaderName::from_bytes(name).ok());
    let framing = [CONTENT_LENGTH, TRANSFER_ENCODING, TRAILER];
    names.filter(|name| !framing.contains(name)).collect()
}

/// Whether the last of the transfer codings that a field lists is `chunked`.
pub fn ends_chunked(codings: &HeaderValue) -> bool {
    let last = listed(codings).last();
    last.is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"))
}

/// What a field lists (RFC 9110, 5.6.1).
pub fn listed(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    let parts = value.as_bytes().split(|byte| *byte == b',');
    parts.map(<[u8]>::trim_ascii)
}

/// Whether responses with this status may have a body (RFC 9110, 6.4.1).
pub fn may_have_body(status: StatusCode) -> bool {
    let never = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED];
    !status.is_informational() && !never.contains(&status)
}

/// The number that digits are, and nothing but digits.
pub fn number(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = is_number
        .then(|| std::str::from_utf8(text).ok())
        .flatten()?;
    text.parse().ok()
}

/// How long a field is as bytes.
pub fn field_bytes(name: &HeaderName, value: &HeaderValue) -> usize {
    name.as_str().len() + 2 + value.len() + 2
}

/// Fields as bytes.
pub fn write_fields<'a>(
    text: &mut Vec<u8>,
    fields: impl IntoIterator<Item = (&'a HeaderName, &'a HeaderValue)>,
) {
    for (name, value) in fields {
        write_field(text, name, value.as_bytes());
    }
}

/// A field as bytes.
pub fn write_field(text: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    for part in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
        text.extend_from_slice(part);
    }
}
