//! Where jobs come from.

use std::path::{Path, PathBuf};

use shortline_load::input::name_of;
use shortline_load::trace::{Spread, Trace, TraceOptions, stream_trace};
use shortline_load::workload::{SiteName, Workload};
use shortline_sched::Policy;
use shortline_sim::arrivals::{Gaps, Job, LoadProfile};
use shortline_sim::dist::Distribution;
use shortline_sim::model::Form;
use shortline_sim::wire::WireModel;
use shortline_sim::{Phases, SimError};

use crate::ScenarioError;

/// The usual number of jobs counted in a replication of a steady load.
pub const JOBS_USUAL: u64 = 500_000;
/// The most jobs that a load over time may be expected to have.
pub(crate) const JOBS_EXPECTED_MAX: f64 = 1e10;

/// Where jobs come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The requests of a trace.
    Trace(TraceFile),
    /// Requests of a site, made up.
    Requests(Requests),
    /// Jobs made up at random.
    Random(Random),
    /// These jobs, in the order of their arrival.
    Jobs(Vec<Job>),
}

/// A file that [`shortline_load::trace`] reads.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// The file, `-` for standard input.
    pub path: PathBuf,
    /// How it is read.
    pub options: TraceOptions,
    /// What the link carries beside a body.
    pub wire: WireModel,
}

/// Requests of a site, made up at a load over time.
#[derive(Clone, Debug)]
pub struct Requests {
    /// The site and the load.
    pub workload: Workload,
    /// How long the load lasts.
    pub seconds: u32,
    /// What the link carries beside a body.
    pub wire: WireModel,
}

/// Jobs made up at random; their sizes are bytes on the link.
#[derive(Clone, Debug)]
pub struct Random {
    /// Their sizes.
    pub sizes: Distribution,
    /// How much work arrives.
    pub traffic: Traffic,
    /// The variability of the gaps between them.
    pub gaps: Gaps,
    /// Jobs present at the start.
    pub preloaded: u64,
}

/// How much work arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// A steady load.
    Steady {
        /// Above 0 and below 1.
        load: f64,
        /// Jobs to count in each replication, after the warm-up.
        jobs: u64,
    },
    /// A load that alternates.
    Alternating {
        /// Its phases, in seconds.
        phases: Phases,
        /// How long it lasts.
        seconds: u32,
    },
}

impl Source {
    /// The bytes that the link carries for a response of so many.
    pub fn bytes_on_the_link(&self, bytes: u64) -> u64 {
        match self {
            Self::Trace(trace) => trace.wire.wire_bytes(bytes),
            Self::Requests(requests) => requests.wire.wire_bytes(bytes),
            Self::Random(_) | Self::Jobs(_) => bytes,
        }
    }
}

impl Random {
    /// Checks that policies have a mean for such jobs, and returns their load over time.
    pub(crate) fn profile(&self, policies: &[Policy]) -> Result<LoadProfile, SimError> {
        match self.traffic {
            Traffic::Steady { load, .. } => {
                let profile = LoadProfile::steady(load)?;
                check_moments(&self.sizes, policies)?;
                Ok(profile)
            }
            Traffic::Alternating { phases, .. } => Ok(LoadProfile::alternating(phases)),
        }
    }
}

/// Options under which a trace is read piece by piece, so that it may be of any length. With a seed
/// the requests of a second are spread over it at random, else evenly, where a trace has whole
/// seconds.
pub fn trace_options(spread_seed: Option<u64>) -> TraceOptions {
    TraceOptions {
        requests_max: usize::MAX,
        spread: spread_seed.map_or(Spread::Even, |seed| Spread::Random { seed }),
        ..TraceOptions::default()
    }
}

/// The sizes of a trace's requests on the link, and what the trace left out, a line each.
///
/// # Errors
/// The trace cannot be read, or is empty.
pub fn sizes_of_trace(
    path: &Path,
    wire: &WireModel,
) -> Result<(Distribution, Vec<String>), ScenarioError> {
    let mut trace = stream_trace(path, &trace_options(None))?;
    let mut failed = None;
    let sizes = trace.by_ref().map_while(|request| match request {
        Ok(request) => Some(wire.wire_bytes(request.bytes) as f64),
        Err(error) => {
            failed = Some(error);
            None
        }
    });
    let found = Distribution::empirical(sizes);
    match failed {
        Some(error) => Err(error.into()),
        None => match found {
            Ok(sizes) => Ok((sizes, left_out(&trace))),
            Err(problem) => Err(ScenarioError::Sizes {
                name: name_of(path).display().to_string(),
                problem,
            }),
        },
    }
}

/// What a trace has left out so far, a line each.
pub(crate) fn left_out(trace: &Trace) -> Vec<String> {
    let name = trace.name().display();
    let lines = trace.passed_over().told().into_iter();
    lines.map(|line| format!("{name}: {line}")).collect()
}

/// The phases of a workload whose sizes are given separately.
///
/// # Errors
/// [`ScenarioError::NoPhases`] unless it alternates between a low and a high load, on no site.
pub fn phases(workload: &Workload) -> Result<Phases, ScenarioError> {
    let phases = alternating(workload).filter(|_| workload.site == SiteName::WorldCup);
    phases.ok_or_else(|| ScenarioError::NoPhases(workload.clone()))
}

/// The phases of a workload that alternates between low and high and has a mean below 1.
pub(crate) fn alternating(workload: &Workload) -> Option<Phases> {
    match workload.schedule.phases() {
        [low, high] => Phases::new(low.length_s, high.length_s, low.load, high.load).ok(),
        _ => None,
    }
}

/// Refuses an infinite mean. It cannot be simulated: every run would find another value.
fn check_moments(sizes: &Distribution, policies: &[Policy]) -> Result<(), SimError> {
    let infinite = |policy: &&Policy| Form::of(**policy).is_some_and(Form::needs_second_moment);
    match policies.iter().find(infinite) {
        Some(policy) if sizes.moment(2).is_infinite() => Err(SimError::InfiniteVariance {
            policy: policy.to_string(),
            sizes: sizes.to_string(),
        }),
        _ => Ok(()),
    }
}
