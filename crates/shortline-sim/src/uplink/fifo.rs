//! The queue of the bottleneck: first in, first out, and no room for more than its buffer.

use std::collections::VecDeque;

/// Bytes of one flow that entered in one step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub flow: usize,
    pub entered: u32,
    pub bytes: f64,
}

pub(super) struct Fifo {
    parts: VecDeque<Part>,
    bytes: f64,
    room: f64,
}

impl Fifo {
    pub fn new(room: f64) -> Self {
        Self {
            parts: VecDeque::new(),
            bytes: 0.0,
            room,
        }
    }

    /// What waits, in bytes.
    pub fn bytes(&self) -> f64 {
        self.bytes
    }

    /// Takes in what fits, and returns how many bytes did not.
    pub fn put(&mut self, part: Part) -> f64 {
        let kept = part.bytes.min((self.room - self.bytes).max(0.0));
        if kept > 0.0 {
            self.bytes += kept;
            self.parts.push_back(Part {
                bytes: kept,
                ..part
            });
        }
        part.bytes - kept
    }

    /// The oldest part, or `bytes_max` of it.
    pub fn take(&mut self, bytes_max: f64) -> Option<Part> {
        let front = self.parts.front_mut()?;
        if front.bytes > bytes_max {
            front.bytes -= bytes_max;
            self.bytes -= bytes_max;
            return Some(Part {
                bytes: bytes_max,
                ..*front
            });
        }
        let part = self.parts.pop_front()?;
        self.bytes = if self.parts.is_empty() {
            0.0
        } else {
            self.bytes - part.bytes
        };
        Some(part)
    }
}
