//! A format of one's own: a text with variables, as nginx's `log_format` has them (`ngx_http_log_module`):
//!
//! ```text
//! $remote_addr [$time_local] "$request" $status $body_bytes_sent $request_time "$http_x_forwarded_for"
//! ```
//!
//! - `$name` is the longest name of small letters, digits and underscores; `${name}` parts it from what follows.
//! - What is not known is `-`, and empty under `escape=json`.
//! - A text before the format says how values are escaped: `escape=default` (`"`, `\`, control characters and bytes beyond
//!   ASCII as `\xHH`) or `escape=json` (as inside a JSON string).
//! - Times are in seconds with three places, and UTC.
//!
//! Departures: `$ssl_client_fingerprint` is SHA-256, where nginx's is SHA-1. nginx's `escape=none` is refused, because with it a
//! client could forge lines. A variable that does not exist is an error when the configuration is read, as in nginx;
//! `$sent_http_` and `$http_` with any name exist.

use std::fmt::Write;
use std::str::FromStr;
use std::time::Duration;

use http::HeaderName;
use shortline_web::{AccessRecord, BackendRecord, Fields};

use super::text::{common_time, decoded, escape, iso_seconds, unix_time};
use super::{request_field, response_field};

/// The longest format.
const BYTES_MAX: usize = 4096;
/// The most header fields that it may name.
const FIELDS_MAX: usize = 32;
/// How much of a wrong text an error shows.
const SHOWN_CHARS_MAX: usize = 40;

/// A format of one's own; see the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
    fields: Fields,
    escaping: Escaping,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(Variable),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escaping {
    Default,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variable {
    RemoteAddr,
    RemoteUser,
    TimeLocal,
    TimeIso8601,
    Msec,
    Request,
    RequestMethod,
    RequestUri,
    Args,
    ServerProtocol,
    Scheme,
    Host,
    ServerName,
    Status,
    BodyBytesSent,
    RequestTime,
    WaitTime,
    QueueTime,
    SendTime,
    GateTime,
    RequestCompletion,
    RequestId,
    TraceId,
    SslProtocol,
    SslClientSDn,
    SslClientFingerprint,
    SslClientVerify,
    UpstreamAddr,
    UpstreamConnectTime,
    UpstreamHeaderTime,
    UpstreamResponseTime,
    /// A field of the request, by its place among those that are kept.
    RequestField(usize),
    /// A field of the response.
    ResponseField(usize),
}

/// All variables but those for header fields.
const VARIABLES: [(&str, Variable); 31] = [
    ("remote_addr", Variable::RemoteAddr),
    ("remote_user", Variable::RemoteUser),
    ("time_local", Variable::TimeLocal),
    ("time_iso8601", Variable::TimeIso8601),
    ("msec", Variable::Msec),
    ("request", Variable::Request),
    ("request_method", Variable::RequestMethod),
    ("request_uri", Variable::RequestUri),
    ("args", Variable::Args),
    ("server_protocol", Variable::ServerProtocol),
    ("scheme", Variable::Scheme),
    ("host", Variable::Host),
    ("server_name", Variable::ServerName),
    ("status", Variable::Status),
    ("body_bytes_sent", Variable::BodyBytesSent),
    ("request_time", Variable::RequestTime),
    ("wait_time", Variable::WaitTime),
    ("queue_time", Variable::QueueTime),
    ("send_time", Variable::SendTime),
    ("gate_time", Variable::GateTime),
    ("request_completion", Variable::RequestCompletion),
    ("request_id", Variable::RequestId),
    ("trace_id", Variable::TraceId),
    ("ssl_protocol", Variable::SslProtocol),
    ("ssl_client_s_dn", Variable::SslClientSDn),
    ("ssl_client_fingerprint", Variable::SslClientFingerprint),
    ("ssl_client_verify", Variable::SslClientVerify),
    ("upstream_addr", Variable::UpstreamAddr),
    ("upstream_connect_time", Variable::UpstreamConnectTime),
    ("upstream_header_time", Variable::UpstreamHeaderTime),
    ("upstream_response_time", Variable::UpstreamResponseTime),
];

/// A text that is not a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// No variable is in it.
    #[error(
        "`{0}` is not a log format: give combined, json, or a text with variables such as '$remote_addr $status'"
    )]
    NoVariable(String),
    /// A variable that does not exist.
    #[error("`${name}` is not a variable of a log format: did you mean `${nearest}`?")]
    Unknown {
        /// Its name.
        name: String,
        /// The one that is most like it.
        nearest: &'static str,
    },
    /// A dollar sign without a name behind it.
    #[error("`{0}`: a name follows each $, such as $status or ${{status}}")]
    NoName(String),
    /// A brace that is not closed.
    #[error("`{0}`: the brace is not closed: write it like ${{status}}")]
    Open(String),
    /// A kind of escaping that there is not.
    #[error("`escape={0}`: is default or json; without escaping a client could forge lines")]
    Escape(String),
    /// A line break or another control character.
    #[error("a log format is one line, without control characters: `{0}`")]
    Control(String),
    /// A format that is too long.
    #[error("a log format has {BYTES_MAX} bytes and {FIELDS_MAX} header fields at most")]
    TooLong,
}

impl FromStr for Template {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        if text.len() > BYTES_MAX {
            return Err(FormatError::TooLong);
        }
        if text.contains(char::is_control) {
            return Err(FormatError::Control(shown(text)));
        }
        let (escaping, mut rest) = escaping(text)?;
        let mut template = Self {
            pieces: Vec::new(),
            fields: Fields::default(),
            escaping,
        };
        while let Some((before, after)) = rest.split_once('$') {
            template.add_text(before);
            let (name, behind) = name(after)?;
            let variable = template.variable(name)?;
            template.pieces.push(Piece::Variable(variable));
            rest = behind;
        }
        template.add_text(rest);
        let has_variable = |piece: &Piece| matches!(piece, Piece::Variable(_));
        match template.pieces.iter().any(has_variable) {
            true => Ok(template),
            false => Err(FormatError::NoVariable(shown(text))),
        }
    }
}

/// How values are escaped, and the format after that.
fn escaping(text: &str) -> Result<(Escaping, &str), FormatError> {
    let Some(rest) = text.strip_prefix("escape=") else {
        return Ok((Escaping::Default, text));
    };
    let (kind, format) = rest.split_once(' ').unwrap_or((rest, ""));
    match kind {
        "default" => Ok((Escaping::Default, format)),
        "json" => Ok((Escaping::Json, format)),
        other => Err(FormatError::Escape(shown(other))),
    }
}

/// The name behind a dollar sign, and what follows it.
fn name(after: &str) -> Result<(&str, &str), FormatError> {
    let of_name = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    let in_braces = after.strip_prefix('{');
    let text = in_braces.unwrap_or(after);
    let end = text.bytes().position(|byte| !of_name(byte));
    let (name, behind) = text.split_at(end.unwrap_or(text.len()));
    let behind = match in_braces {
        None => behind,
        Some(_) => behind
            .strip_prefix('}')
            .ok_or_else(|| FormatError::Open(shown(&format!("${after}"))))?,
    };
    match name {
        "" => Err(FormatError::NoName(shown(&format!("${after}")))),
        name => Ok((name, behind)),
    }
}

fn shown(text: &str) -> String {
    let escaped = text.escape_debug();
    escaped.take(SHOWN_CHARS_MAX).collect()
}

impl Template {
    /// The header fields that it names.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    fn add_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.pieces.push(Piece::Text(text.to_owned()));
        }
    }

    fn variable(&mut self, name: &str) -> Result<Variable, FormatError> {
        if let Some((_, variable)) = VARIABLES.iter().find(|(known, _)| *known == name) {
            return Ok(*variable);
        }
        let (named, fields) = match (name.strip_prefix("http_"), name.strip_prefix("sent_http_")) {
            (Some(named), _) => (named, &mut self.fields.request),
            (_, Some(named)) => (named, &mut self.fields.response),
            _ => return Err(unknown(name)),
        };
        let field = HeaderName::try_from(named.replace('_', "-")).map_err(|_| unknown(name))?;
        let known = fields.iter().position(|known| *known == field);
        let index = known.unwrap_or_else(|| {
            fields.push(field);
            fields.len() - 1
        });
        if index >= FIELDS_MAX {
            return Err(FormatError::TooLong);
        }
        Ok(match name.starts_with("sent_") {
            true => Variable::ResponseField(index),
            false => Variable::RequestField(index),
        })
    }

    /// Appends the line of one response, with its line break.
    pub fn write_line(&self, line: &mut String, record: &AccessRecord) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => line.push_str(text),
                Piece::Variable(variable) => self.write_value(line, *variable, record),
            }
        }
        line.push('\n');
    }

    fn write_value(&self, line: &mut String, variable: Variable, record: &AccessRecord) {
        let value = value(variable, record).filter(|value| !value.is_empty());
        match (self.escaping, value) {
            (Escaping::Default, None) => line.push('-'),
            (Escaping::Json, None) => {}
            (Escaping::Default, Some(value)) => escape(line, &value),
            (Escaping::Json, Some(value)) => {
                let quoted = serde_json::to_string(&decoded(&value));
                let quoted = quoted.expect("invariant: a text is JSON");
                line.push_str(&quoted[1..quoted.len() - 1]);
            }
        }
    }
}

fn unknown(name: &str) -> FormatError {
    let likeness = |known: &str| (strsim::jaro_winkler(known, name) * 1e6) as u64;
    let names = VARIABLES.iter().map(|(known, _)| *known);
    FormatError::Unknown {
        name: shown(name),
        nearest: names
            .max_by_key(|known| likeness(known))
            .unwrap_or("status"),
    }
}

fn value(variable: Variable, record: &AccessRecord) -> Option<Vec<u8>> {
    let text = match variable {
        Variable::RemoteAddr => record.peer.to_string(),
        Variable::RemoteUser => return record.user.clone(),
        Variable::TimeLocal => common_time(record.time),
        Variable::TimeIso8601 => format!("{}+00:00", iso_seconds(record.time)),
        Variable::Msec => unix_time(record.time),
        Variable::Request => format!("{} {} {}", record.method, record.target, record.version),
        Variable::RequestMethod => record.method.clone(),
        Variable::RequestUri => record.target.clone(),
        Variable::Args => record.target.split_once('?')?.1.to_owned(),
        Variable::ServerProtocol => record.version.to_owned(),
        Variable::Scheme => record.tls.map_or("http", |_| "https").to_owned(),
        Variable::Host => record.host.clone()?,
        Variable::ServerName => record.site.clone()?,
        Variable::Status => record.status.to_string(),
        Variable::BodyBytesSent => record.body_bytes.to_string(),
        Variable::RequestTime => seconds(record.wait + record.send),
        Variable::WaitTime => seconds(record.wait),
        Variable::QueueTime => seconds(record.queue),
        Variable::SendTime => seconds(record.send),
        Variable::RequestCompletion => record.complete.then(|| "OK".to_owned())?,
        Variable::RequestId => record.request_id.clone(),
        Variable::TraceId => record.trace_id.clone()?,
        Variable::SslProtocol => record.tls?.to_owned(),
        Variable::SslClientSDn => record.certificate.as_ref()?.subject.clone(),
        Variable::SslClientFingerprint => record.certificate.as_ref()?.fingerprint.clone(),
        Variable::SslClientVerify => match record.certificate {
            Some(_) => "SUCCESS".to_owned(),
            None => "NONE".to_owned(),
        },
        Variable::RequestField(index) => return request_field(record, index).map(<[u8]>::to_vec),
        Variable::ResponseField(index) => return response_field(record, index).map(<[u8]>::to_vec),
        of_backend => of_backend_value(of_backend, record.backend.as_ref()?)?,
    };
    Some(text.into_bytes())
}

fn of_backend_value(variable: Variable, backend: &BackendRecord) -> Option<String> {
    match variable {
        Variable::UpstreamAddr => backend.address.clone(),
        Variable::GateTime => backend.admission.map(seconds),
        Variable::UpstreamConnectTime => backend.connect.map(seconds),
        Variable::UpstreamHeaderTime => backend.head.map(seconds),
        Variable::UpstreamResponseTime => backend.whole.map(seconds),
        _ => None,
    }
}

fn seconds(time: Duration) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(text, "{:.3}", time.as_secs_f64());
    text
}

#[cfg(test)]
mod tests;
