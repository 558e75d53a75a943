//! `sjf`: shortest job first, without preemption.
//!
//! Source: paper 002 3.2. The size is the total, which in the gate is an estimate. A job
//! that was started ranks before all that were not; of several started ones (a link
//! passes over a connection that cannot send) the shortest is first.

use crate::job::Job;

/// Set in the rank of a job that was never in service. No real size reaches this bit.
const NOT_STARTED: u64 = 1 << 63;

/// The rank: the total work, started jobs before all others.
pub(super) fn rank(job: &Job) -> u64 {
    if job.started {
        job.work_total & !NOT_STARTED
    } else {
        job.work_total | NOT_STARTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_by_total_and_never_preempts() {
        let mut started = Job::arrived(0, 90);
        assert!(rank(&Job::arrived(1, 10)) < rank(&started));
        started.started = true;
        assert!(rank(&started) < rank(&Job::arrived(1, 10)));
    }
}
