//! Growing: a job's priority grows with its age, so that in time a large job becomes as urgent as a
//! small one.
//!
//! Source: paper 001 7, which names the idea (dynamic priority adjustment) but gives no formula.
//! Here a policy's rank is a time of service, and a job's rank falls evenly:
//!
//! ```text
//! rank at time t = rank - (t - arrival) / X
//! ```
//!
//! A job that has waited X times the service its rank stands for is as urgent as one that arrives
//! now and needs none. All ranks fall at the same speed. So the order of two jobs changes only if
//! one of them is served, and a waiting job need not be looked at. What is compared is the rank
//! times X, without the t that all have in common:
//!
//! ```text
//! arrival + X * rank
//! ```
//!
//! With a small X the order is nearly that of arrival; with a large one, nearly the policy's.

use super::factor_above_zero;

/// The factor X: after how many times its service a waiting job is as urgent as can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growing(f64);

factor_above_zero!(Growing, "growing");

impl Growing {
    /// The rank of a job whose rank as a time of service is `service_ns`; see the module's text. It
    /// saturates.
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
        // The large job passes those of size 20 that come at least 5 * (200 - 20) later.
        assert!(growing.rank(1899, 20.0) < large);
        assert_eq!(growing.rank(1900, 20.0), large);
        assert!(growing.rank(1901, 20.0) > large);
    }

    #[test]
    fn rank_saturates() {
        assert_eq!(Growing::new(1e300).unwrap().rank(1, 1.0), u64::MAX);
    }
}
