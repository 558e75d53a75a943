//! Histograms of waits, services and sojourn times. Each bucket's bound is four times the one before.
//!
//! Means hide the slow requests that users notice. Buckets of a fixed width in the logarithm give a quantile
//! within a factor of four, for eleven numbers. The counts can be added up over gates and subtracted over
//! time (Prometheus' histograms).

use serde::Serialize;

use super::Admission;

/// The upper bounds of the buckets in nanoseconds, from 256 us to 67 s. The last bucket has no bound.
pub const BOUNDS_NS: [u64; 10] = {
    let mut bounds = [256_000; 10];
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = bounds[at - 1] * 4;
        at += 1;
    }
    bounds
};

/// A histogram of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Histogram {
    /// By bucket, not cumulative.
    pub counts: [u64; BOUNDS_NS.len() + 1],
    /// The sum of all times, in nanoseconds.
    pub sum_ns: u64,
}

/// Times of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// From arrival to admission, of admitted requests.
    pub wait: Histogram,
    /// The service in the backend, of ended requests. Pauses and waits for locks are left out.
    pub service: Histogram,
    /// From arrival to the end, pauses included, of ended requests.
    pub sojourn: Histogram,
}

impl Histogram {
    /// Counts a time.
    pub fn add(&mut self, time_ns: u64) {
        let bucket = BOUNDS_NS.iter().position(|bound_ns| time_ns <= *bound_ns);
        self.counts[bucket.unwrap_or(BOUNDS_NS.len())] += 1;
        self.sum_ns = self.sum_ns.saturating_add(time_ns);
    }

    /// The number of times counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Adds what was counted between `before` and `now`.
    pub fn grow(&mut self, now: &Self, before: &Self) {
        for (count, (now, before)) in self
            .counts
            .iter_mut()
            .zip(now.counts.iter().zip(&before.counts))
        {
            *count += now.saturating_sub(*before);
        }
        let more_ns = now.sum_ns.saturating_sub(before.sum_ns);
        self.sum_ns = self.sum_ns.saturating_add(more_ns);
    }
}

impl Times {
    /// Adds what was counted between `before` and `now`.
    pub fn grow(&mut self, now: &Self, before: &Self) {
        self.wait.grow(&now.wait, &before.wait);
        self.service.grow(&now.service, &before.service);
        self.sojourn.grow(&now.sojourn, &before.sojourn);
    }
}

impl Admission {
    /// A request of the type at `kind` was admitted after `waited_ns`.
    pub(super) fn count_wait(&mut self, kind: usize, waited_ns: u64) {
        self.times.wait.add(waited_ns);
        self.types.get_mut(kind).counts.times.wait.add(waited_ns);
    }

    /// A request of the type at `kind` has ended.
    pub(super) fn count_end(&mut self, kind: usize, service_ns: u64, sojourn_ns: u64) {
        for times in [&mut self.times, &mut self.types.get_mut(kind).counts.times] {
            times.service.add(service_ns);
            times.sojourn.add(sojourn_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{AdmissionConfig, Outcome};
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_that_is_wide_enough() {
        let mut histogram = Histogram::default();
        for (time_ns, bucket) in [
            (0, 0),
            (256_000, 0),
            (256_001, 1),
            (1_024_000, 1),
            (u64::MAX, 10),
        ] {
            let before = histogram;
            histogram.add(time_ns);
            let mut grown = Histogram::default();
            grown.grow(&histogram, &before);
            assert_eq!(grown.counts[bucket], 1, "{time_ns}");
            assert_eq!(grown.count(), 1);
        }
        assert_eq!(histogram.count(), 5);
    }

    #[test]
    fn a_request_counts_with_its_wait_its_service_and_both() {
        let mut gate = Admission::new(AdmissionConfig {
            capacity: "1ns".parse().unwrap(),
            ..AdmissionConfig::default()
        });
        let kind = gate.type_of("a");
        let first = gate.arrive(0, kind).unwrap();
        assert_eq!(gate.admit_next(0), Some(first));
        let second = gate.arrive(0, kind).unwrap();
        gate.finish(2_000_000, first, Outcome::Completed);
        assert_eq!(gate.admit_next(2_000_000), Some(second));
        gate.pause(3_000_000, second);
        gate.resume(9_000_000, second);
        gate.finish(10_000_000, second, Outcome::Completed);
        let view = gate.view();
        let sums = |times: &Times| {
            (
                times.wait.sum_ns,
                times.service.sum_ns,
                times.sojourn.sum_ns,
            )
        };
        assert_eq!(sums(&view.times), (2_000_000, 4_000_000, 12_000_000));
        assert_eq!(view.types[1].times, view.times);
        assert_eq!(view.times.wait.count(), 2);
    }
}
