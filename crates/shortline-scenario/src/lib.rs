//! What arrives in a simulation, from wherever it comes: a trace's requests, a workload's, random
//! jobs, or a list of them.
//!
//! ```text
//! Source + Simulation -> Scenario -> results, why not to trust them, what the trace left out
//! ```
//!
//! [`shortline_load`] reads and makes requests, [`shortline_sim`] knows jobs. This room joins them:
//! a request becomes a job of as many bytes as the link carries for it ([`shortline_sim::wire`]),
//! and each source has its usual warm-up and number of replications. `shortline sim` and the Python
//! package run the same scenarios, so they give the same numbers.
#![forbid(unsafe_code)]

mod error;
mod scenario;
mod source;

pub use error::ScenarioError;
pub use scenario::{Outcome, Scenario};
pub use source::{
    JOBS_USUAL, Random, Requests, Source, TraceFile, Traffic, phases, sizes_of_trace, trace_options,
};
