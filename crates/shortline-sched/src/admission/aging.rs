//! Aging of paper 002 (3.2): a shorter request goes first, as long as no other request waits beyond its
//! bound because of it. The bound is X times the request's expected service.
//!
//! Three rules apply, in this order:
//!
//! 1. Overdue requests go first, in order of arrival.
//! 2. Otherwise the shortest goes, if all requests with earlier deadlines can still start by them.
//! 3. Otherwise the request with the earliest deadline goes.
//!
//! By the third rule, as long as some order keeps every bound, this one does. A promotion leaves the others
//! in an order that keeps theirs, and only new requests can make that impossible. In an overload no order
//! keeps all bounds. Then requests become overdue and go in order of arrival. So X = 1 is near FIFO, and with
//! a large X no request is overdue and SJF remains.
//!
//! Departure: 002 keeps a list in order of arrival and promotes requests in it. Here the fallback is by
//! deadline, because then a bound is kept whenever possible.

use std::collections::BTreeSet;

use super::deadlines::{Deadlines, Key};
use super::requests::RequestId;
use crate::Aging;

/// The time over which the mean number of running requests fades, in nanoseconds.
const RATE_SPAN_NS: f64 = 1e9;

/// The waiters by deadline, and the overdue ones by arrival.
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

/// The state that decides whether a request may pass others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now_ns: u64,
    /// The expected service of the running requests.
    pub(super) load_ns: f64,
    pub(super) capacity_ns: f64,
    /// The mean number of running requests. Each does one unit of its work per unit of time.
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

    /// Removes a request.
    pub(super) fn remove(&mut self, (deadline_ns, id): Key) {
        if !self.in_time.remove((deadline_ns, id)) {
            self.overdue.remove(&id);
        }
    }

    /// The request that goes first, given the shortest one's key and service.
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

/// The mean number of running requests while others wait, over about the last second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    mean: Option<f64>,
}

impl Rate {
    /// `active` requests have run for `span_ns`.
    pub(super) fn pass(&mut self, active: usize, span_ns: u64) {
        let active = active as f64;
        let mean = self.mean.get_or_insert(active);
        *mean += (active - *mean) * -(-(span_ns as f64) / RATE_SPAN_NS).exp_m1();
    }

    pub(super) fn mean(self) -> f64 {
        self.mean.unwrap_or(1.0)
    }
}
