//! A dwell: the work completed per second while the capacity stays.
//!
//! A count of completed work is noisy, because it depends on which requests happen to end. So the rate
//! comes from Little's law: from the number of running requests, and the times of those that ended.
//!
//! ```text
//! work per second = mean number running / slowdown
//! slowdown        = sum of service times / sum of what they count as (`Work`)
//! ```
//!
//! This differs from the count only by the noise of the mix. Both lag when the backend gets slower, because
//! requests that have not ended are missing. The share of the time in service that belongs to ended requests,
//! *settled*, tells how much is missing. A dwell lasts until this share is large, or for the longest time
//! allowed. The count, raised for the missing requests, is the result if it is smaller.
//!
//! A request that was admitted before the dwell counts with the share of its service that lies in the dwell.
//! If that is less than half, it does not count for the slowdown, because its time is mostly that of another
//! capacity (Envoy's issue #11579: samples of an earlier epoch make a limit drift).

use super::Ended;

/// The shortest dwell, in nanoseconds.
const SPAN_NS_MIN: f64 = 250e6;
/// The longest dwell, in nanoseconds.
const SPAN_NS_MAX: f64 = 6e9;
/// The longest dwell as a multiple of the last one. `SPAN_NS_MAX_LEAST` is allowed in any case.
const SPAN_GROWTH_MAX: f64 = 4.0;
/// The least limit of a dwell's length, in nanoseconds.
const SPAN_NS_MAX_LEAST: f64 = 1.5e9;
/// This many requests suffice.
const REQUESTS_ENOUGH: f64 = 50.0;
/// The relative error that is small enough. Where service times within a type vary as the exponential's, fifty requests
/// leave a fifth, which led searches far away from the best.
const ERROR_ENOUGH: f64 = 0.1;
/// The share of the time in service that must belong to ended requests.
const SETTLED_ENOUGH: f64 = 0.75;
/// So many requests, and such a share, say something before the dwell is over.
const REQUESTS_SAYING: f64 = 20.0;
const SETTLED_SAYING: f64 = 0.5;
/// For requests that have not ended, the count is raised by at most one over this.
const SETTLED_LEAST: f64 = 0.7;
/// The least relative error assumed of a measurement.
const ERROR_MIN: f64 = 0.01;

/// A dwell in progress. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dwell {
    span: f64,
    /// How long requests waited.
    waited: f64,
    /// The time in service of all requests.
    in_service: f64,
    /// The integral of the load over time.
    load: f64,
    load_max: u64,
    requests: f64,
    /// Of all ended requests: their time in service inside the dwell, and the same share of their work.
    served_any: f64,
    work_any: f64,
    /// The same for requests with at least half of their service inside the dwell, with the sums of squares.
    served: f64,
    work: f64,
    served_squares: f64,
    products: f64,
    work_squares: f64,
}

/// The result of a dwell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// How long it lasted, in nanoseconds.
    pub(super) span: f64,
    /// The share of it during which requests waited.
    pub(super) waited: f64,
    /// The mean number of running requests.
    pub(super) active: f64,
    /// The mean and the largest load, in nanoseconds.
    pub(super) load: f64,
    pub(super) load_max: u64,
    /// The mean service, in nanoseconds.
    pub(super) service_ns: f64,
    /// The factor by which services exceeded the estimates.
    pub(super) slowdown: f64,
    /// Work completed per second, in seconds of load.
    pub(super) work_rate: f64,
    /// The variance of the logarithm of `work_rate`, from the spread of service times about their estimates.
    pub(super) variance: f64,
    /// The mean load if requests ran one at a time, in nanoseconds. Smaller capacities do not differ.
    pub(super) alone_ns: f64,
    /// The mean estimate of the requests that ended, in nanoseconds.
    pub(super) estimate_ns: f64,
}

impl Dwell {
    /// `active` requests with `load_ns` have run for `span`.
    pub(super) fn pass(&mut self, span: f64, active: usize, load_ns: u64, waits: bool) {
        self.span += span;
        self.in_service += span * active as f64;
        self.load += span * load_ns as f64;
        self.load_max = self.load_max.max(load_ns);
        if waits {
            self.waited += span;
        }
    }

    /// A request was completed.
    pub(super) fn completed(&mut self, ended: Ended) {
        let (service, work) = (ended.service_ns as f64, ended.work_ns as f64);
        let share = if service > self.span {
            self.span / service
        } else {
            1.0
        };
        self.requests += share;
        self.served_any += share * service;
        self.work_any += share * work;
        if share < 0.5 {
            return;
        }
        self.served += share * service;
        self.work += share * work;
        self.served_squares += (share * service).powi(2);
        self.products += share * share * service * work;
        self.work_squares += (share * work).powi(2);
    }

    /// The result, once the dwell has lasted long enough. `last` is the length of the last dwell in nanoseconds.
    pub(super) fn measured(&self, last: f64) -> Option<Measured> {
        let settled = self.settled()?;
        let enough = self.span >= SPAN_NS_MIN
            && self.requests >= REQUESTS_ENOUGH
            && settled >= SETTLED_ENOUGH
            && self.variance(self.served / self.work).sqrt() <= ERROR_ENOUGH;
        let span_max = (SPAN_GROWTH_MAX * last).clamp(SPAN_NS_MAX_LEAST, SPAN_NS_MAX);
        (enough || self.span >= span_max).then(|| self.result(settled))
    }

    /// The result so far, with its larger error, once it says anything.
    pub(super) fn so_far(&self) -> Option<Measured> {
        let settled = self.settled()?;
        let says = self.span >= SPAN_NS_MIN
            && self.requests >= REQUESTS_SAYING
            && settled >= SETTLED_SAYING;
        says.then(|| self.result(settled))
    }

    /// The share of the time in service that belongs to ended requests; `None` before anything has ended.
    fn settled(&self) -> Option<f64> {
        let any = self.work > 0.0 && self.in_service > 0.0;
        any.then(|| (self.served_any / self.in_service).min(1.0))
    }

    fn result(&self, settled: f64) -> Measured {
        let slowdown = self.served / self.work;
        let by_little = self.in_service / self.span / slowdown;
        let by_count = self.work_any / self.span / settled.max(SETTLED_LEAST);
        Measured {
            span: self.span,
            waited: self.waited / self.span,
            active: self.in_service / self.span,
            load: self.load / self.span,
            load_max: self.load_max,
            service_ns: self.served_any / self.requests,
            slowdown,
            work_rate: by_little.min(by_count),
            variance: self.variance(slowdown),
            alone_ns: self.work_squares / self.work,
            estimate_ns: self.work_any / self.requests,
        }
    }

    /// The variance of the logarithm of a ratio of sums, by the delta method.
    fn variance(&self, slowdown: f64) -> f64 {
        let residuals = self.served_squares - 2.0 * slowdown * self.products
            + slowdown * slowdown * self.work_squares;
        let relative = residuals.max(0.0) / (self.served * self.served);
        relative.max(ERROR_MIN * ERROR_MIN)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn work_per_second_is_what_runs_over_the_slowdown() {
        let mut dwell = Dwell::default();
        // Four run at once, each takes 40 ms for 10 ms of work: 100 a second, one second of work.
        for _ in 0..100 {
            dwell.pass(10e6, 4, 40_000_000, true);
            dwell.completed(Ended {
                service_ns: 40_000_000,
                work_ns: 10_000_000,
            });
        }
        let measured = dwell.measured(1e9).unwrap();
        assert!((measured.work_rate - 1.0).abs() < 1e-9, "{measured:?}");
        assert_eq!(measured.waited, 1.0);
        assert!((measured.alone_ns - 10e6).abs() < 1e5);
        assert!((measured.estimate_ns - 10e6).abs() < 1e5);
        assert_eq!(measured.variance, ERROR_MIN * ERROR_MIN);
    }

    #[test]
    fn before_it_is_over_it_says_the_same_with_a_larger_error() {
        let mut dwell = Dwell::default();
        let mut pass = |requests: usize| {
            for number in 0..requests {
                dwell.pass(13e6, 4, 40_000_000, true);
                dwell.completed(Ended {
                    service_ns: if number % 2 == 0 {
                        30_000_000
                    } else {
                        70_000_000
                    },
                    work_ns: 10_000_000,
                });
            }
            dwell
        };
        assert!(pass(19).so_far().is_none());
        let early = pass(11);
        assert!(early.measured(1e9).is_none());
        let (early, late) = (early.so_far().unwrap(), pass(70).measured(1e9).unwrap());
        assert!(
            (early.work_rate / late.work_rate - 1.0).abs() < 0.05,
            "{early:?} {late:?}"
        );
        assert!(early.variance > 2.0 * late.variance, "{early:?} {late:?}");
    }

    #[test]
    fn what_has_not_ended_is_waited_for_and_then_left_to_the_count() {
        let mut dwell = Dwell::default();
        for _ in 0..100 {
            // Hundreds have begun, only short ones end.
            dwell.pass(10e6, 200, 2_000_000_000, true);
            dwell.completed(Ended {
                service_ns: 10_000_000,
                work_ns: 10_000_000,
            });
        }
        assert!(dwell.measured(1e9).is_none());
        dwell.pass(5e9, 200, 2_000_000_000, true);
        let measured = dwell.measured(2e9).unwrap();
        assert!(measured.work_rate < 0.5, "{measured:?}");
    }
}
