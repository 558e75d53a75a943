//! The estimate of a quantity from the values seen: one typical value, and the distribution.
//!
//! An [`Estimate`] has two parts for two purposes:
//!
//! - the last 64 values, from which an [`Estimator`] takes one number. The gate counts a request as this
//!   number. By default a few outliers do not move it, and old values count little (`window`);
//! - the distribution of about the last thousand: count, mean, second moment, quantiles, `E[e^(g S)]`
//!   and the Gittins rank. Orders that need more than one number rank by it (`spread`).
//!
//! Both forget old values, and both need bounded memory.

mod spread;
mod window;

use serde::{Deserialize, Serialize};

pub use spread::Spread;
pub use window::{Estimator, EstimatorError};
pub(crate) use window::{SERVICE_NS_MAX, WINDOW};

use window::{OLD_MAX, OLD_NS, Window};

/// The most values that a distribution kept across a restart counts as.
const KEPT_MAX: f64 = 64.0;

/// The estimate of a quantity, such as the service time of a type of requests.
#[derive(Clone, Debug, Default)]
pub struct Estimate {
    recent: Window,
    spread: Spread,
    /// When the last value was added.
    added_ns: u64,
}

/// A distribution kept across a restart: values that each stand for those near it, with their counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptSpread(Vec<(f64, f64)>);

impl Estimate {
    /// Adds a value seen at `at_ns`. A value counts as at most an hour in nanoseconds, so sums fit 64 bits.
    pub fn add(&mut self, at_ns: u64, value: u64) {
        let value = value.min(SERVICE_NS_MAX);
        self.recent.add(at_ns, value);
        if at_ns.saturating_sub(self.added_ns) > OLD_NS {
            self.spread.fade_to(OLD_MAX as f64);
        }
        self.spread.add(value as f64);
        self.added_ns = at_ns;
    }

    /// The number of recent values, at most 64.
    pub fn count(&self) -> usize {
        self.recent.len()
    }

    /// One number for all, at least 1; `None` before the first value.
    pub fn typical(&self, estimator: Estimator) -> Option<u64> {
        self.recent.estimate_ns(estimator)
    }

    /// The distribution of the values.
    pub fn spread(&self) -> &Spread {
        &self.spread
    }

    /// Changes the unit of all values.
    pub(crate) fn rescale(&mut self, factor: f64) {
        self.recent.rescale(factor);
        self.spread.rescale(factor);
    }

    /// Replaces the distribution by a kept one, whose values are multiplied by `factor`. New values soon
    /// outweigh it.
    pub(crate) fn restore_spread(&mut self, kept: &KeptSpread, factor: f64) {
        self.spread = Spread::default();
        for &(value, count) in &kept.0 {
            self.spread.add_weighted(value * factor, count);
        }
        self.spread.fade_to(KEPT_MAX);
    }

    /// The distribution to keep, its values multiplied by `factor`; `None` without values.
    pub(crate) fn kept_spread(&self, factor: f64) -> Option<KeptSpread> {
        let kept: Vec<(f64, f64)> = self
            .spread
            .values()
            .map(|(value, count)| (value * factor, count))
            .collect();
        (!kept.is_empty()).then_some(KeptSpread(kept))
    }
}
