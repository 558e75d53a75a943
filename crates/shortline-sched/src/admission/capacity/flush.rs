//! The wait after a change of the capacity: requests that were admitted under the last one end before
//! anything is measured, because their times belong to it (Envoy's issue #11579).

use super::Ended;

/// The share of the requests running at a change that must end before measuring begins.
const FLUSHED: f64 = 0.8;
/// After this long, in nanoseconds, measuring begins even if fewer have ended. In either case the load
/// must fit the capacity first.
const FLUSH_NS_MAX: u64 = 2_000_000_000;

/// A wait in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flush {
    since_ns: u64,
    left: f64,
}

impl Flush {
    /// The capacity has just changed, and `active` requests run.
    pub(super) fn begin(now_ns: u64, active: usize) -> Self {
        Self {
            since_ns: now_ns,
            left: FLUSHED * active as f64,
        }
    }

    /// Whether enough have ended, and what runs fits the capacity.
    pub(super) fn is_over(&self, now_ns: u64, active: usize, load_ns: u64, capacity: f64) -> bool {
        // A load above the capacity only falls when requests end. One request is always admitted.
        let drained = load_ns as f64 <= capacity || active <= 1;
        let flushed = self.left <= 0.0 || now_ns.saturating_sub(self.since_ns) > FLUSH_NS_MAX;
        drained && flushed
    }

    /// A request was completed.
    pub(super) fn completed(&mut self, now_ns: u64, ended: Ended) {
        if now_ns.saturating_sub(ended.service_ns) < self.since_ns {
            self.left -= 1.0;
        }
    }
}
