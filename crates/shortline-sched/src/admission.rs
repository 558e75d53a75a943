//! Admission in front of a backend: which requests may start now, and in which order the others wait.
//!
//! A request has a type. Each type's service time is estimated from its requests that ended
//! ([`crate::Estimator`]). The *load* is the sum of the estimates of the running requests. A request starts if
//!
//! ```text
//! load + its own estimate <= capacity        (always when nothing runs)
//! ```
//!
//! and otherwise waits ([`Order`]). When it ends, exactly what it added is subtracted. Requests wait by
//! type, and within a type in order of arrival. So a new estimate of a type moves all its waiting
//! requests at once. [`crate::Scheduler`] orders the types. If the next request does not fit, all others
//! wait for it: a smaller request does not pass it.
//!
//! Source: paper 002, 3.1 and 3.2. Departures:
//!
//! - A unit of work can pause. While the client itself keeps it waiting, its load is given back, and the
//!   time does not count as service.
//! - Unknown types and failures, which the paper does not have, are handled ([`TypeId`], [`Outcome`]).
//! - A request that uses more than was expected weighs more while it runs, and its client pays for it
//!   later ([`ClientId`]).
//! - There is an escape from a standstill ([`AdmissionConfig::stall_ns`]).
//! - The capacity can be found while the backend works ([`Capacity::Auto`]), and be exceeded where that does
//!   more ([`OpenUp`]).
//!
//! A driver calls [`Admission::arrive`], then [`Admission::admit_next`] until it returns `None`. It calls
//! `admit_next` again after every event that may let a request start, and at
//! [`Admission::next_change_ns`]. The driver owns the clock. Times are nanoseconds from an origin of its
//! choice. If its clock jumps backwards, time stands still here.
//!
//! ```
//! use shortline_sched::admission::{Admission, AdmissionConfig, Capacity, Outcome};
//!
//! let capacity: Capacity = "50ms".parse()?;
//! let mut gate = Admission::new(AdmissionConfig { capacity, ..AdmissionConfig::default() });
//! let report = gate.type_of("report");
//! let first = gate.arrive(0, report)?;
//! assert_eq!(gate.admit_next(0), Some(first));
//! gate.finish(40_000_000, first, Outcome::Completed);
//! // Known to take 40 ms, so that two at once exceed 50.
//! let second = gate.arrive(50_000_000, report)?;
//! let third = gate.arrive(50_000_000, report)?;
//! assert_eq!(gate.admit_next(50_000_000), Some(second));
//! assert_eq!(gate.admit_next(50_000_000), None);
//! gate.finish(90_000_000, second, Outcome::Completed);
//! assert_eq!(gate.admit_next(90_000_000), Some(third));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aging;
mod arrival;
mod boosts;
mod capacity;
mod charge;
mod config;
mod deadlines;
mod debts;
mod growth;
mod histogram;
mod kind;
mod newcomers;
mod next;
mod oldest;
mod queue;
mod reload;
mod requests;
mod runaways;
mod sight;
mod slowdown;
mod sorted;
mod tenants;
mod types;
mod view;

pub use arrival::{NewRequest, Refusal};
pub use capacity::{
    AutoReason, AutoView, Calibration, CalibrationError, CalibrationStage, CalibrationView,
    CapacityState, Compared, OpeningStage, OpeningView, Trial,
};
pub use config::{
    AdmissionConfig, Capacity, CapacityError, OpenUp, OpenUpError, Order, Runaway, RunawayAction,
    RunawayError,
};
pub use histogram::{BOUNDS_NS, Histogram, Times};
pub use oldest::{OldestShare, OldestShareError};
pub use requests::{ClientId, RequestId};
pub use sight::OldestWaiter;
pub use tenants::{
    CapacityPart, CapacityPartError, DEFAULT_TENANT, TenantId, TenantLimits, TenantView, Weight,
    WeightError,
};
pub use types::{KeptEstimate, TypeId};
pub use view::{AdmissionView, Totals, TypeView};

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use aging::{Moment, Rate};
use boosts::Offered;
use capacity::{Control, Ended};
use debts::{Debts, Used};
use requests::{Next, Requests, Running, Stage, Turn};
use runaways::Runaways;
use tenants::Tenants;
use types::{Learnt, Types};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The backend did all of it. The estimate learns from its time.
    Completed,
    /// It broke off. The estimate learns only that the service takes at least this long. Without that, a type
    /// that always times out would stay short for ever.
    Failed,
}

/// What is kept across a restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The capacity in nanoseconds, if there was a limit. `auto` begins there. A search is kept only
    /// once it has found a capacity.
    pub capacity_ns: Option<u64>,
    /// What a request of each type adds to the load.
    pub estimates: Vec<KeptEstimate>,
}

/// The requests that run and wait, and what is known of each type.
#[derive(Debug)]
pub struct Admission {
    order: Order,
    queue_max: usize,
    unqueued_max: usize,
    running_max: Option<NonZeroUsize>,
    shed_wait_ns: Option<u64>,
    stall_ns: Option<u64>,
    dry_run: bool,
    is_paused: bool,
    control: Control,
    types: Types,
    requests: Requests,
    tenants: Tenants,
    /// Requests that skip the queue, until they start.
    unqueued: VecDeque<RequestId>,
    unqueued_running: usize,
    debts: Debts,
    debt_wait_ns_max: u64,
    runaways: Runaways,
    rate: Rate,
    offered: Offered,
    totals: Totals,
    times: Times,
    /// The latest time that the driver gave.
    now_ns: u64,
    /// When a request last started, ended, or began to wait in an empty queue.
    progress_ns: u64,
    /// When the growth of running requests was last checked.
    grown_ns: u64,
    load_ns: u64,
    /// Running and not paused.
    active: usize,
    /// Running, paused ones included.
    running: usize,
}

impl Admission {
    /// An empty gate.
    pub fn new(config: AdmissionConfig) -> Self {
        Self {
            order: config.order,
            queue_max: config.queue_max,
            unqueued_max: config.unqueued_max,
            running_max: config.running_max,
            shed_wait_ns: config.shed_wait_ns.map(u64::from),
            stall_ns: config.stall_ns.map(u64::from),
            dry_run: config.dry_run,
            is_paused: false,
            control: Control::new(&config),
            types: Types::new(&config),
            requests: Requests::default(),
            tenants: Tenants::new(&config),
            unqueued: VecDeque::new(),
            unqueued_running: 0,
            debts: Debts::default(),
            debt_wait_ns_max: config.debt_wait_ns_max,
            runaways: Runaways::new(config.runaway),
            rate: Rate::default(),
            offered: Offered::default(),
            totals: Totals::default(),
            times: Times::default(),
            now_ns: 0,
            progress_ns: 0,
            grown_ns: 0,
            load_ns: 0,
            active: 0,
            running: 0,
        }
    }

    /// Starts the next request, if it may start. The driver calls this until it returns `None`.
    pub fn admit_next(&mut self, now_ns: u64) -> Option<RequestId> {
        let now_ns = self.tell_time(now_ns);
        if self.waiting() == 0 {
            return None;
        }
        self.release_held();
        self.grow();
        self.boost();
        if !self.has_place() {
            return None;
        }
        let next = self.next()?;
        if !self.may_start(next) {
            if self.dry_run {
                self.totals.would_wait += 1;
                self.types.get_mut(next.kind).counts.would_wait += 1;
            } else if self.stalled_since(now_ns) {
                self.totals.escaped += 1;
            } else {
                return None;
            }
        }
        self.start(next);
        Some(next.id)
    }

    /// When to call [`Self::admit_next`] even if nothing happens before. `None` if time alone lets no
    /// request start, as when all places are taken. Any other call may change it.
    pub fn next_change_ns(&self) -> Option<u64> {
        if self.waiting() == 0 || !self.has_place() {
            return None;
        }
        if self.unqueued.is_empty() && !self.tenants.any_waiting_has_place() {
            return None;
        }
        Some(self.progress_ns.saturating_add(self.stall_ns?))
    }

    /// Ends a running request. Does nothing if it does not run.
    pub fn finish(&mut self, now_ns: u64, id: RequestId, outcome: Outcome) {
        let now_ns = self.tell_time(now_ns);
        self.settle(id);
        let Some(&running) = self.requests.running(id) else {
            return;
        };
        let Some(request) = self.requests.remove(id) else {
            return;
        };
        let ran_away = self.runaways.end(now_ns, &self.types, &request, &running);
        self.totals.runaways += u64::from(ran_away);
        self.progress_ns = now_ns;
        self.running -= 1;
        self.unqueued_running -= usize::from(running.is_unqueued);
        if running.paused_at_ns.is_none() {
            self.take_off(request.tenant, running.load_ns);
        }
        self.tenants.end(request.tenant, now_ns);
        let (kind, service_ns) = (request.kind, running.service_ns(now_ns));
        let used = Used {
            service_ns,
            excused_ns: running.excused_ns,
            expected_ns: running.expected_ns,
        };
        self.count_end(kind, service_ns, now_ns.saturating_sub(request.arrival_ns));
        self.debts.charge(request.client, used);
        match outcome {
            Outcome::Completed => {
                self.totals.completed += 1;
                self.account_end(request.tenant, &running, service_ns);
                if running.turn != Turn::Policy {
                    self.types.doubt(kind, service_ns);
                }
                let ended = Ended {
                    service_ns,
                    work_ns: self.types.count_work(kind, running.estimate_ns),
                };
                self.control.completed(now_ns, kind, self.active, ended);
            }
            Outcome::Failed => {
                self.totals.failed += 1;
                // A request that breaks off early owes its estimate.
                let owed_ns = service_ns.max(running.expected_ns);
                self.account_end(request.tenant, &running, owed_ns);
            }
        }
        match self.types.end(now_ns, kind, service_ns, outcome) {
            // A trial of the type depends on whether one of it runs.
            Learnt::Nothing | Learnt::Type => self.tenants.rank_anew(&self.types, kind),
            Learnt::Unit => {
                for kind in 0..self.types.len() {
                    self.tenants.rank_anew(&self.types, kind);
                }
            }
        }
    }

    /// Removes a waiting request. Returns false if it does not wait.
    pub fn withdraw(&mut self, now_ns: u64, id: RequestId) -> bool {
        let now_ns = self.tell_time(now_ns);
        if !self.is_waiting(id) {
            return false;
        }
        self.unqueue(id);
        if let Some(request) = self.requests.remove(id) {
            let waited_ns = now_ns.saturating_sub(request.arrival_ns);
            self.types.get_mut(request.kind).withdraw(waited_ns);
            self.totals.withdrawn += 1;
        }
        true
    }

    /// Pauses a running request whose client itself keeps it waiting. Its load is given back, and the time
    /// until it resumes does not count as service.
    pub fn pause(&mut self, now_ns: u64, id: RequestId) {
        let now_ns = self.tell_time(now_ns);
        let Some(running) = self.requests.running_mut(id) else {
            return;
        };
        if running.paused_at_ns.is_none() {
            running.paused_at_ns = Some(now_ns);
            let (tenant, load_ns) = (running.charge.tenant, running.load_ns);
            self.take_off(tenant, load_ns);
            self.settle(id);
        }
    }

    /// Resumes a paused request. It is never queued again, so the load may then exceed the capacity.
    pub fn resume(&mut self, now_ns: u64, id: RequestId) {
        let now_ns = self.tell_time(now_ns);
        let Some(running) = self.requests.running_mut(id) else {
            return;
        };
        if let Some(paused_at_ns) = running.paused_at_ns.take() {
            running.paused_ns += now_ns.saturating_sub(paused_at_ns);
            let (tenant, load_ns) = (running.charge.tenant, running.load_ns);
            self.put_on(tenant, load_ns);
        }
    }

    /// Records that a running request has waited this long for a lock inside the backend. That time does not
    /// count as service. Its load stays, because a request admitted instead may wait for the same lock.
    pub fn waited_for_lock(&mut self, id: RequestId, locked_ns: u64) {
        if let Some(running) = self.requests.running_mut(id) {
            running.locked_ns = running.locked_ns.saturating_add(locked_ns);
            self.totals.locked_ns_sum = self.totals.locked_ns_sum.saturating_add(locked_ns);
        }
    }

    /// Whether a request is still in the queue.
    pub fn is_waiting(&self, id: RequestId) -> bool {
        self.requests.waiting(id).is_some()
    }

    /// The name of a type, or of the shared type if the type was forgotten.
    pub fn type_name(&self, request_type: TypeId) -> &str {
        self.types.get(self.types.index(request_type)).name()
    }

    /// The number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.tenants.waiting()
    }

    /// The number of requests that were admitted and have not ended.
    pub fn running(&self) -> usize {
        self.running
    }

    /// The load: the sum of what the running requests add, in nanoseconds. Paused ones add nothing.
    pub fn load_ns(&self) -> u64 {
        self.load_ns
    }

    /// Advances to `now_ns`. The state has not changed since the last call.
    fn tell_time(&mut self, now_ns: u64) -> u64 {
        let span_ns = now_ns.saturating_sub(self.now_ns);
        if span_ns > 0 {
            self.now_ns = now_ns;
            let waiting = self.waiting();
            let waits = waiting > 0 && !self.is_paused;
            if waits {
                self.rate.pass(self.active, span_ns);
            }
            self.debts.pass(self.active, waiting, span_ns);
            self.control.pass(now_ns, self.active, self.load_ns, waits);
        }
        self.now_ns
    }

    fn fits(&self, load_ns: u64) -> bool {
        let Some(capacity_ns) = self.control.limit_ns() else {
            return true;
        };
        self.active < self.control.free() || self.load_ns.saturating_add(load_ns) <= capacity_ns
    }

    /// Whether one more request may run, whatever it adds to the load.
    fn has_place(&self) -> bool {
        !self.is_paused && self.running_max.is_none_or(|max| self.running < max.get())
    }

    fn stalled_since(&self, now_ns: u64) -> bool {
        self.stall_ns
            .is_some_and(|stall_ns| now_ns.saturating_sub(self.progress_ns) >= stall_ns)
    }

    fn start(&mut self, next: Next) {
        let Next { id, kind, .. } = next;
        let (now_ns, expected_ns) = (self.now_ns, self.types.service_ns(kind));
        let Some(request) = self.requests.get(id) else {
            return;
        };
        let (tenant, waited_ns) = (request.tenant, now_ns.saturating_sub(request.arrival_ns));
        let oldest = self.tenants.get(tenant).queue.oldest();
        let was_oldest = oldest.is_some_and(|(oldest, _)| oldest == id);
        let charge = self.tenants.start(tenant, next, waited_ns);
        self.unqueue(id);
        self.account_start(tenant, next, was_oldest);
        if let Some(request) = self.requests.get_mut(id) {
            let running = Running::start(now_ns, next, expected_ns, charge);
            request.stage = Stage::Running(running);
        }
        self.count_wait(kind, waited_ns);
        self.unqueued_running += usize::from(next.is_unqueued);
        self.types.get_mut(kind).start(now_ns, waited_ns);
        self.tenants.rank_anew(&self.types, kind);
        self.totals.admitted += 1;
        self.totals.waited_ns_sum = self.totals.waited_ns_sum.saturating_add(waited_ns);
        self.progress_ns = now_ns;
        self.running += 1;
        self.put_on(tenant, next.load_ns);
    }

    /// Removes a waiting request from wherever it waits.
    fn unqueue(&mut self, id: RequestId) {
        let Some(request) = self.requests.get(id) else {
            return;
        };
        let (kind, tenant) = (request.kind, request.tenant);
        if let Some(place) = self.unqueued.iter().position(|&unqueued| unqueued == id) {
            self.unqueued.remove(place);
            self.types.get_mut(kind).waiting -= 1;
        } else if !self.unhold(id) {
            let queue = &mut self.tenants.get_mut(tenant).queue;
            queue.remove(&mut self.requests, &mut self.types, id);
        }
        self.tenants.stop_waiting(tenant);
    }

    /// Updates the estimate of a type of which no request has ended.
    fn refresh(&mut self, kind: usize) {
        if self.types.refresh(kind, self.now_ns) {
            self.tenants.rank_anew(&self.types, kind);
        }
    }

    /// Load and capacity, as expected service under the present slowdown.
    fn moment(&self) -> Moment {
        let slowdown = self.types.slowdown();
        let capacity_ns = self.control.limit_ns().unwrap_or(u64::MAX);
        Moment {
            now_ns: self.now_ns,
            load_ns: self.load_ns as f64 * slowdown,
            capacity_ns: capacity_ns as f64 * slowdown,
            rate: self.rate.mean(),
        }
    }

    fn put_on(&mut self, tenant: usize, load_ns: u64) {
        self.load_ns += load_ns;
        self.active += 1;
        self.tenants.put_on(tenant, 1, load_ns);
    }

    fn take_off(&mut self, tenant: usize, load_ns: u64) {
        self.load_ns -= load_ns;
        self.active -= 1;
        self.tenants.take_off(tenant, load_ns);
    }
}

#[cfg(test)]
mod tests;
