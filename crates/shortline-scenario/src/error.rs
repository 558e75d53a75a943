//! Why a scenario cannot be simulated, in one line each.

use shortline_load::trace::TraceError;
use shortline_load::workload::Workload;
use shortline_sched::units::Rate;
use shortline_sim::SimError;
use shortline_sim::dist::DistError;

use crate::source::JOBS_EXPECTED_MAX;

/// A scenario that cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The servers, sizes or loads do not make a simulation.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace's sizes are no distribution.
    #[error("{name}: {problem}")]
    Sizes {
        /// The trace's name.
        name: String,
        /// What is wrong with its sizes.
        problem: DistError,
    },
    /// It would take too long.
    #[error(
        "seconds {seconds}: at {rate} that is more than {JOBS_EXPECTED_MAX:e} requests, the limit"
    )]
    TooManyRequests {
        /// How long the load lasts.
        seconds: u32,
        /// The rate of each server.
        rate: Rate,
    },
    /// A load over time beside sizes of its own must be two phases without a site.
    #[error(
        "workload {0}: beside sizes of its own want no site and two phases, the low load first, the mean load below 1"
    )]
    NoPhases(Workload),
}
