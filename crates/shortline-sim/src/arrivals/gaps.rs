//! Gaps between arrivals with mean 1 and a given C² (squared coefficient of variation):
//!
//! - C² = 1: exponential, a Poisson process;
//! - C² < 1: a constant 1 - sqrt(C²) and an exponential of mean sqrt(C²);
//! - C² > 1: hyperexponential with balanced means (Whitt, "Approximating a point process by a
//!   renewal process", 1982): with probability p = (1 + sqrt((C²-1)/(C²+1))) / 2 exponential of
//!   rate 2p, else of rate 2(1-p).

use rand::RngCore;

use crate::SimError;
use crate::random::unit;

/// The variability of gaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaps {
    /// A gap's constant part.
    constant: f64,
    /// The probability of the first exponential, and the mean of each.
    first_share: f64,
    first_mean: f64,
    second_mean: f64,
}

impl Gaps {
    /// The squared coefficient of variation.
    pub fn c2(&self) -> f64 {
        let second_share = 1.0 - self.first_share;
        let mean = self.first_share * self.first_mean + second_share * self.second_mean;
        let square =
            self.first_share * self.first_mean.powi(2) + second_share * self.second_mean.powi(2);
        // The gaps' mean is 1.
        2.0 * square - mean * mean
    }

    /// Gaps of this C²; 1 for a Poisson process.
    ///
    /// # Errors
    /// [`SimError::Range`] unless it is 0 to 10,000.
    pub fn new(c2: f64) -> Result<Self, SimError> {
        if !(0.0..=10_000.0).contains(&c2) {
            return Err(SimError::Range {
                what: "C² of the gaps",
                value: c2,
                want: "0 to 10000 (1 for Poisson arrivals)",
            });
        }
        if c2 <= 1.0 {
            let mean = c2.sqrt();
            return Ok(Self {
                constant: 1.0 - mean,
                first_share: 1.0,
                first_mean: mean,
                second_mean: mean,
            });
        }
        let p = (1.0 + ((c2 - 1.0) / (c2 + 1.0)).sqrt()) / 2.0;
        Ok(Self {
            constant: 0.0,
            first_share: p,
            first_mean: 0.5 / p,
            second_mean: 0.5 / (1.0 - p),
        })
    }

    pub(super) fn sample(self, rng: &mut impl RngCore) -> f64 {
        let mean = if self.first_share < 1.0 && unit(rng) > self.first_share {
            self.second_mean
        } else {
            self.first_mean
        };
        self.constant - mean * libm::log(unit(rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_variability_is_refused() {
        for c2 in [-0.1, f64::NAN, f64::INFINITY, 1e5] {
            assert!(Gaps::new(c2).is_err(), "{c2}");
        }
    }
}
