//! A gate's settings, and the snapshot of its state.

use std::collections::BTreeMap;
use std::time::Duration;

use shortline_sched::admission::{AdmissionConfig, TenantLimits};

/// The state of a gate at one moment.
pub use shortline_sched::admission::AdmissionView as GateSnapshot;

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
