//! The service time of a type, from the last requests of that type.
//!
//! [`Estimator::MovingAverage`] is paper 002's (3.1): the mean of the last requests, under
//! whatever load there is.

use std::collections::VecDeque;

/// How the expected service time comes from those seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimator {
    /// The mean of the last [`WINDOW`] (002 3.1).
    #[default]
    MovingAverage,
}

/// How many of the last requests count.
pub const WINDOW: usize = 64;

/// No service counts as longer: one hour, so that sums of them stay in 64 bits.
pub const SERVICE_NS_MAX: u64 = 3_600_000_000_000;

/// The last service times of a type, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    samples: VecDeque<u64>,
    sum_ns: u64,
}

impl Window {
    /// Counts one request more, and forgets the one that is too old.
    pub(super) fn add(&mut self, service_ns: u64) {
        if self.samples.len() == WINDOW
            && let Some(oldest) = self.samples.pop_front()
        {
            self.sum_ns -= oldest;
        }
        let service_ns = service_ns.min(SERVICE_NS_MAX);
        self.samples.push_back(service_ns);
        self.sum_ns += service_ns;
    }

    /// The expected service time; `None` before the first request ended.
    pub(super) fn estimate_ns(&self, estimator: Estimator) -> Option<u64> {
        match estimator {
            Estimator::MovingAverage => self.sum_ns.checked_div(self.samples.len() as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moving_average_forgets_what_left_the_window() {
        let mut window = Window::default();
        assert_eq!(window.estimate_ns(Estimator::MovingAverage), None);
        window.add(1_000_000);
        assert_eq!(
            window.estimate_ns(Estimator::MovingAverage),
            Some(1_000_000)
        );
        for _ in 0..WINDOW {
            window.add(10);
        }
        assert_eq!(window.estimate_ns(Estimator::MovingAverage), Some(10));
    }

    #[test]
    fn the_longest_times_cannot_overflow() {
        let mut window = Window::default();
        for _ in 0..2 * WINDOW {
            window.add(u64::MAX);
        }
        let estimate = window.estimate_ns(Estimator::MovingAverage);
        assert_eq!(estimate, Some(SERVICE_NS_MAX));
    }
}
