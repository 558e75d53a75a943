//! Closed forms, as `shortline model` computes them, and the list of policies.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use pythonize::pythonize;
use shortline_sched::{Needs, Policy};
use shortline_sim::model::{Alternating, Form, Queue};

use crate::columns::{column, numbers};
use crate::distribution::Distribution;
use crate::options::RateGiven;
use crate::refused;
use crate::source::Schedule;

/// The means under a policy at each of these loads, a dict each, in the unit of the sizes.
#[pyfunction]
pub fn solve<'py>(
    py: Python<'py>,
    policy: &str,
    sizes: &Distribution,
    loads: PyBuffer<f64>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let form: Form = policy.parse().map_err(refused)?;
    let loads = numbers(py, &loads)?;
    let one = |load| {
        py.check_signals()?;
        let solved = py.detach(|| Queue::new(sizes.0.clone(), load)?.solve(form));
        Ok(pythonize(py, &solved.map_err(refused)?)?)
    };
    loads.into_iter().map(one).collect()
}

/// The mean time in the system of a job of each of these sizes.
#[pyfunction]
pub fn sojourns<'py>(
    py: Python<'py>,
    policy: &str,
    sizes: &Distribution,
    load: f64,
    of_sizes: PyBuffer<f64>,
) -> PyResult<Bound<'py, PyByteArray>> {
    let form: Form = policy.parse().map_err(refused)?;
    let of_sizes = numbers(py, &of_sizes)?;
    let found = py.detach(|| Queue::new(sizes.0.clone(), load)?.sojourns(form, &of_sizes));
    column(py, found.map_err(refused)?.into_iter())
}

/// The approximate means under a load that alternates. Times are in seconds, sizes in bytes on a link of that rate.
#[pyfunction]
pub fn alternating<'py>(
    py: Python<'py>,
    policy: &str,
    sizes: &Distribution,
    schedule: Schedule,
    rate: RateGiven,
) -> PyResult<Bound<'py, PyAny>> {
    let form: Form = policy.parse().map_err(refused)?;
    let bytes_per_s = rate.rate()?.bps() as f64 / 8.0;
    let phases = schedule.phases()?.stretched(bytes_per_s);
    // A server of speed 1 does a byte in a unit of time.
    let solved = py.detach(|| Alternating::new(sizes.0.clone(), phases)?.solve(form));
    let mut solved = solved.map_err(refused)?;
    solved.sojourn_mean /= bytes_per_s;
    for point in &mut solved.points {
        point.sojourn /= bytes_per_s;
    }
    for bucket in &mut solved.buckets {
        bucket.sojourn /= bytes_per_s;
    }
    Ok(pythonize(py, &solved)?)
}

/// How the tails of `fifo` and `boost` fall.
#[pyfunction]
pub fn tail<'py>(py: Python<'py>, sizes: &Distribution, load: f64) -> PyResult<Bound<'py, PyAny>> {
    let found = py.detach(|| Queue::new(sizes.0.clone(), load)?.tail());
    Ok(pythonize(py, &found.map_err(refused)?)?)
}

/// The name of a policy that is called by any of its names.
#[pyfunction]
pub fn policy_name(text: &str) -> PyResult<String> {
    let policy: Policy = text.parse().map_err(refused)?;
    Ok(policy.to_string())
}

/// The policies: their names, what they need, and whether `solve` knows a form.
#[pyfunction]
pub fn policies() -> Vec<(&'static str, &'static str, bool)> {
    let needs = |policy: Policy| match policy.needs() {
        Needs::Sizes => "sizes",
        Needs::Rate => "rate",
        Needs::Path => "path",
    };
    let told = |policy: Policy| (policy.name(), needs(policy), Form::of(policy).is_some());
    Policy::ALL.map(told).to_vec()
}
