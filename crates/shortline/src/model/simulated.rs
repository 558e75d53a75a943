//! What the simulator finds for a queue that the model has a formula for.
//!
//! Jobs come as the model supposes, from an empty system; the first tenth is not counted. The
//! margin is that of a 99 % interval by the means of 20 batches. All policies of a queue get
//! the same jobs.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use shortline_sched::Policy;
use shortline_sim::model::{Form, Phases};
use shortline_sim::{Arrival, fluid};

use super::queues::{Setting, bytes_per_s};
use crate::error::CommandError;

/// The most jobs of a queue that are simulated; each takes 40 bytes.
pub(super) const JOBS_MAX: i64 = 10_000_000;
/// A mean service time, if there is no rate to give it.
const MEAN_NS: f64 = 1e6;
/// A byte takes a nanosecond, so that arrivals can be counted in either.
const RATE_BPS: u64 = 8_000_000_000;
const BATCHES: usize = 20;
/// Student's t for 99 % and 19 degrees of freedom.
const T_99: f64 = 2.861;
/// Fewer jobs than this make no dot in a drawing.
const JOBS_OF_DOT_MIN: u64 = 200;

/// Means over the simulated jobs, times in mean service times.
#[derive(Debug, Serialize)]
pub(super) struct Simulated {
    /// Jobs counted.
    pub jobs: usize,
    pub sojourn_mean: f64,
    /// Half the width of the 99 % interval.
    pub sojourn_margin: f64,
    pub slowdown_mean: f64,
    pub slowdown_margin: f64,
    /// The slowdown of the job that fared worst.
    pub slowdown_worst: f64,
    /// Mean slowdown by percentile of size, in steps of 2.5.
    #[serde(skip)]
    pub slowdown_by_percentile: Vec<(f64, f64)>,
    /// Mean slowdown by nines of size, in steps of a quarter.
    #[serde(skip)]
    pub slowdown_by_nines: Vec<(f64, f64)>,
}

impl Simulated {
    /// The groups of which nothing lies above the 99th percentile.
    pub(super) fn slowdown_to_99(&self) -> Vec<(f64, f64)> {
        let groups = self.slowdown_by_percentile.iter().copied();
        groups
            .filter(|(percentile, _)| *percentile < 97.5)
            .collect()
    }
}

/// Jobs to simulate.
pub(super) struct Sample {
    arrivals: Vec<Arrival>,
    /// Share of the jobs that are larger, for each arrival.
    shares_above: Vec<f64>,
    mean_ns: f64,
}

impl Setting {
    /// Draws so many jobs.
    pub(super) fn sample(&self, jobs: usize, seed: u64) -> Sample {
        let (phases, mean_ns) = match self.alternating {
            None => (steady(self.load), MEAN_NS),
            Some((phases, rate)) => (phases, 1e9 * self.dist.mean() / bytes_per_s(rate)),
        };
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut sample = Sample {
            arrivals: Vec::with_capacity(jobs),
            shares_above: Vec::with_capacity(jobs),
            mean_ns,
        };
        let spans = [
            (phases.low_span * 1e9, phases.low_load),
            (phases.high_span * 1e9, phases.high_load),
        ];
        let gap = exponential();
        let mut border_ns = 0.0;
        for (span_ns, load) in spans.into_iter().cycle() {
            // A Poisson process has no memory: each phase starts afresh at its border.
            let mut at_ns = border_ns;
            border_ns += span_ns;
            loop {
                at_ns += gap.sample(&mut rng) * mean_ns / load;
                if at_ns >= border_ns {
                    break;
                }
                if sample.arrivals.len() == jobs {
                    return sample;
                }
                let size = self.dist.sample(&mut rng);
                sample.shares_above.push(self.dist.share_above(size));
                sample.arrivals.push(Arrival {
                    at_ns: at_ns as u64,
                    bytes: (size / self.dist.mean() * mean_ns).round().max(1.0) as u64,
                });
            }
        }
        sample
    }
}

/// The same load for ever.
fn steady(load: f64) -> Phases {
    Phases {
        low_span: f64::INFINITY,
        high_span: f64::INFINITY,
        low_load: load,
        high_load: load,
    }
}

fn exponential() -> shortline_sim::dist::Distribution {
    shortline_sim::dist::Distribution::exponential(1.0).expect("invariant: 1 is above 0")
}

impl Sample {
    pub(super) fn simulate(&self, policy: Form) -> Result<Simulated, CommandError> {
        let policy: Policy = policy.name().parse().map_err(CommandError::failure)?;
        let sojourns_ns = fluid(&self.arrivals, RATE_BPS, policy).map_err(CommandError::failure)?;
        let sojourns: Vec<f64> = sojourns_ns
            .iter()
            .map(|&ns| ns as f64 / self.mean_ns)
            .collect();
        let pairs = sojourns_ns.iter().zip(&self.arrivals);
        let slowdowns: Vec<f64> = pairs
            .map(|(&sojourn_ns, arrival)| sojourn_ns as f64 / arrival.bytes as f64)
            .collect();
        let warm_up = sojourns.len() / 10;
        let (sojourn_mean, sojourn_margin) = mean_and_margin(&sojourns[warm_up..]);
        let (slowdown_mean, slowdown_margin) = mean_and_margin(&slowdowns[warm_up..]);
        let by = |group: fn(f64) -> i64, at: fn(i64) -> f64| {
            self.slowdown_by(&slowdowns, warm_up, group, at)
        };
        Ok(Simulated {
            jobs: sojourns.len() - warm_up,
            sojourn_mean,
            sojourn_margin,
            slowdown_mean,
            slowdown_margin,
            slowdown_worst: slowdowns[warm_up..].iter().copied().fold(1.0, f64::max),
            slowdown_by_percentile: by(
                |above| ((1.0 - above) * 40.0) as i64,
                |group| (group as f64 + 0.5) * 2.5,
            ),
            slowdown_by_nines: by(
                |above| (-above.log10() * 4.0) as i64,
                |group| (group as f64 + 0.5) / 4.0,
            ),
        })
    }

    /// (where, mean slowdown) of the jobs that share a group.
    fn slowdown_by(
        &self,
        slowdowns: &[f64],
        warm_up: usize,
        group: fn(f64) -> i64,
        at: fn(i64) -> f64,
    ) -> Vec<(f64, f64)> {
        let mut sums: BTreeMap<i64, (f64, u64)> = BTreeMap::new();
        let jobs = self.shares_above.iter().zip(slowdowns).skip(warm_up);
        // The largest size of a list has nothing above it.
        for (&above, slowdown) in jobs.filter(|(above, _)| **above > 0.0) {
            let (sum, count) = sums.entry(group(above)).or_default();
            *sum += slowdown;
            *count += 1;
        }
        sums.into_iter()
            .filter(|(_, (_, count))| *count >= JOBS_OF_DOT_MIN)
            .map(|(group, (sum, count))| (at(group), sum / count as f64))
            .collect()
    }
}

fn mean_and_margin(values: &[f64]) -> (f64, f64) {
    let batches: Vec<f64> = values
        .chunks_exact((values.len() / BATCHES).max(1))
        .map(|batch| batch.iter().sum::<f64>() / batch.len() as f64)
        .collect();
    let count = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / count;
    let squares: f64 = batches.iter().map(|batch| (batch - mean).powi(2)).sum();
    (mean, T_99 * (squares / (count - 1.0) / count).sqrt())
}
