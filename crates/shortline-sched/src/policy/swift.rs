//! `swift`: by remaining size and round trip time.
//!
//! Source: Rawat and Kshemkalyani, NCA 2003, cited by papers 000 and 004 2.1.1. They say that it uses
//! the round trip time beside SRPT's size, and give no formula. Here both are added as times:
//! `remaining service + RTT`.

use super::Needs;
use crate::job::Job;
use crate::path::PathView;

pub(super) const NEEDS: Needs = Needs::Path;

/// The rank: the service that remains and a round trip, in nanoseconds.
pub(super) fn rank(job: &Job, path: &PathView) -> u64 {
    let service_ns = job.service_ns(job.remaining_estimate()).round() as u64;
    service_ns.saturating_add(path.rtt_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_by_what_remains_and_the_distance() {
        let path = |rtt_ns| PathView {
            rtt_ns,
            ..PathView::UNKNOWN
        };
        let mut job = Job::arrived(0, 100);
        assert_eq!(rank(&job, &path(40)), 140);
        job.work_done = 70;
        assert_eq!(rank(&job, &path(40)), 70);
        assert_eq!(rank(&job, &path(u64::MAX)), u64::MAX);
    }
}
