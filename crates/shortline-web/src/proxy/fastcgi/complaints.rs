//! What programs write to their error output, in the log: a line for each request that does, with the first bytes of it.

use parking_lot::Mutex;
use shortline_base::throttle::Throttle;
use tokio::time::Instant;

/// The most bytes of one request's complaints that are logged.
const BYTES_MAX: usize = 2048;

/// The complaints of all requests to a backend; ten lines a second are logged.
pub struct Complaints {
    backend: String,
    lines: Mutex<Throttle>,
}

/// The complaints of one request.
#[derive(Debug, Default)]
pub struct Complaint {
    begun: Vec<u8>,
    left_out: u64,
}

impl Complaints {
    /// None so far.
    pub fn new(backend: String) -> Self {
        Self {
            backend,
            lines: Mutex::default(),
        }
    }

    /// Logs what a request's program has said, if it has.
    pub fn log(&self, script: &str, complaint: Complaint) {
        if complaint.begun.is_empty() {
            return;
        }
        if let Some(untold) = self.lines.lock().allow(Instant::now()) {
            let backend = &*self.backend;
            let said = complaint.text();
            let left_out = complaint.left_out;
            tracing::warn!(backend, script, left_out, untold, "a program says: {said}");
        }
    }
}

impl Complaint {
    /// Appends a piece.
    pub fn push(&mut self, piece: &[u8]) {
        let taken = piece.len().min(BYTES_MAX - self.begun.len());
        self.begun.extend_from_slice(&piece[..taken]);
        self.left_out += (piece.len() - taken) as u64;
    }

    /// In one line, without anything that a terminal obeys.
    fn text(&self) -> String {
        let text = String::from_utf8_lossy(self.begun.trim_ascii());
        let mut line = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                character if character.is_control() => line.extend(character.escape_default()),
                character => line.push(character),
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_one_line_and_not_long() {
        let mut complaint = Complaint::default();
        complaint.push(b"PHP Warning: a\nb \x1b[2J\n");
        assert_eq!(complaint.text(), "PHP Warning: a\\nb \\u{1b}[2J");
        complaint.push(&[b'x'; 3000]);
        complaint.push(b"y");
        assert_eq!(complaint.begun.len(), BYTES_MAX);
        assert_eq!(complaint.left_out, 22 + 3001 - BYTES_MAX as u64);
    }
}
