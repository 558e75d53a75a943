//! `calibrate`: the capacity at which most work is done, by trials under a load that the caller runs.
//!
//! Source: 002 3.1. Throughput is assumed to rise with the capacity up to one peak and to fall after it.
//! Incremental steps (each twice the last) go on until one does clearly less than the best so far, or two do
//! no better. Then the peak lies between the neighbours of the best. The larger side is divided in the middle
//! of the logarithms and the worse part given up, as in a binary search. This ends when the rest is narrow
//! enough.
//!
//! This module does no I/O. It gives the capacity to try. The caller runs the load at it until the result is
//! steady, and reports the work completed per second (or requests, if the mix stays the same). Rates that
//! differ by less than the given noise count as equal. At equal throughput the smaller capacity is better.

use serde::Serialize;

/// The most trials: more than a search from 1 ns to a year needs.
const TRIALS_MAX: u32 = 200;

/// A search, in progress or over.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The error of the capacity, as a factor: 1.1 is 10 %.
    precision: f64,
    /// The relative difference of rates that is noise.
    noise: f64,
    /// The trials so far, by capacity.
    trials: Vec<Trial>,
    next_ns: Option<f64>,
}

/// A capacity and the rate of work at it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// In nanoseconds of load.
    pub capacity_ns: u64,
    /// Work (or requests) completed per second.
    pub work_rate: f64,
}

/// A value with which a search cannot begin or go on.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum CalibrationError {
    /// The first capacity is 0.
    #[error("calibration: the first capacity is 0; must be above 0, such as 100ms")]
    FirstZero,
    /// The precision is not a factor above 1 and at most 2.
    #[error("calibration: precision {0}; must be a factor above 1 and at most 2, such as 1.1")]
    Precision(f64),
    /// The noise is not a share of at least 0 and below 0.5.
    #[error("calibration: noise {0}; must be at least 0 and below 0.5, such as 0.02")]
    Noise(f64),
    /// A reported rate is not a finite number of at least 0.
    #[error("calibration: {0} units of work per second; must be a finite number, 0 or more")]
    Rate(f64),
}

impl Calibration {
    /// A search that begins at `first_ns`, which should be small rather than large. It ends when the best
    /// capacity is known within a factor of `precision`. Rates that differ by less than the share `noise`
    /// count as the same.
    ///
    /// # Errors
    /// [`CalibrationError`] if `first_ns` is 0, or another value is out of range.
    pub fn new(first_ns: u64, precision: f64, noise: f64) -> Result<Self, CalibrationError> {
        if first_ns == 0 {
            return Err(CalibrationError::FirstZero);
        }
        if !(precision > 1.0 && precision <= 2.0) {
            return Err(CalibrationError::Precision(precision));
        }
        if !(0.0..0.5).contains(&noise) {
            return Err(CalibrationError::Noise(noise));
        }
        Ok(Self {
            precision,
            noise,
            trials: Vec::new(),
            next_ns: Some(first_ns as f64),
        })
    }

    /// The capacity to try next, in nanoseconds. `None` when the search is over.
    pub fn next_ns(&self) -> Option<u64> {
        self.next_ns.map(|next_ns| next_ns as u64)
    }

    /// Reports the rate of work at [`Self::next_ns`]. Does nothing once the search is over.
    ///
    /// # Errors
    /// [`CalibrationError::Rate`] unless the rate is finite and at least 0. The same capacity is then tried again.
    pub fn report(&mut self, work_rate: f64) -> Result<(), CalibrationError> {
        if !(work_rate.is_finite() && work_rate >= 0.0) {
            return Err(CalibrationError::Rate(work_rate));
        }
        let Some(capacity_ns) = self.next_ns() else {
            return Ok(());
        };
        let place = self
            .trials
            .partition_point(|trial| trial.capacity_ns < capacity_ns);
        let trial = Trial {
            capacity_ns,
            work_rate,
        };
        self.trials.insert(place, trial);
        self.next_ns = self.plan();
        Ok(())
    }

    /// The best trial so far; `None` before the first one.
    pub fn best(&self) -> Option<Trial> {
        self.trials.get(self.best_index()?).copied()
    }

    /// All trials, by rising capacity.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The smallest capacity whose rate is within the noise of the highest.
    fn best_index(&self) -> Option<usize> {
        let highest = self
            .trials
            .iter()
            .map(|trial| trial.work_rate)
            .reduce(f64::max)?;
        self.trials
            .iter()
            .position(|trial| trial.work_rate >= highest * (1.0 - self.noise))
    }

    /// The next capacity worth trying.
    fn plan(&self) -> Option<f64> {
        let best = self.best_index()?;
        let at = |index: usize| self.trials[index].capacity_ns as f64;
        let last = self.trials.len() - 1;
        if self.trials.len() as u32 >= TRIALS_MAX {
            return None;
        }
        // Two steps without a gain end the steps, because one may be chance.
        if best + 2 > last && self.trials[last].work_rate >= self.fallen_below(best) {
            let next_ns = at(last) * 2.0;
            return (next_ns < u64::MAX as f64 / 2.0).then_some(next_ns);
        }
        let below = if best == 0 { at(0) / 2.0 } else { at(best - 1) };
        let above = at((best + 1).min(last));
        let (lower, upper) = (at(best) / below, above / at(best));
        let next_ns = if lower >= upper {
            (at(best) * below).sqrt()
        } else {
            (at(best) * above).sqrt()
        };
        let narrow = lower.max(upper) <= self.precision;
        let tried = self
            .trials
            .iter()
            .any(|trial| trial.capacity_ns == next_ns as u64);
        (!narrow && !tried && next_ns >= 1.0).then_some(next_ns)
    }

    /// Below this rate the peak was clearly passed.
    fn fallen_below(&self, best: usize) -> f64 {
        self.trials[best].work_rate * (1.0 - 2.0 * self.noise.max(0.01))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    /// Runs a search on a curve. Returns its result and the number of trials.
    fn search(
        first_ns: u64,
        precision: f64,
        noise: f64,
        curve: impl Fn(f64) -> f64,
    ) -> (Trial, usize) {
        let mut calibration = Calibration::new(first_ns, precision, noise).unwrap();
        while let Some(capacity_ns) = calibration.next_ns() {
            calibration.report(curve(capacity_ns as f64)).unwrap();
        }
        (calibration.best().unwrap(), calibration.trials().len())
    }

    /// Rises in proportion to a peak and falls after it.
    fn knee(peak_ns: f64, fall: f64) -> impl Fn(f64) -> f64 {
        move |capacity_ns| {
            let load = capacity_ns / peak_ns;
            if load <= 1.0 {
                1000.0 * load
            } else {
                1000.0 / (1.0 + fall * (load - 1.0))
            }
        }
    }

    proptest! {
        #[test]
        fn finds_the_peak_from_anywhere(
            first_ms in 1..10_000u64, peak_ms in 1.0..100_000.0f64, fall in 0.05..2.0f64,
        ) {
            let curve = knee(peak_ms * 1e6, fall);
            let (best, trials) = search(first_ms * 1_000_000, 1.05, 0.0, &curve);
            prop_assert!(best.work_rate >= 0.95 * 1000.0, "{best:?} {trials}");
            prop_assert!(trials <= 50, "{trials}");
        }

        #[test]
        fn noise_that_is_stated_costs_little_more_than_the_noise(
            peak_ms in 10.0..10_000.0f64, fall in 0.1..2.0f64, seed in any::<u64>(),
        ) {
            let curve = knee(peak_ms * 1e6, fall);
            // Deterministic, at most 1 % either way.
            let noisy = |capacity_ns: f64| {
                let mixed = (capacity_ns as u64 ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
                curve(capacity_ns) * (0.99 + 0.02 * mixed as f64 / u32::MAX as f64)
            };
            let (best, _) = search(5_000_000, 1.1, 0.02, noisy);
            let done = curve(best.capacity_ns as f64);
            prop_assert!(done >= 0.88 * 1000.0, "{best:?} does {done}");
        }
    }

    #[test]
    fn where_more_never_hurts_it_ends_with_little() {
        let (best, trials) = search(1_000_000, 1.1, 0.02, |ns| 1000.0 * (ns / 50e6).min(1.0));
        assert!(best.work_rate >= 980.0);
        assert!(best.capacity_ns <= 60_000_000, "{best:?}");
        assert!(trials < 80, "{trials}");
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Calibration::new(0, 1.1, 0.0).is_err());
        assert!(Calibration::new(1, 1.0, 0.0).is_err());
        assert!(Calibration::new(1, f64::NAN, 0.0).is_err());
        assert!(Calibration::new(1, 1.1, 0.5).is_err());
        let mut calibration = Calibration::new(7, 1.1, 0.0).unwrap();
        assert!(calibration.report(f64::NAN).is_err());
        assert!(calibration.report(-1.0).is_err());
        assert_eq!(calibration.next_ns(), Some(7));
        assert_eq!(calibration.best(), None);
    }
}
