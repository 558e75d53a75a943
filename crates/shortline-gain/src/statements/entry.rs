//! Reads statements with their durations from what databases log, line by line, whatever surrounds them:
//!
//! ```text
//! 2026-11-26 16:43:35.123 UTC [7] LOG:  duration: 0.421 ms  statement: SELECT 1        PostgreSQL, log_destination = stderr
//! 2026-11-26 16:43:35.123 UTC,"u","d",7,...,"duration: 0.421 ms  statement: SELECT 1"  csvlog
//! {"timestamp":"2026-11-26 16:43:35.123 UTC",...,"message":"duration: 0.421 ms  ..."}   jsonlog
//! # Query_time: 0.000421 ...                                                            MySQL's and MariaDB's slow query log
//! ```
//!
//! Source: PostgreSQL 16, 20.8 (log_line_prefix, csvlog, jsonlog; `log_min_duration_statement = 0`); MySQL 8.4, 7.4.5; MariaDB's
//! log.cc. Each writes a statement when it has ended, so that time less duration is when it came. MySQL since 5.7 has
//! microseconds in `# Time:`; MariaDB has the second in `SET timestamp`.
//!
//! A statement may have several lines: PostgreSQL indents all but the first, CSV quotes it, the slow log ends it before the next
//! `#`. A line that belongs to none of these is counted.
//!
//! Limits: [`LINE_BYTES_MAX`], [`RECORD_BYTES_MAX`], and of a statement what the gate looks at.

use std::collections::BTreeMap;
use std::fmt;

use shortline_gate::classify::{Dialect, STATEMENT_BYTES_MAX};

use super::moment::{self, End};
use super::{csv, json, slow};

/// The most bytes of a line; the rest is passed over.
pub(crate) const LINE_BYTES_MAX: usize = 256 << 10;
/// The most bytes of a CSV record of several lines.
pub(super) const RECORD_BYTES_MAX: usize = 1 << 20;
/// Durations above that are no durations: a year, in milliseconds.
const DURATION_MS_MAX: f64 = 366.0 * 86_400.0 * 1e3;

/// A statement that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) end: End,
    pub(crate) duration_ms: f64,
    pub(crate) dialect: Dialect,
    /// As much of it as the gate looks at.
    pub(crate) text: Vec<u8>,
}

/// Why something readable is no statement with a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LeftOut {
    /// Something else that the database had to say.
    Message,
    /// PostgreSQL's first two steps of a prepared statement; the third, execute, counts.
    Step,
    /// A duration of which nobody knows what took so long (`log_duration`).
    NoStatement,
    /// No time, or one that cannot be.
    NoTime,
    /// MySQL's `administrator command`.
    Command,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Message => "other messages",
            Self::Step => "parse and bind steps",
            Self::NoStatement => "without a statement",
            Self::NoTime => "without a time (PostgreSQL's log_line_prefix needs %m)",
            Self::Command => "administrator commands",
        })
    }
}

/// What was passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PassedOver {
    pub(crate) left_out: BTreeMap<LeftOut, u64>,
    pub(crate) bad: u64,
    first_bad: Option<(u64, &'static str)>,
    /// Zones by name whose offset is not known.
    pub(crate) zones: BTreeMap<String, u64>,
}

impl PassedOver {
    pub(super) fn leave_out(&mut self, kind: LeftOut) {
        *self.left_out.entry(kind).or_default() += 1;
    }

    pub(super) fn bad(&mut self, line: u64, want: &'static str) {
        self.bad += 1;
        self.first_bad.get_or_insert((line, want));
    }

    /// A line on each. No line of the log is shown: it may hold anything.
    pub(crate) fn told(&self) -> Vec<String> {
        let mut told = Vec::new();
        if let Some((line, want)) = self.first_bad {
            let lines = if self.bad == 1 { "line" } else { "lines" };
            told.push(format!(
                "{} {lines} could not be read; the first: line {line}: {want}",
                self.bad
            ));
        }
        let kinds = self.left_out.iter();
        let kinds: Vec<String> = kinds
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        if !kinds.is_empty() {
            let all: u64 = self.left_out.values().sum();
            told.push(format!(
                "{all} left out that are no statement with its duration: {}",
                kinds.join(", ")
            ));
        }
        for (zone, count) in &self.zones {
            told.push(format!(
                "{count} times of zone {zone}, which is taken for UTC"
            ));
        }
        told
    }
}

/// What is read of a message of PostgreSQL's, `duration: 0.421 ms  statement: SELECT 1`.
pub(super) enum Message<'a> {
    Statement { duration_ms: f64, text: &'a [u8] },
    LeftOut(LeftOut),
}

impl<'a> Message<'a> {
    pub(super) fn of(text: &'a [u8]) -> Self {
        Self::statement(text).unwrap_or(Self::LeftOut(LeftOut::Message))
    }

    fn statement(text: &'a [u8]) -> Option<Self> {
        let rest = text.strip_prefix(b"duration: ")?;
        let (number, rest) = split_at(rest, b" ms")?;
        let duration_ms = duration_ms(number)?;
        if rest.trim_ascii().is_empty() {
            return Some(Self::LeftOut(LeftOut::NoStatement));
        }
        let (step, text) = split_at(rest.trim_ascii_start(), b": ")?;
        Some(match step.split(|byte| *byte == b' ').next() {
            Some(b"statement" | b"execute") => Self::Statement { duration_ms, text },
            Some(b"parse" | b"bind") => Self::LeftOut(LeftOut::Step),
            _ => Self::LeftOut(LeftOut::Message),
        })
    }
}

/// A number of milliseconds, or of seconds times a thousand.
pub(super) fn duration_ms(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    (0.0..=DURATION_MS_MAX).contains(&number).then_some(number)
}

/// What is before and after the first `mark`.
pub(super) fn split_at<'a>(text: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(mark.len()).position(|part| part == mark)?;
    Some((&text[..at], &text[at + mark.len()..]))
}

/// Makes entries of lines.
#[derive(Default)]
pub(crate) struct Reader {
    line: u64,
    open: Open,
    pub(crate) passed: PassedOver,
}

/// What the next line may belong to.
#[derive(Default)]
enum Open {
    #[default]
    Nothing,
    /// A statement of PostgreSQL's text log.
    Text(Entry),
    /// A message that is no statement, whose further lines are passed over.
    Message,
    /// A CSV record with an open quote.
    Record(Vec<u8>),
    Slow(slow::Open),
}

const OPEN: &str = "want the second quote of a field of csvlog";
const WANT: &str =
    "want a statement with its duration, of PostgreSQL's log or MySQL's slow query log";

impl Reader {
    /// Takes a line with or without its end, and gives each entry that it ends.
    pub(crate) fn line(&mut self, line: &[u8], give: &mut impl FnMut(Entry)) {
        self.line += 1;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match std::mem::take(&mut self.open) {
            // One was torn.
            Open::Record(_) if moment::begins_record(line) => {
                self.passed.bad(self.line - 1, OPEN);
                self.record(line.to_vec(), has_open_quote(line), give);
            }
            Open::Record(mut record) => {
                record.push(b'\n');
                record.extend_from_slice(line);
                self.record(record, !has_open_quote(line), give);
            }
            Open::Text(mut entry) if is_indented(line) => {
                append(&mut entry.text, line.strip_prefix(b"\t").unwrap_or(line));
                self.open = Open::Text(entry);
            }
            Open::Text(entry) => {
                give(entry);
                self.begin(line, give);
            }
            Open::Message if is_indented(line) => self.open = Open::Message,
            Open::Slow(open) => self.slow(open, line, give),
            Open::Nothing | Open::Message => self.begin(line, give),
        }
    }

    /// No line follows.
    pub(crate) fn end(&mut self, give: &mut impl FnMut(Entry)) {
        match std::mem::take(&mut self.open) {
            Open::Text(entry) => give(entry),
            Open::Slow(open) => self.close_slow(open, give),
            Open::Record(_) => self.passed.bad(self.line, OPEN),
            Open::Nothing | Open::Message => {}
        }
    }

    /// A line that continues nothing.
    fn begin(&mut self, line: &[u8], give: &mut impl FnMut(Entry)) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match line[0] {
            b'{' => self.json(line, give),
            b'#' => self.slow(slow::Open::default(), line, give),
            _ if moment::begins_record(line) => {
                self.record(line.to_vec(), has_open_quote(line), give);
            }
            _ => self.text(line),
        }
    }

    /// A line of PostgreSQL's text log: whatever prefix, a level, a message.
    fn text(&mut self, line: &[u8]) {
        let other = split_at(line, b":  ");
        let logged = split_at(line, b"LOG:").filter(|(prefix, _)| {
            let is_first = other.is_none_or(|(before, _)| prefix.len() <= before.len());
            is_first && !prefix.is_empty()
        });
        let Some((prefix, message)) = logged.or(other) else {
            if !slow::is_heading(line) {
                self.passed.bad(self.line, WANT);
            }
            return;
        };
        self.open = Open::Message;
        let Some(end) = moment::of_prefix(prefix) else {
            return self.passed.leave_out(LeftOut::NoTime);
        };
        match Message::of(message.trim_ascii_start()) {
            Message::Statement { duration_ms, text } if logged.is_some() => {
                let mut entry = self.entry(end, duration_ms, Dialect::Postgres);
                append(&mut entry.text, text);
                self.open = Open::Text(entry);
            }
            Message::Statement { .. } => self.passed.leave_out(LeftOut::Message),
            Message::LeftOut(kind) => self.passed.leave_out(kind),
        }
    }

    /// A record of csvlog, or its lines so far.
    fn record(&mut self, record: Vec<u8>, is_open: bool, give: &mut impl FnMut(Entry)) {
        if is_open && record.len() < RECORD_BYTES_MAX {
            self.open = Open::Record(record);
            return;
        }
        match csv::fields(&record, &[0, csv::MESSAGE]).as_deref() {
            Some([time, message]) => self.message(time, message, give),
            _ => self.passed.bad(self.line, "want the fields of csvlog"),
        }
    }

    fn json(&mut self, line: &[u8], give: &mut impl FnMut(Entry)) {
        match json::fields(line) {
            Some((time, message)) => self.message(time.as_bytes(), message.as_bytes(), give),
            None => self.passed.bad(
                self.line,
                "want `timestamp`, `error_severity` and `message` of jsonlog",
            ),
        }
    }

    fn message(&mut self, time: &[u8], message: &[u8], give: &mut impl FnMut(Entry)) {
        match (moment::of_prefix(time), Message::of(message)) {
            (Some(end), Message::Statement { duration_ms, text }) => {
                let mut entry = self.entry(end, duration_ms, Dialect::Postgres);
                append(&mut entry.text, text);
                give(entry);
            }
            (None, Message::Statement { .. }) => self.passed.leave_out(LeftOut::NoTime),
            (_, Message::LeftOut(kind)) => self.passed.leave_out(kind),
        }
    }

    /// A line of a slow query log.
    fn slow(&mut self, mut open: slow::Open, line: &[u8], give: &mut impl FnMut(Entry)) {
        match open.line(line) {
            slow::Line::Belongs => self.open = Open::Slow(open),
            slow::Line::Next => {
                let next = open.next();
                self.close_slow(open, give);
                self.slow(next, line, give);
            }
            slow::Line::Other => {
                self.close_slow(open, give);
                self.begin(line, give);
            }
        }
    }

    fn close_slow(&mut self, open: slow::Open, give: &mut impl FnMut(Entry)) {
        match open.close() {
            slow::Closed::Nothing => {}
            slow::Closed::Broken => self.passed.bad(self.line, WANT),
            slow::Closed::LeftOut(kind) => self.passed.leave_out(kind),
            slow::Closed::Statement {
                end,
                duration_ms,
                text,
            } => {
                let mut entry = self.entry(end, duration_ms, Dialect::MySql);
                append(&mut entry.text, &text);
                give(entry);
            }
        }
    }

    fn entry(&mut self, end: End, duration_ms: f64, dialect: Dialect) -> Entry {
        if let Some(zone) = &end.unknown_zone
            && (self.passed.zones.len() < 8 || self.passed.zones.contains_key(zone))
        {
            *self.passed.zones.entry(zone.clone()).or_default() += 1;
        }
        Entry {
            end,
            duration_ms,
            dialect,
            text: Vec::new(),
        }
    }
}

/// Whether it goes on with the message before it.
fn is_indented(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_whitespace)
}

/// Whether a line without an open quote before it leaves one open, or closes one that was.
fn has_open_quote(line: &[u8]) -> bool {
    line.iter().filter(|byte| **byte == b'"').count() % 2 == 1
}

/// Adds a line to a statement, as far as the gate looks.
pub(super) fn append(text: &mut Vec<u8>, line: &[u8]) {
    if !text.is_empty() && text.len() < STATEMENT_BYTES_MAX {
        text.push(b'\n');
    }
    let room = STATEMENT_BYTES_MAX.saturating_sub(text.len());
    text.extend_from_slice(&line[..line.len().min(room)]);
}

#[cfg(test)]
mod tests;
