//! `fifo`: in order of arrival.
//!
//! Source: paper 002 3.1, the order in which its proxy admits by default. It never preempts: no job
//! arrives before one that is being served.

use super::Needs;
use crate::job::Job;

pub(super) const NEEDS: Needs = Needs::Sizes;

/// The rank: the arrival, in nanoseconds.
pub(super) fn rank(job: &Job) -> u64 {
    job.arrival_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_by_arrival() {
        assert!(rank(&Job::arrived(1, 90)) < rank(&Job::arrived(2, 10)));
    }
}
