//! What happened lately: the observations of the last second and a half, in cells.
//!
//! A rate is measured over a window that ends now, as BBR's rate samples are (draft-ietf-ccwg-bbr,
//! 4.1), but over all connections together. A window is *busy* where the delay says that the
//! bottleneck always had something to send. Only then is what it delivered its capacity.

use super::config::MS;
use std::collections::VecDeque;

/// Observations closer together than this share a cell.
const CELL_NS: u64 = 5 * MS;
/// The most cells kept: at least 2.5 s.
const CELLS_MAX: usize = 512;

/// One observation as the meter takes it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    pub span_ns: u64,
    pub sent_bytes: u64,
    pub delivered_bytes: u64,
    pub lost_bytes: u64,
    /// The filtered queueing delay, where one is known.
    pub delay_ns: Option<u64>,
    /// Something waited for the pacer or for the network, so more could have been sent.
    pub backlogged: bool,
}

/// The last cells, the newest at the back.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    cells: VecDeque<Reading>,
}

/// Sums over the last cells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Window {
    pub span_ns: u64,
    pub sent_bytes: u64,
    pub delivered_bytes: u64,
    pub lost_bytes: u64,
    /// How long the delay was above the given threshold.
    pub busy_ns: u64,
    /// How long more could have been sent.
    pub backlogged_ns: u64,
}

impl Meter {
    /// Adds what was seen since the last reading.
    pub fn push(&mut self, reading: Reading) {
        if let Some(last) = self.cells.back_mut()
            && last.span_ns < CELL_NS
        {
            last.add(&reading);
            return;
        }
        if self.cells.len() == CELLS_MAX {
            self.cells.pop_front();
        }
        self.cells.push_back(reading);
    }

    /// Forgets everything, because what comes does not belong to what was.
    pub fn clear(&mut self) {
        self.cells.clear();
    }

    /// The last `span_ns`; `None` if the meter has less. A cell counts as busy from `busy_delay_ns`
    /// on.
    pub fn last(&self, span_ns: u64, busy_delay_ns: u64) -> Option<Window> {
        self.before(0, span_ns, busy_delay_ns)
    }

    /// The `span_ns` that ended `ago_ns` ago, likewise.
    pub fn before(&self, ago_ns: u64, span_ns: u64, busy_delay_ns: u64) -> Option<Window> {
        let mut window = Window::default();
        let mut skipped_ns = 0;
        for cell in self.cells.iter().rev() {
            if skipped_ns < ago_ns {
                skipped_ns += cell.span_ns;
                continue;
            }
            window.include(cell, busy_delay_ns);
            if window.span_ns >= span_ns {
                return Some(window);
            }
        }
        None
    }

    /// The delay that was known `ago_ns` ago.
    pub fn delay_before(&self, ago_ns: u64) -> Option<u64> {
        let mut passed_ns = 0;
        let mut cells = self.cells.iter().rev();
        let then = cells.find(|cell| {
            passed_ns += cell.span_ns;
            passed_ns >= ago_ns
        });
        then?.delay_ns
    }
}

impl Reading {
    fn add(&mut self, other: &Self) {
        self.span_ns += other.span_ns;
        self.sent_bytes = self.sent_bytes.saturating_add(other.sent_bytes);
        self.delivered_bytes = self.delivered_bytes.saturating_add(other.delivered_bytes);
        self.lost_bytes = self.lost_bytes.saturating_add(other.lost_bytes);
        self.delay_ns = other.delay_ns.or(self.delay_ns);
        self.backlogged |= other.backlogged;
    }
}

impl Window {
    /// Bits per second delivered.
    pub fn delivered_bps(&self) -> f64 {
        per_second(self.delivered_bytes, self.span_ns)
    }

    /// Bits per second sent.
    pub fn sent_bps(&self) -> f64 {
        per_second(self.sent_bytes, self.span_ns)
    }

    /// Whether the bottleneck had a queue for (almost) the whole window.
    pub fn is_busy(&self) -> bool {
        self.busy_ns * 10 >= self.span_ns * 9
    }

    /// Whether more could have been sent for most of the window.
    pub fn is_backlogged(&self) -> bool {
        self.backlogged_ns * 2 >= self.span_ns
    }

    fn include(&mut self, cell: &Reading, busy_delay_ns: u64) {
        self.span_ns += cell.span_ns;
        self.sent_bytes = self.sent_bytes.saturating_add(cell.sent_bytes);
        self.delivered_bytes = self.delivered_bytes.saturating_add(cell.delivered_bytes);
        self.lost_bytes = self.lost_bytes.saturating_add(cell.lost_bytes);
        if cell.delay_ns.is_some_and(|delay| delay >= busy_delay_ns) {
            self.busy_ns += cell.span_ns;
        }
        if cell.backlogged {
            self.backlogged_ns += cell.span_ns;
        }
    }
}

fn per_second(bytes: u64, span_ns: u64) -> f64 {
    if span_ns == 0 {
        0.0
    } else {
        bytes as f64 * 8e9 / span_ns as f64
    }
}
