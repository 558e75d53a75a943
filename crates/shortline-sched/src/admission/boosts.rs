//! How much earlier the requests of a type count as come, under [`Order::Boost`].
//!
//! This is gamma-Boost with types as labels ([`crate::policy::boost`] has its source and formulas). What it
//! needs to know is learnt:
//!
//! - the distribution of each type's service and of all, from the requests that ended (in units of load);
//! - the load: the estimates of what came, over what the backend does while somebody waits. Both fade, over
//!   [`SPAN_NS`].
//!
//! A backend that works on several requests counts as one server of the speed of all: what is served at the
//! rate `active / slowdown` in units of load. Boosts are computed anew every [`EVERY_NS`].
//!
//! Departures: as the load goes to 1, `g` goes to 0, boosts grow beyond all bounds and the order becomes `sjf`;
//! above 1 there is no `g`. So the load counts as [`LOAD_MAX`] at most, and where more waits than such a load
//! would let wait, `1 / g` (the mean wait in heavy traffic) is [`BACKLOG_PART`] of the work that waits. In an
//! overload boosts are thus a part of what everybody waits, and nobody is left without service. The largest requests of each
//! type count as the largest of the others ([`crate::Spread::without_outliers`]), for one outlier rules
//! `E[e^(g S)]`; among all types one counts as [`OUTLIER`] times what its type is expected to take at most.

use super::{Admission, Order};
use crate::policy::boost;

/// Over how long the load is measured, in nanoseconds.
const SPAN_NS: f64 = 30e9;

/// How often boosts are computed anew, in nanoseconds.
const EVERY_NS: u64 = 100_000_000;

/// The largest load that boosts are computed for.
const LOAD_MAX: f64 = 0.95;

/// In an overload `1 / g` is such a part of the work that waits.
const BACKLOG_PART: f64 = 0.1;

/// Among all types one request counts as at most so many times the estimate of its type.
pub(super) const OUTLIER: u64 = 8;

/// What came of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Offered {
    /// In nanoseconds of load, fading.
    load_ns: f64,
    /// The time over which it came, fading likewise, in nanoseconds.
    time_ns: f64,
    at_ns: u64,
    computed_ns: Option<u64>,
}

/// What boosts come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// The decay rate of the tail, per nanosecond of load.
    pub(super) rate: f64,
    /// Load done in a unit of time.
    pub(super) speed: f64,
}

impl Tail {
    /// The boost of a type, in nanoseconds, of `E[e^(g S)]` as far as it is known.
    pub(super) fn boost_ns(self, exp_moment: f64) -> u64 {
        (boost::boost(self.rate, exp_moment) / self.speed) as u64
    }
}

impl Offered {
    /// Something came.
    fn come(&mut self, now_ns: u64, load_ns: u64) {
        self.pass(now_ns);
        self.load_ns += load_ns as f64;
    }

    fn pass(&mut self, now_ns: u64) {
        let span_ns = now_ns.saturating_sub(self.at_ns) as f64;
        let left = (-span_ns / SPAN_NS).exp();
        self.load_ns *= left;
        self.time_ns = self.time_ns * left + SPAN_NS * (1.0 - left);
        self.at_ns = now_ns;
    }
}

impl Admission {
    /// Takes note of a request that comes.
    pub(super) fn offer(&mut self, kind: usize) {
        if self.order == Order::Boost {
            self.offered.come(self.now_ns, self.types.load_ns(kind));
        }
    }

    /// Computes all boosts anew, if that is due.
    pub(super) fn boost(&mut self) {
        let due = |computed_ns: u64| self.now_ns >= computed_ns.saturating_add(EVERY_NS);
        if self.order != Order::Boost || !self.offered.computed_ns.is_none_or(due) {
            return;
        }
        self.offered.computed_ns = Some(self.now_ns);
        self.offered.pass(self.now_ns);
        let speed = self.rate.mean() / self.types.slowdown();
        let load = self.offered.load_ns / self.offered.time_ns.max(1.0) / speed;
        let rate = boost::decay_rate(load.min(LOAD_MAX), &self.types.spread_of_load());
        let backlog_ns: f64 = (0..self.types.len())
            .map(|kind| self.types.get(kind).waiting as f64 * self.types.load_ns(kind) as f64)
            .sum();
        let rate = rate.map(|rate| rate.min(1.0 / (BACKLOG_PART * backlog_ns)));
        self.types.set_tail(rate.map(|rate| Tail { rate, speed }));
        for kind in 0..self.types.len() {
            self.tenants.rank_anew(&self.types, kind);
        }
    }
}
