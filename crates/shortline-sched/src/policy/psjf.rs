//! `psjf`: preemptive shortest job first.
//!
//! Source: paper 002 3.2 made preemptive, as in Scully, Grosof and Mitzenmacher (arXiv 2110.00633).
//! It stays within a bound of the optimum when sizes are estimates. Under SRPT the remaining size
//! of an underestimated job would sink to 0 and block the others.

use super::Needs;
use crate::job::Job;

pub(super) const NEEDS: Needs = Needs::Sizes;

/// The rank: the total work.
pub(super) fn rank(job: &Job) -> u64 {
    job.work_estimate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_by_total_whatever_is_done() {
        let mut nearly_done = Job::arrived(0, 90);
        nearly_done.started = true;
        nearly_done.work_done = 89;
        assert!(rank(&Job::arrived(1, 10)) < rank(&nearly_done));
    }
}
