//! The machine's usage while visitors came, as in 002's Table 2.

use serde::{Deserialize, Serialize};

/// The usage over a time. Flows are per second. A share of 1 is one full processor.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Counters {
    /// The database's processor time, in its own code.
    pub database_user_share: f64,
    /// The same in the kernel.
    pub database_system_share: f64,
    /// Processor time of browsers, application and gate.
    pub others_share: f64,
    /// The database's memory at the end, in MB.
    pub database_memory_mb: f64,
    /// The machine's free memory then, in MB, including what the kernel would give up.
    pub free_memory_mb: f64,
    /// Transfers of all disks.
    pub transfers_per_s: f64,
    /// Bytes over the loopback interface.
    pub network_mbit_per_s: f64,
    /// The database's processes and threads at the end.
    pub database_processes: u64,
    /// Processes and threads of the whole machine.
    pub processes: u64,
    /// Of the whole machine.
    pub context_switches_per_s: f64,
    /// Of the whole machine.
    pub interrupts_per_s: f64,
}

impl Counters {
    /// The database's processor time.
    pub fn database_share(&self) -> f64 {
        self.database_user_share + self.database_system_share
    }
}
