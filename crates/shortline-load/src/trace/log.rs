//! Logs in Common or Combined Log Format, or in JSON, as traces; `log_line.rs` and `json_line.rs` read a line.
//!
//! Servers write a line when the response ends but stamp it with the request's beginning, so lines
//! come late by as long as responses took. They are put in order: a second is handed out once a
//! line more than [`LATE_S_MAX`] after it was read. A line later than that is an error. Requests of
//! one second keep the order of the log and are spread over it as [`super::Spread`] says. Time
//! counts from the first second that has a request. A line of JSON may say when in the second it was.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::json_line;
use super::lines::Lines;
use super::log_line::{WANT, parse_line};
use super::spread::{NS_PER_S, Spreader};
use super::{PassedOver, Request, SECONDS_MAX, TraceOptions, TraceProblem};

/// How late a line may come, in seconds of the log's time: as long as a response may take.
pub(super) const LATE_S_MAX: i64 = 3_600;

/// Bytes in a line beside the path: names, referer and user agent.
pub(super) const LINE_BYTES_BESIDE_PATH: usize = 32_768;

/// What the lines of a log are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Common or Combined Log Format.
    Common,
    /// JSON.
    Json,
}

/// The form of a log that begins so. `None`: it is no log.
pub(super) fn form(head: &[u8]) -> Option<Form> {
    if head.trim_ascii_start().starts_with(b"{") && !head.contains(&0) {
        return Some(Form::Json);
    }
    is_log(head).then_some(Form::Common)
}

/// Whether a line in the beginning of a file has a log's time, `[day/Mon/year:`. No CSV of ours has
/// one, because its paths contain no space.
fn is_log(head: &[u8]) -> bool {
    let month = |text: &[u8]| {
        [
            b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
            b"Dec",
        ]
        .iter()
        .any(|name| text == *name)
    };
    !head.contains(&0)
        && head.windows(14).any(|window| match window {
            [
                b' ',
                b'[',
                day1,
                day2,
                b'/',
                name @ ..,
                b'/',
                y1,
                y2,
                y3,
                y4,
                b':',
            ] => {
                [day1, day2, y1, y2, y3, y4]
                    .iter()
                    .all(|digit| digit.is_ascii_digit())
                    && month(name)
            }
            _ => false,
        })
}

/// Reads lines and hands out requests, a second at a time.
pub(super) struct Reader<R> {
    input: R,
    form: Form,
    lines: Lines,
    options: TraceOptions,
    spreader: Spreader,
    /// Requests that were read but not yet handed out, by second since 1970.
    waiting: BTreeMap<i64, Vec<Request>>,
    /// How many these are.
    waiting_count: usize,
    /// The latest second read.
    latest: i64,
    /// The second that time counts from; known once it has been handed out.
    first: Option<i64>,
    ended: bool,
    /// The second being handed out.
    second: std::vec::IntoIter<Request>,
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(input: R, form: Form, options: &TraceOptions) -> Self {
        let line_bytes_max = options
            .path_bytes_max
            .saturating_add(LINE_BYTES_BESIDE_PATH);
        let want = match form {
            Form::Common => WANT,
            Form::Json => json_line::WANT,
        };
        Self {
            input,
            form,
            lines: Lines::new(line_bytes_max, want),
            options: options.clone(),
            spreader: Spreader::new(options.spread),
            waiting: BTreeMap::new(),
            waiting_count: 0,
            latest: i64::MIN,
            first: None,
            ended: false,
            second: Vec::new().into_iter(),
        }
    }

    /// The next request; `None` at the end. Lines left out are counted.
    pub(super) fn next(
        &mut self,
        passed: &mut PassedOver,
    ) -> Result<Option<Request>, TraceProblem> {
        loop {
            if let Some(request) = self.second.next() {
                return Ok(Some(request));
            }
            if let Some(second) = self.pop_complete() {
                self.second = second.into_iter();
            } else if self.ended {
                return Ok(None);
            } else {
                self.read_line(passed)?;
            }
        }
    }

    /// The earliest second, if no more line can come for it.
    fn pop_complete(&mut self) -> Option<Vec<Request>> {
        let (second, _) = self.waiting.first_key_value()?;
        if !self.ended && *second >= self.latest - LATE_S_MAX {
            return None;
        }
        let (second, mut requests) = self.waiting.pop_first()?;
        self.waiting_count -= requests.len();
        let after = second - *self.first.get_or_insert(second);
        let after = u64::try_from(after).expect("invariant: seconds are handed out in order");
        let whole_seconds = requests.iter().all(|request| request.at_ns == 0);
        if !whole_seconds {
            requests.sort_by_key(|request| request.at_ns);
        }
        for request in &mut requests {
            request.at_ns += after * NS_PER_S;
        }
        if whole_seconds {
            self.spreader.spread(&mut requests);
        }
        Some(requests)
    }

    fn read_line(&mut self, passed: &mut PassedOver) -> Result<(), TraceProblem> {
        let Some(line) = self.lines.next(&mut self.input)? else {
            self.ended = true;
            return Ok(());
        };
        if line.content.is_empty() {
            return Ok(());
        }
        let number = line.number;
        let path_bytes_max = self.options.path_bytes_max;
        let entry = match self.form {
            Form::Common => parse_line(number, line.content, path_bytes_max)?,
            Form::Json => json_line::parse(number, line.content, path_bytes_max)?,
        };
        let (path, bytes) = match entry.request {
            Ok(request) => request,
            Err(kind) => {
                passed.add_left_out(kind);
                return Ok(());
            }
        };
        self.check_time(number, entry.unix_s)?;
        if self.waiting_count == self.options.requests_max {
            return Err(TraceProblem::TooMany {
                limit: self.options.requests_max,
            });
        }
        self.latest = self.latest.max(entry.unix_s);
        self.waiting_count += 1;
        self.waiting.entry(entry.unix_s).or_default().push(Request {
            at_ns: entry.after_ns,
            path,
            bytes,
        });
        Ok(())
    }

    fn check_time(&self, line: usize, unix_s: i64) -> Result<(), TraceProblem> {
        if unix_s < self.latest.saturating_sub(LATE_S_MAX) {
            return Err(TraceProblem::LogUnsorted {
                line,
                behind: self.latest - unix_s,
                limit: LATE_S_MAX,
            });
        }
        let earliest = self
            .first
            .or_else(|| Some(*self.waiting.first_key_value()?.0));
        let after = unix_s - earliest.unwrap_or(unix_s);
        if after as f64 > SECONDS_MAX {
            return Err(TraceProblem::LogTooLate { line, after });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::trace::{Spread, parse_trace};
    use proptest::prelude::*;

    fn line(second: i64, path: &str, bytes: u64) -> String {
        let (minute, second) = (second / 60, second % 60);
        let (hour, minute) = (minute / 60, minute % 60);
        format!(
            "h - - [01/Jul/1995:{hour:02}:{minute:02}:{second:02} -0400] \
             \"GET {path} HTTP/1.0\" 200 {bytes}\n"
        )
    }

    fn parsed(text: &str, options: &TraceOptions) -> Result<Vec<(u64, String)>, TraceProblem> {
        let requests = parse_trace(text.as_bytes(), options)?;
        Ok(requests.into_iter().map(|r| (r.at_ns, r.path)).collect())
    }

    #[test]
    fn a_log_is_known_by_its_times() {
        let text = line(0, "/a", 5);
        assert_eq!(form(text.as_bytes()), Some(Form::Common));
        assert_eq!(form(b"\n {\"time\":"), Some(Form::Json));
        assert_eq!(form(b"{\0"), None);
        let mut latin1 = text.clone().into_bytes();
        latin1[0] = 0xe9;
        assert!(is_log(&latin1));
        assert!(!is_log(b"0,/a,5\n1,/b,6\n"));
        assert!(!is_log(b"h - - [01/Foo/1995:00:00:00 -0400]"));
        assert!(!is_log(&[text.as_bytes(), b"\0"].concat()));
    }

    #[test]
    fn lines_in_disorder_are_put_in_order_and_spread() {
        let text = [
            line(10, "/a", 1),
            line(8, "/b", 2),
            line(10, "/c", 3),
            "\n".into(),
            line(11, "/d", 4),
        ]
        .concat();
        let options = TraceOptions::default();
        let got = parsed(&text, &options).unwrap();
        let want = [
            (0, "/b"),
            (2 * NS_PER_S, "/a"),
            (2 * NS_PER_S + NS_PER_S / 2, "/c"),
            (3 * NS_PER_S, "/d"),
        ];
        assert_eq!(got, want.map(|(at_ns, path)| (at_ns, path.to_owned())));
        let random = |seed| {
            let spread = Spread::Random { seed };
            let options = TraceOptions {
                spread,
                ..TraceOptions::default()
            };
            parsed(&text, &options).unwrap()
        };
        assert_eq!(random(1), random(1));
        assert_ne!(random(1), random(2));
    }

    #[test]
    fn an_hour_late_is_the_latest() {
        let options = TraceOptions::default();
        let late = |by: i64| [line(5_000, "/a", 1), line(5_000 - by, "/b", 1)].concat();
        assert_eq!(parsed(&late(3_600), &options).unwrap().len(), 2);
        assert_eq!(
            parsed(&late(3_601), &options).unwrap_err().to_string(),
            "line 2: 3601 s before a line above it: want lines at most 3600 s late (sort the \
             log by time)"
        );
        let far = [line(0, "/a", 1), line(0, "/b", 1).replace("1995", "1996")].concat();
        assert_eq!(
            parsed(&far, &options).unwrap_err().to_string(),
            "line 2: 31622400 s after the first: want 10000000 at most"
        );
    }

    #[test]
    fn lines_without_a_file_alone_are_nothing() {
        let text = line(0, "/a", 0).replace(" 200 ", " 304 ");
        let error = parsed(&text, &TraceOptions::default()).unwrap_err();
        assert!(matches!(error, TraceProblem::Empty), "{error}");
    }

    #[test]
    fn requests_and_lines_are_bounded() {
        let options = TraceOptions {
            requests_max: 1,
            path_bytes_max: 10,
            ..TraceOptions::default()
        };
        let two = [line(0, "/a", 1), line(1, "/b", 1)].concat();
        let error = parsed(&two, &options).unwrap_err();
        assert!(
            matches!(error, TraceProblem::TooMany { limit: 1 }),
            "{error}"
        );
        let long = format!("{}{}", line(0, "/a", 1), "x".repeat(40_000));
        assert!(
            parsed(&long, &options)
                .unwrap_err()
                .to_string()
                .starts_with("line 2: longer than 32778 bytes: want `host ident user")
        );
    }

    proptest! {
        #[test]
        fn times_never_go_backwards_and_none_is_lost(
            seconds in proptest::collection::vec(0i64..3_600, 1..50), seed: Option<u64>
        ) {
            let text: String = seconds.iter().map(|second| line(*second, "/a", 1)).collect();
            let options = TraceOptions {
                spread: seed.map_or(Spread::Even, |seed| Spread::Random { seed }),
                ..TraceOptions::default()
            };
            let requests = parse_trace(text.as_bytes(), &options).unwrap();
            prop_assert_eq!(requests.len(), seconds.len());
            prop_assert!(requests.is_sorted_by_key(|request| request.at_ns));
            let mut sorted = seconds.clone();
            sorted.sort_unstable();
            for (second, request) in sorted.iter().zip(&requests) {
                prop_assert_eq!(request.at_ns / NS_PER_S, (second - sorted[0]) as u64);
            }
        }
    }
}
