//! Admission in front of a backend: who may start now, and who waits in which order.
//!
//! A request has a type. From the requests that ended, each type's service time is estimated
//! ([`Estimator`]); the *load* is the sum of the estimates of what runs. A request starts if
//!
//! ```text
//! load + its own estimate <= capacity        (always when nothing runs)
//! ```
//!
//! and else waits, in order of arrival or shortest estimate first. On its end exactly what it
//! added is subtracted. What waits does so by type, first come first served within one, so that
//! what is learnt of a type while its requests wait moves them all at once; the order between
//! types is that of [`crate::Scheduler`].
//!
//! Source: paper 002, 3.1 and 3.2. It departs from it in that a unit of work can pause: while
//! the client itself keeps it waiting, its load is given back and the time is no service.
//!
//! A driver calls [`Admission::arrive`], then [`Admission::admit_next`] until nobody more may
//! start, and again after everything that may let somebody start. It owns the clock: times are
//! nanoseconds from an origin of its choice, and one that jumps backwards stands still here.

mod config;
mod estimate;
mod queue;
mod requests;
mod types;
mod view;

pub use config::{AdmissionConfig, Capacity, CapacityError, Order};
pub use estimate::Estimator;
pub use requests::RequestId;
pub use types::TypeId;
pub use view::{AdmissionView, TypeView};

use queue::Queue;
use requests::{Requests, Running, Stage};
use types::Types;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The backend did all of it: its time teaches the estimate.
    Completed,
    /// It broke off: its time teaches only that the service is at least so long.
    Failed,
}

/// A request that is not even queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// As many wait as may.
    #[error("the queue is full: {limit} requests wait, the most allowed")]
    QueueFull {
        /// The most that may wait.
        limit: usize,
    },
}

/// Who runs, who waits, and what is known of each type.
#[derive(Debug)]
pub struct Admission {
    capacity: Capacity,
    queue_max: usize,
    types: Types,
    requests: Requests,
    queue: Queue,
    /// The latest time told.
    now_ns: u64,
    load_ns: u64,
    /// Running and not paused.
    active: usize,
}

impl Admission {
    /// An empty gate.
    pub fn new(config: AdmissionConfig) -> Self {
        Self {
            capacity: config.capacity,
            queue_max: config.queue_max,
            types: Types::new(&config),
            requests: Requests::default(),
            queue: Queue::new(config.order, config.types_max),
            now_ns: 0,
            load_ns: 0,
            active: 0,
        }
    }

    /// The type of that name, entered into the table if it is new. Once the table is full, all
    /// new names share one type.
    pub fn type_of(&mut self, name: &str) -> TypeId {
        self.types.enter(name)
    }

    /// A request comes in and waits; [`Self::admit_next`] says whether for longer than now.
    ///
    /// # Errors
    /// [`Refusal`] if it would have to wait and may not.
    pub fn arrive(&mut self, now_ns: u64, request_type: TypeId) -> Result<RequestId, Refusal> {
        let now_ns = self.tell_time(now_ns);
        let kind = self.types.index(request_type);
        if self.queue.len() >= self.queue_max && !self.fits(self.types.get(kind).estimate_ns()) {
            self.types.get_mut(kind).refused += 1;
            return Err(Refusal::QueueFull {
                limit: self.queue_max,
            });
        }
        let id = self.requests.add(kind, now_ns);
        self.queue.push(&mut self.requests, &mut self.types, id);
        Ok(id)
    }

    /// Lets the request start that is next, if one may; the driver calls again until `None`.
    pub fn admit_next(&mut self, now_ns: u64) -> Option<RequestId> {
        let now_ns = self.tell_time(now_ns);
        let id = self.queue.first(&self.types)?;
        let kind = self.requests.get(id)?.kind;
        let estimate_ns = self.types.get(kind).estimate_ns();
        if !self.fits(estimate_ns) {
            return None;
        }
        self.queue.remove(&mut self.requests, &mut self.types, id);
        let request = self.requests.get_mut(id)?;
        let waited_ns = now_ns.saturating_sub(request.arrival_ns);
        request.stage = Stage::Running(Running::start(now_ns, estimate_ns));
        self.types.get_mut(kind).admit(waited_ns);
        self.put_on(estimate_ns);
        Some(id)
    }

    /// A request that runs has ended. Nothing happens if it does not run.
    pub fn finish(&mut self, now_ns: u64, id: RequestId, outcome: Outcome) {
        let now_ns = self.tell_time(now_ns);
        let Some(running) = self.requests.running(id) else {
            return;
        };
        let running = *running;
        let Some(request) = self.requests.remove(id) else {
            return;
        };
        if running.paused_at_ns.is_none() {
            self.take_off(running.load_ns);
        }
        let service_ns = running.service_ns(now_ns);
        let kind = request.kind;
        if self.types.get_mut(kind).finish(service_ns, outcome) {
            self.types.learn(kind, service_ns);
            self.queue.rank_anew(&self.requests, &mut self.types, kind);
        }
    }

    /// A request that waits goes away; false if it does not wait.
    pub fn withdraw(&mut self, now_ns: u64, id: RequestId) -> bool {
        self.tell_time(now_ns);
        if !self.is_waiting(id) {
            return false;
        }
        self.queue.remove(&mut self.requests, &mut self.types, id);
        if let Some(request) = self.requests.remove(id) {
            self.types.get_mut(request.kind).withdrawn += 1;
        }
        true
    }

    /// The client itself keeps a running request from going on: its load is given back, and the
    /// time until it resumes is no service.
    pub fn pause(&mut self, now_ns: u64, id: RequestId) {
        let now_ns = self.tell_time(now_ns);
        let Some(running) = self.requests.running_mut(id) else {
            return;
        };
        if running.paused_at_ns.is_none() {
            running.paused_at_ns = Some(now_ns);
            let load_ns = running.load_ns;
            self.take_off(load_ns);
        }
    }

    /// A paused request goes on. It is never queued again, so that the load may then exceed the
    /// capacity.
    pub fn resume(&mut self, now_ns: u64, id: RequestId) {
        let now_ns = self.tell_time(now_ns);
        let Some(running) = self.requests.running_mut(id) else {
            return;
        };
        if let Some(paused_at_ns) = running.paused_at_ns.take() {
            running.paused_ns += now_ns.saturating_sub(paused_at_ns);
            let load_ns = running.load_ns;
            self.put_on(load_ns);
        }
    }

    /// Whether a request is still in the queue.
    pub fn is_waiting(&self, id: RequestId) -> bool {
        self.requests
            .get(id)
            .is_some_and(|request| matches!(request.stage, Stage::Waiting { .. }))
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The sum of the estimates of what runs, in nanoseconds.
    pub fn load_ns(&self) -> u64 {
        self.load_ns
    }

    /// Everything that can be seen from outside, types included.
    pub fn view(&self) -> AdmissionView {
        AdmissionView {
            waiting: self.queue.len(),
            running: self.requests.len() - self.queue.len(),
            active: self.active,
            load_ns: self.load_ns,
            capacity_ns: self.capacity.limit_ns(),
            types: self.types.views().collect(),
        }
    }

    fn tell_time(&mut self, now_ns: u64) -> u64 {
        self.now_ns = self.now_ns.max(now_ns);
        self.now_ns
    }

    fn fits(&self, estimate_ns: u64) -> bool {
        let Some(capacity_ns) = self.capacity.limit_ns() else {
            return true;
        };
        self.active == 0 || self.load_ns.saturating_add(estimate_ns) <= capacity_ns
    }

    fn put_on(&mut self, load_ns: u64) {
        self.load_ns += load_ns;
        self.active += 1;
    }

    fn take_off(&mut self, load_ns: u64) {
        self.load_ns -= load_ns;
        self.active -= 1;
    }
}

#[cfg(test)]
mod tests;
