//! The forms of an access log's line: Combined Log Format with times, JSON, or a text with variables.
//!
//! | part | what it does |
//! |---|---|
//! | `combined` | the default |
//! | `json` | an object for each response |
//! | `template` | a format of one's own, with the names that nginx's `log_format` has |
//! | `text` | escaping and dates, for all three |

mod combined;
mod json;
mod template;
mod text;

use std::str::FromStr;

use http::header;
use shortline_web::{AccessRecord, Fields};

pub use template::{FormatError, Template};

/// How a line is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LineFormat {
    /// Combined Log Format with times.
    #[default]
    Combined,
    /// JSON.
    Json,
    /// As a template says.
    Own(Template),
}

impl FromStr for LineFormat {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        match text {
            "combined" => Ok(Self::Combined),
            "json" => Ok(Self::Json),
            own => own.parse().map(Self::Own),
        }
    }
}

impl LineFormat {
    /// The header fields that the lines tell. The first two of the request are those of Combined Log Format, unless a
    /// template says which.
    pub fn fields(&self) -> Fields {
        match self {
            Self::Combined => Fields {
                request: vec![header::REFERER, header::USER_AGENT],
                response: Vec::new(),
            },
            Self::Json => Fields {
                request: vec![header::REFERER, header::USER_AGENT],
                response: vec![header::CONTENT_ENCODING],
            },
            Self::Own(template) => template.fields().clone(),
        }
    }

    /// Appends the line of one response, with its line break.
    pub fn write_line(&self, line: &mut String, record: &AccessRecord) {
        match self {
            Self::Combined => combined::write_line(line, record),
            Self::Json => json::write_line(line, record),
            Self::Own(template) => template.write_line(line, record),
        }
    }
}

/// The value of a kept field of the request.
fn request_field(record: &AccessRecord, index: usize) -> Option<&[u8]> {
    record.fields.request.get(index)?.as_deref()
}

/// The value of a kept field of the response.
fn response_field(record: &AccessRecord, index: usize) -> Option<&[u8]> {
    record.fields.response.get(index)?.as_deref()
}

#[cfg(test)]
pub mod testing {
    #![allow(clippy::unwrap_used)]
    //! One record to log.
    use std::sync::Arc;
    use std::time::{Duration, UNIX_EPOCH};

    use shortline_tls::ClientIdentity;
    use shortline_web::{BackendRecord, FieldValues};

    use super::*;

    /// A response as it is logged.
    pub fn record() -> AccessRecord {
        AccessRecord {
            peer: "192.0.2.7".parse().unwrap(),
            user: None,
            host: Some("example.org".to_owned()),
            site: Some("example.org".to_owned()),
            method: "GET".to_owned(),
            target: "/a?b".to_owned(),
            version: "HTTP/1.1",
            tls: None,
            certificate: None,
            request_id: "0123456789abcdef0123456789abcdef".to_owned(),
            trace_id: None,
            span: None,
            status: 200,
            body_bytes: 512,
            fields: FieldValues {
                request: vec![None, Some(b"curl/8".to_vec())],
                response: vec![None],
            },
            wait: Duration::from_millis(3),
            queue: Duration::from_millis(2),
            send: Duration::from_millis(120),
            backend: None,
            time: UNIX_EPOCH + Duration::from_millis(951_827_696_789),
            complete: true,
        }
    }

    /// The same of a backend.
    pub fn proxied() -> AccessRecord {
        AccessRecord {
            user: Some(b"aladdin".to_vec()),
            tls: Some("TLSv1.3"),
            certificate: Some(Arc::new(ClientIdentity {
                subject: "CN=backup".to_owned(),
                fingerprint: "00ff".to_owned(),
            })),
            trace_id: Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned()),
            backend: Some(BackendRecord {
                address: Some("127.0.0.1:9000".to_owned()),
                admission: None,
                connect: Some(Duration::from_micros(250)),
                head: Some(Duration::from_micros(950)),
                whole: Some(Duration::from_millis(40)),
            }),
            fields: FieldValues {
                request: vec![Some(b"https://a.example/".to_vec()), None],
                response: vec![Some(b"gzip".to_vec())],
            },
            ..record()
        }
    }
}
