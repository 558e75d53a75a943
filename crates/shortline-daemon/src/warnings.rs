//! The last warnings and errors of the process' log, for the live page: the lines as they stand on standard error.

use std::collections::VecDeque;
use std::io::{self, Write};

use parking_lot::Mutex;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// Lines that are kept.
const LINES_MAX: usize = 20;
/// The bytes that are kept of each.
const LINE_BYTES_MAX: usize = 600;

static LAST: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// The last lines, the newest last.
pub fn last() -> Vec<String> {
    LAST.lock().iter().cloned().collect()
}

/// Writes to standard error, and keeps warnings and errors.
pub struct Stderr;

/// A line on its way.
pub struct Line {
    kept: bool,
}

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { kept: false }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Line {
        Line {
            kept: *meta.level() <= Level::WARN,
        }
    }
}

impl Write for Line {
    /// Takes a whole line, as the subscriber writes them.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.kept {
            keep(&mut LAST.lock(), &String::from_utf8_lossy(bytes));
        }
        io::stderr().write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn keep(lines: &mut VecDeque<String>, line: &str) {
    let line = line.trim_end();
    if lines.len() == LINES_MAX {
        lines.pop_front();
    }
    let end = (0..=LINE_BYTES_MAX.min(line.len())).rev();
    let end = end.into_iter().find(|end| line.is_char_boundary(*end));
    lines.push_back(line[..end.unwrap_or(0)].to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_lines_and_the_ends_of_long_ones_go() {
        let mut lines = VecDeque::new();
        for number in 0..=LINES_MAX {
            keep(&mut lines, &format!("{number}\n"));
        }
        assert_eq!((lines.len(), lines[0].as_str()), (LINES_MAX, "1"));
        keep(&mut lines, &"é".repeat(LINE_BYTES_MAX));
        assert_eq!(lines[LINES_MAX - 1].len(), LINE_BYTES_MAX);
    }
}
