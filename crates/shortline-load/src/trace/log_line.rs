//! One line of a log in Common or Combined Log Format (the NCSA and CERN servers' and
//! Apache's `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i"`):
//!
//! ```text
//! 192.0.2.7 - - [01/Jul/1995:00:00:01 -0400] "GET /a.html HTTP/1.0" 200 6245
//! 192.0.2.7 - - [21/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 512 "-" "curl/8"
//! ```
//!
//! - Everything after the user agent is skipped: many servers, Shortline among them, add fields of
//!   their own.
//! - Inside quotes `\"`, `\\` and `\xHH` are undone. Old servers escaped nothing: a bare quote in
//!   the request line ends it only where a status follows.
//! - **Which lines become requests**: GETs answered 200, which alone carry the whole file. A 304, a
//!   redirect, an error, a 206 with a piece, a HEAD or a POST asked the uplink for something else
//!   than the file, and do not show the file's size. Such lines are left out and counted by kind
//!   ([`LeftOut`]); only their form is checked.
//! - The size is the body's; `-` is none. The target is sent as it stands, but what a request line
//!   cannot hold is percent-encoded, and an absolute URL loses scheme and host.

use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use super::csv::is_request_target;
use super::lines::shown_bytes;
use super::{LeftOut, TraceProblem};

/// The form of a line.
pub(super) const WANT: &str =
    "`host ident user [day/Mon/year:h:m:s zone] \"request\" status bytes`";

const TIME: &[BorrowedFormatItem<'_>] = format_description!(
    "[day]/[month repr:short]/[year]:[hour]:[minute]:[second] [offset_hour sign:mandatory][offset_minute]"
);

/// What a path and query cannot contain (RFC 3986). `%` is not among them, because it may begin an
/// encoded byte.
const UNSENDABLE: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// A line that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// When, in seconds since 1970 in UTC.
    pub(super) unix_s: i64,
    /// How long after that second began, in nanoseconds, if the line tells it.
    pub(super) after_ns: u64,
    /// Path and body bytes, or why the request cannot be repeated.
    pub(super) request: Result<(String, u64), LeftOut>,
}

/// Reads one line.
pub(super) fn parse_line(
    line: usize,
    text: &[u8],
    path_bytes_max: usize,
) -> Result<Entry, TraceProblem> {
    let mut fields = Fields { line, rest: text };
    let unix_s = fields.time()?;
    let request = fields.request_line()?;
    let status = fields.status()?;
    let bytes = fields.bytes()?;
    fields.end()?;
    let request = match left_out(request, status) {
        Some(kind) => Err(kind),
        None => Ok((path(line, request, path_bytes_max)?, bytes)),
    };
    Ok(Entry {
        unix_s,
        after_ns: 0,
        request,
    })
}

/// Seconds since 1970 of a log's time, without the brackets.
pub(super) fn time_of(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let time = OffsetDateTime::parse(text, TIME).ok()?;
    Some(time.unix_timestamp())
}

/// Why it is not a request for a whole file; `None` if it is.
pub(super) fn left_out(request: &[u8], status: [u8; 3]) -> Option<LeftOut> {
    let method_end = find(request, b" ").unwrap_or(0);
    match &request[..method_end] {
        b"GET" => {}
        b"HEAD" => return Some(LeftOut::Head),
        b"POST" => return Some(LeftOut::Post),
        method if !method.is_empty() && method.iter().all(u8::is_ascii_uppercase) => {
            return Some(LeftOut::OtherMethod);
        }
        _ => return Some(LeftOut::NoRequest),
    }
    match &status {
        b"200" => None,
        b"206" => Some(LeftOut::Piece),
        b"304" => Some(LeftOut::NotModified),
        [b'3', ..] => Some(LeftOut::Redirect),
        [b'4', ..] => Some(LeftOut::ClientError),
        [b'5', ..] => Some(LeftOut::ServerError),
        _ => Some(LeftOut::OtherStatus),
    }
}

/// Takes a line's fields from its front.
struct Fields<'a> {
    line: usize,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn wrong(&self, field: &'static str, value: &[u8], want: &'static str) -> TraceProblem {
        TraceProblem::LogField {
            line: self.line,
            field,
            value: shown_bytes(value),
            want,
        }
    }

    /// Host, ident and user, whatever they are, then the time.
    fn time(&mut self) -> Result<i64, TraceProblem> {
        let line = self.rest;
        let begin = find(line, b" [").filter(|at| {
            let names = line[..*at].split(|byte| *byte == b' ');
            names.filter(|name| !name.is_empty()).count() >= 3
        });
        let Some(begin) = begin else {
            return Err(self.wrong("line", line, WANT));
        };
        self.rest = &line[begin + 2..];
        let end = find(self.rest, b"]").unwrap_or(self.rest.len());
        let (time, rest) = self.rest.split_at(end);
        match time_of(time) {
            Some(unix_s) if !rest.is_empty() => {
                self.rest = &rest[1..];
                Ok(unix_s)
            }
            _ => Err(self.wrong("time", time, "[day/Mon/year:hour:minute:second +hhmm]")),
        }
    }

    /// What stands between the quotes, escapes and all.
    fn request_line(&mut self) -> Result<&'a [u8], TraceProblem> {
        let ends = |after: &[u8]| matches!(after, [b' ', b'0'..=b'9', ..]);
        self.quoted(ends)
            .ok_or_else(|| self.wrong("request", self.rest, "it in quotes, then the status"))
    }

    fn status(&mut self) -> Result<[u8; 3], TraceProblem> {
        let word = self.word();
        match <[u8; 3]>::try_from(word) {
            Ok(status) if status.iter().all(u8::is_ascii_digit) => Ok(status),
            _ => Err(self.wrong("status", word, "three digits")),
        }
    }

    fn bytes(&mut self) -> Result<u64, TraceProblem> {
        let word = self.word();
        if word == b"-" {
            return Ok(0);
        }
        let digits = word.iter().all(u8::is_ascii_digit);
        let text = std::str::from_utf8(word).ok().filter(|_| digits);
        text.and_then(|text| text.parse().ok())
            .ok_or_else(|| self.wrong("bytes", word, "a whole number, or - for none"))
    }

    /// Nothing more, or the two fields that Combined adds and anything after them.
    fn end(&mut self) -> Result<(), TraceProblem> {
        if self.rest.is_empty() {
            return Ok(());
        }
        for field in ["referer", "user agent"] {
            let ends = |after: &[u8]| matches!(after, [] | [b' ', ..]);
            if self.quoted(ends).is_none() {
                return Err(self.wrong(field, self.rest, "it in quotes, as Combined Log Format"));
            }
        }
        Ok(())
    }

    /// The next word.
    fn word(&mut self) -> &'a [u8] {
        let rest = self.rest.strip_prefix(b" ").unwrap_or(self.rest);
        let end = find(rest, b" ").unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        word
    }

    /// The next field in quotes. It ends at a quote that is not escaped and is followed by what
    /// ends the field.
    fn quoted(&mut self, ends: impl Fn(&[u8]) -> bool) -> Option<&'a [u8]> {
        let inside = self.rest.strip_prefix(b" \"")?;
        let mut escaped = false;
        for (at, byte) in inside.iter().enumerate() {
            if *byte == b'"' && !escaped && ends(&inside[at + 1..]) {
                self.rest = &inside[at + 1..];
                return Some(&inside[..at]);
            }
            escaped = *byte == b'\\' && !escaped;
        }
        None
    }
}

/// The target of a GET, as it can be sent.
fn path(line: usize, request: &[u8], path_bytes_max: usize) -> Result<String, TraceProblem> {
    let raw = unescaped(&request[b"GET ".len()..]);
    let target = without_version(&raw).trim_ascii();
    sendable(line, target, request, path_bytes_max)
}

/// A target as it can be sent. `request` is what an error shows.
pub(super) fn sendable(
    line: usize,
    target: &[u8],
    request: &[u8],
    path_bytes_max: usize,
) -> Result<String, TraceProblem> {
    let path = percent_encode(without_origin(target), UNSENDABLE).to_string();
    if path.len() > path_bytes_max {
        return Err(TraceProblem::PathTooLong {
            line,
            bytes: path.len(),
            limit: path_bytes_max,
        });
    }
    if !is_request_target(&path) {
        return Err(TraceProblem::LogField {
            line,
            field: "request",
            value: shown_bytes(request),
            want: "GET /path HTTP/1.1",
        });
    }
    Ok(path)
}

/// What follows the method in a request line, without the version, which may be missing.
pub(super) fn target_of(request: &[u8]) -> &[u8] {
    let method_end = find(request, b" ").map_or(request.len(), |at| at + 1);
    without_version(&request[method_end..])
}

fn without_version(target: &[u8]) -> &[u8] {
    match target.iter().rposition(|byte| *byte == b' ') {
        Some(at) if target[at + 1..].starts_with(b"HTTP/") => &target[..at],
        _ => target,
    }
}

/// The path of an absolute URL, as in requests to proxies.
fn without_origin(target: &[u8]) -> &[u8] {
    let lower = target.to_ascii_lowercase();
    let scheme = [b"http://".as_slice(), b"https://"]
        .into_iter()
        .find(|scheme| lower.starts_with(scheme));
    let Some(scheme) = scheme else {
        return target;
    };
    let after = &target[scheme.len()..];
    match after.iter().position(|byte| *byte == b'/') {
        Some(at) => &after[at..],
        None => b"/",
    }
}

/// Undoes `\"`, `\\` and `\xHH`; other backslashes stay.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        rest = match rest {
            [b'\\', byte @ (b'"' | b'\\'), after @ ..] => {
                out.push(*byte);
                after
            }
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
                out.push(digit(*high) << 4 | digit(*low));
                after
            }
            [byte, after @ ..] => {
                out.push(*byte);
                after
            }
            [] => return out,
        };
    }
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len())
        .position(|window| window == pattern)
}

#[cfg(test)]
mod tests;
