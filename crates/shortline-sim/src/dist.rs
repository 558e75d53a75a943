//! Distributions of job sizes: what the simulator draws from and the analysis integrates.
//!
//! Written as a name and its numbers, and printed the same way:
//!
//! | text | sizes |
//! |---|---|
//! | `exp:MEAN` | exponential |
//! | `bp:LOW,HIGH,ALPHA` | Bounded Pareto, density ~ x^(-ALPHA-1) from LOW to HIGH; HIGH may be `inf` |
//! | `det:SIZE` | every job of one size |
//! | `weibull:SHAPE,MEAN` | Weibull; heavier than exponential under shape 1 |
//! | `uniform:LOW,HIGH` | uniform |
//! | `lognormal-pareto:MU,SIGMA,CUT,HIGH,ALPHA` | log-normal body under CUT, Bounded Pareto tail from CUT to HIGH |
//! | `surge-001` | that with the parameters of paper 001, Table 1 |
//! | `world-cup` | that with the parameters of the log of papers 000 and 003, as 000, 2.1 describes it |
//!
//! The tail of the last three has the share that the body leaves. Paper 001 writes it with a scale
//! k = 631.44 instead, which is the same: (k/CUT) of the jobs are above CUT, and body and tail add
//! up to 1 within 0.0001.
//!
//! Sizes are in any unit the caller chooses. Sampling inverts the distribution function at one
//! random number each, so that two policies, or two distributions, can get common random numbers.
//! It uses `libm`, so a seed gives the same sizes everywhere.

mod discrete;
mod error;
mod law;
mod lognormal_pareto;
mod pareto;
mod text;
mod uniform;
mod weibull;

use std::collections::BTreeMap;

use rand::RngCore;

pub use self::error::DistError;

use self::discrete::Discrete;
use self::error::{positive, positive_or_infinite};
use self::law::Law;
use self::lognormal_pareto::LogNormalPareto;
use self::pareto::Pareto;
use self::uniform::Uniform;
use self::weibull::Weibull;
use crate::random::unit;

/// A distribution of sizes above 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution(Family);

#[derive(Clone, Debug, PartialEq)]
enum Family {
    Exponential(Weibull),
    Pareto(Pareto),
    Deterministic(Discrete),
    Weibull(Weibull),
    Uniform(Uniform),
    LogNormalPareto(LogNormalPareto),
    Empirical(Discrete),
}

impl Distribution {
    /// Exponential sizes.
    ///
    /// # Errors
    /// [`DistError`] unless the mean is finite and above 0.
    pub fn exponential(mean: f64) -> Result<Self, DistError> {
        let mean = positive("MEAN", mean)?;
        Ok(Self(Family::Exponential(Weibull::new(1.0, mean))))
    }

    /// Bounded Pareto sizes from `low` to `high`, which may be infinite.
    ///
    /// # Errors
    /// [`DistError`] unless 0 < low < high and alpha is finite and above 0.
    pub fn bounded_pareto(low: f64, high: f64, alpha: f64) -> Result<Self, DistError> {
        let low = positive("LOW", low)?;
        let high = positive_or_infinite("HIGH", high)?;
        let alpha = positive("ALPHA", alpha)?;
        DistError::unless_above("HIGH", high, "LOW", low)?;
        Ok(Self(Family::Pareto(Pareto::new(low, high, alpha))))
    }

    /// The same size for all jobs.
    ///
    /// # Errors
    /// [`DistError`] unless the size is finite and above 0.
    pub fn deterministic(size: f64) -> Result<Self, DistError> {
        let size = positive("SIZE", size)?;
        Ok(Self(Family::Deterministic(Discrete::new([(size, 1)]))))
    }

    /// Weibull sizes, P(S > x) = exp(-(x/scale)^shape) with the scale that gives the mean.
    ///
    /// # Errors
    /// [`DistError`] unless the shape is 0.1 to 100 and the mean finite and above 0.
    pub fn weibull(shape: f64, mean: f64) -> Result<Self, DistError> {
        let shape = DistError::unless_within("SHAPE", shape, 0.1, 100.0)?;
        let mean = positive("MEAN", mean)?;
        Ok(Self(Family::Weibull(Weibull::new(shape, mean))))
    }

    /// Uniform sizes from `low`, which may be 0, to `high`.
    ///
    /// # Errors
    /// [`DistError`] unless 0 <= low < high, both finite.
    pub fn uniform(low: f64, high: f64) -> Result<Self, DistError> {
        let low = DistError::unless_within("LOW", low, 0.0, f64::MAX)?;
        let high = positive("HIGH", high)?;
        DistError::unless_above("HIGH", high, "LOW", low)?;
        Ok(Self(Family::Uniform(Uniform::new(low, high))))
    }

    /// Log-normal sizes (mean `mu` and deviation `sigma` of the logarithm) under `cut`; the
    /// share that would lie above it is Bounded Pareto from `cut` to `high` instead.
    ///
    /// # Errors
    /// [`DistError`] unless sigma, cut and alpha are above 0, mu is finite, high is above cut,
    /// both body and tail hold some of the jobs, and the body's third moment can be computed.
    pub fn lognormal_pareto(
        mu: f64,
        sigma: f64,
        cut: f64,
        high: f64,
        alpha: f64,
    ) -> Result<Self, DistError> {
        let mu = DistError::unless_within("MU", mu, -700.0, 700.0)?;
        let sigma = positive("SIGMA", sigma)?;
        let cut = positive("CUT", cut)?;
        let high = positive_or_infinite("HIGH", high)?;
        let alpha = positive("ALPHA", alpha)?;
        DistError::unless_above("HIGH", high, "CUT", cut)?;
        let law = LogNormalPareto::new(mu, sigma, cut, high, alpha);
        DistError::unless_within("CUT", law.body_share(), 1e-9, 1.0 - 1e-9)
            .map_err(|_| DistError::nothing_on_one_side(cut))?;
        if !(1..=3).all(|power| law.partial_moment(power, cut).is_finite()) {
            return Err(DistError::Parameter {
                parameter: "SIGMA",
                value: sigma,
                wanted: "less, so that the third moment is still a number".into(),
            });
        }
        Ok(Self(Family::LogNormalPareto(law)))
    }

    /// The sizes of a list, each as likely as it is frequent. Memory is for the different sizes,
    /// however long the list is.
    ///
    /// # Errors
    /// [`DistError`] if the list is empty or a size in it is not finite and above 0.
    pub fn empirical(sizes: impl IntoIterator<Item = f64>) -> Result<Self, DistError> {
        let mut counts = BTreeMap::new();
        for (index, size) in sizes.into_iter().enumerate() {
            let size = positive("SIZE", size).map_err(|_| DistError::Entry { index, size })?;
            // The bits of floats above 0 are in the order of the floats.
            *counts.entry(size.to_bits()).or_default() += 1;
        }
        if counts.is_empty() {
            return Err(DistError::Empty);
        }
        let counts = counts
            .into_iter()
            .map(|(bits, count)| (f64::from_bits(bits), count));
        Ok(Self(Family::Empirical(Discrete::new(counts))))
    }

    /// Draws a size, always finite and above 0, with one number from the generator.
    pub fn sample<R: RngCore + ?Sized>(&self, rng: &mut R) -> f64 {
        self.law()
            .size_exceeded_by(unit(rng))
            .clamp(f64::MIN_POSITIVE, f64::MAX)
    }

    /// E\[S\]; infinite where it does not exist.
    pub fn mean(&self) -> f64 {
        self.moment(1)
    }

    /// E\[S^power\]; infinite where it does not exist.
    pub fn moment(&self, power: i32) -> f64 {
        self.law().moment(power)
    }

    /// P(S <= size).
    pub fn cdf(&self, size: f64) -> f64 {
        1.0 - self.share_above(size)
    }

    /// P(S > size), without loss of digits far out in the tail.
    pub fn share_above(&self, size: f64) -> f64 {
        self.law().share_above(size)
    }

    /// The integral of t^power dF(t) from 0 up to and including `size`.
    pub fn partial_moment(&self, power: i32, size: f64) -> f64 {
        self.law().partial_moment(power, size)
    }

    /// The smallest size with P(S <= size) >= share. A share of 0 gives the smallest size, one of 1
    /// the largest.
    pub fn quantile(&self, share: f64) -> f64 {
        self.size_exceeded_by(1.0 - share)
    }

    /// The size that a share of the jobs exceeds: `quantile(1 - share)` without loss of
    /// digits where the share is small.
    pub fn size_exceeded_by(&self, share: f64) -> f64 {
        let (low, high) = self.range();
        if share <= 0.0 {
            high
        } else if share >= 1.0 {
            low
        } else {
            self.law().size_exceeded_by(share)
        }
    }

    /// The smallest and the largest size. The first may be 0 and the second infinite, if sizes come
    /// arbitrarily close to it.
    pub fn range(&self) -> (f64, f64) {
        self.law().range()
    }

    /// Each size with its share of the jobs, smallest first, if there are finitely many sizes.
    pub fn atoms(&self) -> Option<impl ExactSizeIterator<Item = (f64, f64)> + '_> {
        match &self.0 {
            Family::Deterministic(discrete) | Family::Empirical(discrete) => Some(discrete.atoms()),
            _ => None,
        }
    }

    /// Sizes between which the density is smooth: the ends of the range, and points inside.
    pub fn breaks(&self) -> Vec<f64> {
        let (low, high) = self.range();
        match &self.0 {
            Family::LogNormalPareto(law) => vec![low, law.cut(), high],
            _ => vec![low, high],
        }
    }

    fn law(&self) -> &dyn Law {
        match &self.0 {
            Family::Exponential(law) | Family::Weibull(law) => law,
            Family::Pareto(law) => law,
            Family::Deterministic(law) | Family::Empirical(law) => law,
            Family::Uniform(law) => law,
            Family::LogNormalPareto(law) => law,
        }
    }
}

#[cfg(test)]
mod tests;
