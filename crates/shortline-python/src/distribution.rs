//! Distributions of sizes.

use std::path::PathBuf;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use shortline_scenario::sizes_of_trace;
use shortline_sim::dist::{self, DistError};

use crate::columns::{column, numbers};
use crate::refused;
use crate::source::Wire;

/// A distribution of sizes above 0.
#[pyclass(frozen, module = "shortline._core")]
pub struct Distribution(pub dist::Distribution);

#[pymethods]
impl Distribution {
    /// From its text.
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        checked(text.parse())
    }

    #[staticmethod]
    fn exponential(mean: f64) -> PyResult<Self> {
        checked(dist::Distribution::exponential(mean))
    }

    #[staticmethod]
    fn bounded_pareto(low: f64, high: f64, alpha: f64) -> PyResult<Self> {
        checked(dist::Distribution::bounded_pareto(low, high, alpha))
    }

    #[staticmethod]
    fn deterministic(size: f64) -> PyResult<Self> {
        checked(dist::Distribution::deterministic(size))
    }

    #[staticmethod]
    fn weibull(shape: f64, mean: f64) -> PyResult<Self> {
        checked(dist::Distribution::weibull(shape, mean))
    }

    #[staticmethod]
    fn uniform(low: f64, high: f64) -> PyResult<Self> {
        checked(dist::Distribution::uniform(low, high))
    }

    #[staticmethod]
    fn lognormal_pareto(mu: f64, sigma: f64, cut: f64, high: f64, alpha: f64) -> PyResult<Self> {
        checked(dist::Distribution::lognormal_pareto(
            mu, sigma, cut, high, alpha,
        ))
    }

    #[staticmethod]
    fn empirical(py: Python<'_>, sizes: PyBuffer<f64>) -> PyResult<Self> {
        let sizes = numbers(py, &sizes)?;
        checked(py.detach(|| dist::Distribution::empirical(sizes)))
    }

    /// The sizes of a trace on the link, and what the trace left out.
    #[staticmethod]
    fn of_trace(py: Python<'_>, path: PathBuf, wire: Wire) -> PyResult<(Self, Vec<String>)> {
        let wire = wire.model()?;
        let (sizes, left_out) = py
            .detach(|| sizes_of_trace(&path, &wire))
            .map_err(refused)?;
        Ok((Self(sizes), left_out))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn moment(&self, power: i32) -> f64 {
        self.0.moment(power)
    }

    fn range(&self) -> (f64, f64) {
        self.0.range()
    }

    /// P(S > size) of each size.
    fn share_above<'py>(
        &self,
        py: Python<'py>,
        sizes: PyBuffer<f64>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let sizes = numbers(py, &sizes)?;
        column(py, sizes.into_iter().map(|size| self.0.share_above(size)))
    }

    /// The size that each share of the jobs exceeds.
    fn size_exceeded_by<'py>(
        &self,
        py: Python<'py>,
        shares: PyBuffer<f64>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let shares = numbers(py, &shares)?.into_iter();
        column(py, shares.map(|share| self.0.size_exceeded_by(share)))
    }

    /// So many sizes, the same for a seed on every machine.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        seed: u64,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        column(py, (0..count).map(|_| self.0.sample(&mut rng)))
    }
}

fn checked(made: Result<dist::Distribution, DistError>) -> PyResult<Distribution> {
    made.map(Distribution).map_err(refused)
}
