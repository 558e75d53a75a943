//! `srrt`: shortest remaining response time first.
//!
//! Source: paper 004 3.3.5. A connection sends a window each round trip, so what remains
//! takes
//!
//! ```text
//! RTT (1 + remaining / cwnd)
//! ```

use super::Needs;
use crate::job::Job;
use crate::path::PathView;

pub(super) const NEEDS: Needs = Needs::Path;

/// The rank: the remaining response time, in nanoseconds.
pub(super) fn rank(job: &Job, path: &PathView) -> u64 {
    path.response_ns(job.remaining_estimate())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_takes_a_round_trip_after_the_first() {
        let path = PathView {
            rtt_ns: 30_000_000,
            cwnd_bytes: 10_000,
            rate_bps_past: None,
        };
        let mut job = Job::arrived(0, 25_000);
        assert_eq!(rank(&job, &path), 105_000_000);
        job.work_done = 25_000;
        assert_eq!(rank(&job, &path), 30_000_000);
    }

    #[test]
    fn odd_paths_have_a_rank() {
        let path = |rtt_ns, cwnd_bytes| PathView {
            rtt_ns,
            cwnd_bytes,
            rate_bps_past: None,
        };
        assert_eq!(rank(&Job::arrived(0, 9), &path(0, 0)), 0);
        assert_eq!(rank(&Job::arrived(0, 9), &path(10, 0)), 100);
        assert_eq!(rank(&Job::arrived(0, 9), &path(u64::MAX, 1)), u64::MAX);
    }
}
