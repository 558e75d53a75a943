//! `gittins`: the smallest Gittins rank first, for sizes that are only estimated.
//!
//! Source: Gittins 1989; Scully, Grosof and Harchol-Balter, The Gittins Policy in the M/G/1 Queue, SIGMETRICS
//! 2021. It has the least mean response time of all orders with the same information. The rank is that of
//! [`Spread::gittins`], for the distribution of what remains.
//!
//! A job of estimate `e` is assumed to need `e R` of work in all. The distribution of `R`, work over estimate,
//! is learnt from about the last thousand jobs that ended. Until one has ended, `R` is 1. So
//!
//! ```text
//! rank = e * gittins(R, done / e)
//! ```
//!
//! If estimates are exact, `R` is always 1, the rank is what remains, and the order is exactly that of `srpt`.
//! With errors it differs. A job that has outlived its estimate is not about to end, as `srpt` assumes (which
//! has no bound then: Scully, Grosof and Mitzenmacher, 2021, arXiv 2110.00633).
//!
//! Departures: there is one `R` for all sizes. A waiting job keeps the rank from its last service. A job that
//! outlives all values seen goes last.

use super::Needs;
use crate::estimate::Spread;
use crate::job::Job;

pub(super) const NEEDS: Needs = Needs::Sizes;

/// The unit of `R`, in parts of 1.
const PARTS: f64 = (1 << 20) as f64;

/// The errors of estimates, as learnt from ended jobs.
#[derive(Clone, Debug)]
pub(super) struct Errors {
    ratios: Spread,
    /// Whether any job has ended.
    known: bool,
}

impl Default for Errors {
    fn default() -> Self {
        let mut ratios = Spread::default();
        ratios.add(PARTS);
        Self {
            ratios,
            known: false,
        }
    }
}

impl Errors {
    /// A job has ended.
    pub(super) fn learn(&mut self, job: &Job) {
        if job.work_estimate == 0 {
            return;
        }
        if !std::mem::replace(&mut self.known, true) {
            self.ratios = Spread::default();
        }
        self.ratios
            .add(job.work_total as f64 / job.work_estimate as f64 * PARTS);
    }

    /// The rank, in units of work.
    pub(super) fn rank(&self, job: &Job) -> u64 {
        if job.remaining() == 0 || job.work_estimate == 0 {
            return 0;
        }
        let estimate = job.work_estimate as f64;
        let left = self.ratios.gittins(job.work_done as f64 / estimate * PARTS);
        ((estimate * left / PARTS).round() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(estimate: u64, work: u64, done: u64) -> Job {
        Job {
            work_estimate: estimate,
            work_done: done,
            ..Job::arrived(0, work)
        }
    }

    #[test]
    fn with_exact_estimates_the_rank_is_what_remains() {
        let mut errors = Errors::default();
        for size in [1, 7, 1000, 123_456_789_123] {
            for done in [0, size / 3, size - 1] {
                assert_eq!(errors.rank(&job(size, size, done)), size - done);
            }
            errors.learn(&job(size, size, size));
        }
    }

    #[test]
    fn one_that_outlives_its_estimate_is_not_about_to_end() {
        let mut errors = Errors::default();
        // Half of them need a tenth of the estimate, half ten times as much.
        for ended in 0..100 {
            let work = if ended % 2 == 0 { 10 } else { 1000 };
            errors.learn(&job(100, work, work));
        }
        // Half end after 10, so an end costs 20. A job that is not among them needs 990 more.
        assert_eq!(errors.rank(&job(100, 1000, 0)), 20);
        assert_eq!(errors.rank(&job(100, 1000, 10)), 990);
        assert_eq!(errors.rank(&job(100, 5000, 1000)), u64::MAX);
    }
}
