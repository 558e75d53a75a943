//! A request that runs much longer than its estimate weighs more.
//!
//! Paper 002 trusts its one application and has no such rule. The load counts a request as its type's
//! estimate. A request that has used more than [`GRACE`] times its estimate counts as what it has used, up
//! to an eighth of the capacity. So less is admitted beside it:
//!
//! ```text
//! load = max(estimate, min(used, capacity / 8))        once used > 3 * estimate
//! ```
//!
//! The limit of an eighth is for locks. A request that runs so long may wait for one, and requests that wait
//! for the same lock must not keep all others out. This is checked while requests wait, at most once in
//! [`EVERY_NS`]. When a request ends, all that it has added by then is subtracted.

use super::Admission;

/// Up to this many times its expected service, a request counts as its estimate.
const GRACE: u64 = 3;

/// The most that a request grows to: one over this of the capacity.
const PARTS: u64 = 8;

/// How often running requests are checked, in nanoseconds.
const EVERY_NS: u64 = 10_000_000;

impl Admission {
    /// Raises the load of running requests to what they have used, if that is due.
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
        if self.control.counts_alike() {
            return;
        }
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
