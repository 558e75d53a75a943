//! Bounded Pareto: density c x^(-alpha-1) from `low` to `high`,
//! c = alpha low^alpha / (1 - (low/high)^alpha). `high` may be infinite.
//!
//! The integral of t^(power-alpha-1) is written with expm1, so that it stays exact where
//! power and alpha are equal or nearly so.

use super::law::Law;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pareto {
    low: f64,
    high: f64,
    alpha: f64,
    /// (low/high)^alpha: what an unbounded Pareto would have above `high`.
    share_cut: f64,
}

impl Pareto {
    pub(super) fn new(low: f64, high: f64, alpha: f64) -> Self {
        Self {
            low,
            high,
            alpha,
            share_cut: libm::pow(low / high, alpha),
        }
    }

    /// (low, high, alpha).
    pub(super) fn parameters(&self) -> (f64, f64, f64) {
        (self.low, self.high, self.alpha)
    }
}

impl Law for Pareto {
    fn moment(&self, power: i32) -> f64 {
        if self.high.is_finite() {
            self.partial_moment(power, self.high)
        } else if f64::from(power) < self.alpha {
            libm::pow(self.low, f64::from(power)) * self.alpha / (self.alpha - f64::from(power))
        } else {
            f64::INFINITY
        }
    }

    fn partial_moment(&self, power: i32, size: f64) -> f64 {
        if size <= self.low {
            return 0.0;
        }
        if size == f64::INFINITY {
            return self.moment(power);
        }
        let log = libm::log(size.min(self.high) / self.low);
        let exponent = f64::from(power) - self.alpha;
        let integral = if exponent == 0.0 {
            log
        } else {
            libm::expm1(exponent * log) / exponent
        };
        libm::pow(self.low, f64::from(power)) * self.alpha / (1.0 - self.share_cut) * integral
    }

    fn share_above(&self, size: f64) -> f64 {
        if size <= self.low {
            1.0
        } else if size >= self.high {
            0.0
        } else {
            let above = if self.share_cut > 0.0 {
                // (low/size)^alpha - (low/high)^alpha, without cancellation near `high`.
                self.share_cut * libm::expm1(self.alpha * libm::log(self.high / size))
            } else {
                libm::pow(self.low / size, self.alpha)
            };
            above / (1.0 - self.share_cut)
        }
    }

    fn size_exceeded_by(&self, share: f64) -> f64 {
        let power = share + (1.0 - share) * self.share_cut;
        (self.low * libm::pow(power, -1.0 / self.alpha)).clamp(self.low, self.high)
    }

    fn range(&self) -> (f64, f64) {
        (self.low, self.high)
    }
}
