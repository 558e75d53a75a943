//! One line of a log that `shortline serve --log-format json` has written: an object whose members `time`, `method`, `target`,
//! `status` and `bytes` are read, and any others passed over. What becomes a request is as in `log_line.rs`.

use serde::Deserialize;
use time::PrimitiveDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use super::TraceProblem;
use super::lines::shown_bytes;
use super::log_line::{Entry, left_out, sendable};

/// The form of a line.
pub(super) const WANT: &str = "{\"time\":\"2026-11-21T10:00:00.000Z\",\"method\":\"GET\",\"target\":\"/a\",\"status\":200,\"bytes\":512}";

const TIME: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

#[derive(Deserialize)]
struct Line {
    time: String,
    method: String,
    target: String,
    status: u16,
    bytes: u64,
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
    let read: Line = serde_json::from_slice(text).map_err(|_| wrong("line", text, WANT))?;
    let time = PrimitiveDateTime::parse(&read.time, TIME)
        .map_err(|_| wrong("time", read.time.as_bytes(), "2026-11-21T10:00:00.000Z"))?;
    let status = <[u8; 3]>::try_from(read.status.to_string().as_bytes())
        .map_err(|_| wrong("status", read.status.to_string().as_bytes(), "three digits"))?;
    let request = format!("{} {}", read.method, read.target);
    let target = read.target.as_bytes();
    Ok(Entry {
        unix_s: time.assume_utc().unix_timestamp(),
        after_ns: time.nanosecond().into(),
        request: match left_out(request.as_bytes(), status) {
            Some(kind) => Err(kind),
            None => Ok((
                sendable(line, target, request.as_bytes(), path_bytes_max)?,
                read.bytes,
            )),
        },
    })
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
