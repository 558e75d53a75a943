//! The exact engine: what a system of servers does between two arrivals, by its own events.
//!
//! A job's work is the time that one server needs for it, in nanoseconds. There are K servers, and
//! a job is on at most one of them. A client that takes less than the server gives
//! ([`crate::ClientClass`]) uses a share of it and leaves the rest to others. So a set of servers
//! is a capacity K of which job j can use at most cap_j <= 1, and a policy is a way to divide it:
//!
//! - [`ranked::Ranked`]: in the order of [`shortline_sched::Scheduler`], each job as much as it can
//!   use until nothing is left. The scheduler is asked again when a job arrives, ends, leaves, or
//!   (aging) when it says that time alone changes its answer;
//! - [`sharing::Sharing`]: `fair`, processor sharing, the limit of ever smaller quanta;
//! - [`levels::Levels`]: `las`, which shares among the jobs of least service. With aging or
//!   growing, `fair` and `las` are [`ranked::Ranked`], and jobs of one rank take turns of a
//!   quantum, as on the link: time orders such jobs, and no fluid has their order;
//! - [`dispatched::Dispatched`]: servers with a queue each, to one of which a job goes at its arrival;
//! - [`Gated`]: a backend behind the gate, which shares among the admitted jobs.
//!
//! Nothing proceeds in steps of time. Time is in nanoseconds in `f64`, whose whole numbers are
//! exact for 104 days. Arrivals and work are whole nanoseconds, so with full servers and a ranked
//! policy every event is exact.

mod dispatched;
mod levels;
mod ranked;
mod sharing;
mod system;

use shortline_sched::dispatch::Dispatcher;
use shortline_sched::{Client, PathView, Policy, SchedulerConfig, Urgency};

pub(crate) use self::system::{End, Patience, System, SystemConfig};

use self::dispatched::Dispatched;
use self::levels::Levels;
use self::ranked::Ranked;
use self::sharing::Sharing;
use crate::Backend;
use crate::admission::Gated;

/// A job as the servers see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Names the job until it ends: a small number, used again after.
    pub slot: u32,
    /// The class of clients that it belongs to.
    pub class: usize,
    /// Who asks; `None` is a client of its own.
    pub client: Option<Client>,
    /// How long one server needs for it, in nanoseconds: whole and at least 1.
    pub work_ns: f64,
    /// The work that a policy is told.
    pub estimate_ns: u64,
}

/// The capacity that is to be shared.
#[derive(Clone, Debug)]
pub(crate) struct Capacity {
    /// How many servers, K.
    pub servers: f64,
    /// The clients' classes, at least one.
    pub classes: Vec<Class>,
    /// Chooses a server for each job at its arrival; `None` for one queue before all servers.
    pub dispatcher: Option<Dispatcher>,
}

impl Capacity {
    /// One server; every job can use all of it.
    pub(crate) fn one() -> Self {
        Self {
            servers: 1.0,
            classes: vec![Class {
                cap: 1.0,
                path: None,
            }],
            dispatcher: None,
        }
    }
}

/// A class of clients as the servers see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Class {
    /// The share of a server that a job can use: above 0, at most 1.
    pub cap: f64,
    /// The path that path-aware policies see, in the unit of work.
    pub path: Option<PathView>,
}

/// Servers under a policy, at some time.
pub(crate) enum Servers {
    Ranked(Box<Ranked>),
    Sharing(Sharing),
    Levels(Levels),
    Gated(Box<Gated>),
    Dispatched(Box<Dispatched>),
}

impl Servers {
    /// Idle servers. Where jobs are served in turns, a turn is `turn_ns` of work.
    pub(crate) fn new(config: SchedulerConfig, turn_ns: f64, capacity: &Capacity) -> Self {
        let alone = config.urgency == Urgency::None;
        match config.policy {
            Policy::Fair if alone => Self::Sharing(Sharing::new(capacity)),
            Policy::Las if alone => Self::Levels(Levels::new(capacity)),
            // Service changes the rank of the one that is served.
            Policy::Fair
            | Policy::Las
            | Policy::Bands(_)
            | Policy::QuickFix { .. }
            | Policy::Gittins => Self::Ranked(Box::new(Ranked::new(config, turn_ns, capacity))),
            _ => Self::Ranked(Box::new(Ranked::new(config, f64::INFINITY, capacity))),
        }
    }

    /// Idle servers whose jobs are served in turns of `turn_ns` of work, `fair` too.
    pub(crate) fn in_turns(config: SchedulerConfig, turn_ns: f64, capacity: &Capacity) -> Self {
        Self::Ranked(Box::new(Ranked::new(config, turn_ns, capacity)))
    }

    /// Idle servers with a queue each.
    pub(crate) fn dispatched(
        config: SchedulerConfig,
        dispatcher: Dispatcher,
        capacity: &Capacity,
    ) -> Self {
        Self::Dispatched(Box::new(Dispatched::new(config, dispatcher, capacity)))
    }

    /// An idle backend behind the gate.
    pub(crate) fn behind_gate(
        backend: Backend,
        config: SchedulerConfig,
        capacity: &Capacity,
    ) -> Self {
        Self::Gated(Box::new(Gated::new(
            backend,
            config.policy,
            config.urgency,
            capacity.servers,
            config.jobs_max,
        )))
    }

    /// Adds a job at the present time.
    pub(crate) fn submit(&mut self, job: &Work) {
        match self {
            Self::Ranked(servers) => servers.submit(job),
            Self::Sharing(servers) => servers.submit(job),
            Self::Levels(servers) => servers.submit(job),
            Self::Gated(servers) => servers.submit(job),
            Self::Dispatched(servers) => servers.submit(job),
        }
    }

    /// Advances until a job ends, which is returned, or to `until_ns` if that is earlier.
    pub(crate) fn run_until(&mut self, until_ns: f64) -> Option<u32> {
        match self {
            Self::Ranked(servers) => servers.run_until(until_ns),
            Self::Sharing(servers) => servers.run_until(until_ns),
            Self::Levels(servers) => servers.run_until(until_ns),
            Self::Gated(servers) => servers.run_until(until_ns),
            Self::Dispatched(servers) => servers.run_until(until_ns),
        }
    }

    /// Takes out a job that is present.
    pub(crate) fn cancel(&mut self, slot: u32) {
        match self {
            Self::Ranked(servers) => servers.cancel(slot),
            Self::Sharing(servers) => servers.cancel(slot),
            Self::Levels(servers) => servers.cancel(slot),
            Self::Gated(servers) => servers.cancel(slot),
            Self::Dispatched(servers) => servers.cancel(slot),
        }
    }

    /// When the last job of a slot was first served, in nanoseconds; not a number if it never was.
    pub(crate) fn started_ns(&self, slot: u32) -> f64 {
        match self {
            Self::Ranked(servers) => servers.started_ns(slot),
            Self::Sharing(servers) => servers.started_ns(slot),
            Self::Levels(servers) => servers.started_ns(slot),
            Self::Gated(servers) => servers.started_ns(slot),
            Self::Dispatched(servers) => servers.started_ns(slot),
        }
    }

    /// The present time, in nanoseconds.
    pub(crate) fn now_ns(&self) -> f64 {
        match self {
            Self::Ranked(servers) => servers.now_ns(),
            Self::Sharing(servers) => servers.now_ns(),
            Self::Levels(servers) => servers.now_ns(),
            Self::Gated(servers) => servers.now_ns(),
            Self::Dispatched(servers) => servers.now_ns(),
        }
    }
}

/// Capacity below this is left over from rounding and not given out.
const NOTHING: f64 = 1e-9;

/// Events of shared servers this soon after an arrival count as before it: in exact arithmetic they
/// are at the same time.
const ROUNDING_NS: f64 = 1e-3;

/// Writes `value` at `index` of a table that grows as slots come into use.
pub(crate) fn put<T: Clone>(table: &mut Vec<T>, index: usize, value: T) {
    if index >= table.len() {
        table.resize(index + 1, value.clone());
    }
    table[index] = value;
}

#[cfg(test)]
mod tests;
