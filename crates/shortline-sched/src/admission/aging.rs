//! Aging as paper 002 has it (3.2): a shorter request goes first as long as that makes nobody
//! wait beyond its bound, X times its expected service.
//!
//! Three rules, in this order:
//!
//! 1. Who is overdue goes first, in order of arrival.
//! 2. Else the shortest goes, if all those of earlier deadlines can still start by them.
//! 3. Else whoever has the earliest deadline goes.
//!
//! By the third, as long as some order keeps every bound, one does: a promotion leaves the
//! others in an order that keeps theirs, and new requests alone can make that impossible. In
//! overload no bound can hold for all; then requests become overdue, and leave as they came. So
//! X = 1 is near FIFO; with a large X nobody is overdue and SJF remains.
//!
//! It departs from 002 in what a request falls back to when it may not pass: 002 keeps a list
//! in order of arrival and promotes in it; by deadline a bound is kept whenever it can be.

use std::collections::BTreeSet;

use super::deadlines::{Deadlines, Key};
use super::requests::RequestId;
use crate::Aging;

/// How long the mean of what runs looks back, in nanoseconds.
const RATE_SPAN_NS: f64 = 1e9;

/// The waiters by deadline, and those that are overdue by arrival.
#[derive(Debug)]
pub(super) struct Bounds {
    aging: Aging,
    in_time: Deadlines,
    overdue: BTreeSet<RequestId>,
}

/// What is expected of a request, in nanoseconds of service under the present slowdown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) service_ns: u64,
    pub(super) capacity_ns: u64,
}

/// What decides whether a request may pass others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now_ns: u64,
    /// The expected service of what runs.
    pub(super) load_ns: f64,
    pub(super) capacity_ns: f64,
    /// How many run, in the mean: each does one unit of its work in a unit of time.
    pub(super) rate: f64,
}

impl Bounds {
    pub(super) fn new(aging: Aging) -> Self {
        Self {
            aging,
            in_time: Deadlines::new(),
            overdue: BTreeSet::new(),
        }
    }

    /// Adds a request; returns its deadline.
    pub(super) fn insert(&mut self, id: RequestId, arrival_ns: u64, expected: Expected) -> u64 {
        let service_ns = expected.service_ns;
        let deadline_ns = self.aging.deadline_ns(arrival_ns, service_ns);
        let room_ns = service_ns.min(expected.capacity_ns);
        self.in_time.insert((deadline_ns, id), service_ns, room_ns);
        deadline_ns
    }

    /// Takes a request out.
    pub(super) fn remove(&mut self, (deadline_ns, id): Key) {
        if !self.in_time.remove((deadline_ns, id)) {
            self.overdue.remove(&id);
        }
    }

    /// Who goes first, given the shortest, its deadline and its service.
    pub(super) fn first(&mut self, moment: Moment, shortest: Key, service_ns: u64) -> RequestId {
        self.expire(moment.now_ns);
        if let Some(&earliest) = self.overdue.first() {
            return earliest;
        }
        self.in_time.set_rate(moment.rate.max(1.0));
        let backlog_ns = moment.load_ns + service_ns as f64 - moment.capacity_ns;
        if self.in_time.can_pass(moment.now_ns, shortest, backlog_ns) {
            return shortest.1;
        }
        self.in_time.first().map_or(shortest.1, |(_, id)| id)
    }

    fn expire(&mut self, now_ns: u64) {
        while let Some((deadline_ns, id)) = self.in_time.first()
            && deadline_ns <= now_ns
        {
            self.in_time.remove((deadline_ns, id));
            self.overdue.insert(id);
        }
    }
}

/// How many run in the mean while others wait, over the last second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    mean: Option<f64>,
}

impl Rate {
    /// So many have run for so long.
    pub(super) fn pass(&mut self, active: usize, span_ns: u64) {
        let active = active as f64;
        let mean = self.mean.get_or_insert(active);
        *mean += (active - *mean) * -(-(span_ns as f64) / RATE_SPAN_NS).exp_m1();
    }

    pub(super) fn mean(self) -> f64 {
        self.mean.unwrap_or(1.0)
    }
}
