//! What a gate is told, and what it shows.

use std::time::Duration;

use serde::Serialize;
use shortline_sched::admission::{
    AdmissionConfig, CapacityState, OldestWaiter, Times, Totals, TypeView,
};

/// How a gate admits.
#[derive(Clone, Debug, PartialEq)]
pub struct GateConfig {
    /// The order, the capacity, the limits of the queue and of the types.
    pub admission: AdmissionConfig,
    /// The longest that a request waits before it is refused.
    pub wait_max: Duration,
    /// Who waits for as long as this is logged; nobody if it is `None`.
    pub slow_wait: Option<Duration>,
    /// Whether somebody watches who waits for a lock in the backend ([`crate::locks`]).
    pub watches_locks: bool,
}

impl Default for GateConfig {
    /// The defaults of [`AdmissionConfig`]; two minutes of waiting, as PgBouncer's
    /// `query_wait_timeout`.
    fn default() -> Self {
        Self {
            admission: AdmissionConfig::default(),
            wait_max: Duration::from_secs(120),
            slow_wait: None,
            watches_locks: false,
        }
    }
}

impl GateConfig {
    /// What is told to admission: nobody is held back for his debts until he is refused.
    pub(super) fn admission(&self) -> AdmissionConfig {
        let half_ns = u64::try_from(self.wait_max.as_nanos() / 2).unwrap_or(u64::MAX);
        AdmissionConfig {
            debt_wait_ns_max: self.admission.debt_wait_ns_max.min(half_ns),
            ..self.admission
        }
    }
}

/// What can be seen of a gate at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateSnapshot {
    /// Requests that wait.
    pub waiting: usize,
    /// Requests that were admitted and have not ended.
    pub running: usize,
    /// Those of them that are not paused.
    pub active: usize,
    /// The sum of the estimates of the active ones, in nanoseconds.
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
    /// Each type; the first is the one that the rare share.
    pub types: Vec<TypeView>,
}
