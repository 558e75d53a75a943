//! `fcf`: fastest connection first, by size over the connection's throughput.
//!
//! Source: Murta and Corlassoli, ITC 2003, cited by papers 000 and 004 2.1.2 as an extension of
//! SRPT that prefers small files on fast connections. So the size is the remaining one. The
//! throughput is what the connection has carried so far; before it has carried anything, it is what
//! its window lets through.

use super::Needs;
use crate::job::Job;
use crate::path::{PathView, transfer_ns};

pub(super) const NEEDS: Needs = Needs::Path;

/// The rank: the time to send what remains at the connection's throughput, in nanoseconds.
pub(super) fn rank(job: &Job, path: &PathView) -> u64 {
    let rate_bps = path
        .rate_bps_past
        .map_or_else(|| path.rate_bps_window(), |rate_bps| rate_bps as f64);
    transfer_ns(job.remaining_estimate(), rate_bps).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_by_the_time_at_the_past_rate() {
        let path = PathView {
            rtt_ns: 1_000_000,
            cwnd_bytes: 1_000,
            rate_bps_past: Some(8_000),
        };
        assert_eq!(rank(&Job::arrived(0, 500), &path), 500_000_000);
    }

    #[test]
    fn goes_by_the_window_before_anything_was_sent() {
        let path = PathView {
            rtt_ns: 1_000_000,
            cwnd_bytes: 1_000,
            rate_bps_past: None,
        };
        assert_eq!(rank(&Job::arrived(0, 500), &path), 500_000);
    }

    #[test]
    fn a_connection_that_stands_still_is_last() {
        let path = PathView {
            rate_bps_past: Some(0),
            ..PathView::UNKNOWN
        };
        assert_eq!(rank(&Job::arrived(0, 1), &path), u64::MAX);
        assert_eq!(rank(&Job::arrived(0, 0), &path), 0);
    }
}
