//! Admission as seen from outside: plain values for metrics and pages. Also what is kept across a restart.

use serde::Serialize;

use super::capacity::{CapacityState, OpeningView};
use super::histogram::Times;
use super::sight::{self, OldestWaiter};
use super::tenants::TenantView;
use super::{Admission, Kept};

/// The queue, the load and the types at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdmissionView {
    /// Requests that wait.
    pub waiting: usize,
    /// Requests that were admitted and have not ended.
    pub running: usize,
    /// Running requests that are not paused.
    pub active: usize,
    /// The sum of what the active requests add, in nanoseconds.
    pub load_ns: u64,
    /// The limit of the load, in nanoseconds; `None` without one.
    pub capacity_ns: Option<u64>,
    /// How the capacity is set or found.
    pub capacity_state: CapacityState,
    /// Whether and how far the limit is above the capacity; `None` if it never is.
    pub opening: Option<OpeningView>,
    /// The factor by which services exceed what they add to the load. 1 unless the capacity is `auto`.
    pub slowdown: f64,
    /// The request that has waited longest of those that wait now; `None` if none waits.
    pub oldest: Option<OldestWaiter>,
    /// Since the start.
    pub totals: Totals,
    /// The times of all requests.
    pub times: Times,
    /// Each tenant. The first one has all requests without a tenant of their own.
    pub tenants: Vec<TenantView>,
    /// Each type. The first one is shared by all names for which the table has no room.
    pub types: Vec<TypeView>,
}

/// Counters since the start, forgotten types included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Requests that started.
    pub admitted: u64,
    /// Requests that were completed.
    pub completed: u64,
    /// Requests that broke off after they were admitted.
    pub failed: u64,
    /// Requests refused because the queue was full.
    pub refused_full: u64,
    /// Requests refused because they would have waited too long.
    pub refused_shed: u64,
    /// Requests withdrawn while they waited, at their limit or before.
    pub withdrawn: u64,
    /// Requests that started beyond the capacity, because nothing had started or ended for too long.
    pub escaped: u64,
    /// Requests that took far longer than their type ([`super::Runaway`]).
    pub runaways: u64,
    /// In a dry run: requests that started and would have had to wait.
    pub would_wait: u64,
    /// The sum of the waits of admitted requests, in nanoseconds.
    pub waited_ns_sum: u64,
    /// The time that running requests waited for locks inside the backend, as far as it was reported, in
    /// nanoseconds.
    pub locked_ns_sum: u64,
}

/// What is known of a type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeView {
    /// Its name.
    pub name: String,
    /// Its expected service time under the present load, in nanoseconds.
    pub estimate_ns: u64,
    /// The number of its requests behind the estimate. 0 if the estimate comes from all types.
    pub requests_known: usize,
    /// Requests of it that wait.
    pub waiting: usize,
    /// Requests of it that were admitted and have not ended.
    pub running: usize,
    /// How many were admitted.
    pub admitted: u64,
    /// How many were completed.
    pub completed: u64,
    /// How many broke off after they were admitted.
    pub failed: u64,
    /// How many were refused on arrival.
    pub refused: u64,
    /// How many were withdrawn while they waited, at their limit or before.
    pub withdrawn: u64,
    /// In a dry run: how many would have had to wait.
    pub would_wait: u64,
    /// The sum of the waits of its admitted requests, in nanoseconds.
    pub waited_ns_sum: u64,
    /// The longest wait that has ended, by admission or withdrawal, in nanoseconds.
    pub waited_ns_max: u64,
    /// The times of its requests.
    pub times: Times,
    /// The wait so far of its oldest waiter, in nanoseconds; 0 if none of it waits.
    pub oldest_wait_ns: u64,
}

impl Admission {
    /// The view at the latest time that the driver gave.
    pub fn view(&self) -> AdmissionView {
        self.view_at(self.now_ns)
    }

    /// The view at a later time, if nothing has happened up to it.
    pub fn view_at(&self, now_ns: u64) -> AdmissionView {
        let oldest = sight::oldest(&self.requests, self.types.len(), now_ns.max(self.now_ns));
        AdmissionView {
            waiting: self.waiting(),
            running: self.requests.len() - self.waiting(),
            active: self.active,
            load_ns: self.load_ns,
            capacity_ns: self.control.limit_ns(),
            capacity_state: self.control.state(),
            opening: self.control.opening(),
            slowdown: self.types.slowdown(),
            oldest: oldest.waiter(|kind| self.types.get(kind).name().to_owned()),
            totals: self.totals,
            times: self.times,
            tenants: self.tenants.views().collect(),
            types: self.types.views(&oldest.waits_ns).collect(),
        }
    }

    /// What was learnt, to be kept across a restart.
    pub fn kept(&self) -> Kept {
        Kept {
            capacity_ns: self.control.kept_ns(),
            estimates: self.types.kept(),
        }
    }

    /// Restores what was learnt before a restart. If there are more types than the table has room for, later
    /// ones replace earlier ones.
    pub fn restore(&mut self, kept: &Kept) {
        if let Some(capacity_ns) = kept.capacity_ns {
            self.control.restore(capacity_ns);
        }
        for estimate in &kept.estimates {
            self.types.restore(self.now_ns, estimate);
        }
    }
}
