//! A log-normal body under `cut` and above it a Bounded Pareto tail with the share of the
//! jobs that the body leaves (paper 001, 4.1 and Table 1).
//!
//! The integral of t^k over the body is exp(k mu + k² sigma²/2) Phi((ln x - mu)/sigma - k
//! sigma), Phi the normal distribution function.

use super::law::Law;
use super::pareto::Pareto;
use crate::normal;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct LogNormalPareto {
    mu: f64,
    sigma: f64,
    tail: Pareto,
    tail_share: f64,
}

impl LogNormalPareto {
    pub(super) fn new(mu: f64, sigma: f64, cut: f64, high: f64, alpha: f64) -> Self {
        Self {
            mu,
            sigma,
            tail: Pareto::new(cut, high, alpha),
            tail_share: normal::share_above((libm::log(cut) - mu) / sigma),
        }
    }

    /// (mu, sigma).
    pub(super) fn body(&self) -> (f64, f64) {
        (self.mu, self.sigma)
    }

    /// (cut, high, alpha).
    pub(super) fn tail(&self) -> (f64, f64, f64) {
        self.tail.parameters()
    }

    pub(super) fn cut(&self) -> f64 {
        self.tail.range().0
    }

    pub(super) fn body_share(&self) -> f64 {
        1.0 - self.tail_share
    }
}

impl Law for LogNormalPareto {
    fn moment(&self, power: i32) -> f64 {
        self.partial_moment(power, f64::INFINITY)
    }

    fn partial_moment(&self, power: i32, size: f64) -> f64 {
        if size <= 0.0 {
            return 0.0;
        }
        let k = f64::from(power);
        let whole = libm::exp(k * self.mu + 0.5 * k * k * self.sigma * self.sigma);
        let deviations = (libm::log(size.min(self.cut())) - self.mu) / self.sigma;
        let body = whole * normal::share_above(k * self.sigma - deviations);
        body + self.tail_share * self.tail.partial_moment(power, size)
    }

    fn share_above(&self, size: f64) -> f64 {
        if size <= 0.0 {
            1.0
        } else if size < self.cut() {
            normal::share_above((libm::log(size) - self.mu) / self.sigma)
        } else {
            self.tail_share * self.tail.share_above(size)
        }
    }

    fn size_exceeded_by(&self, share: f64) -> f64 {
        if share < self.tail_share {
            self.tail.size_exceeded_by(share / self.tail_share)
        } else {
            libm::exp(self.mu + self.sigma * normal::exceeded_by(share))
        }
    }

    fn range(&self) -> (f64, f64) {
        (0.0, self.tail.range().1)
    }
}
