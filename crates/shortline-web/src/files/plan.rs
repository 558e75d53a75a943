//! The types of the site: request heads, plans, and the short plans of errors.

use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, Method, StatusCode};

use super::OpenFile;
use crate::shared_fields::SharedFields;

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// The parts of a request that matter to files.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target as sent: `/path?query`, `http://host/path?query`, or `*`.
    pub target: &'a str,
    /// The header fields.
    pub headers: &'a HeaderMap,
    /// Whether the file may be compressed for it.
    pub compress: bool,
}

/// A decided response: everything except `Date`, `Server` and the connection's own fields.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The status.
    pub status: StatusCode,
    /// The header fields, with `Content-Length` wherever the status allows one.
    pub headers: SharedFields,
    /// Where the body comes from.
    pub body: PlanBody,
}

/// The body of a [`Plan`].
#[derive(Clone, Debug)]
pub enum PlanBody {
    /// No body: HEAD, 204, 304, or an empty file.
    Empty,
    /// The parts in the order they are sent. Together they are as long as `Content-Length` says.
    Segments(Vec<Segment>),
}

/// A part of a body.
#[derive(Clone, Debug)]
pub enum Segment {
    /// Bytes in memory.
    Bytes(Bytes),
    /// A piece of a file.
    File {
        /// The file. It stays open as long as this is held.
        file: Arc<OpenFile>,
        /// Where the piece starts, in bytes.
        offset: u64,
        /// How long it is, in bytes.
        len: u64,
    },
}

impl PlanBody {
    /// The body of a response to a request with this method.
    pub fn of_bytes(method: &Method, bytes: Bytes) -> Self {
        match *method == Method::HEAD || bytes.is_empty() {
            true => Self::Empty,
            false => Self::Segments(vec![Segment::Bytes(bytes)]),
        }
    }

    /// Bytes to be sent.
    pub fn len(&self) -> u64 {
        match self {
            PlanBody::Empty => 0,
            PlanBody::Segments(segments) => segments.iter().map(Segment::len).sum(),
        }
    }

    /// Whether nothing is to be sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Segment {
    /// Bytes to be sent.
    pub fn len(&self) -> u64 {
        match self {
            Segment::Bytes(bytes) => bytes.len() as u64,
            Segment::File { len, .. } => *len,
        }
    }

    /// Whether nothing is to be sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Plan {
    /// A short plain-text response with its status in the body: the body of every error.
    pub fn text(status: StatusCode, method: &Method) -> Self {
        Self::page(status, method, PLAIN_TEXT, status_line(status).into())
    }

    /// The same, with a line that says why.
    pub fn explained(status: StatusCode, method: &Method, why: &dyn Display) -> Self {
        let body = format!("{}{why}\n", status_line(status));
        Self::page(status, method, PLAIN_TEXT, body.into())
    }

    /// A plain text of one's own.
    pub fn with_text(status: StatusCode, method: &Method, text: Bytes) -> Self {
        Self::page(status, method, PLAIN_TEXT, text)
    }

    /// A body made on the spot.
    pub(super) fn page(
        status: StatusCode,
        method: &Method,
        content_type: &'static str,
        body: Bytes,
    ) -> Self {
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Self {
            status,
            headers: headers.into(),
            body: PlanBody::of_bytes(method, body),
        }
    }

    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.change().insert(name, value);
        self
    }
}

/// The status and its name, on one line.
fn status_line(status: StatusCode) -> String {
    let reason = status.canonical_reason().unwrap_or("Error");
    format!("{} {reason}\n", status.as_str())
}
