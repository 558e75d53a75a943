//! What runs for longer than it was admitted for weighs more.
//!
//! Paper 002 trusts its one application, and has nothing of this. The load counts a request as
//! its type's estimate. One that has used more than [`GRACE`] times that counts as what it has used,
//! up to an eighth of the capacity, so that less is let in beside it:
//!
//! ```text
//! load = max(estimate, min(used, capacity / 8))        once used > 3 * estimate
//! ```
//!
//! An eighth, for what runs so long may wait for a lock, and requests that wait for one lock must not
//! keep all others out. Looked at while somebody waits, [`EVERY_NS`] at most; what a request has
//! added is subtracted on its end, whatever it has become.

use super::Admission;

/// A request may use so many times its estimate and counts as that.
const GRACE: u64 = 3;

/// The part of the capacity that one counts as at most.
const PARTS: u64 = 8;

/// How often what runs is looked at, in nanoseconds.
const EVERY_NS: u64 = 10_000_000;

impl Admission {
    /// Counts what runs as what it has used, if that is due.
    pub(super) fn grow(&mut self) {
        let now_ns = self.now_ns;
        if now_ns < self.grown_ns.saturating_add(EVERY_NS) {
            return;
        }
        self.grown_ns = now_ns;
        self.charge_running();
        let Some(capacity_ns) = self.control.limit_ns() else {
            return;
        };
        let slowdown = self.types.slowdown();
        for running in self.requests.running_all_mut() {
            let used_ns = running.service_ns(now_ns);
            let is_beyond = used_ns > running.expected_ns.saturating_mul(GRACE);
            if !is_beyond || running.paused_at_ns.is_some() {
                continue;
            }
            let used_load_ns = (used_ns as f64 / slowdown) as u64;
            let load_ns = used_load_ns.min(capacity_ns / PARTS);
            if load_ns > running.load_ns {
                let more_ns = load_ns - running.load_ns;
                self.load_ns += more_ns;
                self.tenants.put_on(running.charge.tenant, 0, more_ns);
                running.load_ns = load_ns;
            }
        }
    }
}
