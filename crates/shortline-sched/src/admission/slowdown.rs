//! The slowdown: the factor by which all requests take longer than what they add to the load.
//!
//! For `auto` ([`super::capacity`]) estimates are divided by the slowdown common to all types. Otherwise
//! estimates would grow with the capacity, and the capacity with them (002, Fig 6). Each request from which an
//! estimate learns updates both:
//!
//! ```text
//! slowdown += 1/20 of (service / what it should add to the load - slowdown)
//! sample   = service / slowdown                     (the estimate is that of these samples)
//! ```
//!
//! A ratio of two unknowns has no scale of its own, so it would drift. So each type remembers what it added
//! when it first became well known. From time to time all types are rescaled. Then their geometric mean,
//! weighted by the types' shares of recent requests, equals that of the remembered values. The result does
//! not depend on the path taken. A change of the mix does not affect it, as far as types have become slower
//! or faster together.
//!
//! Samples have a unit of their own, so a change of scale changes one number, `gauge`. If estimates are not
//! divided (as in 002), the slowdown and the gauge are always 1.

use super::kind::Kind;

/// The weight of one request in the slowdown.
const WEIGHT: f64 = 1.0 / 20.0;

/// One request counts as at most this many times slower than expected.
const SLOWER_MAX: f64 = 5.0;

/// Scales are compared after this many requests, plus one for every second type.
const REQUESTS_BETWEEN: usize = 50;

/// The shares of types are those in about this many of the last requests.
const SHARE_SPAN: f64 = 1000.0;

/// How far from 1 the gauge may be, as a factor, before the unit of samples is changed.
const GAUGE_MAX: f64 = 16.0;

/// The slowdown, if estimates are divided by it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slowdown {
    divides: bool,
    factor: f64,
    /// Load per unit of a sample.
    gauge: f64,
    /// Requests since scales were compared.
    requests: usize,
}

impl Slowdown {
    pub(super) fn new(divides: bool) -> Self {
        Self {
            divides,
            factor: 1.0,
            gauge: 1.0,
            requests: 0,
        }
    }

    /// Whether estimates are divided by it.
    pub(super) fn divides(&self) -> bool {
        self.divides
    }

    pub(super) fn factor(&self) -> f64 {
        self.factor
    }

    /// What an estimate in the unit of samples adds to the load.
    pub(super) fn load_ns(&self, estimate_ns: u64) -> f64 {
        estimate_ns as f64 * self.gauge
    }

    /// A service time as a sample.
    pub(super) fn sample_ns(&self, service_ns: u64) -> u64 {
        (service_ns as f64 / (self.factor * self.gauge)) as u64
    }

    /// A load as a sample.
    pub(super) fn sample_of_load_ns(&self, load_ns: u64) -> u64 {
        (load_ns as f64 / self.gauge) as u64
    }

    /// A request of a known type took `service_ns`. `load_ns` is its type's estimate.
    pub(super) fn observe(&mut self, service_ns: u64, load_ns: f64) {
        if self.divides {
            let slower = service_ns.max(1) as f64 / (self.factor * load_ns.max(1.0));
            self.factor *= 1.0 + WEIGHT * (slower.min(SLOWER_MAX) - 1.0);
            self.requests += 1;
        }
    }

    /// Whether it is time to compare scales.
    pub(super) fn is_due(&self, types: usize) -> bool {
        self.requests >= REQUESTS_BETWEEN + types / 2
    }

    /// Restores the scale. Returns a factor for all samples if their unit must be changed.
    pub(super) fn anchor(&mut self, kinds: &mut [Kind]) -> Option<f64> {
        self.requests = 0;
        let recent: f64 = kinds.iter().map(|kind| kind.anchor.recent).sum();
        let fading = if recent > SHARE_SPAN { 0.5 } else { 1.0 };
        let (mut sum, mut weights) = (0.0, 0.0);
        for kind in kinds.iter_mut().filter(|kind| kind.is_known()) {
            if let Some(then_ns) = kind.anchor.load_ns {
                let now_ns = self.load_ns(kind.estimate_ns());
                sum += kind.anchor.recent * (now_ns / then_ns).ln();
                weights += kind.anchor.recent;
            }
            kind.anchor.recent *= fading;
        }
        if weights > 0.0 {
            let excess = (sum / weights).exp();
            self.gauge /= excess;
            self.factor *= excess;
        }
        let far = !(1.0 / GAUGE_MAX..=GAUGE_MAX).contains(&self.gauge);
        far.then(|| std::mem::replace(&mut self.gauge, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_division_everything_is_as_it_is() {
        let mut slowdown = Slowdown::new(false);
        slowdown.observe(1000, 1.0);
        assert_eq!(slowdown.factor(), 1.0);
        assert_eq!(slowdown.sample_ns(77), 77);
        assert_eq!(slowdown.load_ns(77), 77.0);
        assert!(!slowdown.is_due(0));
    }

    #[test]
    fn follows_what_all_requests_have_in_common() {
        let mut slowdown = Slowdown::new(true);
        for _ in 0..200 {
            slowdown.observe(4_000_000, 1e6);
            slowdown.observe(400_000, 1e5);
        }
        assert!((slowdown.factor() - 4.0).abs() < 0.01);
        assert!((slowdown.sample_ns(4_000_000) as f64 - 1e6).abs() < 1e4);
    }
}
