//! What can be wrong with a trace, in one line each: the file, the place, the value and
//! what would be right.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::SECONDS_MAX;

/// A trace that cannot be used, with the name of its file.
#[derive(Debug, Error)]
#[error("{}: {problem}", file.display())]
pub struct TraceError {
    file: PathBuf,
    #[source]
    problem: TraceProblem,
}

impl TraceError {
    pub(super) fn new(file: &Path, problem: TraceProblem) -> Self {
        Self {
            file: file.to_owned(),
            problem,
        }
    }

    /// What is wrong, without the file's name.
    pub fn problem(&self) -> &TraceProblem {
        &self.problem
    }
}

/// What is wrong with a trace. Lines and records count from 1.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceProblem {
    /// The system could not read or write it.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// There is no request in it.
    #[error(
        "holds no request: want CSV lines `seconds,path,bytes`, World Cup records, or a log in \
         Common or Combined Log Format with a GET answered 200"
    )]
    Empty,
    /// There are more requests than the limit allows.
    #[error("holds more than {limit} requests, the limit: cut the trace or raise the limit")]
    TooMany {
        /// The limit in force.
        limit: usize,
    },
    /// A line has too few fields.
    #[error("line {line}: `{text}` is not `seconds,path,bytes`")]
    Fields {
        /// Line number.
        line: usize,
        /// The start of the line.
        text: String,
    },
    /// A line is longer than any right one can be.
    #[error("line {line}: longer than {limit} bytes: want {want}")]
    LineTooLong {
        /// Line number.
        line: usize,
        /// The longest line read, in bytes.
        limit: usize,
        /// What a line of this format is.
        want: &'static str,
    },
    /// A line is not UTF-8.
    #[error("line {line}: not text: want `seconds,path,bytes` in ASCII")]
    NotText {
        /// Line number.
        line: usize,
    },
    /// A time that cannot be read.
    #[error("line {line}: time `{value}`: want seconds from 0 to {SECONDS_MAX:.0}")]
    Time {
        /// Line number.
        line: usize,
        /// What stands there.
        value: String,
    },
    /// A path that cannot be requested.
    #[error(
        "line {line}: path `{value}`: want `/...` of printable ASCII without \
         space, quote or `#` (percent-encode them)"
    )]
    Path {
        /// Line number.
        line: usize,
        /// What stands there.
        value: String,
    },
    /// A path over the limit.
    #[error("line {line}: path of {bytes} bytes: want {limit} at most")]
    PathTooLong {
        /// Line number.
        line: usize,
        /// Its length in bytes.
        bytes: usize,
        /// The limit in force, in bytes.
        limit: usize,
    },
    /// A size that cannot be read.
    #[error("line {line}: bytes `{value}`: want a whole number, 0 or more")]
    Bytes {
        /// Line number.
        line: usize,
        /// What stands there.
        value: String,
    },
    /// Times go backwards in a CSV.
    #[error("line {line}: time {value} is before {previous}, the line before: want them sorted")]
    Unsorted {
        /// Line number.
        line: usize,
        /// The time, in seconds, as it stands there.
        value: String,
        /// The time before it, in seconds.
        previous: f64,
    },
    /// The file ends inside a World Cup record.
    #[error(
        "record {record}: cut short after {bytes} of 20 bytes: want whole World Cup records \
         (or CSV lines `seconds,path,bytes`)"
    )]
    Truncated {
        /// Record number.
        record: usize,
        /// How many bytes of it are there.
        bytes: usize,
    },
    /// Timestamps go backwards in World Cup records.
    #[error(
        "record {record}: timestamp {value} is before {previous}, the record before: want them sorted"
    )]
    RecordUnsorted {
        /// Record number.
        record: usize,
        /// The timestamp, in seconds.
        value: u32,
        /// The one before, in seconds.
        previous: u32,
    },
    /// A timestamp too far from the first.
    #[error(
        "record {record}: timestamp {value} is {after} s after the first: want {SECONDS_MAX:.0} at most"
    )]
    RecordTooLate {
        /// Record number.
        record: usize,
        /// The timestamp, in seconds.
        value: u32,
        /// Seconds since the first record.
        after: u32,
    },
    /// A field of a log line that does not fit the format.
    #[error("line {line}: {field} `{value}`: want {want}")]
    LogField {
        /// Line number.
        line: usize,
        /// Which field.
        field: &'static str,
        /// The beginning of the field; empty if the line ends before it.
        value: String,
        /// What would be right.
        want: &'static str,
    },
    /// A log line that is much older than lines before it.
    #[error(
        "line {line}: {behind} s before a line above it: want lines at most {limit} s late (sort \
         the log by time)"
    )]
    LogUnsorted {
        /// Line number.
        line: usize,
        /// How much earlier it is than the latest line so far, in seconds.
        behind: i64,
        /// How late a line may come, in seconds.
        limit: i64,
    },
    /// A log line too far from the first.
    #[error("line {line}: {after} s after the first: want {SECONDS_MAX:.0} at most")]
    LogTooLate {
        /// Line number.
        line: usize,
        /// Seconds since the earliest line.
        after: i64,
    },
}

impl TraceProblem {
    /// The same without what stands in the log, which may name somebody.
    pub(super) fn without_value(self) -> Self {
        match self {
            Self::LogField {
                line,
                field,
                value,
                want,
            } if !value.is_empty() => Self::LogField {
                line,
                field,
                value: "…".to_owned(),
                want,
            },
            other => other,
        }
    }

    /// Whether the rest of the trace may be good, because only this line or record cannot be read.
    pub(super) fn is_of_a_line(&self) -> bool {
        match self {
            Self::Fields { .. }
            | Self::LineTooLong { .. }
            | Self::NotText { .. }
            | Self::Time { .. }
            | Self::Path { .. }
            | Self::PathTooLong { .. }
            | Self::Bytes { .. }
            | Self::Truncated { .. }
            | Self::LogField { .. } => true,
            Self::Io(_)
            | Self::Empty
            | Self::TooMany { .. }
            | Self::Unsorted { .. }
            | Self::RecordUnsorted { .. }
            | Self::RecordTooLate { .. }
            | Self::LogUnsorted { .. }
            | Self::LogTooLate { .. } => false,
        }
    }
}
