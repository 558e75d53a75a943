//! Growing: a job's priority grows with its age, so that a large job becomes as urgent as
//! a small one in time.
//!
//! Source: paper 001 7, which names the idea (dynamic priority adjustment) and no formula.
//! Here, with a policy's rank as a time of service, the rank of a job falls evenly:
//!
//! ```text
//! rank at time t = rank - (t - arrival) / X
//! ```
//!
//! A job that has waited X times the service its rank stands for is as urgent as one that
//! needs none and comes just then. All ranks fall at the same speed, so the order of two
//! jobs changes only if one of them is served, and a job need not be looked at while it
//! waits. What is compared is the rank times X, without the t that all have in common:
//!
//! ```text
//! arrival + X * rank
//! ```
//!
//! With a small X everything goes nearly by arrival; with a large one, by the policy.

use super::factor_above_zero;

/// The factor X: after how many times its service a waiting job is as urgent as can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growing(f64);

factor_above_zero!(Growing, "growing");

impl Growing {
    /// The rank of a job whose rank as a time of service is `service_ns`; see the module's
    /// text. It saturates.
    pub(crate) fn rank(self, arrival_ns: u64, service_ns: f64) -> u64 {
        arrival_ns.saturating_add((self.0 * service_ns).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_large_job_is_as_urgent_as_a_small_one_in_time() {
        let growing: Growing = "5".parse().unwrap();
        let large = growing.rank(1000, 200.0);
        // The large job passes those of size 20 that come 5 * (200 - 20) later or more.
        assert!(growing.rank(1899, 20.0) < large);
        assert_eq!(growing.rank(1900, 20.0), large);
        assert!(growing.rank(1901, 20.0) > large);
    }

    #[test]
    fn rank_saturates() {
        assert_eq!(Growing::new(1e300).unwrap().rank(1, 1.0), u64::MAX);
    }
}
