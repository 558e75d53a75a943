//! What is known of a quantity from those seen so far: where it lies, and how it is spread.
//!
//! An [`Estimate`] has two parts, for they have different jobs:
//!
//! - the last 64 values, from which an [`Estimator`] takes one number. It is what the gate counts a
//!   request as; neither a few outliers nor old times move it (`window`);
//! - the distribution of about the last thousand: count, mean, second moment, quantiles, `E[e^(g S)]`
//!   and the Gittins rank. Orders that look at more than one number rank by it (`spread`).
//!
//! Both forget. Memory is bounded, whatever comes.

mod spread;
mod window;

use serde::{Deserialize, Serialize};

pub use spread::Spread;
pub use window::{Estimator, EstimatorError};
pub(crate) use window::{SERVICE_NS_MAX, WINDOW};

use window::{OLD_MAX, OLD_NS, Window};

/// As how many values a distribution counts that was kept over a restart.
const KEPT_MAX: f64 = 64.0;

/// What is known of a quantity, such as the service time of a type of requests.
#[derive(Clone, Debug, Default)]
pub struct Estimate {
    recent: Window,
    spread: Spread,
    /// When the last value came.
    added_ns: u64,
}

/// A distribution to be kept over a restart: each value that stands for those near it, and how many
/// these were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptSpread(Vec<(f64, f64)>);

impl Estimate {
    /// Counts one value more, of that time. No value counts as more than an hour in nanoseconds, so that
    /// sums stay in 64 bits.
    pub fn add(&mut self, at_ns: u64, value: u64) {
        let value = value.min(SERVICE_NS_MAX);
        self.recent.add(at_ns, value);
        if at_ns.saturating_sub(self.added_ns) > OLD_NS {
            self.spread.fade_to(OLD_MAX as f64);
        }
        self.spread.add(value as f64);
        self.added_ns = at_ns;
    }

    /// Of how many of the last values something is known.
    pub fn count(&self) -> usize {
        self.recent.len()
    }

    /// One number for all, at least 1; `None` before the first value.
    pub fn typical(&self, estimator: Estimator) -> Option<u64> {
        self.recent.estimate_ns(estimator)
    }

    /// How the values are spread.
    pub fn spread(&self) -> &Spread {
        &self.spread
    }

    /// Changes the unit of all values.
    pub(crate) fn rescale(&mut self, factor: f64) {
        self.recent.rescale(factor);
        self.spread.rescale(factor);
    }

    /// Takes a distribution that was kept in another unit for this one. New values soon outweigh it.
    pub(crate) fn restore_spread(&mut self, kept: &KeptSpread, factor: f64) {
        self.spread = Spread::default();
        for &(value, count) in &kept.0 {
            self.spread.add_weighted(value * factor, count);
        }
        self.spread.fade_to(KEPT_MAX);
    }

    /// The distribution in another unit, to be kept; `None` without any.
    pub(crate) fn kept_spread(&self, factor: f64) -> Option<KeptSpread> {
        let kept: Vec<(f64, f64)> = self
            .spread
            .values()
            .map(|(value, count)| (value * factor, count))
            .collect();
        (!kept.is_empty()).then_some(KeptSpread(kept))
    }
}
