//! A simulation, as `shortline sim` runs it.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::pythonize;
use shortline_scenario::{self as scenario, Scenario, Traffic};

use crate::interrupt::interruptible;
use crate::kept::{Kept, Shared, columns};
use crate::options::Options;
use crate::refused;
use crate::source::Source;

/// What a run gives: a dict a policy, the columns of each job if they are wanted, why not to trust it, and what a
/// trace left out.
type Ran<'py> = (
    Vec<Bound<'py, PyAny>>,
    Option<Bound<'py, PyDict>>,
    Vec<String>,
    Vec<String>,
);

/// Simulates a source's jobs under each policy.
#[pyfunction]
pub fn simulate<'py>(
    py: Python<'py>,
    source: &Source,
    options: Options,
    keep_jobs: bool,
) -> PyResult<Ran<'py>> {
    let replications = options.replications()?;
    let simulation = options.simulation(&source.0, steady_load(&source.0))?;
    let policies = simulation.policies.len();
    let scenario = Scenario::new(source.0.clone(), simulation, options.warmup).map_err(refused)?;
    let shared = Shared::default();
    let outcome = interruptible(py, &shared.cancel, || {
        scenario.run(replications, policies, |replication| {
            Kept::new(&shared, replication, keep_jobs)
        })
    })?;
    if shared.is_full() {
        return Err(Shared::full());
    }
    let outcome = outcome.map_err(refused)?;
    let results = outcome.results.iter();
    let results: Result<_, _> = results.map(|result| pythonize(py, result)).collect();
    Ok((
        results?,
        columns(py, &outcome.observers, policies)?,
        outcome.doubts.iter().map(ToString::to_string).collect(),
        outcome.left_out,
    ))
}

fn steady_load(source: &scenario::Source) -> Option<f64> {
    match source {
        scenario::Source::Random(random) => match random.traffic {
            Traffic::Steady { load, .. } => Some(load),
            Traffic::Alternating { .. } => None,
        },
        _ => None,
    }
}
