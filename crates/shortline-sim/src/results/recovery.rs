//! How long it takes after an overload until new arrivals no longer feel it.
//!
//! All policies that never idle have as much work left when load drops, and finish it at the same
//! time. They differ in how many jobs hold it (paper 000, 6.2 and 6.3). So a system counts as
//! recovered when no more jobs are in it than processor sharing would hold on average at the low
//! load, rho / (1 - rho), and at least 1.

use serde::Serialize;

/// Watches the number of jobs from the end of each overload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery {
    jobs_recovered: u64,
    /// When the overload ended from which the system has not yet recovered.
    overload_end_ns: Option<f64>,
    overloads: u64,
    jobs_at_end_sum: u64,
    recovered: u64,
    took_sum_ns: f64,
    took_max_ns: f64,
}

/// How systems recovered, over all overloads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecoverySummary {
    /// How many overloads ended.
    pub overloads: u64,
    /// How many were followed by another overload, or by the end, before the system had recovered.
    pub not_recovered: u64,
    /// Jobs in the system when an overload ended, on average.
    pub jobs_at_end_mean: f64,
    /// The number of jobs at which a system counts as recovered.
    pub jobs_recovered: u64,
    /// How long recovering took on average, in seconds; `None` if it never happened.
    pub seconds_mean: Option<f64>,
    /// The longest, in seconds.
    pub seconds_max: Option<f64>,
}

impl Recovery {
    /// Recovered means at most as many jobs as there are on average at a load of `load_low`, below
    /// 1.
    pub(crate) fn new(load_low: f64) -> Self {
        Self {
            jobs_recovered: (load_low / (1.0 - load_low)).max(1.0) as u64,
            ..Self::default()
        }
    }

    /// An overload ends, with so many jobs in the system.
    pub(crate) fn overload_ends(&mut self, at_ns: f64, jobs: u64) {
        self.overloads += 1;
        self.jobs_at_end_sum += jobs;
        self.overload_end_ns = Some(at_ns);
        self.see(at_ns, jobs);
    }

    /// The number of jobs in the system from now on.
    #[inline]
    pub(crate) fn see(&mut self, at_ns: f64, jobs: u64) {
        if let Some(end_ns) = self.overload_end_ns
            && jobs <= self.jobs_recovered
        {
            self.recovered += 1;
            self.took_sum_ns += at_ns - end_ns;
            self.took_max_ns = self.took_max_ns.max(at_ns - end_ns);
            self.overload_end_ns = None;
        }
    }

    /// Adds the observations of another run.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.overloads += other.overloads;
        self.jobs_at_end_sum += other.jobs_at_end_sum;
        self.recovered += other.recovered;
        self.took_sum_ns += other.took_sum_ns;
        self.took_max_ns = self.took_max_ns.max(other.took_max_ns);
    }

    /// The observations; `None` if no overload ended.
    pub(crate) fn summary(&self) -> Option<RecoverySummary> {
        let any = |count: u64| (count > 0).then_some(count as f64);
        Some(RecoverySummary {
            jobs_at_end_mean: self.jobs_at_end_sum as f64 / any(self.overloads)?,
            overloads: self.overloads,
            not_recovered: self.overloads - self.recovered,
            jobs_recovered: self.jobs_recovered,
            seconds_mean: any(self.recovered).map(|count| self.took_sum_ns / count / 1e9),
            seconds_max: any(self.recovered).map(|_| self.took_max_ns / 1e9),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn recovery_lasts_from_the_overload_to_few_jobs() {
        let mut recovery = Recovery::new(0.8);
        recovery.see(1e9, 0);
        recovery.overload_ends(10e9, 50);
        recovery.see(11e9, 4);
        recovery.see(12e9, 3);
        recovery.overload_ends(20e9, 70);
        let summary = recovery.summary().unwrap();
        assert_eq!(summary.jobs_recovered, 4);
        assert_eq!((summary.overloads, summary.not_recovered), (2, 1));
        assert_eq!(summary.seconds_mean, Some(1.0));
        assert_eq!(summary.jobs_at_end_mean, 60.0);
        assert_eq!(Recovery::new(0.2).summary(), None);
    }
}
