//! `stert`: shortest total estimated response time first.
//!
//! Source: paper 004 appendix A. The total is the time since the request came and what
//! remains, at a rate that is mostly the one seen so far:
//!
//! ```text
//! elapsed + RTT + remaining / (0.9 past rate + 0.1 cwnd / RTT)
//! ```
//!
//! Elapsed time grows alike for all jobs, so they are compared without the present, by the estimate
//! less the arrival. Before anything was sent the paper's past rate is 0/0. Then the window's rate
//! counts alone, because with a past rate of 0 every new request would seem ten times as long as it
//! is.

use super::Needs;
use crate::job::Job;
use crate::path::{PathView, transfer_ns};
use crate::urgency::Growing;

pub(super) const NEEDS: Needs = Needs::Path;

/// The share of the past rate, the paper's alpha.
const PAST_SHARE: f64 = 0.9;

/// Stands for the present: later than any arrival, and early enough to add a time to it.
const PRESENT_NS: u64 = 1 << 63;

/// The rank: the total estimated response time in nanoseconds, at one present for all.
pub(super) fn rank(job: &Job, path: &PathView) -> u64 {
    total_ns(job, path, PRESENT_NS)
}

/// The rank under growing. The elapsed time of [`rank`] and the age that makes a job urgent are the
/// same time, once for it and once against it.
pub(super) fn rank_growing(job: &Job, path: &PathView, growing: Growing) -> u64 {
    let arrival_ns = job.arrival_ns as f64;
    let total_ns = remaining_ns(job, path) - arrival_ns;
    let grown_ns = growing.factor() * total_ns + arrival_ns;
    PRESENT_NS.saturating_add_signed(grown_ns.round() as i64)
}

/// The total estimated response time at `now_ns`, in nanoseconds.
pub(super) fn total_ns(job: &Job, path: &PathView, now_ns: u64) -> u64 {
    let elapsed_ns = now_ns.saturating_sub(job.arrival_ns);
    elapsed_ns.saturating_add(remaining_ns(job, path).round() as u64)
}

fn remaining_ns(job: &Job, path: &PathView) -> f64 {
    let window_bps = path.rate_bps_window();
    let rate_bps = path.rate_bps_past.map_or(window_bps, |past_bps| {
        PAST_SHARE * past_bps as f64 + (1.0 - PAST_SHARE) * window_bps
    });
    path.rtt_ns as f64 + transfer_ns(job.remaining_estimate(), rate_bps)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PATH: PathView = PathView {
        rtt_ns: 10_000_000,
        cwnd_bytes: 10_000,
        rate_bps_past: None,
    };

    #[test]
    fn a_new_request_goes_by_its_window() {
        let first = rank(&Job::arrived(0, 20_000), &PATH);
        assert_eq!(first - PRESENT_NS, 30_000_000);
    }

    #[test]
    fn the_past_rate_counts_nine_tenths() {
        // Half the window's rate of 8 Mbit/s, so that 0.55 of it is expected.
        let path = PathView {
            rate_bps_past: Some(4_000_000),
            ..PATH
        };
        let half_done = rank(&Job::arrived(0, 55_000), &path);
        assert_eq!(half_done - PRESENT_NS, 110_000_000);
    }

    #[test]
    fn one_that_came_earlier_has_had_more_time() {
        let early = rank(&Job::arrived(0, 500), &PATH);
        let late = rank(&Job::arrived(7, 500), &PATH);
        assert_eq!(early - late, 7);
    }

    #[test]
    fn the_total_grows_with_the_time_since_the_request() {
        let job = Job::arrived(4_000_000, 20_000);
        let total = |now_ns| total_ns(&job, &PATH, now_ns);
        assert_eq!(
            [0, 4_000_000, 9_000_000].map(total),
            [30_000_000, 30_000_000, 35_000_000]
        );
    }

    #[test]
    fn at_factor_one_growing_weighs_elapsed_time_out() {
        let rank = |arrival_ns, factor| {
            let growing = Growing::new(factor).unwrap();
            rank_growing(&Job::arrived(arrival_ns, 500), &PATH, growing)
        };
        assert_eq!(rank(0, 1.0), rank(700, 1.0));
        // The first to come is the first below 1, the last above.
        assert!(rank(0, 0.5) < rank(1 << 20, 0.5));
        assert!(rank(0, 3.0) > rank(1 << 20, 3.0));
    }
}
