//! An M/G/1 queue: Poisson arrivals, one server of speed 1, a load below 1.

use super::analysis::Analysis;
use super::mesh::Mesh;
use super::residence::Residence;
use super::{Form, ModelError};
use crate::dist::Distribution;

/// Poisson arrivals of jobs to one server of speed 1, with a steady state.
#[derive(Clone, Debug)]
pub struct Queue {
    sizes: Distribution,
    load: f64,
    mean: f64,
}

impl Queue {
    /// The queue with jobs of such sizes that is busy for a share `load` of the time.
    ///
    /// # Errors
    /// [`ModelError`] unless 0 < load < 1 and the sizes have a finite mean.
    pub fn new(sizes: Distribution, load: f64) -> Result<Self, ModelError> {
        if !(load > 0.0 && load < 1.0) {
            return Err(ModelError::Load { load });
        }
        let mean = sizes.mean();
        if !mean.is_finite() {
            return Err(ModelError::NoMean {
                sizes: sizes.to_string(),
            });
        }
        Ok(Self { sizes, load, mean })
    }

    /// The means under a policy, in the unit of the sizes.
    ///
    /// # Errors
    /// [`ModelError::NoSecondMoment`] if they are infinite.
    pub fn solve(&self, policy: Form) -> Result<Analysis, ModelError> {
        self.check(policy)?;
        Ok(Analysis::new(self, policy, &Mesh::new(&self.sizes)))
    }

    /// E\[T(x)\] for each of these sizes, in the unit of the sizes: what a job of that size must expect
    /// among the others, whether or not there are any such jobs.
    ///
    /// # Errors
    /// As [`Queue::solve`]; [`ModelError::Size`] for one that is not finite and above 0.
    pub fn sojourns(&self, policy: Form, sizes: &[f64]) -> Result<Vec<f64>, ModelError> {
        self.check(policy)?;
        let mesh = Mesh::new(&self.sizes);
        let residence = Residence::new(&self.sizes, self.arrival_rate(), &mesh);
        let sojourn = |&size: &f64| match size > 0.0 && size.is_finite() {
            true => Ok(size + policy.delay(self, &residence, size)),
            false => Err(ModelError::Size { size }),
        };
        sizes.iter().map(sojourn).collect()
    }

    /// The sizes of the jobs.
    pub fn sizes(&self) -> &Distribution {
        &self.sizes
    }

    /// The share of the time that the server is busy.
    pub fn load(&self) -> f64 {
        self.load
    }

    /// The mean size.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Arrivals per unit of time.
    pub fn arrival_rate(&self) -> f64 {
        self.load / self.mean
    }

    fn check(&self, policy: Form) -> Result<(), ModelError> {
        if policy.needs_second_moment() && !self.sizes.moment(2).is_finite() {
            return Err(ModelError::NoSecondMoment {
                sizes: self.sizes.to_string(),
                policy,
            });
        }
        Ok(())
    }

    /// The load of the jobs smaller than `size`.
    pub(super) fn load_below(&self, size: f64) -> f64 {
        // Only where there are atoms do jobs of exactly that size weigh anything.
        let size = match self.sizes.atoms() {
            Some(_) => size.next_down(),
            None => size,
        };
        self.arrival_rate() * self.sizes.partial_moment(1, size)
    }

    /// lambda E[S²] / 2: the work that an arrival finds in service.
    pub(super) fn backlog(&self) -> f64 {
        0.5 * self.arrival_rate() * self.sizes.moment(2)
    }
}
