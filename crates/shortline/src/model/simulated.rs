//! The simulator's result for a queue for which the model has a formula.
//!
//! All policies of a queue get the same jobs, in [`REPLICATIONS`] replications. Each begins with an
//! empty system and counts after a warm-up of a tenth, as in `shortline sim`. Margins are half of a
//! 99 % interval ([`shortline_sim::results`]).

use std::num::NonZeroU32;

use serde::Serialize;
use shortline_plot::Points;
use shortline_sim::arrivals::{Gaps, Generated, Job, LoadProfile};
use shortline_sim::model::Form;
use shortline_sim::results::{PolicyResult, SizeGroup};
use shortline_sim::{SimError, Simulation};

use super::queues::{Setting, bytes_per_s};
use shortline_command::CommandError;

/// The most simulated jobs of a queue.
pub(super) const JOBS_MAX: u64 = 10_000_000_000;
const REPLICATIONS: NonZeroU32 = NonZeroU32::new(4).expect("invariant: 4 is above 0");
/// The mean service time if there is no rate to give it.
const MEAN_NS: f64 = 1e6;
/// One byte takes one nanosecond, so that sizes can be counted in either.
const RATE_BPS: u64 = 8_000_000_000;
/// Groups of fewer jobs than this get no dot in a drawing.
const JOBS_OF_DOT_MIN: f64 = 200.0;
/// Percentile buckets per dot.
const BUCKETS_OF_DOT: usize = 5;

/// Means over the simulated jobs. Times are in mean service times.
#[derive(Debug, Serialize)]
pub(super) struct Simulated {
    /// Jobs counted.
    pub jobs: u64,
    pub sojourn_mean: f64,
    /// Half the width of the 99 % interval.
    pub sojourn_margin: f64,
    pub slowdown_mean: f64,
    pub slowdown_margin: f64,
    /// The largest slowdown of any job.
    pub slowdown_worst: f64,
    /// Mean slowdown by percentile of size.
    #[serde(skip)]
    pub slowdown_by_percentile: Points,
    /// Mean slowdown by nines of size.
    #[serde(skip)]
    pub slowdown_by_nines: Points,
}

impl Setting {
    /// The simulator's results under each policy, for at least this many jobs.
    pub(super) fn simulate(
        &self,
        policies: &[Form],
        jobs: u64,
        seed: u64,
    ) -> Result<Vec<Simulated>, CommandError> {
        let mean_ns = self.mean_ns();
        let generated = self.arrivals(mean_ns)?;
        let jobs_each = jobs.div_ceil(u64::from(REPLICATIONS.get()));
        let simulation = Simulation {
            warmup_jobs: jobs_each / 10,
            jobs: Some(jobs_each),
            seed,
            ..Simulation::new(
                policies.iter().map(|form| form.policy()).collect(),
                RATE_BPS,
            )
        };
        let ns_of_size = mean_ns / self.dist.mean();
        let in_ns = |job: Job| Job {
            bytes: job.bytes * ns_of_size,
            ..job
        };
        let found = simulation.run(REPLICATIONS, |replication| {
            let jobs = generated.jobs(seed, replication);
            Ok(jobs.map(move |job| Ok::<Job, SimError>(in_ns(job))))
        });
        let found = found.map_err(CommandError::failure)?;
        Ok(found
            .iter()
            .map(|result| Simulated::of(result, mean_ns))
            .collect())
    }

    /// The time a mean job takes.
    fn mean_ns(&self) -> f64 {
        match self.alternating {
            None => MEAN_NS,
            Some((_, rate)) => 1e9 * self.dist.mean() / bytes_per_s(rate),
        }
    }

    fn arrivals(&self, mean_ns: f64) -> Result<Generated, CommandError> {
        let profile = match self.alternating {
            None => LoadProfile::steady(self.load).map_err(CommandError::usage)?,
            Some((phases, _)) => LoadProfile::alternating(phases),
        };
        Ok(Generated {
            gaps: Gaps::new(1.0).map_err(CommandError::usage)?,
            sizes: self.dist.clone(),
            profile,
            full_load_jobs_per_s: 1e9 / mean_ns,
            preloaded: 0,
            end_s: f64::INFINITY,
        })
    }
}

impl Simulated {
    fn of(result: &PolicyResult, mean_ns: f64) -> Self {
        let in_means = |seconds: f64| seconds * 1e9 / mean_ns;
        let margin = |half_width: Option<f64>| {
            half_width.expect("invariant: a thousand jobs make more than one batch")
        };
        Self {
            jobs: result.requests,
            sojourn_mean: in_means(result.sojourn_mean),
            sojourn_margin: in_means(margin(result.sojourn_mean_half_width)),
            slowdown_mean: result.slowdown_mean,
            slowdown_margin: margin(result.slowdown_mean_half_width),
            slowdown_worst: result.slowdown_max,
            slowdown_by_percentile: dots(&result.by_percentile, BUCKETS_OF_DOT),
            slowdown_by_nines: dots(&result.by_nines, 1),
        }
    }
}

/// The mean slowdown of each group of this many neighbours, drawn at the group's middle.
fn dots(groups: &[SizeGroup], together: usize) -> Points {
    let dot = |groups: &[SizeGroup]| {
        let jobs: f64 = groups.iter().map(|group| group.jobs).sum();
        let sum: f64 = groups
            .iter()
            .map(|group| group.jobs * group.slowdown_mean)
            .sum();
        let middle = f64::midpoint(groups[0].from, groups[groups.len() - 1].to);
        (jobs >= JOBS_OF_DOT_MIN).then_some((middle, sum / jobs))
    };
    groups.chunks(together).filter_map(dot).collect()
}
