//! The results of simulated jobs, in memory that does not grow with their number.
//!
//! - sojourn time: how long a job is in the system, from its arrival;
//! - slowdown: sojourn time over the time the job would have been there alone;
//! - starvation stretch: sojourn time over that under processor sharing with the same arrivals; a
//!   job with more than 1 starves (paper 004, 5.3.3);
//! - C²: squared coefficient of variation, variance over squared mean.
//!
//! The largest 1 % are those of most bytes, by the percentile buckets.

mod batches;
mod by_size;
mod log_cells;
mod quantiles;
mod recovery;
mod tally;
mod time_line;

use serde::Serialize;
use shortline_sched::Policy;

pub use self::by_size::{PERCENTILE_BUCKETS, SIZE_BIN_RATIO, SIZE_BINS, SizeGroup};
pub use self::quantiles::Quantiles;
pub(crate) use self::recovery::Recovery;
pub use self::recovery::RecoverySummary;
pub(crate) use self::tally::{Done, Tally};
pub(crate) use self::time_line::{ARRIVAL_INTERVALS_MAX, INTERVALS_MAX, TimeLine};

/// One policy's results. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyResult {
    /// The policy.
    pub policy: Policy,
    /// Jobs counted, in all replications, after the warm-up.
    pub requests: u64,
    /// Jobs that their users gave up; they count with the time until then.
    pub failed: u64,
    /// Attempts given up, of all jobs.
    pub aborts: u64,
    /// Mean sojourn time.
    pub sojourn_mean: f64,
    /// The same by groups of users, in their order; empty without groups.
    pub by_users: Vec<UsersResult>,
    /// Half the width of the confidence interval of `sojourn_mean`; `None` for too few jobs.
    pub sojourn_mean_half_width: Option<f64>,
    /// The correlation of neighbouring batches where the batches behind the intervals depend on
    /// each other, the larger of sojourns' and slowdowns'; `None` where they do not.
    pub batches_resemblance: Option<f64>,
    /// Median sojourn time.
    pub sojourn_p50: f64,
    /// 90th percentile of sojourn times.
    pub sojourn_p90: f64,
    /// 99th percentile of sojourn times.
    pub sojourn_p99: f64,
    /// 99.9th percentile of sojourn times.
    pub sojourn_p999: f64,
    /// Longest sojourn time.
    pub sojourn_max: f64,
    /// Variance of sojourn times, in square seconds.
    pub sojourn_variance: f64,
    /// C² of sojourn times.
    pub sojourn_c2: f64,
    /// Mean sojourn time of the largest 1 % of the jobs.
    pub largest_percent_sojourn_mean: f64,
    /// Mean slowdown.
    pub slowdown_mean: f64,
    /// Half the width of the confidence interval of `slowdown_mean`.
    pub slowdown_mean_half_width: Option<f64>,
    /// Median slowdown.
    pub slowdown_p50: f64,
    /// 99th percentile of slowdowns.
    pub slowdown_p99: f64,
    /// Largest slowdown.
    pub slowdown_max: f64,
    /// Variance of slowdowns.
    pub slowdown_variance: f64,
    /// C² of slowdowns.
    pub slowdown_c2: f64,
    /// Jobs in the system on average over time.
    pub number_mean: f64,
    /// Starvation stretch; `None` if it was not asked for.
    pub stretch: Option<StretchSummary>,
    /// Recovery after overloads; `None` if there were none.
    pub recovery: Option<RecoverySummary>,
    /// Bins of ratio 1.2 in bytes.
    pub by_size: Vec<SizeGroup>,
    /// 200 buckets of half a percent of the jobs each.
    pub by_percentile: Vec<SizeGroup>,
    /// Groups by nines of size, a quarter of a nine each: from 2 to 3 are the jobs between the
    /// 99th percentile and the 99.9th.
    pub by_nines: Vec<SizeGroup>,
    /// Jobs in the system over time: seconds, and the mean around then (over the replications).
    pub number_over_time: Vec<(f64, f64)>,
    /// Mean sojourn time of jobs that arrived around then: seconds, seconds.
    pub sojourn_over_time: Vec<(f64, f64)>,
    /// Sojourn times and the share of jobs with a longer one.
    pub sojourn_complementary: Vec<(f64, f64)>,
}

/// The waits of a group of users.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UsersResult {
    /// How many jobs were theirs.
    pub requests: u64,
    /// Their mean sojourn time; not a number without a job.
    pub sojourn_mean: f64,
}

/// Starvation stretch of all jobs counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StretchSummary {
    /// Its mean.
    pub mean: f64,
    /// Its maximum.
    pub max: f64,
    /// The share of jobs above 1.
    pub share_above_one: f64,
    /// That of the largest job.
    pub largest_job: f64,
    /// How large that is, in bytes.
    pub largest_bytes: f64,
}
