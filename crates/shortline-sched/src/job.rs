//! A job: one piece of work that waits for a resource, with what the ranks need.
//!
//! On the uplink a job is a response and its work is counted in bytes; in the gate and
//! the simulator it is counted in nanoseconds of service. Within one scheduler all jobs
//! count in the same unit.

/// What a driver says about a job when it submits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// When the job arrived, in nanoseconds of the driver's clock.
    pub arrival_ns: u64,
    /// Total work: bytes on the uplink, nanoseconds in the gate and the simulator.
    pub work: u64,
    /// How long the job would take alone, in nanoseconds. Only aging uses it.
    pub service_ns_expected: u64,
}

/// Names a job in its scheduler until the job is removed.
///
/// It holds the place of the job and the generation of that place, so that an id kept
/// after its job was removed is never mistaken for the job that took the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JobId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl JobId {
    /// The job's place, dense from 0 and used again after the job is removed: an index for what
    /// a driver keeps beside the job.
    pub fn index(self) -> usize {
        self.slot as usize
    }
}

/// A job in a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// When the job arrived, in nanoseconds of the driver's clock.
    pub arrival_ns: u64,
    /// Total work, in the unit of the scheduler's jobs.
    pub work_total: u64,
    /// Work recorded so far, in the same unit. It may exceed the total, for a total can
    /// be an estimate.
    pub work_done: u64,
    /// When the job becomes overdue; `None` without aging.
    pub deadline_ns: Option<u64>,
    /// Whether the job has been taken into service at least once.
    pub started: bool,
    /// Counts submissions; decides between equal ranks and equal deadlines.
    pub(crate) sequence: u64,
    /// The turn drawn when the job last entered the index; round robin ranks by it.
    pub(crate) turn: u64,
}

impl Job {
    /// Work that is left; 0 once the total is reached or passed.
    pub fn remaining(&self) -> u64 {
        self.work_total.saturating_sub(self.work_done)
    }
}

#[cfg(test)]
impl Job {
    /// A job that has just arrived, for the tests of the ranks.
    pub(crate) fn arrived(arrival_ns: u64, work_total: u64) -> Self {
        Self {
            arrival_ns,
            work_total,
            work_done: 0,
            deadline_ns: None,
            started: false,
            sequence: 0,
            turn: 0,
        }
    }
}
