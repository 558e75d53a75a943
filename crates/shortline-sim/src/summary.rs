//! What is worth knowing about simulated sojourn times.
//!
//! Percentiles are by nearest rank. The slowdown of a request is its sojourn time over
//! the time alone in the system, its service time; the largest 1 % are the requests of
//! the most wire bytes, one at least.

use serde::Serialize;

use crate::fluid::{Arrival, service_ns};

/// Sojourn times, in seconds, and slowdowns of simulated requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many requests.
    pub requests: usize,
    /// Mean sojourn time.
    pub sojourn_mean: f64,
    /// Median sojourn time.
    pub sojourn_p50: f64,
    /// 99th percentile of sojourn times.
    pub sojourn_p99: f64,
    /// 99.9th percentile of sojourn times.
    pub sojourn_p999: f64,
    /// Longest sojourn time.
    pub sojourn_max: f64,
    /// Squared coefficient of variation of sojourn times: variance over squared mean.
    pub sojourn_c2: f64,
    /// Mean sojourn time of the largest 1 % of the requests.
    pub largest_percent_sojourn_mean: f64,
    /// Mean slowdown.
    pub slowdown_mean: f64,
    /// 99th percentile of slowdowns.
    pub slowdown_p99: f64,
}

impl Summary {
    /// Sums up what [`crate::fluid`] gave for these arrivals at this rate. `None` without
    /// arrivals.
    pub fn new(arrivals: &[Arrival], rate_bps: u64, sojourns_ns: &[u64]) -> Option<Self> {
        let mut sojourns: Vec<f64> = sojourns_ns.iter().map(|&ns| ns as f64 / 1e9).collect();
        let mut slowdowns: Vec<f64> = arrivals
            .iter()
            .zip(sojourns_ns)
            .map(|(arrival, &ns)| ns as f64 / service_ns(arrival.bytes, rate_bps) as f64)
            .collect();
        let sojourn_mean = mean(&sojourns)?;
        let slowdown_mean = mean(&slowdowns)?;
        let largest_percent_sojourn_mean = mean(&largest_percent(arrivals, &sojourns))?;
        let squares: Vec<f64> = sojourns
            .iter()
            .map(|s| (s - sojourn_mean).powi(2))
            .collect();
        sojourns.sort_by(f64::total_cmp);
        slowdowns.sort_by(f64::total_cmp);
        Some(Self {
            requests: sojourns.len(),
            sojourn_mean,
            sojourn_p50: percentile(&sojourns, 0.5),
            sojourn_p99: percentile(&sojourns, 0.99),
            sojourn_p999: percentile(&sojourns, 0.999),
            sojourn_max: percentile(&sojourns, 1.0),
            sojourn_c2: mean(&squares)? / sojourn_mean.powi(2),
            largest_percent_sojourn_mean,
            slowdown_mean,
            slowdown_p99: percentile(&slowdowns, 0.99),
        })
    }
}

/// The sojourn times of the largest 1 %; of equal sizes the earlier counts as larger.
fn largest_percent(arrivals: &[Arrival], sojourns: &[f64]) -> Vec<f64> {
    let mut by_size: Vec<(u64, f64)> = arrivals
        .iter()
        .zip(sojourns)
        .map(|(arrival, &sojourn)| (arrival.bytes, sojourn))
        .collect();
    by_size.sort_by_key(|&(bytes, _)| std::cmp::Reverse(bytes));
    let count = by_size.len().div_ceil(100);
    by_size[..count]
        .iter()
        .map(|&(_, sojourn)| sojourn)
        .collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| values.iter().sum::<f64>() / count as f64)
}

/// The smallest value that at least `share` of the sorted values do not exceed.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sums_up_a_hundred_requests() {
        // At 8 Gbit/s a byte takes a nanosecond; request i of 1..=100 has i bytes and takes
        // twice as long as alone.
        let arrivals: Vec<_> = (1..=100).map(|bytes| Arrival { at_ns: 0, bytes }).collect();
        let sojourns_ns: Vec<_> = (1..=100).map(|bytes| 2 * bytes).collect();
        let summary = Summary::new(&arrivals, 8_000_000_000, &sojourns_ns).unwrap();
        let close = |seconds: f64, ns: f64| (seconds * 1e9 - ns).abs() < 1e-6;
        assert_eq!(summary.requests, 100);
        assert!(close(summary.sojourn_mean, 101.0));
        assert!(close(summary.sojourn_p50, 100.0));
        assert!(close(summary.sojourn_p99, 198.0));
        assert!(close(summary.sojourn_max, 200.0));
        assert!(close(summary.largest_percent_sojourn_mean, 200.0));
        assert_eq!(summary.slowdown_mean, 2.0);
        // The variance of 1..=n is (n^2 - 1) / 12.
        assert!((summary.sojourn_c2 - 9999.0 / 12.0 / 50.5f64.powi(2)).abs() < 1e-12);
    }

    #[test]
    fn nothing_has_no_summary() {
        assert_eq!(Summary::new(&[], 1, &[]), None);
    }
}
