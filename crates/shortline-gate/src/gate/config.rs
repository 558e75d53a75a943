//! A gate's settings, and the snapshot of its state.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use shortline_sched::admission::{
    AdmissionConfig, AdmissionView, CapacityState, OldestWaiter, OpeningView, TenantLimits,
    TenantView, Times, Totals, TypeView,
};

/// The settings of a gate.
#[derive(Clone, Debug, PartialEq)]
pub struct GateConfig {
    /// The order, the capacity, the limits of the queue and of the types.
    pub admission: AdmissionConfig,
    /// The longest wait of a request. Then it is refused.
    pub wait_max: Duration,
    /// A wait of at least this is logged. `None` logs none.
    pub slow_wait: Option<Duration>,
    /// Whether the monitor watches waits for locks in the backend ([`crate::locks`]).
    pub watches_locks: bool,
    /// The weights and limits of tenants.
    pub tenants: TenantTable,
}

/// The weights and limits of tenants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TenantTable {
    /// Those of named tenants.
    pub named: BTreeMap<String, TenantLimits>,
    /// Those of all other tenants.
    pub others: TenantLimits,
}

impl Default for GateConfig {
    /// The defaults of [`AdmissionConfig`]. `wait_max` is two minutes, as PgBouncer's
    /// `query_wait_timeout`.
    fn default() -> Self {
        Self {
            admission: AdmissionConfig::default(),
            wait_max: Duration::from_secs(120),
            slow_wait: None,
            watches_locks: false,
            tenants: TenantTable::default(),
        }
    }
}

impl GateConfig {
    /// The settings of admission. Debts hold a client back for at most half of `wait_max`, so that they
    /// do not get it refused.
    pub(super) fn admission(&self) -> AdmissionConfig {
        let half_ns = u64::try_from(self.wait_max.as_nanos() / 2).unwrap_or(u64::MAX);
        AdmissionConfig {
            debt_wait_ns_max: self.admission.debt_wait_ns_max.min(half_ns),
            ..self.admission
        }
    }
}

/// The state of a gate at one moment.
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
    /// The capacity: the most load that is admitted, in nanoseconds. `None` without a limit.
    pub capacity_ns: Option<u64>,
    /// How the capacity is set or found.
    pub capacity_state: CapacityState,
    /// Whether and how far the limit is above the capacity. `None` if it never is.
    pub opening: Option<OpeningView>,
    /// Service time over the load that a request adds. 1 unless the capacity is `auto`.
    pub slowdown: f64,
    /// The request that has waited longest so far. `None` while none waits.
    pub oldest: Option<OldestWaiter>,
    /// Counts since the start.
    pub totals: Totals,
    /// How long requests took.
    pub times: Times,
    /// Each tenant. The first one has all requests without another tenant.
    pub tenants: Vec<TenantView>,
    /// Each type. The first is the one that rare types share.
    pub types: Vec<TypeView>,
}

impl From<AdmissionView> for GateSnapshot {
    fn from(view: AdmissionView) -> Self {
        let AdmissionView {
            waiting,
            running,
            active,
            load_ns,
            capacity_ns,
            capacity_state,
            opening,
            slowdown,
            oldest,
            totals,
            times,
            tenants,
            types,
        } = view;
        Self {
            waiting,
            running,
            active,
            load_ns,
            capacity_ns,
            capacity_state,
            opening,
            slowdown,
            oldest,
            totals,
            times,
            tenants,
            types,
        }
    }
}
