//! The service time of a type, from the last requests of that type.
//!
//! [`Estimator::MovingAverage`] is paper 002's (3.1): the mean of the last requests, under
//! whatever load there is.
//!
//! [`Estimator::MedianOfMeans`] is for heavy tails: the last requests are dealt into groups, and
//! the estimate is the median of the groups' means. One outlier spoils one group, so that the
//! error has the tail of a normal distribution wherever the variance is finite (Lugosi and
//! Mendelson, Mean estimation and regression under heavy-tailed distributions, 2019, 2.1; after
//! Nemirovsky and Yudin 1983). Of a skewed distribution it gives somewhat less than the mean.

use std::str::FromStr;

use crate::units::excerpt;

/// How the expected service time comes from those seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimator {
    /// The mean of the last 64 requests (002 3.1).
    #[default]
    MovingAverage,
    /// The median of the means of 8 groups of the last 64 requests.
    MedianOfMeans,
}

/// A text that names no estimator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("estimator `{value}`: must be moving-average or median-of-means")]
pub struct EstimatorError {
    value: String,
}

impl Estimator {
    /// The name on the command line and in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Estimator::MovingAverage => "moving-average",
            Estimator::MedianOfMeans => "median-of-means",
        }
    }
}

impl FromStr for Estimator {
    type Err = EstimatorError;

    fn from_str(text: &str) -> Result<Self, EstimatorError> {
        [Self::MovingAverage, Self::MedianOfMeans]
            .into_iter()
            .find(|estimator| estimator.name() == text)
            .ok_or_else(|| EstimatorError {
                value: excerpt(text),
            })
    }
}

/// How many of the last requests of a type count.
pub(super) const WINDOW: usize = 64;

/// Into how many groups they are dealt for [`Estimator::MedianOfMeans`].
const GROUPS: usize = 8;

/// No service counts as longer: one hour, so that sums of them stay in 64 bits.
pub(super) const SERVICE_NS_MAX: u64 = 3_600_000_000_000;

/// The last service times of a type, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    /// In the order of arrival until it is full, then the next takes the place of the oldest.
    samples: Vec<u64>,
    oldest: usize,
    sum_ns: u64,
}

impl Window {
    /// Counts one request more, and forgets the one that is too old.
    pub(super) fn add(&mut self, service_ns: u64) {
        let service_ns = service_ns.min(SERVICE_NS_MAX);
        self.sum_ns += service_ns;
        if self.samples.len() < WINDOW {
            self.samples.push(service_ns);
            return;
        }
        self.sum_ns -= std::mem::replace(&mut self.samples[self.oldest], service_ns);
        self.oldest = (self.oldest + 1) % WINDOW;
    }

    /// Changes the unit of all times.
    pub(super) fn rescale(&mut self, factor: f64) {
        for ns in &mut self.samples {
            *ns = ((*ns as f64 * factor) as u64).min(SERVICE_NS_MAX);
        }
        self.sum_ns = self.samples.iter().sum();
    }

    /// How many requests count.
    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    /// The expected service time, at least one nanosecond; `None` before the first request ended.
    pub(super) fn estimate_ns(&self, estimator: Estimator) -> Option<u64> {
        let mean_ns = self.sum_ns.checked_div(self.samples.len() as u64)?;
        let estimate_ns = match estimator {
            Estimator::MovingAverage => mean_ns,
            Estimator::MedianOfMeans => self.median_of_means_ns(),
        };
        Some(estimate_ns.max(1))
    }

    fn median_of_means_ns(&self) -> u64 {
        let groups = GROUPS.min(self.samples.len()).max(1);
        let mut means_ns = [0u64; GROUPS];
        for deal in self.samples.chunks(groups) {
            for (sum_ns, ns) in means_ns.iter_mut().zip(deal) {
                *sum_ns += ns;
            }
        }
        for (group, sum_ns) in means_ns[..groups].iter_mut().enumerate() {
            *sum_ns /= (self.samples.len() - group).div_ceil(groups) as u64;
        }
        let means_ns = &mut means_ns[..groups];
        means_ns.sort_unstable();
        (means_ns[(groups - 1) / 2] + means_ns[groups / 2]) / 2
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const BOTH: [Estimator; 2] = [Estimator::MovingAverage, Estimator::MedianOfMeans];

    fn window(samples: impl IntoIterator<Item = u64>) -> Window {
        let mut window = Window::default();
        samples.into_iter().for_each(|ns| window.add(ns));
        window
    }

    #[test]
    fn what_left_the_window_is_forgotten() {
        for estimator in BOTH {
            let one = window([1_000_000]);
            assert_eq!(one.estimate_ns(estimator), Some(1_000_000));
            let later = window([1_000_000].into_iter().chain([10; WINDOW]));
            assert_eq!(later.estimate_ns(estimator), Some(10));
        }
    }

    #[test]
    fn nothing_is_known_of_nothing_and_nothing_takes_no_time() {
        for estimator in BOTH {
            assert_eq!(window([]).estimate_ns(estimator), None);
            assert_eq!(window([0]).estimate_ns(estimator), Some(1));
            let longest = window([u64::MAX; 2 * WINDOW]);
            assert_eq!(longest.estimate_ns(estimator), Some(SERVICE_NS_MAX));
        }
    }

    #[test]
    fn outliers_in_less_than_half_of_the_groups_do_not_move_the_median_of_means() {
        let mut samples = vec![100; WINDOW];
        for outlier in samples.iter_mut().take(3) {
            *outlier = 1_000_000_000;
        }
        let window = window(samples);
        assert_eq!(window.estimate_ns(Estimator::MedianOfMeans), Some(100));
        assert!(window.estimate_ns(Estimator::MovingAverage).unwrap() > 10_000_000);
    }

    #[test]
    fn reads_back_and_refuses_what_it_does_not_know() {
        for estimator in BOTH {
            assert_eq!(estimator.name().parse(), Ok(estimator));
        }
        let refusal = "mean".parse::<Estimator>().unwrap_err().to_string();
        assert!(refusal.contains("moving-average or median-of-means"));
    }
}
