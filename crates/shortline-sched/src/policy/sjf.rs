//! `sjf`: shortest job first, without preemption.
//!
//! Source: paper 002 3.2. The size is the total, which in the gate is an estimate. A started job
//! ranks before all jobs not started. Of several started ones (a link passes over a connection that
//! cannot send) the shortest is first.

use super::Needs;
use crate::job::Job;

pub(super) const NEEDS: Needs = Needs::Sizes;

/// Set in the rank of a job that was never in service. No real size reaches this bit.
const NOT_STARTED: u64 = 1 << 63;

/// The rank: the total work, started jobs before all others.
pub(super) fn rank(job: &Job) -> u64 {
    never_preempting(job, job.work_estimate)
}

/// The rank of a started job: before the ranks of all that are not started.
pub(super) fn never_preempting(job: &Job, rank: u64) -> u64 {
    if job.started {
        rank & !NOT_STARTED
    } else {
        rank | NOT_STARTED
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
