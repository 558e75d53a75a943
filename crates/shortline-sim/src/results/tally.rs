//! Adds up the jobs of one policy.

use shortline_sched::Policy;

use super::batches::Batches;
use super::by_size::{BySize, SizeSums};
use super::quantiles::Quantiles;
use super::{
    ARRIVAL_INTERVALS_MAX, INTERVALS_MAX, PolicyResult, Recovery, StretchSummary, TimeLine,
    UsersResult,
};

/// A stretch above this is really above 1, not by rounding.
const ABOVE_ONE: f64 = 1.0 + 1e-9;
/// Points of the complementary distribution.
const COMPLEMENTARY_POINTS: usize = 200;

/// A job that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// Its place in the order of arrival, from 0 for the first that is counted.
    pub number: u64,
    /// Its user's group.
    pub group: usize,
    pub at_ns: u64,
    pub bytes: f64,
    /// How long it would have taken alone, in nanoseconds.
    pub alone_ns: f64,
    pub sojourn_ns: f64,
    pub failed: bool,
    /// Starvation stretch, if it is wanted.
    pub stretch: Option<f64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Tally {
    failed: u64,
    aborts: u64,
    sojourn_ns: Moments,
    /// Sojourn times by the users' groups.
    groups_ns: Vec<Moments>,
    slowdown: Moments,
    sojourns_ns: Quantiles,
    slowdowns: Quantiles,
    sojourn_batches: Batches,
    slowdown_batches: Batches,
    by_size: BySize,
    by_arrival: TimeLine,
    stretch: Option<Stretch>,
    number: TimeLine,
    recovery: Recovery,
}

/// Mean and variance relative to the first value, so that neither rounding nor a large mean spoils
/// them.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    sum: f64,
    first: f64,
    sum_off: f64,
    sum_off_squared: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    sum: f64,
    max: f64,
    above_one: u64,
    largest_bytes: f64,
    largest_job: f64,
}

impl Tally {
    /// A tally of jobs whose users are in so many groups.
    pub(crate) fn new(interval_ns: f64, groups: usize) -> Self {
        Self {
            failed: 0,
            aborts: 0,
            sojourn_ns: Moments::default(),
            groups_ns: vec![Moments::default(); groups],
            slowdown: Moments::default(),
            sojourns_ns: Quantiles::new(),
            slowdowns: Quantiles::new(),
            sojourn_batches: Batches::new(),
            slowdown_batches: Batches::new(),
            by_size: BySize::new(),
            by_arrival: TimeLine::new(interval_ns, ARRIVAL_INTERVALS_MAX),
            stretch: None,
            number: TimeLine::new(interval_ns, INTERVALS_MAX),
            recovery: Recovery::default(),
        }
    }

    pub(crate) fn add(&mut self, job: &Done) {
        let slowdown = job.sojourn_ns / job.alone_ns;
        self.failed += u64::from(job.failed);
        self.sojourn_ns.add(job.sojourn_ns);
        if let Some(group) = self.groups_ns.get_mut(job.group) {
            group.add(job.sojourn_ns);
        }
        self.slowdown.add(slowdown);
        self.sojourns_ns.add(job.sojourn_ns);
        self.slowdowns.add(slowdown);
        self.sojourn_batches.add(job.number, job.sojourn_ns);
        self.slowdown_batches.add(job.number, slowdown);
        self.by_arrival.add(job.at_ns as f64, job.sojourn_ns);
        if let Some(stretch) = job.stretch {
            self.stretch.get_or_insert_default().add(job.bytes, stretch);
        }
        self.by_size.add(&SizeSums {
            jobs: 1.0,
            size: job.bytes,
            sojourn_ns: job.sojourn_ns,
            slowdown,
            slowdown_max: slowdown,
            stretch: job.stretch.unwrap_or(0.0),
        });
    }

    /// Takes over the observations of the system over time.
    pub(crate) fn set_system(&mut self, aborts: u64, number: TimeLine, recovery: Recovery) {
        self.aborts = aborts;
        self.number = number;
        self.recovery = recovery;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.failed += other.failed;
        self.aborts += other.aborts;
        self.sojourn_ns.merge(&other.sojourn_ns);
        for (mine, theirs) in self.groups_ns.iter_mut().zip(&other.groups_ns) {
            mine.merge(theirs);
        }
        self.slowdown.merge(&other.slowdown);
        self.sojourns_ns.merge(&other.sojourns_ns);
        self.slowdowns.merge(&other.slowdowns);
        self.sojourn_batches.merge(&other.sojourn_batches);
        self.slowdown_batches.merge(&other.slowdown_batches);
        self.by_size.merge(&other.by_size);
        self.by_arrival.merge(&other.by_arrival);
        self.stretch = match (self.stretch, other.stretch) {
            (Some(mine), Some(theirs)) => Some(mine.merged(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        self.number.merge(&other.number);
        self.recovery.merge(&other.recovery);
    }

    /// The results; `None` if no job was counted.
    pub(crate) fn result(&self, policy: Policy, confidence: f64) -> Option<PolicyResult> {
        let requests = self.sojourn_ns.count;
        if requests == 0 {
            return None;
        }
        let seconds = |ns: f64| ns / 1e9;
        let [p50, p90, p99, p999] = self.sojourns_ns.at([0.5, 0.9, 0.99, 0.999]);
        let [slowdown_p50, slowdown_p99] = self.slowdowns.at([0.5, 0.99]);
        let by_percentile = self.by_size.percentiles(self.stretch.is_some());
        let largest = &by_percentile[by_percentile.len().saturating_sub(2)..];
        let largest_jobs: f64 = largest.iter().map(|bucket| bucket.jobs).sum();
        let largest_sum: f64 = largest.iter().map(|b| b.jobs * b.sojourn_mean).sum();
        let complementary = self.sojourns_ns.complementary(COMPLEMENTARY_POINTS);
        let over_time = self.by_arrival.means();
        Some(PolicyResult {
            policy,
            requests,
            failed: self.failed,
            aborts: self.aborts,
            sojourn_mean: seconds(self.sojourn_ns.mean()),
            by_users: self
                .groups_ns
                .iter()
                .map(|group| UsersResult {
                    requests: group.count,
                    sojourn_mean: seconds(group.mean()),
                })
                .collect(),
            sojourn_mean_half_width: self.sojourn_batches.half_width(confidence).map(seconds),
            batches_resemblance: [&self.sojourn_batches, &self.slowdown_batches]
                .into_iter()
                .filter_map(Batches::resemblance)
                .reduce(f64::max),
            sojourn_p50: seconds(p50),
            sojourn_p90: seconds(p90),
            sojourn_p99: seconds(p99),
            sojourn_p999: seconds(p999),
            sojourn_max: seconds(self.sojourns_ns.max()),
            sojourn_variance: self.sojourn_ns.variance() / 1e18,
            sojourn_c2: self.sojourn_ns.c2(),
            largest_percent_sojourn_mean: largest_sum / largest_jobs,
            slowdown_mean: self.slowdown.mean(),
            slowdown_mean_half_width: self.slowdown_batches.half_width(confidence),
            slowdown_p50,
            slowdown_p99,
            slowdown_max: self.slowdowns.max(),
            slowdown_variance: self.slowdown.variance(),
            slowdown_c2: self.slowdown.c2(),
            number_mean: self.number.mean(),
            stretch: self.stretch.map(|stretch| stretch.summary(requests)),
            recovery: self.recovery.summary(),
            by_size: self.by_size.bins(self.stretch.is_some()),
            by_percentile,
            by_nines: self.by_size.nines(self.stretch.is_some()),
            number_over_time: self.number.means(),
            sojourn_over_time: over_time.into_iter().map(|(s, ns)| (s, ns / 1e9)).collect(),
            sojourn_complementary: complementary
                .into_iter()
                .map(|(ns, share)| (ns / 1e9, share))
                .collect(),
        })
    }
}

impl Moments {
    fn add(&mut self, value: f64) {
        if self.count == 0 {
            self.first = value;
        }
        let off = value - self.first;
        self.count += 1;
        self.sum += value;
        self.sum_off += off;
        self.sum_off_squared += off * off;
    }

    fn merge(&mut self, other: &Self) {
        if self.count == 0 {
            *self = *other;
            return;
        }
        // Their sums, relative to our first value instead of theirs.
        let shift = other.first - self.first;
        let count = other.count as f64;
        self.sum_off_squared +=
            other.sum_off_squared + 2.0 * shift * other.sum_off + count * shift * shift;
        self.sum_off += other.sum_off + count * shift;
        self.sum += other.sum;
        self.count += other.count;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    fn variance(&self) -> f64 {
        let count = self.count as f64;
        ((self.sum_off_squared - self.sum_off * self.sum_off / count) / count).max(0.0)
    }

    fn c2(&self) -> f64 {
        self.variance() / self.mean().powi(2)
    }
}

impl Stretch {
    fn add(&mut self, bytes: f64, stretch: f64) {
        self.sum += stretch;
        self.max = self.max.max(stretch);
        self.above_one += u64::from(stretch > ABOVE_ONE);
        if bytes > self.largest_bytes {
            self.largest_bytes = bytes;
            self.largest_job = stretch;
        }
    }

    fn merged(self, other: Self) -> Self {
        let larger = if other.largest_bytes > self.largest_bytes {
            other
        } else {
            self
        };
        Self {
            sum: self.sum + other.sum,
            max: self.max.max(other.max),
            above_one: self.above_one + other.above_one,
            ..larger
        }
    }

    fn summary(&self, jobs: u64) -> StretchSummary {
        StretchSummary {
            mean: self.sum / jobs as f64,
            max: self.max,
            share_above_one: self.above_one as f64 / jobs as f64,
            largest_job: self.largest_job,
            largest_bytes: self.largest_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Job i of 1..=100 has i bytes and takes twice as long as alone.
    fn hundred() -> Tally {
        let mut tally = Tally::new(1e9, 2);
        for i in 1..=100u32 {
            tally.add(&Done {
                number: u64::from(i - 1),
                group: usize::from(i > 90),
                at_ns: 0,
                bytes: f64::from(i),
                alone_ns: f64::from(i),
                sojourn_ns: f64::from(2 * i),
                failed: false,
                stretch: Some(f64::from(i) / 50.0),
            });
        }
        tally
    }

    #[test]
    fn sums_up_a_hundred_requests() {
        let result = hundred().result(Policy::Srpt, 0.99).unwrap();
        let close = |seconds: f64, ns: f64| (seconds * 1e9 - ns).abs() < 1e-6;
        assert_eq!(result.requests, 100);
        assert!(close(result.sojourn_mean, 101.0));
        assert!(close(result.sojourn_p50, 100.0));
        assert!(close(result.sojourn_p99, 198.0));
        assert!(close(result.sojourn_max, 200.0));
        assert!(close(result.largest_percent_sojourn_mean, 200.0));
        assert_eq!(result.slowdown_mean, 2.0);
        assert_eq!(result.slowdown_variance, 0.0);
        // The variance of 1..=n is (n^2 - 1) / 12.
        assert!((result.sojourn_c2 - 9999.0 / 12.0 / 50.5f64.powi(2)).abs() < 1e-12);
        let stretch = result.stretch.unwrap();
        assert_eq!((stretch.largest_job, stretch.max), (2.0, 2.0));
        assert_eq!(stretch.share_above_one, 0.5);
    }

    #[test]
    fn two_runs_are_as_one_of_both() {
        let mut both = hundred();
        both.merge(&hundred());
        let (one, two) = (
            hundred().result(Policy::Srpt, 0.99).unwrap(),
            both.result(Policy::Srpt, 0.99).unwrap(),
        );
        assert_eq!(two.requests, 200);
        let by_users = |result: &PolicyResult| -> Vec<_> {
            let both = |users: &UsersResult| (users.requests, users.sojourn_mean);
            result.by_users.iter().map(both).collect()
        };
        assert_eq!(by_users(&one), [(90, 91e-9), (10, 191e-9)]);
        assert_eq!(by_users(&two), [(180, 91e-9), (20, 191e-9)]);
        assert_eq!(two.sojourn_mean, one.sojourn_mean);
        assert!((two.sojourn_variance / one.sojourn_variance - 1.0).abs() < 1e-12);
        assert_eq!(two.sojourn_p99, one.sojourn_p99);
    }

    #[test]
    fn nothing_has_no_result() {
        assert!(Tally::new(1.0, 0).result(Policy::Srpt, 0.99).is_none());
    }
}
