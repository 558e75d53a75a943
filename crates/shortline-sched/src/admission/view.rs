//! What can be seen of admission from outside: plain values, for metrics and pages; and what is kept over a restart.

use serde::Serialize;

use super::capacity::CapacityState;
use super::histogram::Times;
use super::tenants::TenantView;
use super::{Admission, Kept, sight};

/// The queue, the load and the types at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdmissionView {
    /// Requests that wait.
    pub waiting: usize,
    /// Requests that were admitted and have not ended.
    pub running: usize,
    /// Those of them that are not paused.
    pub active: usize,
    /// The sum of what the active ones added, in nanoseconds.
    pub load_ns: u64,
    /// How much of that is admitted at most; `None` without a limit.
    pub capacity_ns: Option<u64>,
    /// How that limit comes about.
    pub capacity_state: CapacityState,
    /// How many times longer services take than what they add to the load says; 1 unless the
    /// capacity is `auto`.
    pub slowdown: f64,
    /// Who has waited for longest of those that wait now; `None` while nobody does.
    pub oldest: Option<OldestWaiter>,
    /// Since the start.
    pub totals: Totals,
    /// How long requests took.
    pub times: Times,
    /// Each tenant; the first is the one of whoever has no other.
    pub tenants: Vec<TenantView>,
    /// Each type; the first is the one that all share for which the table has no room.
    pub types: Vec<TypeView>,
}

/// The request that has waited for longest and still waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OldestWaiter {
    /// The name of its type.
    pub name: String,
    /// How long it has waited so far, in nanoseconds.
    pub waited_ns: u64,
}

/// What happened since the start, also to types that were forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Requests that started.
    pub admitted: u64,
    /// Those that ended well.
    pub completed: u64,
    /// Those that broke off.
    pub failed: u64,
    /// Requests refused because the queue was full.
    pub refused_full: u64,
    /// Requests refused because they would have waited too long.
    pub refused_shed: u64,
    /// Requests that went away while they waited, at their limit or before.
    pub withdrawn: u64,
    /// Requests that started although the load was at the capacity, because nothing else
    /// happened any more.
    pub escaped: u64,
    /// Those that took far longer than their type ([`super::Runaway`]).
    pub runaways: u64,
    /// In a dry run: requests that started and would have had to wait.
    pub would_wait: u64,
    /// How long those that started have waited, all together, in nanoseconds.
    pub waited_ns_sum: u64,
    /// How long requests that ran have waited for locks inside the backend, as far as anybody noticed,
    /// in nanoseconds.
    pub locked_ns_sum: u64,
}

/// What is known of a type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeView {
    /// Its name.
    pub name: String,
    /// Its expected service time under the present load, in nanoseconds.
    pub estimate_ns: u64,
    /// How many requests that comes from; 0 if it is that of all types.
    pub requests_known: usize,
    /// Requests of it that wait.
    pub waiting: usize,
    /// Requests of it that were admitted and have not ended.
    pub running: usize,
    /// How many were admitted so far.
    pub admitted: u64,
    /// How many ended well.
    pub completed: u64,
    /// How many broke off after they were admitted.
    pub failed: u64,
    /// How many were refused on arrival.
    pub refused: u64,
    /// How many went away while they waited, at their limit or before.
    pub withdrawn: u64,
    /// In a dry run: how many would have had to wait.
    pub would_wait: u64,
    /// How long those admitted have waited, all together, in nanoseconds.
    pub waited_ns_sum: u64,
    /// The longest wait that is over, in nanoseconds, also of those that went away.
    pub waited_ns_max: u64,
    /// How long they took.
    pub times: Times,
    /// How long the one that waits for longest has waited so far, in nanoseconds; 0 while none of
    /// it waits.
    pub oldest_wait_ns: u64,
}

impl Admission {
    /// Everything that can be seen from outside, types included, at the latest time told.
    pub fn view(&self) -> AdmissionView {
        self.view_at(self.now_ns)
    }

    /// The same at a later time, up to which nothing has happened.
    pub fn view_at(&self, now_ns: u64) -> AdmissionView {
        let oldest = sight::oldest(&self.requests, self.types.len(), now_ns.max(self.now_ns));
        AdmissionView {
            waiting: self.waiting(),
            running: self.requests.len() - self.waiting(),
            active: self.active,
            load_ns: self.load_ns,
            capacity_ns: self.control.limit_ns(),
            capacity_state: self.control.state(),
            slowdown: self.types.slowdown(),
            oldest: oldest.waiter(|kind| self.types.get(kind).name().to_owned()),
            totals: self.totals,
            times: self.times,
            tenants: self.tenants.views().collect(),
            types: self.types.views(&oldest.waits_ns).collect(),
        }
    }

    /// What was learnt, to be kept over a restart.
    pub fn kept(&self) -> Kept {
        Kept {
            capacity_ns: self.control.kept_ns(),
            estimates: self.types.kept(),
        }
    }

    /// Begins with what was learnt before. Of more types than there is room for the last are
    /// left out.
    pub fn restore(&mut self, kept: &Kept) {
        if let Some(capacity_ns) = kept.capacity_ns {
            self.control.restore(capacity_ns);
        }
        for estimate in &kept.estimates {
            self.types.restore(self.now_ns, estimate);
        }
    }
}
