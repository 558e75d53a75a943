//! Reads lines of bounded length into one buffer, for the formats that are text.

use std::io::{BufRead, Read};

use super::TraceProblem;

/// How much of a wrong value an error shows, in characters.
const SHOWN_CHARS: usize = 60;

/// The lines of one stream, counted from 1.
pub(super) struct Lines {
    buffer: Vec<u8>,
    number: usize,
    bytes_max: usize,
    /// The form of a line, for errors.
    want: &'static str,
}

/// One line without its end.
pub(super) struct Line<'a> {
    pub(super) number: usize,
    pub(super) content: &'a [u8],
}

impl Lines {
    /// Lines of at most `bytes_max` bytes, their end included.
    pub(super) fn new(bytes_max: usize, want: &'static str) -> Self {
        Self {
            buffer: Vec::new(),
            number: 0,
            bytes_max,
            want,
        }
    }

    /// The next line; `None` at the end. After a line that is too long the next can be read.
    pub(super) fn next(
        &mut self,
        input: &mut impl BufRead,
    ) -> Result<Option<Line<'_>>, TraceProblem> {
        self.buffer.clear();
        let limit = self.bytes_max as u64 + 1;
        let bytes = input
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut self.buffer)?;
        if bytes == 0 {
            return Ok(None);
        }
        self.number += 1;
        if bytes > self.bytes_max {
            if self.buffer.last() != Some(&b'\n') {
                input.skip_until(b'\n')?;
            }
            return Err(TraceProblem::LineTooLong {
                line: self.number,
                limit: self.bytes_max,
                want: self.want,
            });
        }
        Ok(Some(Line {
            number: self.number,
            content: self.buffer.trim_ascii(),
        }))
    }
}

/// An error is one line, so the part of a value that it shows is short and printable.
pub(super) fn shown(value: &str) -> String {
    value
        .chars()
        .take(SHOWN_CHARS)
        .flat_map(char::escape_debug)
        .collect()
}

/// The same for bytes that may not be text.
pub(super) fn shown_bytes(value: &[u8]) -> String {
    shown(&String::from_utf8_lossy(value))
}
