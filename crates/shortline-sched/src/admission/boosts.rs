//! Boosts: how much earlier the requests of a type count as arrived, under [`Order::Boost`].
//!
//! This is gamma-Boost with types as labels ([`crate::policy::boost`] has its source and formulas). Its
//! inputs are learnt:
//!
//! - the distribution of service, of each type and of all, from the requests that ended (in units of load);
//! - the load: the estimates of the requests that arrived, over the work that the backend does while requests
//!   wait. Arrivals fade over [`SPAN_NS`].
//!
//! A backend that works on several requests counts as one server with the speed of all. It serves
//! `active / slowdown` units of load per unit of time. Boosts are computed anew every [`EVERY_NS`].
//!
//! Departures:
//!
//! - As the load goes to 1, `g` goes to 0, boosts grow without bound, and the order becomes `sjf`. Above 1
//!   there is no `g`. So the load counts as [`LOAD_MAX`] at most.
//! - `1 / g` is the mean wait in heavy traffic. It is at least [`BACKLOG_PART`] of the waiting work. So in an
//!   overload boosts are a fraction of the wait, and no request starves.
//! - One outlier dominates `E[e^(g S)]`. So the largest requests of each type count as the largest of the
//!   others ([`crate::Spread::without_outliers`]). In the distribution of all types, a request counts as at
//!   most [`OUTLIER`] times its type's estimate.

use super::{Admission, Order};
use crate::policy::boost;

/// Over how long the load is measured, in nanoseconds.
const SPAN_NS: f64 = 30e9;

/// How often boosts are computed anew, in nanoseconds.
const EVERY_NS: u64 = 100_000_000;

/// The largest load that boosts are computed for.
const LOAD_MAX: f64 = 0.95;

/// In an overload `1 / g` is this part of the waiting work.
const BACKLOG_PART: f64 = 0.1;

/// In the distribution of all types, a request counts as at most this many times its type's estimate.
pub(super) const OUTLIER: u64 = 8;

/// The work that arrived recently.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Offered {
    /// In nanoseconds of load. It fades.
    load_ns: f64,
    /// The time over which it arrived, in nanoseconds. It fades alike.
    time_ns: f64,
    at_ns: u64,
    computed_ns: Option<u64>,
}

/// The parameters of boosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// The decay rate of the tail, per nanosecond of load.
    pub(super) rate: f64,
    /// Load done per unit of time.
    pub(super) speed: f64,
}

impl Tail {
    /// The boost of a type in nanoseconds, from its `E[e^(g S)]`.
    pub(super) fn boost_ns(self, exp_moment: f64) -> u64 {
        (boost::boost(self.rate, exp_moment) / self.speed) as u64
    }
}

impl Offered {
    /// A request arrived.
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
    /// Counts an arriving request.
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
