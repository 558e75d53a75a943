//! Work in a queue as a Brownian motion: drift load - 1, variance lambda E\[S²\] per time.
//!
//! With the mean of the steady state, variance / (2 |drift|), it gives Pollaczek and Khinchin's
//! formula, but it needs no steady state. Formulas: Harrison, *Brownian Motion and Stochastic Flow
//! Systems*, 1985, chapter 1.

use std::f64::consts::PI;

use crate::normal::{density, share_above};

/// A drift nearer to 0 than this counts as this where formulas divide by it.
const DRIFT_MIN: f64 = 1e-6;

/// Work that arrives and is done at random.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Growth per time.
    pub drift: f64,
    /// Variance of the growth per time.
    pub variance: f64,
}

/// Whether a server finishes its work within some time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    /// The probability that it does not.
    pub unfinished: f64,
    /// Mean time until it does or the time is over.
    pub span: f64,
    /// If it does not finish: mean work left.
    pub work: f64,
}

impl Work {
    pub(super) fn new(load: f64, variance: f64) -> Self {
        let drift = load - 1.0;
        Self {
            drift: if drift.abs() < DRIFT_MIN {
                DRIFT_MIN.copysign(drift)
            } else {
                drift
            },
            variance,
        }
    }

    /// Mean work after so long, from `start`; the server idles whenever there is none.
    pub(super) fn mean_after(&self, start: f64, span: f64) -> f64 {
        let growth = self.drift * span;
        let deviation = (self.variance * span).sqrt();
        if deviation <= 1e-12 * (start + growth.abs()) {
            return (start + growth).max(0.0);
        }
        let steepness = 2.0 * self.drift / self.variance;
        let free = (start + growth) / deviation;
        let idle = deviation * density(free) - (start + growth) * below(-free)
            + (times_below(-steepness * start, (growth - start) / deviation) - below(-free))
                / steepness;
        (start + growth + idle).max(0.0)
    }

    /// The outcome of work of `start` within `span`.
    pub(super) fn passage(&self, start: f64, span: f64) -> Passage {
        let growth = self.drift * span;
        let deviation = (self.variance * span).sqrt();
        if start <= 0.0 || deviation <= 1e-12 * (start + growth.abs()) {
            return self.passage_without_chance(start, span);
        }
        let mirror = -2.0 * self.drift / self.variance * start;
        let (free, mirrored) = ((start + growth) / deviation, (growth - start) / deviation);
        let unfinished = below(free) - times_below(mirror, mirrored);
        let work = (start + growth) * below(free) + deviation * density(free)
            - (growth - start) * times_below(mirror, mirrored)
            - deviation * times_density(mirror, mirrored);
        if unfinished < 1e-9 {
            let span = (start / -self.drift).clamp(0.0, span);
            return Passage {
                unfinished: 0.0,
                span,
                work: 0.0,
            };
        }
        // Whichever end comes first, by then the work has grown by drift times the time.
        Passage {
            unfinished: unfinished.min(1.0),
            span: ((work - start) / self.drift).clamp(0.0, span),
            work: (work / unfinished).max(0.0),
        }
    }

    fn passage_without_chance(&self, start: f64, span: f64) -> Passage {
        let left = start.max(0.0) + self.drift * span;
        let finished = start <= 0.0 || left <= 0.0;
        Passage {
            unfinished: if finished { 0.0 } else { 1.0 },
            span: if finished {
                start.max(0.0) / -self.drift
            } else {
                span
            }
            .clamp(0.0, span),
            work: if finished { 0.0 } else { left },
        }
    }
}

/// The normal distribution function.
fn below(deviations: f64) -> f64 {
    share_above(-deviations)
}

/// exp(exponent) times the normal distribution function, where one is huge and the other tiny.
fn times_below(exponent: f64, deviations: f64) -> f64 {
    if deviations > -30.0 && exponent < 600.0 {
        return exponent.exp() * below(deviations);
    }
    times_density(exponent, deviations) / deviations.abs().max(1.0)
}

/// exp(exponent) times the normal density.
fn times_density(exponent: f64, deviations: f64) -> f64 {
    (exponent - 0.5 * deviations * deviations).exp() / (2.0 * PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_long_run_the_mean_is_that_of_the_steady_state() {
        let work = Work::new(0.8, 3.0);
        for start in [0.0, 1.0, 50.0] {
            let mean = work.mean_after(start, 1e5);
            assert!((mean - 3.0 / 0.4).abs() < 1e-6, "{mean}");
        }
    }

    #[test]
    fn without_chance_work_grows_and_shrinks_in_a_line() {
        assert_eq!(Work::new(1.5, 0.0).mean_after(1.0, 10.0), 6.0);
        assert!((Work::new(0.5, 0.0).passage(3.0, 10.0).span - 6.0).abs() < 1e-12);
        let left = Work::new(0.5, 0.0).passage(8.0, 10.0);
        assert!((left.unfinished - 1.0).abs() < 1e-12 && (left.work - 3.0).abs() < 1e-12);
    }

    /// Without drift: the mean of a reflected motion is its deviation times sqrt(2/pi).
    #[test]
    fn at_load_one_work_grows_with_the_root_of_time() {
        let mean = Work::new(1.0, 4.0).mean_after(0.0, 25.0);
        assert!((mean - 10.0 * (2.0 / PI).sqrt()).abs() < 1e-3, "{mean}");
    }

    /// A motion that drifts away returns with probability exp(-2 drift start / variance). One that
    /// drifts back returns after start / drift.
    #[test]
    fn passages_have_their_known_probability_and_mean() {
        let away = Work::new(1.25, 2.0).passage(3.0, 1e5);
        assert!(
            (away.unfinished - (1.0 - (-0.75f64).exp())).abs() < 1e-6,
            "{away:?}"
        );
        let back = Work::new(0.75, 2.0).passage(3.0, 1e5);
        assert!(
            (back.span - 12.0).abs() < 1e-6 && back.unfinished < 1e-9,
            "{back:?}"
        );
    }
}
