//! One line of a log in JSON: an object whose members say when, what was asked for, the status and the bytes. Any other members
//! are passed over. Three kinds are read:
//!
//! ```text
//! ours    {"time":"2026-11-21T10:00:00.000Z","method":"GET","target":"/a","status":200,"bytes":512}
//! Caddy   {"ts":1795255200.5,"request":{"method":"GET","uri":"/a"},"status":200,"size":512}
//! nginx   {"time_iso8601":"2026-11-21T10:00:00+00:00","request":"GET /a HTTP/1.1","status":"200","body_bytes_sent":"512"}
//! ```
//!
//! nginx has no JSON of its own: its members are named as its variables, as most `log_format` do. Numbers may stand in quotes.
//! Times are RFC 3339, seconds since 1970, or as in Common Log Format. What becomes a request is as in `log_line.rs`.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

use super::TraceProblem;
use super::lines::shown_bytes;
use super::log_line::{self, Entry, left_out, sendable, target_of};

/// The form of a line.
pub(super) const WANT: &str = "{\"time\":\"2026-11-21T10:00:00.000Z\",\"method\":\"GET\",\"target\":\"/a\",\"status\":200,\"bytes\":512}, \
                               or Caddy's or nginx's members";

/// Caddy's `iso8601`, whose zone has no colon.
const ISO_8601: &[BorrowedFormatItem<'_>] = format_description!(
    "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond][offset_hour sign:mandatory][offset_minute]"
);

/// The members of all three kinds. Of those for one thing the first counts.
#[derive(Deserialize)]
struct Line {
    time: Option<Scalar>,
    ts: Option<Scalar>,
    msec: Option<Scalar>,
    time_iso8601: Option<Scalar>,
    time_local: Option<Scalar>,
    request: Option<RequestMember>,
    method: Option<Scalar>,
    request_method: Option<Scalar>,
    target: Option<Scalar>,
    request_uri: Option<Scalar>,
    uri: Option<Scalar>,
    status: Option<Scalar>,
    bytes: Option<Scalar>,
    size: Option<Scalar>,
    body_bytes_sent: Option<Scalar>,
    bytes_sent: Option<Scalar>,
}

/// Text or a number, as text.
#[derive(Default)]
struct Scalar(String);

/// Method and target in one.
enum RequestMember {
    Line(String),
    Members { method: String, uri: String },
}

/// Reads one line.
pub(super) fn parse(
    line: usize,
    text: &[u8],
    path_bytes_max: usize,
) -> Result<Entry, TraceProblem> {
    let wrong = |field, value: &[u8], want| TraceProblem::LogField {
        line,
        field,
        value: shown_bytes(value),
        want,
    };
    let no_line = || wrong("line", text, WANT);
    let read: Line = serde_json::from_slice(text).map_err(|_| no_line())?;
    let status = read.status.as_ref().ok_or_else(no_line)?.0.as_bytes();
    let status = <[u8; 3]>::try_from(status)
        .ok()
        .filter(|digits| digits.iter().all(u8::is_ascii_digit))
        .ok_or_else(|| wrong("status", status, "three digits"))?;
    let when = read.when().ok_or_else(no_line)?;
    let (unix_s, after_ns) =
        time_of(when).ok_or_else(|| wrong("time", when.as_bytes(), "2026-11-21T10:00:00.000Z"))?;
    let bytes = read.sent().ok_or_else(no_line)?;
    let bytes: u64 = match bytes {
        "-" => 0,
        digits => digits
            .parse()
            .map_err(|_| wrong("bytes", digits.as_bytes(), "a whole number, or - for none"))?,
    };
    let request = read.request_line().ok_or_else(no_line)?;
    Ok(Entry {
        unix_s,
        after_ns,
        request: match left_out(request.as_bytes(), status) {
            Some(kind) => Err(kind),
            None => Ok((
                sendable(
                    line,
                    target_of(request.as_bytes()),
                    request.as_bytes(),
                    path_bytes_max,
                )?,
                bytes,
            )),
        },
    })
}

impl Line {
    fn when(&self) -> Option<&str> {
        let named = [
            &self.time,
            &self.ts,
            &self.msec,
            &self.time_iso8601,
            &self.time_local,
        ];
        first_of(named)
    }

    fn sent(&self) -> Option<&str> {
        first_of([
            &self.bytes,
            &self.size,
            &self.body_bytes_sent,
            &self.bytes_sent,
        ])
    }

    /// `GET /a`, and perhaps a version.
    fn request_line(&self) -> Option<Cow<'_, str>> {
        match &self.request {
            Some(RequestMember::Line(line)) => Some(line.into()),
            Some(RequestMember::Members { method, uri }) => Some(format!("{method} {uri}").into()),
            None => {
                let method = first_of([&self.method, &self.request_method])?;
                let target = first_of([&self.target, &self.request_uri, &self.uri])?;
                Some(format!("{method} {target}").into())
            }
        }
    }
}

fn first_of<const N: usize>(members: [&Option<Scalar>; N]) -> Option<&str> {
    let mut there = members.into_iter().flatten();
    there.next().map(|scalar| scalar.0.as_str())
}

/// Seconds since 1970 and nanoseconds after that.
fn time_of(text: &str) -> Option<(i64, u64)> {
    let of = |time: OffsetDateTime| (time.unix_timestamp(), u64::from(time.nanosecond()));
    if let Some((whole, part)) = seconds(text) {
        return Some((whole, part));
    }
    let bytes = text.as_bytes();
    match bytes.get(4) {
        Some(b'-') => OffsetDateTime::parse(text, &Rfc3339)
            .or_else(|_| OffsetDateTime::parse(text, ISO_8601))
            .ok()
            .map(of),
        _ => log_line::time_of(bytes).map(|unix_s| (unix_s, 0)),
    }
}

/// Seconds since 1970, with any decimals, or in a power of ten (Caddy's writer of JSON).
fn seconds(text: &str) -> Option<(i64, u64)> {
    if !text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+'))
    {
        return None;
    }
    let seconds: f64 = text.parse().ok()?;
    if !(0.0..1e11).contains(&seconds) {
        return None;
    }
    // A float of today has a quarter of a microsecond.
    let micros = (seconds * 1e6).round() as u64;
    Some(((micros / 1_000_000) as i64, micros % 1_000_000 * 1000))
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarReader)
    }
}

struct ScalarReader;

impl Visitor<'_> for ScalarReader {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a number")
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar(text.to_owned()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar(number.to_string()))
    }
}

impl<'de> Deserialize<'de> for RequestMember {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RequestReader)
    }
}

struct RequestReader;

impl<'de> Visitor<'de> for RequestReader {
    type Value = RequestMember;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request line, or an object with `method` and `uri`")
    }

    fn visit_str<E>(self, line: &str) -> Result<RequestMember, E> {
        Ok(RequestMember::Line(line.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<RequestMember, A::Error> {
        let (mut method, mut uri) = (None, None);
        while let Some(name) = members.next_key::<Cow<'_, str>>()? {
            match name.as_ref() {
                "method" => method = Some(members.next_value()?),
                "uri" => uri = Some(members.next_value()?),
                _ => {
                    members.next_value::<serde::de::IgnoredAny>()?;
                }
            }
        }
        match (method, uri) {
            (Some(method), Some(uri)) => Ok(RequestMember::Members { method, uri }),
            _ => Err(A::Error::custom("want `method` and `uri`")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::trace::{LeftOut, Requests, TraceOptions, parse_trace};

    fn line(time: &str, method: &str, target: &str, status: u16) -> String {
        format!(
            "{{\"time\":\"{time}\",\"client\":\"::1\",\"method\":\"{method}\",\"target\":\"{target}\",\
             \"status\":{status},\"bytes\":7,\"user_agent\":\"a \\u0000 \\\" b\",\"wait_ms\":3.0}}\n"
        )
    }

    #[test]
    fn times_have_milliseconds() {
        let text = [
            line("2026-11-21T23:59:59.750Z", "GET", "/b", 200),
            line("2026-11-21T23:59:59.250Z", "GET", "/a?c", 200),
            line("2026-11-22T00:00:00.001Z", "GET", "/d\\u00e9", 200),
        ]
        .concat();
        let requests = parse_trace(text.as_bytes(), &TraceOptions::default()).unwrap();
        let read = requests
            .iter()
            .map(|request| (request.at_ns, request.path.as_str()));
        assert_eq!(
            read.collect::<Vec<_>>(),
            [
                (250_000_000, "/a?c"),
                (750_000_000, "/b"),
                (1_001_000_000, "/d%C3%A9")
            ]
        );
    }

    #[test]
    fn what_is_no_whole_file_is_left_out() {
        let text = [
            line("2026-11-21T10:00:00.000Z", "GET", "/a", 200),
            line("2026-11-21T10:00:00.000Z", "POST", "/a", 200),
            line("2026-11-21T10:00:00.000Z", "GET", "/a", 304),
        ]
        .concat();
        let mut requests = Requests::new(text.as_bytes(), &TraceOptions::default()).unwrap();
        assert_eq!(requests.by_ref().count(), 1);
        let left_out = requests.passed_over().left_out();
        assert_eq!(left_out[&LeftOut::Post], 1);
        assert_eq!(left_out[&LeftOut::NotModified], 1);
    }

    fn read(text: &str) -> Entry {
        parse(1, text.as_bytes(), 100).unwrap()
    }

    #[test]
    fn caddys_and_nginxs_members_are_read() {
        let want = |after_ns| Entry {
            unix_s: 1_795_255_200,
            after_ns,
            request: Ok(("/a?b".to_owned(), 512)),
        };
        for (text, after_ns) in [
            (
                "{\"level\":\"info\",\"ts\":1795255200.25,\"logger\":\"http.log.access\",\"request\":{\"remote_ip\":\"::1\",\
                 \"method\":\"GET\",\"host\":\"a\",\"uri\":\"/a?b\",\"headers\":{\"A\":[\"b\"]}},\"size\":512,\"status\":200}",
                250_000_000,
            ),
            (
                "{\"ts\":\"2026-11-21T11:00:00.500+0100\",\"request\":{\"method\":\"GET\",\"uri\":\"/a?b\"},\
                 \"size\":512,\"status\":200}",
                500_000_000,
            ),
            (
                "{\"time_iso8601\":\"2026-11-21T11:00:00+01:00\",\"request\":\"GET /a?b HTTP/2.0\",\"status\":\"200\",\
                 \"body_bytes_sent\":\"512\",\"bytes_sent\":\"800\"}",
                0,
            ),
            (
                "{\"time_local\":\"21/Nov/2026:10:00:00 +0000\",\"msec\":\"1795255200.007\",\"request_method\":\"GET\",\
                 \"request_uri\":\"/a?b\",\"uri\":\"/index.php\",\"status\":200,\"body_bytes_sent\":512}",
                7_000_000,
            ),
            (
                "{\"time\":\"21/Nov/2026:10:00:00 +0000\",\"request\":\"GET /a?b HTTP/1.1\",\"status\":200,\"bytes\":512}",
                0,
            ),
        ] {
            assert_eq!(read(text), want(after_ns), "{text}");
        }
    }

    #[test]
    fn what_is_missing_or_no_number_is_told() {
        let told = |text: &str| parse(7, text.as_bytes(), 100).unwrap_err().to_string();
        let line =
            "{\"ts\":1,\"request\":{\"method\":\"GET\",\"uri\":\"/\"},\"size\":1,\"status\":200}";
        assert!(parse(7, line.as_bytes(), 100).is_ok());
        for missing in [
            "\"ts\":1,",
            "\"size\":1,",
            "\"uri\":\"/\"",
            ",\"status\":200",
        ] {
            let text = line.replace(missing, "").replace(",}", "}");
            assert!(told(&text).starts_with("line 7: line `{"), "{text}");
        }
        assert_eq!(
            told(&line.replace("\"size\":1", "\"size\":-1")),
            "line 7: bytes `-1`: want a whole number, or - for none"
        );
        assert_eq!(
            told(&line.replace("\"status\":200", "\"status\":\"2xx\"")),
            "line 7: status `2xx`: want three digits"
        );
    }

    #[test]
    fn an_error_names_the_line_and_what_would_be_right() {
        let told = |text: &str| parse(7, text.as_bytes(), 100).unwrap_err().to_string();
        assert!(told("{}").starts_with("line 7: line `{}`: want {"));
        assert_eq!(
            told(&line("yesterday", "GET", "/a", 200)),
            "line 7: time `yesterday`: want 2026-11-21T10:00:00.000Z"
        );
        assert_eq!(
            told(&line("2026-11-21T10:00:00.000Z", "GET", "a", 200)),
            "line 7: request `GET a`: want GET /path HTTP/1.1"
        );
    }
}
