//! Uniform sizes from `low` to `high`.

use super::law::Law;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Uniform {
    low: f64,
    high: f64,
}

impl Uniform {
    pub(super) fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }
}

impl Law for Uniform {
    fn moment(&self, power: i32) -> f64 {
        self.partial_moment(power, self.high)
    }

    fn partial_moment(&self, power: i32, size: f64) -> f64 {
        let size = size.clamp(self.low, self.high);
        let integral = if power == -1 {
            if size > self.low {
                libm::log(size / self.low)
            } else {
                0.0
            }
        } else {
            let power = power + 1;
            (size.powi(power) - self.low.powi(power)) / f64::from(power)
        };
        integral / (self.high - self.low)
    }

    fn share_above(&self, size: f64) -> f64 {
        (self.high - size.clamp(self.low, self.high)) / (self.high - self.low)
    }

    fn size_exceeded_by(&self, share: f64) -> f64 {
        self.high - share * (self.high - self.low)
    }

    fn range(&self) -> (f64, f64) {
        (self.low, self.high)
    }
}
