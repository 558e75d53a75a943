//! Reading and writing request traces: what is asked for, and when.
//!
//! Formats are told apart by content, never by name:
//! - logs in Common or Combined Log Format (`log.rs`): text with a line near its beginning that has
//!   such a log's time, `[day/Mon/year:`;
//! - logs in JSON, of `shortline serve`, Caddy or nginx (`json_line.rs`): text that begins with a brace;
//! - CSV, `seconds,path,bytes` a line, with an optional header line (`csv.rs`): any other text;
//! - the World Cup 98 archive's binary records (`world_cup.rs`): anything that is not text.
//!
//! Times in a trace never go backwards (lines of a log may come late, because servers write them
//! when the response ends). Logs and World Cup records have only whole seconds; [`Spread`] says how
//! the arrivals of one second are spread over it. JSON with parts of a second is left as it is.
//!
//! Any trace may be packed with gzip or zstd, and may come from standard input, `-` ([`crate::input`]).
//!
//! A line that cannot be read is passed over and counted (`passed_over.rs`). A fault of the trace
//! as a whole ends it: its order, its length, damaged gzip, no good line at all.
//!
//! A trace is read from a stream with limits on the number of requests and on the length of a path,
//! so that a wrong file costs an error and not the memory.

mod csv;
mod error;
mod json_line;
mod lines;
mod log;
mod log_line;
mod passed_over;
mod sent;
mod spread;
mod world_cup;

use std::fs::File;
use std::io::{BufRead, BufWriter, Chain, Cursor, Read, Write};
use std::path::{Path, PathBuf};

use crate::input;

pub(crate) use csv::is_request_target;
pub use error::{TraceError, TraceProblem};
pub use passed_over::{LeftOut, PassedOver};
pub use sent::{LogInput, Sent, SentLog};

/// How much of the file decides its format, in bytes.
const SNIFF_BYTES: u64 = 4096;

/// The latest time in a trace, in seconds (115 days; there f64 still distinguishes 2 ns).
pub const SECONDS_MAX: f64 = 1e7;

/// One request of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it is made, in nanoseconds after the start of the trace.
    pub at_ns: u64,
    /// The request target: begins with `/`, printable ASCII, may hold a query.
    pub path: String,
    /// The size of the response body that is expected, in bytes.
    pub bytes: u64,
}

/// How the requests of one second are spread over it where a trace has only whole seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// The i-th of n requests at i/n of the second.
    #[default]
    Even,
    /// Uniformly at random, order kept; the same seed gives the same times everywhere.
    Random {
        /// Seed of the generator.
        seed: u64,
    },
}

/// Limits and choices for reading a trace.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// The most requests a trace may hold; one more is an error. Default 20 million.
    pub requests_max: usize,
    /// The longest path accepted, in bytes. Default 8192.
    pub path_bytes_max: usize,
    /// How requests are spread over a second if the format has only whole seconds.
    pub spread: Spread,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self {
            requests_max: 20_000_000,
            path_bytes_max: 8192,
            spread: Spread::Even,
        }
    }
}

/// Reads a whole trace, in any of the formats. Every line must be good.
///
/// # Errors
/// [`TraceError`] names the file, the line or record, the value and what would be right:
/// unreadable, empty, out of order, not a number, negative, cut short, over a limit.
pub fn read_trace(path: &Path, options: &TraceOptions) -> Result<Vec<Request>, TraceError> {
    let trace = stream_trace(path, options)?;
    trace
        .requests
        .all()
        .map_err(|problem| TraceError::new(&trace.name, problem))
}

/// Reads a trace one request at a time, from standard input if the path is `-`. Unreadable lines
/// are passed over: [`Trace::passed_over`].
///
/// # Errors
/// [`TraceError`] if the file cannot be opened or its beginning cannot be read.
pub fn stream_trace(path: &Path, options: &TraceOptions) -> Result<Trace, TraceError> {
    let name = input::name_of(path).to_owned();
    let requests = input::open(path)
        .map_err(TraceProblem::from)
        .and_then(|input| Requests::new(input, options));
    match requests {
        Ok(requests) => Ok(Trace { name, requests }),
        Err(problem) => Err(TraceError::new(&name, problem)),
    }
}

/// Reads a trace from any stream, as [`read_trace`] does from a file. Every line must be good.
///
/// # Errors
/// As [`read_trace`], without the file's name.
pub fn parse_trace(
    input: impl BufRead,
    options: &TraceOptions,
) -> Result<Vec<Request>, TraceProblem> {
    Requests::new(input, options)?.all()
}

/// The requests of a trace, one at a time; nothing follows an error.
pub struct Trace {
    name: PathBuf,
    requests: Requests<'static>,
}

impl Trace {
    /// Its name in errors.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// What has not become a request so far.
    pub fn passed_over(&self) -> &PassedOver {
        self.requests.passed_over()
    }
}

impl Iterator for Trace {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let request = self.requests.next()?;
        Some(request.map_err(|problem| TraceError::new(&self.name, problem)))
    }
}

/// A stream whose beginning is read to find its format, and then read again.
type Stream<'a> = Chain<Cursor<Vec<u8>>, Box<dyn BufRead + 'a>>;

/// The requests of a stream, one at a time; nothing follows an error.
pub struct Requests<'a> {
    reader: Reader<Stream<'a>>,
    requests_max: usize,
    count: usize,
    ended: bool,
    passed: PassedOver,
}

/// One of the formats.
enum Reader<R> {
    Csv(csv::Reader<R>),
    Log(Box<log::Reader<R>>),
    WorldCup(Box<world_cup::Reader<R>>),
}

impl<'a> Requests<'a> {
    /// Reads the beginning and finds the format.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn new(input: impl BufRead + 'a, options: &TraceOptions) -> Result<Self, TraceProblem> {
        let mut input = input::unpacked(input)?;
        let mut head = Vec::new();
        input.by_ref().take(SNIFF_BYTES).read_to_end(&mut head)?;
        let form = log::form(&head);
        let text = is_text(&head);
        let whole = Cursor::new(head).chain(input);
        Ok(Self {
            reader: if let Some(form) = form {
                Reader::Log(Box::new(log::Reader::new(whole, form, options)))
            } else if text {
                Reader::Csv(csv::Reader::new(whole, options))
            } else {
                Reader::WorldCup(Box::new(world_cup::Reader::new(whole, options)))
            },
            requests_max: options.requests_max,
            count: 0,
            ended: false,
            passed: PassedOver::default(),
        })
    }

    /// What has not become a request so far.
    pub fn passed_over(&self) -> &PassedOver {
        &self.passed
    }

    /// All requests; a line that cannot be read is an error.
    fn all(mut self) -> Result<Vec<Request>, TraceProblem> {
        let requests = self.by_ref().collect::<Result<_, _>>()?;
        match self.passed.take_first_bad() {
            Some(problem) => Err(problem),
            None => Ok(requests),
        }
    }

    /// The next request within the limit; `None` at the end of a trace that holds any.
    fn read(&mut self) -> Result<Option<Request>, TraceProblem> {
        let Some(request) = self.read_good()? else {
            return match self.count {
                0 => Err(self.without_any()),
                _ => Ok(None),
            };
        };
        if self.count == self.requests_max {
            return Err(TraceProblem::TooMany {
                limit: self.requests_max,
            });
        }
        self.count += 1;
        Ok(Some(request))
    }

    /// The next request, passing over lines that cannot be read.
    fn read_good(&mut self) -> Result<Option<Request>, TraceProblem> {
        loop {
            let read = match &mut self.reader {
                Reader::Csv(reader) => reader.next(),
                Reader::Log(reader) => reader.next(&mut self.passed),
                Reader::WorldCup(reader) => reader.next(),
            };
            match read {
                Err(problem) if problem.is_of_a_line() => self.passed.add_bad(problem),
                read => return read,
            }
        }
    }

    /// Why there is no request: no line is good, or no good line is a request.
    fn without_any(&mut self) -> TraceProblem {
        let first_bad = match self.passed.left_out().is_empty() {
            true => self.passed.take_first_bad(),
            false => None,
        };
        first_bad.unwrap_or(TraceProblem::Empty)
    }
}

impl Iterator for Requests<'_> {
    type Item = Result<Request, TraceProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let request = self.read();
        self.ended = !matches!(request, Ok(Some(_)));
        request.transpose()
    }
}

/// Writes a trace as CSV with a header, times with nine places.
///
/// # Errors
/// The file system's error, with the file's name.
pub fn write_csv(path: &Path, requests: &[Request]) -> Result<(), TraceError> {
    let write = || {
        let mut out = BufWriter::new(File::create(path)?);
        csv::write(&mut out, requests)?;
        out.flush()
    };
    write().map_err(|error| TraceError::new(path, error.into()))
}

/// Text has no NUL and is UTF-8, except for a character cut by the end of the sample. A World Cup
/// record always has a NUL: its client and object numbers are far below 2^24.
fn is_text(head: &[u8]) -> bool {
    let utf8 = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    utf8 && !head.contains(&0)
}

/// Quotes a CSV field that holds a comma; a path can hold no quote (see [`csv`]).
pub(crate) fn csv_field(path: &str) -> std::borrow::Cow<'_, str> {
    if path.contains(',') {
        format!("\"{path}\"").into()
    } else {
        path.into()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn parse(input: &[u8]) -> Result<Vec<Request>, TraceProblem> {
        parse_trace(input, &TraceOptions::default())
    }

    #[test]
    fn nothing_is_an_error() {
        assert_eq!(
            parse(b"").unwrap_err().to_string(),
            "holds no request: want CSV lines `seconds,path,bytes`, World Cup records, or a log in \
             Common or Combined Log Format with a GET answered 200"
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read_trace(Path::new("no/such.csv"), &TraceOptions::default()).unwrap_err();
        assert!(error.to_string().starts_with("no/such.csv: "), "{error}");
    }

    #[test]
    fn a_character_cut_by_the_sample_is_still_text() {
        assert!(is_text("1,/é".as_bytes()));
        assert!(is_text(&"1,/é".as_bytes()[..4]));
        assert!(!is_text(b"1,\xff\xff/"));
        assert!(!is_text(b"1,/\0"));
    }

    #[test]
    fn a_written_file_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t.csv");
        let requests = vec![
            Request {
                at_ns: 1,
                path: "/a,b".into(),
                bytes: 3,
            },
            Request {
                at_ns: 1_500_000_000,
                path: "/c?d=e".into(),
                bytes: 0,
            },
        ];
        write_csv(&file, &requests).unwrap();
        assert_eq!(
            read_trace(&file, &TraceOptions::default()).unwrap(),
            requests
        );
    }

    fn any_request() -> impl Strategy<Value = Request> {
        (
            0u64..1_000_000_000_000_000,
            "/[a-z0-9,;%=?&~.-]{0,20}",
            any::<u64>(),
        )
            .prop_map(|(at_ns, path, bytes)| Request { at_ns, path, bytes })
    }

    proptest! {
        #[test]
        fn no_input_panics(input in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&input).is_ok();
        }

        #[test]
        fn no_line_panics(input in "[0-9a-z,./\"\n+-]{0,80}") {
            let _ = parse(input.as_bytes()).is_ok();
        }

        #[test]
        fn what_is_written_reads_back(
            mut requests in proptest::collection::vec(any_request(), 1..20)
        ) {
            requests.sort_by_key(|request| request.at_ns);
            let mut text = Vec::new();
            csv::write(&mut text, &requests).unwrap();
            prop_assert_eq!(parse(&text).unwrap(), requests);
        }
    }
}
