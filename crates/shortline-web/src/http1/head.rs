//! The heads of HTTP/1.1 with a client: a request's as it is read, with what it says of its body (RFC 9112, 6.3) and of the
//! connection (9.3), and a response's as it is written.
//!
//! Departures, all to the strict side, as others may read the same bytes differently: a list of lengths is refused (6.3
//! allows a list of the same), and so is a transfer coding that does not end in `chunked`. A request that has both a length and
//! a coding is read by its coding, and is the last of its connection (6.1).

use std::io::Write;

use bytes::{Bytes, BytesMut};
use http::header::{
    CONNECTION, CONTENT_LENGTH, DATE, EXPECT, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING,
};
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode, Uri, Version};
use http_body::Frame;

use crate::http2::date;
use crate::message::head::{
    HeadError, Place, announced, ends_chunked, listed, may_have_body, number, place, places,
    with_room, write_field,
};
use crate::message::memory::Memory;
use crate::message::output::Output;
use crate::shared_fields::SharedFields;

/// Room for so many fields more, such as those that say to a backend who asks: to grow costs as much as to fill.
const FIELDS_MORE: usize = 8;
/// The longest target that [`Uri`] takes.
const TARGET_BYTES_MAX: usize = u16::MAX as usize - 1;

/// The most bytes of a response's head besides its fields: a status line, and what is said of the length, the connection and the date.
const MORE_BYTES: usize = 192;

/// A request's head.
#[derive(Debug)]
pub struct Head {
    /// What it asks for.
    pub parts: Parts,
    /// How far its body goes.
    pub extent: Extent,
    /// Whether the connection may bring another request.
    pub keeps: bool,
    /// Whether the client waits to be told before it sends the body (RFC 9110, 10.1.1).
    pub expects: bool,
}

/// How far a request's body goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many bytes.
    Length(u64),
    /// To the last chunk.
    Chunks,
}

/// Why a head is no request's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// What heads of all messages may have.
    #[error("{0}")]
    Head(#[from] HeadError),
    /// The method.
    #[error("the method is malformed")]
    Method,
    /// The target.
    #[error("the target is malformed")]
    Target,
    /// The target, by its length.
    #[error("the target has more than {TARGET_BYTES_MAX} bytes, the most allowed")]
    TargetTooLong,
    /// The end of the body cannot be found.
    #[error("the last transfer coding is not chunked, so the request has no end")]
    Coding,
}

impl Refusal {
    /// The answer's status.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Head(HeadError::TooLarge(_) | HeadError::TooMany(_)) => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::TargetTooLong => StatusCode::URI_TOO_LONG,
            Self::Head(_) | Self::Method | Self::Target | Self::Coding => StatusCode::BAD_REQUEST,
        }
    }
}

/// Takes a request's head from what was read. `None`: it is not whole yet.
///
/// # Errors
/// [`Refusal`]
pub fn read(
    input: &mut BytesMut,
    (bytes_max, fields_max): (usize, usize),
    memory: &mut Memory,
) -> Result<Option<Head>, Refusal> {
    let Some(found) = find(input, fields_max)? else {
        return match input.len() >= bytes_max {
            true => Err(HeadError::TooLarge(bytes_max).into()),
            false => Ok(None),
        };
    };
    if found.bytes > bytes_max {
        return Err(HeadError::TooLarge(bytes_max).into());
    }
    let text = match found.bytes == input.len() {
        true => input.split(),
        false => input.split_to(found.bytes),
    };
    let text = text.freeze();
    let (from, to) = found.target;
    if to - from > TARGET_BYTES_MAX {
        return Err(Refusal::TargetTooLong);
    }
    let uri = Uri::from_maybe_shared(text.slice(from..to)).map_err(|_| Refusal::Target)?;
    let mut says = Says::of(found.version);
    let mut headers = HeaderMap::with_capacity(found.fields.len() + FIELDS_MORE);
    memory.begins();
    for (number, place) in found.fields.iter().enumerate() {
        let (name, value) = memory.field(number, &text, place)?;
        if says.hear(&name, &value)? {
            headers.append(name, value);
        }
    }
    let extent = says.extent(&mut headers)?;
    let mut parts = Request::new(()).into_parts().0;
    parts.method = found.method;
    parts.uri = uri;
    parts.version = found.version;
    parts.headers = headers;
    Ok(Some(Head {
        parts,
        extent,
        keeps: says.keeps,
        expects: says.expects && extent != Extent::Length(0),
    }))
}

/// What was found in a head.
struct Found {
    bytes: usize,
    method: Method,
    target: (usize, usize),
    version: Version,
    fields: Vec<Place>,
}

fn find(input: &[u8], fields_max: usize) -> Result<Option<Found>, Refusal> {
    with_room(fields_max, |room| {
        let mut request = httparse::Request::new(&mut []);
        let parser = httparse::ParserConfig::default();
        let parsed = parser.parse_request_with_uninit_headers(&mut request, input, room);
        let bytes = match parsed {
            Ok(httparse::Status::Complete(bytes)) => bytes,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::Token) if request.method.is_none() => return Err(Refusal::Method),
            Err(httparse::Error::Token) if request.path.is_none() => return Err(Refusal::Target),
            Err(error) => return Err(HeadError::of(error, fields_max).into()),
        };
        let method = request.method.unwrap_or_default().as_bytes();
        let target = request.path.unwrap_or_default().as_bytes();
        Ok(Some(Found {
            bytes,
            method: Method::from_bytes(method).map_err(|_| Refusal::Method)?,
            target: place(input, target),
            version: match request.version {
                Some(0) => Version::HTTP_10,
                _ => Version::HTTP_11,
            },
            fields: places(input, request.headers),
        }))
    })
}

/// What the fields of a head say of its body and of the connection.
struct Says {
    version: Version,
    length: Option<u64>,
    /// Whether the last of the transfer codings is `chunked`, if there are any.
    chunked: Option<bool>,
    keeps: bool,
    closes: bool,
    expects: bool,
}

impl Says {
    fn of(version: Version) -> Self {
        Self {
            version,
            length: None,
            chunked: None,
            keeps: version == Version::HTTP_11,
            closes: false,
            expects: false,
        }
    }

    /// Takes note of a field. `false`: it repeats what was said, and is dropped.
    fn hear(&mut self, name: &HeaderName, value: &HeaderValue) -> Result<bool, HeadError> {
        match *name {
            CONTENT_LENGTH => {
                let length = number(value.as_bytes()).ok_or(HeadError::Length)?;
                return match self.length.replace(length) {
                    Some(before) if before != length => Err(HeadError::Length),
                    before => Ok(before.is_none()),
                };
            }
            TRANSFER_ENCODING if self.version == Version::HTTP_10 => return Err(HeadError::Coded),
            TRANSFER_ENCODING => self.chunked = Some(ends_chunked(value)),
            CONNECTION => {
                for option in listed(value) {
                    self.closes |= option.eq_ignore_ascii_case(b"close");
                    self.keeps |= option.eq_ignore_ascii_case(b"keep-alive");
                }
                self.keeps &= !self.closes;
            }
            EXPECT => {
                let is_known = value.as_bytes().eq_ignore_ascii_case(b"100-continue");
                self.expects = is_known && self.version == Version::HTTP_11;
            }
            _ => {}
        }
        Ok(true)
    }

    fn extent(&mut self, headers: &mut HeaderMap) -> Result<Extent, Refusal> {
        match self.chunked {
            None => Ok(Extent::Length(self.length.unwrap_or(0))),
            Some(false) => Err(Refusal::Coding),
            Some(true) => {
                if self.length.is_some() {
                    headers.remove(CONTENT_LENGTH);
                    self.keeps = false;
                }
                Ok(Extent::Chunks)
            }
        }
    }
}

/// What of a request matters to its response's form.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    version: Version,
    is_head: bool,
    takes_trailers: bool,
}

impl Form {
    /// What a request's head says.
    pub fn of(parts: &Parts) -> Self {
        let takes = parts.headers.get(TE);
        Self {
            version: parts.version,
            is_head: parts.method == Method::HEAD,
            takes_trailers: takes
                .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"trailers")),
        }
    }

    /// What is taken for granted of a request that could not be read.
    pub fn unknown() -> Self {
        Self {
            version: Version::HTTP_11,
            is_head: false,
            takes_trailers: false,
        }
    }
}

/// How a response's body is delimited.
#[derive(Debug, PartialEq, Eq)]
pub enum Framing {
    /// It has none, whatever there is.
    None,
    /// As it is: its length is told, or the connection ends with it.
    Plain,
    /// In chunks, then these trailers, if there are any.
    Chunks(Vec<HeaderName>),
}

impl Framing {
    /// A piece of the body, or its trailers, in this form.
    pub fn push(&mut self, frame: Frame<Bytes>, output: &mut Output) {
        match (frame.into_data(), &*self) {
            (Ok(data), Self::Plain) => output.push(data),
            (Ok(data), Self::Chunks(_)) => output.push_chunk(data),
            (Ok(_), Self::None) | (Err(_), Self::None | Self::Plain) => {}
            (Err(frame), Self::Chunks(announced)) => {
                output.end_chunks(&frame.into_trailers().unwrap_or_default(), announced);
                *self = Self::None;
            }
        }
    }

    /// The end of the body.
    pub fn end(&mut self, output: &mut Output) {
        if let Self::Chunks(_) = self {
            output.end_chunks(&HeaderMap::new(), &[]);
        }
    }
}

/// The body that a response has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// None.
    Empty,
    /// So many bytes.
    Length(u64),
    /// Only its end tells.
    Unknown,
}

/// Writes a response's head. `keeps`, whether the connection may bring another request, is corrected.
pub fn write(
    text: &mut Vec<u8>,
    status: StatusCode,
    headers: &SharedFields,
    (form, body): (Form, Body),
    keeps: &mut bool,
) -> Framing {
    let has_length = may_have_body(status);
    let has_body = has_length && !form.is_head;
    let is_old = form.version == Version::HTTP_10;
    let framing = match body {
        _ if !has_body => Framing::None,
        Body::Empty | Body::Length(_) => Framing::Plain,
        Body::Unknown if is_old => {
            *keeps = false;
            Framing::Plain
        }
        Body::Unknown if form.takes_trailers => Framing::Chunks(announced(headers)),
        Body::Unknown => Framing::Chunks(Vec::new()),
    };
    text.reserve(MORE_BYTES + headers.text_bytes());
    write_line(text, is_old, status);
    let (mut says_date, mut closes, mut says_keeps) = (false, false, false);
    for (name, value) in headers.iter() {
        match *name {
            // How the body is delimited we say ourselves. Of a body that does not follow the length is only told.
            TRANSFER_ENCODING => continue,
            TRAILER if !matches!(framing, Framing::Chunks(_)) => continue,
            CONTENT_LENGTH if has_body || !has_length => continue,
            DATE => says_date = true,
            CONNECTION => {
                closes |= listed(value).any(|option| option.eq_ignore_ascii_case(b"close"));
                says_keeps = true;
            }
            _ => {}
        }
        write_field(text, name, value.as_bytes());
    }
    *keeps &= !closes;
    match body {
        _ if !has_body => {}
        Body::Empty => write_length(text, 0),
        Body::Length(bytes) => write_length(text, bytes),
        Body::Unknown if is_old => {}
        Body::Unknown => text.extend_from_slice(b"transfer-encoding: chunked\r\n"),
    }
    match *keeps {
        _ if status == StatusCode::SWITCHING_PROTOCOLS => {}
        false if !closes && !is_old => text.extend_from_slice(b"connection: close\r\n"),
        true if is_old && !says_keeps => text.extend_from_slice(b"connection: keep-alive\r\n"),
        _ => {}
    }
    if !says_date {
        write_field(text, &DATE, date().as_bytes());
    }
    text.extend_from_slice(b"\r\n");
    framing
}

fn write_line(text: &mut Vec<u8>, is_old: bool, status: StatusCode) {
    let version = if is_old { "HTTP/1.0 " } else { "HTTP/1.1 " };
    let reason = status.canonical_reason().unwrap_or("Unknown");
    for part in [version, status.as_str(), " ", reason, "\r\n"] {
        text.extend_from_slice(part.as_bytes());
    }
}

fn write_length(text: &mut Vec<u8>, bytes: u64) {
    write!(text, "content-length: {bytes}\r\n")
        .expect("invariant: memory takes all that is written");
}

#[cfg(test)]
mod tests;
