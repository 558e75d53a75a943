//! `las`: least attained service first, which needs no sizes.
//!
//! Source: cited by paper 000 among the size-blind policies; also known as foreground-background.
//! Small jobs overtake large ones because they end before they have had much service.

use super::Needs;
use crate::job::Job;

pub(super) const NEEDS: Needs = Needs::Sizes;

/// The rank: the work done so far.
pub(super) fn rank(job: &Job) -> u64 {
    job.work_done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_by_what_was_done() {
        let mut served = Job::arrived(0, 10);
        served.work_done = 5;
        assert!(rank(&Job::arrived(1, 90)) < rank(&served));
    }
}
