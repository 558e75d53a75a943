//! Emptying the queue to the ground, now and then.
//!
//! The delay is counted from each path's smallest round-trip time. A path that was first seen while
//! a queue stood takes that for its ground, and the queue would stay for ever. So a little is held
//! back for a round trip after a queue has been found to be ours, and every ten seconds (BBR's
//! ProbeRTT has the same interval and reason). It is repeated as long as round-trip times, less the
//! known queue, fall by it.

use super::config::MS;
use super::paced::Sight;

/// The share that is held back: after a trial, and at other times.
const AFTER_TRIAL: f64 = 0.15;
const REGULAR: f64 = 0.1;
const EVERY_NS: u64 = 10_000 * MS;
/// A sweep lasts so much longer than a round trip, because far paths have longer ones than the
/// typical.
const EXTRA_NS: u64 = 100 * MS;
/// A round trip that got shorter by this share, apart from the known queue, contained a queue.
const SHORTER: f64 = 0.02;
/// The most sweeps in a row.
const IN_A_ROW_MAX: u32 = 4;

/// A running sweep, or the time since the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    since_ns: u64,
    left_ns: u64,
    share: f64,
    ground_before_ns: Option<u64>,
    in_a_row: u32,
}

impl Sweep {
    pub fn new() -> Self {
        Self {
            since_ns: 0,
            left_ns: 0,
            share: REGULAR,
            ground_before_ns: None,
            in_a_row: 0,
        }
    }

    /// The queue has just been found to be ours.
    pub fn begin(&mut self) {
        *self = Self {
            since_ns: EVERY_NS,
            share: AFTER_TRIAL,
            ..Self::new()
        };
    }

    /// Whether something is held back now.
    pub fn is_running(&self) -> bool {
        self.left_ns > 0
    }

    /// What to hold back now, as a share of the estimate.
    pub fn held_back(&mut self, sight: &Sight<'_>) -> f64 {
        self.since_ns += sight.span_ns;
        if self.left_ns > 0 {
            self.left_ns = self.left_ns.saturating_sub(sight.span_ns);
            if self.left_ns == 0 {
                self.settle(sight);
            }
        } else if self.since_ns > EVERY_NS {
            self.start(sight);
        }
        if self.left_ns > 0 {
            self.share
        } else {
            f64::MIN
        }
    }

    fn start(&mut self, sight: &Sight<'_>) {
        self.since_ns = 0;
        self.left_ns = sight.lag_ns + EXTRA_NS;
        self.ground_before_ns = Some(sight.flight_ns);
    }

    fn settle(&mut self, sight: &Sight<'_>) {
        let before_ns = self.ground_before_ns.unwrap_or(0) as f64;
        if (sight.flight_ns as f64) < (1.0 - SHORTER) * before_ns && self.in_a_row < IN_A_ROW_MAX {
            self.in_a_row += 1;
            self.start(sight);
        } else {
            *self = Self::new();
        }
    }
}
