//! Compression on the fly: which responses gain by it, and the codings themselves (RFC 9110 8.4; RFC 8878, 7932, 1952).
//!
//! | response | is compressed |
//! |---|---|
//! | of another type than text, script, data as text, vector graphics, or a font without a coding of its own | no |
//! | shorter than 1 KiB: a packet holds it anyway | no |
//! | with a `Content-Encoding`, or `Cache-Control: no-transform` (RFC 9111 5.2.2.6) | no |
//! | part of a representation, or with a digest that would be wrong afterwards (RFC 9530) | no |
//! | any other, for a client that names a coding | by that of the highest weight: zstd, br, gzip |
//!
//! The tag of what is made on the fly is weak: another release may make other bytes of the same text (RFC 9110 8.8.1). A file
//! is compressed once, on a thread that may block, and kept (`files::made`). A backend's response is compressed as it passes,
//! in pieces of [`PIECE_BYTES`], between which other tasks of the worker run (`proxy::relay`); [`streams`] limits how many.

pub mod counts;
pub mod encoder;
pub mod streams;

use std::sync::Arc;

use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, VARY,
};
use http::{Method, StatusCode};

use crate::files::encoding::{Choice, Coding, choose};
use encoder::Coder;
use streams::Streams;

/// Shorter responses gain nothing.
pub const BYTES_MIN: u64 = 1024;
/// What is compressed at a time on a worker's thread: less than a millisecond of work.
pub const PIECE_BYTES: usize = 16 * 1024;

/// Types besides text that are text.
const TYPES: [&str; 20] = [
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/json",
    "application/x-ndjson",
    "application/manifest+json",
    "application/xml",
    "application/wasm",
    "application/rtf",
    "application/sql",
    "application/toml",
    "application/yaml",
    "application/graphql",
    "application/vnd.ms-fontobject",
    "font/ttf",
    "font/otf",
    "font/collection",
    "image/bmp",
    "image/x-icon",
    "image/vnd.microsoft.icon",
];
/// Fields that are about the bytes as they are.
const DIGESTS: [&str; 4] = ["content-digest", "repr-digest", "digest", "content-md5"];

/// Which responses of a site may be compressed on the fly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compress {
    /// Files.
    pub files: bool,
    /// Responses of backends.
    pub backends: bool,
}

impl Compress {
    /// None.
    pub const NONE: Self = Self {
        files: false,
        backends: false,
    };
    /// All.
    pub const ALL: Self = Self {
        files: true,
        backends: true,
    };
    /// Files. They hold no secrets beside what a client has sent, so their length tells nobody anything (BREACH).
    pub const FILES: Self = Self {
        files: true,
        backends: false,
    };
}

impl Default for Compress {
    fn default() -> Self {
        Self::FILES
    }
}

/// The coding that a client wants most, of all that can be made.
pub fn wanted(headers: &HeaderMap) -> Option<Coding> {
    if !headers.contains_key(ACCEPT_ENCODING) {
        return None;
    }
    match choose(headers, |_| true) {
        Choice::Coded(coding) => Some(coding),
        Choice::Identity | Choice::NotAcceptable => None,
    }
}

/// Whether what has this `Content-Type` becomes much shorter.
pub fn suits_type(content_type: &str) -> bool {
    let name = content_type.split(';').next().unwrap_or_default();
    let name = name.trim_ascii().to_ascii_lowercase();
    name.starts_with("text/")
        || name.ends_with("+xml")
        || name.ends_with("+json")
        || TYPES.contains(&&*name)
}

/// Whether a backend's response with these fields may be compressed.
pub fn suits(method: &Method, status: StatusCode, headers: &HeaderMap) -> bool {
    let has_body = *method != Method::HEAD
        && !status.is_informational()
        && ![
            StatusCode::NO_CONTENT,
            StatusCode::RESET_CONTENT,
            StatusCode::PARTIAL_CONTENT,
            StatusCode::NOT_MODIFIED,
        ]
        .contains(&status);
    let is_short = || {
        let length = headers
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok());
        length
            .and_then(|length| length.parse::<u64>().ok())
            .is_some_and(|length| length < BYTES_MIN)
    };
    let is_of_a_type = || {
        let content_type = headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        content_type.is_some_and(suits_type)
    };
    has_body
        && is_of_a_type()
        && !headers.contains_key(CONTENT_ENCODING)
        && !headers.contains_key(CONTENT_RANGE)
        && !DIGESTS.iter().any(|name| headers.contains_key(*name))
        && !forbids(headers)
        && !is_short()
}

/// Whether `Cache-Control` forbids to change the response.
pub fn forbids(headers: &HeaderMap) -> bool {
    headers.get_all(CACHE_CONTROL).iter().any(is_no_transform)
}

/// Whether a value of `Cache-Control` forbids to change the response.
pub fn is_no_transform(value: &HeaderValue) -> bool {
    let mut directives = value.as_bytes().split(|byte| *byte == b',');
    directives.any(|directive| directive.trim_ascii().eq_ignore_ascii_case(b"no-transform"))
}

/// Says of a response that it depends on `Accept-Encoding`, unless it says so.
pub fn vary(headers: &mut HeaderMap) {
    let names = |value: &HeaderValue| {
        let mut names = value.as_bytes().split(|byte| *byte == b',');
        names.any(|name| {
            let name = name.trim_ascii();
            name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding")
        })
    };
    if !headers.get_all(VARY).iter().any(names) {
        headers.append(VARY, HeaderValue::from_name(ACCEPT_ENCODING));
    }
}

/// Makes of a backend's fields those of its response in this coding. What no longer holds goes.
pub fn code(headers: &mut HeaderMap, coding: Coding) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    for name in [CONTENT_LENGTH, ACCEPT_RANGES] {
        headers.remove(name);
    }
    headers.remove(HeaderName::from_static("content-md5"));
    if let Some(tag) = headers.get(ETAG) {
        match weakened(tag) {
            Some(weak) => headers.insert(ETAG, weak),
            None => headers.remove(ETAG),
        };
    }
}

/// The tag as a weak one. `None`: it is no tag.
fn weakened(tag: &HeaderValue) -> Option<HeaderValue> {
    let bytes = tag.as_bytes();
    if bytes.starts_with(b"W/\"") {
        return Some(tag.clone());
    }
    let is_strong = bytes.starts_with(b"\"");
    let weak = is_strong.then(|| [b"W/", bytes].concat())?;
    HeaderValue::from_bytes(&weak).ok()
}

/// What may become of a backend's response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It stays as it is.
    AsIs,
    /// It is compressed if it gains by it, for a client that wants a coding.
    Negotiated(Option<Coding>),
}

impl Passing {
    /// Makes of a response's fields those that the client gets, and begins the coding.
    pub fn begin(
        self,
        streams: &Arc<Streams>,
        method: &Method,
        status: StatusCode,
        headers: &mut HeaderMap,
    ) -> Option<Coder> {
        let coding = match self {
            Self::Negotiated(coding) if suits(method, status, headers) => coding,
            _ => return None,
        };
        vary(headers);
        let coding = coding?;
        let coder = Coder::new(streams.enter()?, coding)?;
        code(headers, coding);
        Some(coder)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn fields(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |&(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        fields.iter().map(pair).collect()
    }

    #[test]
    fn texts_gain_and_what_is_packed_does_not() {
        for gains in [
            "text/html; charset=utf-8",
            "TEXT/CSS",
            "application/json",
            "image/svg+xml",
            "application/ld+json; x=y",
            "application/wasm",
            "text/event-stream",
        ] {
            assert!(suits_type(gains), "{gains}");
        }
        for packed in [
            "image/png",
            "font/woff2",
            "application/zip",
            "video/mp4",
            "application/octet-stream",
            "application/grpc",
            "",
        ] {
            assert!(!suits_type(packed), "{packed}");
        }
    }

    #[test]
    fn what_must_stay_as_it_is_stays() {
        let html = ("content-type", "text/html");
        let suits = |status, more: &[(&'static str, &'static str)]| {
            let headers = fields(&[&[html], more].concat());
            suits(
                &Method::GET,
                StatusCode::from_u16(status).unwrap(),
                &headers,
            )
        };
        assert!(suits(200, &[]) && suits(404, &[]) && suits(200, &[("content-length", "1024")]));
        for kept in [
            ("content-length", "1023"),
            ("content-encoding", "gzip"),
            ("content-encoding", "identity"),
            ("cache-control", "private, No-Transform"),
            ("content-range", "bytes 0-1/2"),
            ("repr-digest", "sha-256=:AA==:"),
        ] {
            assert!(!suits(200, &[kept]), "{kept:?}");
        }
        for status in [204, 206, 304, 101] {
            assert!(!suits(status, &[]), "{status}");
        }
        assert!(!super::suits(
            &Method::HEAD,
            StatusCode::OK,
            &fields(&[html])
        ));
    }

    #[test]
    fn a_coded_response_says_so_and_its_tag_is_weak() {
        let mut headers = fields(&[
            ("content-length", "5000"),
            ("accept-ranges", "bytes"),
            ("etag", "\"a\""),
            ("vary", "Cookie"),
        ]);
        code(&mut headers, Coding::Brotli);
        vary(&mut headers);
        vary(&mut headers);
        assert_eq!(headers[CONTENT_ENCODING], "br");
        assert_eq!(headers[ETAG], "W/\"a\"");
        assert!(!headers.contains_key(CONTENT_LENGTH) && !headers.contains_key(ACCEPT_RANGES));
        let varies: Vec<_> = headers.get_all(VARY).iter().collect();
        assert_eq!(varies, ["Cookie", "accept-encoding"]);
        code(&mut headers, Coding::Zstd);
        assert_eq!(headers[ETAG], "W/\"a\"");
        let mut broken = fields(&[("etag", "a")]);
        code(&mut broken, Coding::Zstd);
        assert!(!broken.contains_key(ETAG));
        for star in ["*", "x, Accept-Encoding"] {
            let mut headers = fields(&[("vary", star)]);
            vary(&mut headers);
            assert_eq!(headers.get_all(VARY).iter().count(), 1);
        }
    }
}
