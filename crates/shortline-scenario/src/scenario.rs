//! A source's jobs in front of servers: checked, run, and judged.

use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use shortline_load::trace::{TraceError, stream_trace};
use shortline_load::workload::{SiteFiles, stream_arrivals};
use shortline_sched::units::Rate;
use shortline_sim::arrivals::{Generated, Job};
use shortline_sim::results::PolicyResult;
use shortline_sim::trust::{Doubt, Run, batches_doubt, doubts};
use shortline_sim::{Observer, SimError, Simulation};

use crate::ScenarioError;
use crate::source::{
    JOBS_EXPECTED_MAX, Random, Requests, Source, TraceFile, Traffic, alternating, left_out,
};

/// Jobs and the servers that they go to, ready to be simulated.
#[derive(Debug)]
pub struct Scenario {
    simulation: Simulation,
    arrivals: Arrivals,
    replications_usual: NonZeroU32,
}

/// What a run gives.
#[derive(Debug)]
pub struct Outcome<O> {
    /// One result a policy, in the order of the policies.
    pub results: Vec<PolicyResult>,
    /// The replications' observers, in the order of the replications.
    pub observers: Vec<O>,
    /// Why the intervals should not be trusted; empty if they can be.
    pub doubts: Vec<Doubt>,
    /// What a trace left out, a line each.
    pub left_out: Vec<String>,
}

#[derive(Debug)]
enum Arrivals {
    Trace(TraceFile),
    Jobs(Vec<Job>),
    Requests(Requests, SiteFiles),
    Random(Generated),
}

impl Scenario {
    /// The jobs of `source` under the policies, rate, servers and set-up work of `simulation`. Which jobs count
    /// and when overloads end is set here; the warm-up is the usual one of the source unless it is given.
    ///
    /// # Errors
    /// [`ScenarioError`] for what cannot be simulated. A trace is opened when it runs.
    pub fn new(
        source: Source,
        simulation: Simulation,
        warmup_jobs: Option<u64>,
    ) -> Result<Self, ScenarioError> {
        let all_count = |arrivals, simulation| Self {
            simulation,
            arrivals,
            replications_usual: NonZeroU32::MIN,
        };
        let mut scenario = match source {
            Source::Trace(trace) => all_count(Arrivals::Trace(trace), simulation),
            Source::Jobs(jobs) => all_count(Arrivals::Jobs(jobs), simulation),
            Source::Requests(requests) => Self::requests(requests, simulation)?,
            Source::Random(random) => Self::random(random, simulation)?,
        };
        if let Some(jobs) = warmup_jobs {
            scenario.simulation.warmup_jobs = jobs;
        }
        Ok(scenario)
    }

    fn requests(requests: Requests, simulation: Simulation) -> Result<Self, ScenarioError> {
        let Requests {
            workload,
            seconds,
            wire,
        } = &requests;
        let site = workload.site.site();
        let mean_bytes = site.mean_wire_bytes(|body_bytes| wire.wire_bytes(body_bytes));
        let full_load_jobs_per_s = simulation.rate_bps as f64 / 8.0 / mean_bytes;
        let jobs_per_s = workload.schedule.mean_load() * full_load_jobs_per_s;
        check_expected(jobs_per_s, *seconds, &simulation)?;
        Ok(Self {
            simulation: Simulation {
                overloads: alternating(workload),
                ..simulation
            },
            arrivals: Arrivals::Requests(requests, site),
            replications_usual: NonZeroU32::MIN,
        })
    }

    fn random(random: Random, simulation: Simulation) -> Result<Self, ScenarioError> {
        let profile = random.profile(&simulation.policies)?;
        let full_load_jobs_per_s = Generated::jobs_per_s(
            &random.sizes,
            simulation.rate_bps,
            simulation.servers.get(),
            simulation.setup.as_nanos() as u64,
        )?;
        let (jobs, overloads, end_s) = match random.traffic {
            Traffic::Steady { jobs, .. } => (Some(jobs), None, f64::INFINITY),
            Traffic::Alternating { phases, seconds } => {
                let jobs_per_s = profile.mean_load() * full_load_jobs_per_s;
                check_expected(jobs_per_s, seconds, &simulation)?;
                (None, Some(phases), f64::from(seconds))
            }
        };
        Ok(Self {
            simulation: Simulation {
                jobs,
                overloads,
                warmup_jobs: jobs.map_or(0, |jobs| jobs / 10) + random.preloaded,
                ..simulation
            },
            arrivals: Arrivals::Random(Generated {
                gaps: random.gaps,
                sizes: random.sizes,
                profile,
                full_load_jobs_per_s,
                preloaded: random.preloaded,
                end_s,
            }),
            replications_usual: const { NonZeroU32::new(4).expect("invariant: 4 is above 0") },
        })
    }

    /// Runs so many replications, the source's usual number if none is given. Of the results only the first
    /// `asked` are judged: the others are there to be compared with.
    ///
    /// # Errors
    /// [`SimError`] for jobs and settings that cannot be simulated.
    pub fn run<O: Observer>(
        &self,
        replications: Option<NonZeroU32>,
        asked: usize,
        observer: impl Fn(u32) -> O + Sync,
    ) -> Result<Outcome<O>, SimError> {
        let replications = replications.unwrap_or(self.replications_usual);
        let told = Mutex::new(Vec::new());
        let arrivals = |replication| self.arrivals.jobs(&self.simulation, replication, &told);
        let (results, observers) =
            self.simulation
                .run_observed(replications, arrivals, observer)?;
        let mut doubts = self.doubts(replications);
        // A run that is known to be too short for its load cannot do better.
        if !doubts
            .iter()
            .any(|doubt| matches!(doubt, Doubt::Load { .. }))
        {
            doubts.extend(batches_doubt(&results[..asked.min(results.len())]));
        }
        Ok(Outcome {
            results,
            observers,
            doubts,
            left_out: told.into_inner().unwrap_or_else(PoisonError::into_inner),
        })
    }

    /// Reasons not to trust the result, as far as the arrivals show.
    fn doubts(&self, replications: NonZeroU32) -> Vec<Doubt> {
        let Arrivals::Random(generated) = &self.arrivals else {
            return Vec::new();
        };
        let mean_load = generated.profile.mean_load();
        let jobs_expected = mean_load * generated.full_load_jobs_per_s * generated.end_s;
        let jobs = self.simulation.jobs;
        doubts(&Run {
            sizes: &generated.sizes,
            load: jobs.map(|_| mean_load),
            arrivals_c2: generated.gaps.c2(),
            jobs: jobs.map_or(jobs_expected, |jobs| jobs as f64),
            replications: replications.get(),
        })
    }
}

/// The jobs of a replication, one at a time.
type Jobs<'a> = Box<dyn Iterator<Item = Result<Job, SimError>> + 'a>;

impl Arrivals {
    fn jobs<'a>(
        &'a self,
        simulation: &Simulation,
        replication: u32,
        told: &'a Mutex<Vec<String>>,
    ) -> Result<Jobs<'a>, SimError> {
        let seed = simulation.seed;
        Ok(match self {
            Self::Random(generated) => Box::new(generated.jobs(seed, replication).map(Ok)),
            Self::Jobs(jobs) => Box::new(jobs.iter().copied().map(Ok)),
            Self::Trace(trace) => Box::new(trace.jobs(told)?),
            Self::Requests(requests, site) => {
                let wire = requests.wire;
                let made = stream_arrivals(
                    &requests.workload.schedule,
                    Rate::from_bps(simulation.rate_bps),
                    move |body_bytes| wire.wire_bytes(body_bytes),
                    Duration::from_secs(u64::from(requests.seconds)),
                    seed.wrapping_add(u64::from(replication)),
                    site,
                );
                Box::new(made.map(move |(at_ns, file)| {
                    Ok(Job {
                        at_ns,
                        bytes: wire.wire_bytes(file.bytes) as f64,
                    })
                }))
            }
        })
    }
}

impl TraceFile {
    /// Opens the trace. What it left out is told at its end.
    fn jobs<'a>(
        &self,
        told: &'a Mutex<Vec<String>>,
    ) -> Result<impl Iterator<Item = Result<Job, SimError>> + use<'a>, SimError> {
        let failed = |error: TraceError| SimError::Source(error.to_string());
        let mut trace = stream_trace(&self.path, &self.options).map_err(failed)?;
        let next = move || {
            let request = trace.next();
            if request.is_none() {
                *told.lock().unwrap_or_else(PoisonError::into_inner) = left_out(&trace);
            }
            request
        };
        let wire = self.wire;
        Ok(std::iter::from_fn(next).fuse().map(move |request| {
            let request = request.map_err(failed)?;
            Ok(Job {
                at_ns: request.at_ns,
                bytes: wire.wire_bytes(request.bytes) as f64,
            })
        }))
    }
}

fn check_expected(
    jobs_per_s: f64,
    seconds: u32,
    simulation: &Simulation,
) -> Result<(), ScenarioError> {
    match jobs_per_s * f64::from(seconds) > JOBS_EXPECTED_MAX {
        true => Err(ScenarioError::TooManyRequests {
            seconds,
            rate: Rate::from_bps(simulation.rate_bps),
        }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
