//! Weibull: P(S > x) = exp(-(x/scale)^shape); with shape 1 exponential.
//!
//! With y = (x/scale)^shape, the integral of t^k dF up to x is scale^k gamma(1 + k/shape, y),
//! the lower incomplete gamma function, which keeps its digits where x is small.

use statrs::function::gamma::{checked_gamma_lr, gamma};

use super::law::Law;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Weibull {
    shape: f64,
    mean: f64,
    scale: f64,
}

impl Weibull {
    pub(super) fn new(shape: f64, mean: f64) -> Self {
        Self {
            shape,
            mean,
            scale: mean / libm::tgamma(1.0 + 1.0 / shape),
        }
    }

    pub(super) fn shape(&self) -> f64 {
        self.shape
    }

    pub(super) fn mean(&self) -> f64 {
        self.mean
    }

    /// (size/scale)^shape.
    fn standard(&self, size: f64) -> f64 {
        libm::pow(size / self.scale, self.shape)
    }
}

impl Law for Weibull {
    fn moment(&self, power: i32) -> f64 {
        let argument = 1.0 + f64::from(power) / self.shape;
        if argument <= 0.0 {
            return f64::INFINITY;
        }
        self.scale.powi(power) * gamma(argument)
    }

    fn partial_moment(&self, power: i32, size: f64) -> f64 {
        if size <= 0.0 {
            return 0.0;
        }
        let argument = 1.0 + f64::from(power) / self.shape;
        // The share of the moment; it does not exist where the moment is infinite.
        let share = checked_gamma_lr(argument, self.standard(size));
        match share {
            Ok(share) => self.moment(power) * share,
            Err(_) if size == f64::INFINITY => self.moment(power),
            Err(_) => f64::INFINITY,
        }
    }

    fn share_above(&self, size: f64) -> f64 {
        if size <= 0.0 {
            1.0
        } else {
            libm::exp(-self.standard(size))
        }
    }

    fn size_exceeded_by(&self, share: f64) -> f64 {
        self.scale * libm::pow(-libm::log(share), 1.0 / self.shape)
    }

    fn range(&self) -> (f64, f64) {
        (0.0, f64::INFINITY)
    }
}
