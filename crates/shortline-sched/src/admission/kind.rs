//! A type of requests: what is known of it, how many of its requests wait, and its counters.

use super::Outcome;
use super::boosts::Tail;
use super::histogram::Times;
use super::newcomers::KNOWN;
use crate::estimate::Estimate;

/// What is known of a type, and how many of its requests wait.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) generation: u32,
    /// Whether it was used since the hand last passed.
    pub(super) used: bool,
    /// Service times in the unit of [`super::slowdown`].
    pub(super) service: Estimate,
    /// Whether the estimate stays as it is.
    pub(super) is_fixed: bool,
    /// The estimate of what a request adds to the load, in that unit.
    pub(super) estimate_ns: u64,
    /// The estimate for the order of types, in that unit.
    pub(super) rank_ns: u64,
    /// How much earlier its requests count as arrived, under [`super::Order::Boost`].
    pub(super) boost_ns: u64,
    /// Keeps the scale where estimates are divided by the slowdown.
    pub(super) anchor: Anchor,
    /// What its requests count as where work is measured.
    pub(super) work: Work,
    /// Since when its requests have been running without one having ended.
    pub(super) unknown_since_ns: Option<u64>,
    /// How many wait, over all tenants.
    pub(super) waiting: usize,
    pub(super) running: usize,
    pub(super) counts: Counts,
}

/// The counters of a type's requests.
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
            work: Work::default(),
            unknown_since_ns: None,
            waiting: 0,
            running: 0,
            counts: Counts::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The estimate of what a request adds to the load, at least 1, in the unit of samples.
    pub(super) fn estimate_ns(&self) -> u64 {
        self.estimate_ns.max(1)
    }

    /// The estimate by which types are ordered, at least 1, in the same unit.
    pub(super) fn rank_ns(&self) -> u64 {
        self.rank_ns.max(1)
    }

    /// The boost of its requests in nanoseconds. `gauge` is the load per unit of a sample.
    pub(super) fn boost_ns(&self, tail: Tail, gauge: f64) -> u64 {
        let rate = tail.rate * gauge;
        tail.boost_ns(if self.is_known() {
            self.service.spread().without_outliers().exp_moment(rate)
        } else {
            (rate * self.estimate_ns() as f64).exp()
        })
    }

    /// A request of it starts.
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

    /// A waiting request of it was withdrawn.
    pub(super) fn withdraw(&mut self, waited_ns: u64) {
        self.counts.withdrawn += 1;
        self.counts.waited_ns_max = self.counts.waited_ns_max.max(waited_ns);
    }

    /// A request of it ends. `longer` is whether it took longer than expected. Returns whether the estimate
    /// learns from it. A failed request gives only a lower bound of its service, which counts if it exceeds
    /// the estimate.
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

    /// Whether the estimate comes from requests of the type.
    pub(super) fn is_known(&self) -> bool {
        self.service.count() > 0
    }

    /// Whether its next request is a trial ([`super::newcomers`]).
    pub(super) fn is_to_be_tried(&self) -> bool {
        self.service.count() < KNOWN && self.running == 0 && !self.is_fixed
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting == 0 && self.running == 0
    }
}

/// A type's state for the slowdown ([`super::slowdown`]).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Anchor {
    /// How many of the recent requests were of this type. Older ones fade.
    pub(super) recent: f64,
    /// What it added to the load when it first became well known.
    pub(super) load_ns: Option<f64>,
}

/// About so many estimates make the mean of [`Work`].
const WORK_SPAN: f64 = 500.0;
/// An estimate this many times larger or smaller is of requests that have changed.
const WORK_CHANGE: f64 = 4.0;

/// What a request of a type counts as where the work done at two capacities is compared: the mean of many
/// estimates, in nanoseconds of load. An estimate alone follows the last few requests. If a rare type has most
/// of the work, that error is larger than the differences to be found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    count: f64,
    mean_ns: f64,
}

impl Work {
    /// A request with this estimate has ended. Returns what it counts as.
    pub(super) fn count(&mut self, estimate_ns: u64) -> u64 {
        let estimate_ns = estimate_ns as f64;
        let like = self.mean_ns / WORK_CHANGE..=self.mean_ns * WORK_CHANGE;
        if !like.contains(&estimate_ns) {
            *self = Self::default();
        }
        self.count = (self.count + 1.0).min(WORK_SPAN);
        self.mean_ns += (estimate_ns - self.mean_ns) / self.count;
        self.mean_ns as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_a_mean_of_estimates_until_they_change() {
        let mut work = Work::default();
        let counts: Vec<u64> = [100, 300, 200, 200].map(|ns| work.count(ns)).to_vec();
        assert_eq!(counts, [100, 200, 200, 200]);
        for _ in 0..10_000 {
            work.count(200);
        }
        assert_eq!(work.count(700), 201, "a five hundredth of what is new");
        assert_eq!(work.count(900), 900, "another request than before");
        assert_eq!(work.count(10), 10);
    }
}
