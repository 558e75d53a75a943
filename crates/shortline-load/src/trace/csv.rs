//! Traces as CSV: `seconds,path,bytes` a line, with an optional header line.
//!
//! A request target contains no quote (RFC 3986). So the first and the last comma of a line bound
//! the path, whatever commas are in it, and quotes around it are taken off. That reads what CSV
//! libraries write, without a state machine over lines. Blank lines and a UTF-8 byte order mark are
//! skipped.

use std::io::{self, BufRead, Write};

use http::uri::PathAndQuery;

use super::lines::{Lines, shown};
use super::{Request, SECONDS_MAX, TraceOptions, TraceProblem, csv_field};

/// Bytes in a line for the time, the size, commas and quotes.
const LINE_BYTES_BESIDE_PATH: usize = 128;

/// The `http` crate takes URIs below 64 KiB; scheme and host must fit as well.
const REQUEST_TARGET_BYTES_MAX: usize = 60_000;

/// The form of a line.
const WANT: &str = "`seconds,path,bytes`";

/// Reads lines.
pub(super) struct Reader<R> {
    input: R,
    lines: Lines,
    options: TraceOptions,
    previous_ns: u64,
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(input: R, options: &TraceOptions) -> Self {
        Self {
            input,
            lines: Lines::new(
                options
                    .path_bytes_max
                    .saturating_add(LINE_BYTES_BESIDE_PATH),
                WANT,
            ),
            options: options.clone(),
            previous_ns: 0,
        }
    }

    /// The next request; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Request>, TraceProblem> {
        while let Some(read) = self.lines.next(&mut self.input)? {
            let line = read.number;
            let text =
                std::str::from_utf8(read.content).map_err(|_| TraceProblem::NotText { line })?;
            let text = text.trim_start_matches('\u{feff}').trim();
            if text.is_empty() || (line == 1 && is_header(text)) {
                continue;
            }
            let request = parse_line(line, text, &self.options)?;
            if request.at_ns < self.previous_ns {
                return Err(TraceProblem::Unsorted {
                    line,
                    value: shown(text.split(',').next().unwrap_or_default()),
                    previous: self.previous_ns as f64 / 1e9,
                });
            }
            self.previous_ns = request.at_ns;
            return Ok(Some(request));
        }
        Ok(None)
    }
}

pub(super) fn write(out: &mut impl Write, requests: &[Request]) -> io::Result<()> {
    writeln!(out, "seconds,path,bytes")?;
    for Request { at_ns, path, bytes } in requests {
        let (s, ns) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
        writeln!(out, "{s}.{ns:09},{},{bytes}", csv_field(path))?;
    }
    Ok(())
}

fn is_header(text: &str) -> bool {
    let names = text.replace(['"', ' '], "").to_ascii_lowercase();
    names == "seconds,path,bytes"
}

fn parse_line(line: usize, text: &str, options: &TraceOptions) -> Result<Request, TraceProblem> {
    let fields = text
        .split_once(',')
        .and_then(|(time, rest)| Some((time, rest.rsplit_once(',')?)));
    let Some((time, (path, bytes))) = fields else {
        return Err(TraceProblem::Fields {
            line,
            text: shown(text),
        });
    };
    Ok(Request {
        at_ns: parse_time(line, time.trim())?,
        path: parse_path(line, path.trim(), options)?,
        bytes: bytes.trim().parse().map_err(|_| TraceProblem::Bytes {
            line,
            value: shown(bytes),
        })?,
    })
}

fn parse_time(line: usize, value: &str) -> Result<u64, TraceProblem> {
    match value.parse::<f64>() {
        // The range also excludes NaN and the infinities.
        Ok(seconds) if (0.0..=SECONDS_MAX).contains(&seconds) => Ok((seconds * 1e9).round() as u64),
        _ => Err(TraceProblem::Time {
            line,
            value: shown(value),
        }),
    }
}

fn parse_path(line: usize, value: &str, options: &TraceOptions) -> Result<String, TraceProblem> {
    let path = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(value);
    if path.len() > options.path_bytes_max {
        return Err(TraceProblem::PathTooLong {
            line,
            bytes: path.len(),
            limit: options.path_bytes_max,
        });
    }
    if !is_request_target(path) {
        return Err(TraceProblem::Path {
            line,
            value: shown(path),
        });
    }
    Ok(path.to_owned())
}

/// The generator must be able to send it as it stands. That is what [`PathAndQuery`] accepts,
/// except the quote (it would break the result CSV) and the fragment (it would be cut off
/// silently).
pub(crate) fn is_request_target(path: &str) -> bool {
    path.starts_with('/')
        && path.len() <= REQUEST_TARGET_BYTES_MAX
        && path
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'#')
        && path.parse::<PathAndQuery>().is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::trace::parse_trace;

    fn parsed(input: &str) -> Vec<Request> {
        parse_trace(input.as_bytes(), &TraceOptions::default()).unwrap()
    }

    fn error(input: &str) -> String {
        let options = TraceOptions {
            requests_max: 3,
            path_bytes_max: 100,
            ..TraceOptions::default()
        };
        parse_trace(input.as_bytes(), &options)
            .unwrap_err()
            .to_string()
    }

    fn request(at_ns: u64, path: &str, bytes: u64) -> Request {
        Request {
            at_ns,
            path: path.into(),
            bytes,
        }
    }

    #[test]
    fn the_header_is_optional() {
        let want = vec![request(0, "/a", 5), request(1_500_000_000, "/b", 0)];
        assert_eq!(parsed("seconds,path,bytes\n0,/a,5\n1.5,/b,0\n"), want);
        assert_eq!(
            parsed("\u{feff}Seconds, Path, Bytes\r\n0,/a,5\r\n1.5,/b,0"),
            want
        );
        assert_eq!(parsed("0,/a,5\n\n1.5,/b,0\n"), want);
    }

    #[test]
    fn a_path_may_hold_commas_and_be_quoted() {
        assert_eq!(parsed("0,/a,b,5"), vec![request(0, "/a,b", 5)]);
        assert_eq!(parsed("0,\"/a,b\",5"), vec![request(0, "/a,b", 5)]);
    }

    #[test]
    fn each_error_names_line_value_and_what_would_be_right() {
        assert_eq!(
            error("0,/a,5\nNaN,/b,1"),
            "line 2: time `NaN`: want seconds from 0 to 10000000"
        );
        assert_eq!(
            error("-1,/b,1"),
            "line 1: time `-1`: want seconds from 0 to 10000000"
        );
        assert_eq!(
            error("inf,/b,1"),
            "line 1: time `inf`: want seconds from 0 to 10000000"
        );
        assert_eq!(
            error("0,/b,-1"),
            "line 1: bytes `-1`: want a whole number, 0 or more"
        );
        assert_eq!(
            error("0,/b,1.5"),
            "line 1: bytes `1.5`: want a whole number, 0 or more"
        );
        assert_eq!(error("0,/b"), "line 1: `0,/b` is not `seconds,path,bytes`");
        assert_eq!(
            error("2,/a,1\n1.25,/b,1"),
            "line 2: time 1.25 is before 2, the line before: want them sorted"
        );
        assert_eq!(
            error("0,/a,1\n0,/a,1\n0,/a,1\n0,/a,1"),
            "holds more than 3 requests, the limit: cut the trace or raise the limit"
        );
        assert!(error("seconds,path,bytes\n").starts_with("holds no request"));
    }

    #[test]
    fn a_path_must_be_sendable() {
        for path in [
            "a",
            "",
            "http://x/",
            "/a b",
            "/a\"b",
            "/a#b",
            "/é",
            "/a\u{1}",
        ] {
            let error = error(&format!("0,{path},5"));
            assert!(error.starts_with("line 1: path `"), "{path:?}: {error}");
        }
    }

    #[test]
    fn lengths_are_bounded() {
        let long = format!("0,/{},5", "a".repeat(100));
        assert_eq!(error(&long), "line 1: path of 101 bytes: want 100 at most");
        let longer = format!("0,/{},5", "a".repeat(10_000));
        assert_eq!(
            error(&longer),
            "line 1: longer than 228 bytes: want `seconds,path,bytes`"
        );
    }

    #[test]
    fn an_error_stays_in_one_line() {
        assert_eq!(
            error("0,/a\u{1b}[2J\rb,5"),
            "line 1: path `/a\\u{1b}[2J\\rb`: want `/...` of printable ASCII without \
             space, quote or `#` (percent-encode them)"
        );
    }
}
