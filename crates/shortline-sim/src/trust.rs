//! Whether a run is long enough for its intervals to be believed.
//!
//! An interval by batch means holds as often as it claims if the batches hardly depend on each
//! other, and if the run has seen what decides the mean. Neither shows in the interval itself:
//!
//! - **Load.** A queue forgets its past within its relaxation time, for GI/G/1 in heavy traffic
//!   about `(c_a^2 + c_s^2) / (1 - load)^2` mean service times, with the squared coefficients of
//!   variation of the gaps and of the sizes (Whitt, Planning queueing simulations, Management
//!   Science 1989). A replication should last 400 of them. With exponential sizes, intervals of 99
//!   % over four replications held for `fifo` in 82 % of 200 runs of 25 relaxation times, in 92 %
//!   of 50 and of 100, in 96 % of 200 and in 99 % of 400 (`fair` alike, `srpt` from 94 % to 98 %).
//!   At a load of 0.99 the usual half a million jobs are 25.
//! - **Tail.** With heavy-tailed sizes a few very large jobs carry much of the second moment, on
//!   which times in the system depend (of the first moment, where the second is infinite). A run
//!   that has seen none of them knows nothing of them (15 % with a Bounded Pareto). At least ten of
//!   the jobs that carry the upper tenth of that moment should be expected.
//! - **Batches.** Where theory says nothing (traces, loads that alternate, users who give up) the
//!   observations do: batch means whose neighbours resemble each other. Their correlation falls
//!   roughly as runs get longer.

use std::fmt;

use shortline_sched::Policy;

use crate::dist::Distribution;
use crate::results::PolicyResult;

/// Relaxation times that a replication should last.
const RELAXATIONS_MIN: f64 = 400.0;
/// Jobs in the tail that should be expected.
const TAIL_JOBS_MIN: f64 = 10.0;
/// The share of the moment that does not belong to the tail.
const BODY_SHARE: f64 = 0.9;
/// The harmless correlation of neighbouring batches.
const RESEMBLANCE_HARMLESS: f64 = 0.1;
/// Steps of the search for the beginning of the tail.
const STEPS: usize = 200;

/// A run of random jobs.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Their sizes.
    pub sizes: &'a Distribution,
    /// The steady load, between 0 and 1; `None` where the load alternates or ends.
    pub load: Option<f64>,
    /// The squared coefficient of variation of the times between arrivals.
    pub arrivals_c2: f64,
    /// The jobs that one replication counts, or is expected to.
    pub jobs: f64,
    /// How many replications.
    pub replications: u32,
}

/// Why an interval cannot be believed, and what helps. One line as text.
#[derive(Clone, Debug, PartialEq)]
pub enum Doubt {
    /// The load is so high that a replication lasts only a few relaxation times.
    Load {
        /// The load.
        load: f64,
        /// How many relaxation times a replication lasts.
        relaxations: f64,
        /// Jobs a replication needs.
        jobs_needed: f64,
    },
    /// The largest jobs, which decide the mean, come too rarely.
    Tail {
        /// Where the tail begins, in the unit of the sizes.
        size: f64,
        /// How many jobs above that are expected in all replications.
        jobs: f64,
        /// How many times as long a run would be enough.
        times: f64,
    },
    /// The batches behind the intervals depend on each other.
    Batches {
        /// Under which policies.
        policies: Vec<Policy>,
        /// The largest correlation of neighbours.
        correlation: f64,
        /// About how many times as long a run would be enough.
        times: f64,
    },
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load {
                load,
                relaxations,
                jobs_needed,
            } => write!(
                f,
                "at load {load} a replication is {relaxations:.0} times as long as the queue remembers, so that \
                 means and intervals can be too small: want {jobs_needed:.0} jobs (--jobs), or a lower load"
            ),
            Self::Tail { size, jobs, times } => write!(
                f,
                "{jobs:.1} jobs above {size:.3e} are expected, which carry a tenth of what decides, so that means \
                 and intervals can be too small: want a run {times:.0} times as long, or smaller largest sizes"
            ),
            Self::Batches {
                policies,
                correlation,
                times,
            } => {
                let names: Vec<String> = policies.iter().map(Policy::to_string).collect();
                write!(
                    f,
                    "under {} neighbouring batches of jobs resemble each other (correlation {correlation:.2}), so \
                     that intervals are too small: want each run about {times:.0} times as long",
                    names.join(", ")
                )
            }
        }
    }
}

/// Reasons not to believe the intervals of a run, known before it is made; empty if it is long
/// enough.
pub fn doubts(run: &Run<'_>) -> Vec<Doubt> {
    load_doubt(run).into_iter().chain(tail_doubt(run)).collect()
}

/// Reasons in the results themselves not to believe their intervals.
pub fn batches_doubt(results: &[PolicyResult]) -> Option<Doubt> {
    let alike = || {
        results
            .iter()
            .filter_map(|result| Some((result.policy, result.batches_resemblance?)))
    };
    let correlation = alike()
        .map(|(_, correlation)| correlation)
        .reduce(f64::max)?;
    Some(Doubt::Batches {
        policies: alike().map(|(policy, _)| policy).collect(),
        correlation,
        times: (correlation / RESEMBLANCE_HARMLESS).ceil(),
    })
}

fn load_doubt(run: &Run<'_>) -> Option<Doubt> {
    let load = run.load?;
    let mean = run.sizes.mean();
    let sizes_c2 = run.sizes.moment(2) / (mean * mean) - 1.0;
    if !sizes_c2.is_finite() {
        // No run is long enough for its second moment; the warning about the tail says so.
        return None;
    }
    let relaxation_jobs = (run.arrivals_c2 + sizes_c2) / ((1.0 - load) * (1.0 - load));
    let relaxations = run.jobs / relaxation_jobs;
    (relaxations < RELAXATIONS_MIN).then_some(Doubt::Load {
        load,
        relaxations,
        jobs_needed: RELAXATIONS_MIN * relaxation_jobs,
    })
}

fn tail_doubt(run: &Run<'_>) -> Option<Doubt> {
    let power = if run.sizes.moment(2).is_finite() {
        2
    } else {
        1
    };
    let size = tail_begins(run.sizes, power)?;
    let jobs = run.sizes.share_above(size) * run.jobs * f64::from(run.replications);
    (jobs < TAIL_JOBS_MIN).then_some(Doubt::Tail {
        size,
        jobs,
        times: (TAIL_JOBS_MIN / jobs).ceil(),
    })
}

/// The size above which jobs carry the last tenth of a moment; `None` if there is only one size, or
/// the moment is infinite.
fn tail_begins(sizes: &Distribution, power: i32) -> Option<f64> {
    let body = BODY_SHARE * sizes.moment(power);
    let (low, high) = sizes.range();
    if !body.is_finite() || low >= high {
        return None;
    }
    let mut below = low.max(f64::MIN_POSITIVE);
    let mut above = if high.is_finite() {
        high
    } else {
        let mut above = sizes.mean().max(below);
        while sizes.partial_moment(power, above) < body {
            above *= 2.0;
        }
        above
    };
    for _ in 0..STEPS {
        let middle = 0.5 * (below + above);
        if sizes.partial_moment(power, middle) < body {
            below = middle;
        } else {
            above = middle;
        }
    }
    // Where many jobs have one size, the tail is all that are at least as large.
    Some(below)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn doubts_of(sizes: &str, load: Option<f64>, jobs: f64) -> Vec<Doubt> {
        doubts(&Run {
            sizes: &sizes.parse().unwrap(),
            load,
            arrivals_c2: 1.0,
            jobs,
            replications: 4,
        })
    }

    #[test]
    fn intervals_at_usual_loads_are_believed() {
        for load in [0.5, 0.7, 0.9, 0.95] {
            for sizes in ["exp:3000", "det:3000", "uniform:1,3000"] {
                assert_eq!(doubts_of(sizes, Some(load), 5e5), [], "{sizes} {load}");
            }
        }
    }

    #[test]
    fn at_a_load_of_99_per_cent_the_usual_run_is_too_short() {
        let doubts = doubts_of("exp:3000", Some(0.99), 5e5);
        let [Doubt::Load { relaxations, .. }] = doubts[..] else {
            panic!("{doubts:?}");
        };
        assert!((relaxations - 25.0).abs() < 1e-6, "{relaxations}");
        let told = doubts[0].to_string();
        assert!(told.contains("want 8000000 jobs (--jobs)"), "{told}");
        assert_eq!(told.lines().count(), 1);
        assert_eq!(doubts_of("exp:3000", Some(0.99), 8.1e6), []);
    }

    #[test]
    fn a_tail_that_a_run_has_hardly_seen_is_told() {
        // A hundred thousand jobs see two of the largest, of a hundred million they see two thousand.
        let short = doubts_of("bp:1,1e9,1.1", None, 1e5);
        assert!(matches!(short[..], [Doubt::Tail { .. }]), "{short:?}");
        assert_eq!(doubts_of("bp:1,1e9,1.1", None, 1e12), []);
        assert_eq!(doubts_of("bp:900,2e6,1.1", None, 1e6), []);
        // If the second moment is infinite the first decides.
        let endless = doubts_of("bp:1,inf,1.1", None, 1e6);
        assert!(matches!(endless[..], [Doubt::Tail { .. }]), "{endless:?}");
    }
}
