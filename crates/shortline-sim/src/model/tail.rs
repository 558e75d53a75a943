//! The tails of response times under `fifo` and `boost`.
//!
//! With light-tailed sizes the share of jobs that take longer than `t` falls as `C e^(-g t)` under either. `g` is the same,
//! and no policy has a larger one or, where sizes are known, a smaller `C` than gamma-Boost:
//!
//! ```text
//! g = lambda (E[e^(g S)] - 1),  g > 0
//! C of fifo  = (1 - rho) / (lambda E[S e^(g S)] - 1)  E[e^(g S)]
//! C of boost = (1 - rho) / (lambda E[S e^(g S)] - 1)  E[e^(g (S - b))]  e^(lambda E[(e^(g S) - 1) b])
//! b          = 1/g ln(1 / (1 - e^(-g S)))
//! ```
//!
//! Since `e^(-g b) = 1 - e^(-g S)`, the second expectation is `E[e^(g S)] - 1 = g / lambda`. Source: Yu and Scully, Strongly
//! Tail-Optimal Scheduling in the Light-Tailed M/G/1, 2024 (arXiv 2404.08826), section 4; for `fifo` Cramér and Lundberg.
//!
//! The integrals run over the mesh of [`super::mesh`]. Sizes count as light-tailed if the integrand of `E[S e^(g S)]` has
//! vanished at its end.

use serde::Serialize;

use super::ModelError;
use super::mesh::{Mesh, WeightedSize};
use super::queue::Queue;

/// How the share of jobs falls that take longer than a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tail {
    /// `g`, per unit of the sizes.
    pub decay_rate: f64,
    /// `C` under `fifo`.
    pub fifo: f64,
    /// `C` under `boost`: the least of all policies.
    pub boost: f64,
}

/// The part of an integral that its last hundredth of the mesh may have.
const VANISHED: f64 = 1e-9;
/// Steps of the bisection, which halve the error.
const STEPS: usize = 100;

impl Tail {
    /// The same with times counted in a unit, such as the mean size.
    #[must_use]
    pub fn in_units_of(self, unit: f64) -> Self {
        Self {
            decay_rate: self.decay_rate * unit,
            ..self
        }
    }
}

impl Queue {
    /// The tails of response times.
    ///
    /// # Errors
    /// [`ModelError::HeavyTail`] if the sizes' tail is not light.
    pub fn tail(&self) -> Result<Tail, ModelError> {
        let mesh = Mesh::new(self.sizes());
        let heavy = || ModelError::HeavyTail {
            sizes: self.sizes().to_string(),
        };
        let decay_rate = self.decay_rate(&mesh).ok_or_else(heavy)?;
        let lambda = self.arrival_rate();
        let moment = |value: &dyn Fn(f64) -> f64| integral(&mesh.points, decay_rate, value);
        let first = moment(&|size| size);
        let (last, all) = (mesh.points.len() / 100, mesh.points.len());
        let end = integral(&mesh.points[all - last..], decay_rate, &|size| size);
        if self.sizes().atoms().is_none() && end > VANISHED * first {
            return Err(heavy());
        }
        let common = (1.0 - self.load()) / (lambda * first - 1.0);
        // (e^(g S) - 1) b over e^(g S).
        let boosted = moment(&|size| {
            // Above 0, so that its logarithm is a number.
            let missing = (-(-decay_rate * size).exp_m1()).max(f64::MIN_POSITIVE);
            -missing * missing.ln() / decay_rate
        });
        Ok(Tail {
            decay_rate,
            fifo: common * moment(&|_| 1.0),
            boost: common * decay_rate / lambda * (lambda * boosted).exp(),
        })
    }

    /// The decay rate. `None` if there is none above 0.
    fn decay_rate(&self, mesh: &Mesh) -> Option<f64> {
        let second = self.sizes().moment(2);
        if !second.is_finite() {
            return None;
        }
        let excess = |rate: f64| {
            let moment: f64 = mesh.points.iter().map(|point| grown(point, rate)).sum();
            self.arrival_rate() * (moment - 1.0) - rate
        };
        // Since e^x >= 1 + x + x²/2, the root is not above this.
        let mut high = 2.0 * (1.0 - self.load()) / (self.arrival_rate() * second);
        let mut low = 0.0;
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if excess(middle) < 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low > 0.0).then_some(low)
    }
}

/// E[value e^(g S)].
fn integral(points: &[WeightedSize], rate: f64, value: &dyn Fn(f64) -> f64) -> f64 {
    let terms = points
        .iter()
        .map(|point| value(point.size) * grown(point, rate));
    terms.sum()
}

/// A share of the jobs, times e^(g S). Neither factor alone need be a number.
fn grown(point: &WeightedSize, rate: f64) -> f64 {
    (point.weight.ln() + rate * point.size).exp()
}
