//! A job: one piece of work that waits for a resource, with what the ranks need.
//!
//! On the uplink a job is a response and its work is counted in bytes; in the gate and
//! the simulator it is counted in nanoseconds of service. Within one scheduler all jobs
//! count in the same unit.

use std::num::NonZeroU32;

use crate::path::PathView;

/// Whose job it is, for policies that share among clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    /// The client's name. Jobs with the same name belong to the same client.
    pub name: u128,
    /// Its part of the server: twice the weight, twice as much. The weight is that of the client's
    /// first job, as long as the client is known.
    pub weight: NonZeroU32,
}

/// The description of a job that a driver submits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobSpec {
    /// When the job arrived, in nanoseconds of the driver's clock.
    pub arrival_ns: u64,
    /// Total work: bytes on the uplink, nanoseconds in the gate and the simulator.
    pub work: u64,
    /// How long the job is expected to take alone, in nanoseconds. Aging, growing and
    /// `fsp` use it.
    pub service_ns_expected: u64,
    /// The total work by which the job is ranked, if the true one is not known
    /// beforehand. `None` ranks by [`Self::work`].
    pub work_estimate: Option<u64>,
    /// The path to the job's client, for policies that need it; `None` ranks as
    /// [`PathView::UNKNOWN`].
    pub path: Option<PathView>,
    /// Whose job it is; `None` for a client that has no other job. `shares` uses it.
    pub client: Option<Client>,
}

/// Names a job in its scheduler until the job is removed.
///
/// It holds the job's place and the generation of that place. So an id kept after its job was
/// removed does not name the job that took the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JobId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl JobId {
    /// The job's place: dense from 0 and reused after the job is removed. Drivers use it as an
    /// index for what they keep beside the job.
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
    /// Total work as far as the ranks know, in the same unit.
    pub work_estimate: u64,
    /// Work recorded so far, in the same unit. It may exceed the total, because a total can be an
    /// estimate.
    pub work_done: u64,
    /// When the job becomes overdue; `None` without aging.
    pub deadline_ns: Option<u64>,
    /// Whether the job has been taken into service at least once.
    pub started: bool,
    /// Whether it was last taken because it is overdue.
    pub(crate) passes: bool,
    /// How long the job was expected to take alone.
    pub(crate) service_ns_expected: u64,
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

    /// Work that is left by the estimate, and at least 1 while the job is not done. A job that
    /// outlives its estimate is assumed to be about to end.
    pub fn remaining_estimate(&self) -> u64 {
        match self.remaining() {
            0 => 0,
            _ => self.work_estimate.saturating_sub(self.work_done).max(1),
        }
    }

    /// The expected time for `work` of the job's work, in nanoseconds.
    pub(crate) fn service_ns(&self, work: u64) -> f64 {
        if self.work_estimate == 0 {
            return 0.0;
        }
        work as f64 * self.service_ns_expected as f64 / self.work_estimate as f64
    }
}

#[cfg(test)]
impl Job {
    /// A job that has just arrived, for the tests of the ranks.
    pub(crate) fn arrived(arrival_ns: u64, work_total: u64) -> Self {
        Self {
            arrival_ns,
            work_total,
            work_estimate: work_total,
            work_done: 0,
            deadline_ns: None,
            started: false,
            passes: false,
            service_ns_expected: work_total,
            sequence: 0,
            turn: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_outlives_its_estimate_is_about_to_end() {
        let mut job = Job::arrived(0, 90);
        job.work_estimate = 30;
        assert_eq!(job.remaining_estimate(), 30);
        job.work_done = 50;
        assert_eq!((job.remaining(), job.remaining_estimate()), (40, 1));
        job.work_done = 90;
        assert_eq!(job.remaining_estimate(), 0);
    }

    #[test]
    fn a_job_that_ends_before_its_estimate_has_nothing_left() {
        let mut job = Job::arrived(0, 10);
        job.work_estimate = 30;
        job.work_done = 10;
        assert_eq!(job.remaining_estimate(), 0);
    }
}
