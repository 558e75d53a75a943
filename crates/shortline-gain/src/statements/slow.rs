//! MySQL's and MariaDB's slow query log: lines that begin with `#` and belong to a statement, `use` and `SET timestamp`, and the
//! statement itself.
//!
//! ```text
//! # Time: 2026-11-26T16:43:35.123456Z             (MariaDB: `# Time: 261126 16:43:35`, and only if it changes)
//! # User@Host: app[app] @ localhost []  Id:     8
//! # Query_time: 0.000421  Lock_time: 0.000002 Rows_sent: 1  Rows_examined: 1
//! use shop;
//! SET timestamp=1795711415;
//! SELECT 1;
//! ```
//!
//! Who connected from where is passed over and shown nowhere.

use super::entry::{LeftOut, append, duration_ms, split_at};
use super::moment::{self, End};

/// A statement of which the rest may follow.
#[derive(Default)]
pub(super) struct Open {
    /// Of `# Time:`, which in MariaDB holds until the next.
    time: Option<End>,
    /// Of `SET timestamp`.
    timestamp: Option<End>,
    duration_ms: Option<f64>,
    text: Vec<u8>,
    is_command: bool,
    has_heads: bool,
}

/// What a line is.
pub(super) enum Line {
    /// Part of this statement.
    Belongs,
    /// The first of another statement of this log.
    Next,
    /// No part of such a log, or of another kind.
    Other,
}

/// What the lines came to.
pub(super) enum Closed {
    Nothing,
    Broken,
    LeftOut(LeftOut),
    Statement {
        end: End,
        duration_ms: f64,
        text: Vec<u8>,
    },
}

/// The lines that a server writes when it opens its log.
pub(super) fn is_heading(line: &[u8]) -> bool {
    line.ends_with(b"started with:")
        || line.starts_with(b"Tcp port:")
        || line.starts_with(b"Time                 Id Command")
        || line.starts_with(b"Time\t\t    Id Command")
}

impl Open {
    pub(super) fn line(&mut self, line: &[u8]) -> Line {
        if is_heading(line) {
            return Line::Belongs;
        }
        if let Some(head) = line.strip_prefix(b"#") {
            let head = head.trim_ascii();
            let is_new = head.starts_with(b"Time:") || head.starts_with(b"User@Host:");
            let begins = is_new && (self.duration_ms.is_some() || !self.text.is_empty());
            if begins || (self.duration_ms.is_some() && head.starts_with(b"Query_time:")) {
                return Line::Next;
            }
            self.head(head);
            return Line::Belongs;
        }
        if self.duration_ms.is_none() {
            return Line::Other;
        }
        self.statement(line);
        Line::Belongs
    }

    /// The next statement of the log, which may have its time from here.
    pub(super) fn next(&self) -> Self {
        Self {
            time: self.time.clone().filter(|time| time.is_whole),
            ..Self::default()
        }
    }

    pub(super) fn close(self) -> Closed {
        let Some(duration_ms) = self.duration_ms else {
            return if self.has_heads {
                Closed::Broken
            } else {
                Closed::Nothing
            };
        };
        if self.is_command {
            return Closed::LeftOut(LeftOut::Command);
        }
        if self.text.is_empty() {
            return Closed::LeftOut(LeftOut::NoStatement);
        }
        let exact = self.time.clone().filter(|time| !time.is_whole);
        match exact.or(self.timestamp).or(self.time) {
            Some(end) => Closed::Statement {
                end,
                duration_ms,
                text: self.text,
            },
            None => Closed::LeftOut(LeftOut::NoTime),
        }
    }

    fn head(&mut self, head: &[u8]) {
        if let Some(time) = head.strip_prefix(b"Time:") {
            let time = time.trim_ascii();
            self.time = moment::of_text(time).or_else(|| moment::of_short(time));
        } else if let Some(rest) = head.strip_prefix(b"Query_time:") {
            let rest = rest.trim_ascii_start();
            let number = split_at(rest, b" ").map_or(rest, |(number, _)| number);
            self.duration_ms = duration_ms(number).map(|seconds| seconds * 1e3);
            self.has_heads = true;
        } else if head.starts_with(b"administrator command:") {
            self.is_command = true;
        }
    }

    fn statement(&mut self, line: &[u8]) {
        if self.text.is_empty() {
            let lower: Vec<u8> = line[..line.len().min(32)].to_ascii_lowercase();
            if lower.starts_with(b"use ") && line.ends_with(b";") {
                return;
            }
            if let Some(rest) = lower.strip_prefix(b"set timestamp=") {
                self.timestamp = moment::of_epoch(rest.strip_suffix(b";").unwrap_or(rest));
                return;
            }
            if line.trim_ascii().is_empty() {
                return;
            }
        }
        append(&mut self.text, line);
    }
}
