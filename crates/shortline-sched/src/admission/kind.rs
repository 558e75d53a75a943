//! A type of requests: what is known of it, how many of it wait, and what happened to it.

use super::Outcome;
use super::boosts::Tail;
use super::histogram::Times;
use super::newcomers::KNOWN;
use crate::estimate::Estimate;

/// What is known of a type, and how many of it wait.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) generation: u32,
    /// Whether it was used since the hand passed.
    pub(super) used: bool,
    /// Service times in the unit of [`super::slowdown`].
    pub(super) service: Estimate,
    /// Whether the estimate stays as it is.
    pub(super) is_fixed: bool,
    /// The estimate in that unit; 0 before the first request came.
    pub(super) estimate_ns: u64,
    /// The same for the order of types.
    pub(super) rank_ns: u64,
    /// How much earlier its requests count as come, under [`super::Order::Boost`].
    pub(super) boost_ns: u64,
    /// What keeps the scale where estimates are divided by the slowdown.
    pub(super) anchor: Anchor,
    /// Since when requests of it have run although none has ended.
    pub(super) unknown_since_ns: Option<u64>,
    /// How many wait, of all tenants.
    pub(super) waiting: usize,
    pub(super) running: usize,
    pub(super) counts: Counts,
}

/// What happened to requests of a type.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) admitted: u64,
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) refused: u64,
    pub(super) withdrawn: u64,
    pub(super) would_wait: u64,
    pub(super) waited_ns_sum: u64,
    pub(super) waited_ns_max: u64,
    pub(super) times: Times,
}

impl Kind {
    pub(super) fn new(name: &str, generation: u32) -> Self {
        Self {
            name: name.to_owned(),
            generation,
            used: false,
            service: Estimate::default(),
            is_fixed: false,
            estimate_ns: 0,
            rank_ns: 0,
            boost_ns: 0,
            anchor: Anchor::default(),
            unknown_since_ns: None,
            waiting: 0,
            running: 0,
            counts: Counts::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The estimate of what a request adds to the load, at least 1, in a unit common to all.
    pub(super) fn estimate_ns(&self) -> u64 {
        self.estimate_ns.max(1)
    }

    /// The estimate by which types are ordered, likewise.
    pub(super) fn rank_ns(&self) -> u64 {
        self.rank_ns.max(1)
    }

    /// The boost of its requests, if a unit of samples is so many of load.
    pub(super) fn boost_ns(&self, tail: Tail, gauge: f64) -> u64 {
        let rate = tail.rate * gauge;
        tail.boost_ns(if self.is_known() {
            self.service.spread().without_outliers().exp_moment(rate)
        } else {
            (rate * self.estimate_ns() as f64).exp()
        })
    }

    /// One of it starts.
    pub(super) fn start(&mut self, now_ns: u64, waited_ns: u64) {
        self.running += 1;
        if self.service.count() == 0 {
            self.unknown_since_ns.get_or_insert(now_ns);
        }
        let counts = &mut self.counts;
        counts.admitted += 1;
        counts.waited_ns_sum = counts.waited_ns_sum.saturating_add(waited_ns);
        counts.waited_ns_max = counts.waited_ns_max.max(waited_ns);
    }

    /// One of it went away while it waited.
    pub(super) fn withdraw(&mut self, waited_ns: u64) {
        self.counts.withdrawn += 1;
        self.counts.waited_ns_max = self.counts.waited_ns_max.max(waited_ns);
    }

    /// One of it ends, after longer than expected or not; whether that teaches anything. Of a
    /// request that failed it is only known that its service is at least as long, which is news
    /// if that is more than was expected.
    pub(super) fn end(&mut self, longer: bool, outcome: Outcome) -> bool {
        self.running -= 1;
        if self.running == 0 {
            self.unknown_since_ns = None;
        }
        match outcome {
            Outcome::Completed => {
                self.counts.completed += 1;
                true
            }
            Outcome::Failed => {
                self.counts.failed += 1;
                longer
            }
        }
    }

    /// Whether any of it has ended.
    pub(super) fn is_known(&self) -> bool {
        self.service.count() > 0
    }

    /// Whether one of it is to be tried ([`super::newcomers`]).
    pub(super) fn is_to_be_tried(&self) -> bool {
        self.service.count() < KNOWN && self.running == 0 && !self.is_fixed
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting == 0 && self.running == 0
    }
}

/// What is kept of a type for the slowdown ([`super::slowdown`]).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Anchor {
    /// How many of the last requests were of it, fading.
    pub(super) recent: f64,
    /// What it added to the load when it was first known well.
    pub(super) load_ns: Option<f64>,
}
