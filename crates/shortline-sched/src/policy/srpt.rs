//! `srpt` (also `scf`): shortest remaining processing time first, preemptive.
//!
//! Source: papers 001 3.1 (shortest connection first) and 003 3.3. No policy has a
//! smaller mean response time on one server (Schrage 1968).

use super::Needs;
use crate::job::Job;

pub(super) const NEEDS: Needs = Needs::Sizes;

/// The rank: the work that remains.
pub(super) fn rank(job: &Job) -> u64 {
    job.remaining_estimate()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_by_what_remains() {
        let mut nearly_done = Job::arrived(0, 90);
        nearly_done.work_done = 85;
        assert!(rank(&nearly_done) < rank(&Job::arrived(1, 10)));
        nearly_done.work_done = 200;
        assert_eq!(rank(&nearly_done), 0);
    }
}
