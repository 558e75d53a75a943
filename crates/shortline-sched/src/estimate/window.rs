//! The service time of a type, from the last requests of that type.
//!
//! [`Estimator::MovingAverage`] is paper 002's (3.1): the mean of the last requests, under
//! whatever load there is. One long transaction whose first statement names its type spoils it. The
//! experiments of 002 take it.
//!
//! [`Estimator::MedianOfMeans`], the default, is for heavy tails: the last requests are cut into groups,
//! and the estimate is the median of the groups' means. One outlier spoils one group, so that the
//! error has the tail of a normal distribution wherever the variance is finite (Lugosi and
//! Mendelson, Mean estimation and regression under heavy-tailed distributions, 2019, 2.1; after
//! Nemirovsky and Yudin 1983). Groups are neighbours in time, so that a while in which all are slow
//! spoils few of them, too. Of a skewed distribution it gives somewhat less than the mean. Of two
//! requests it takes the shorter.
//!
//! Old ones fade: once newer ones come, two at most count of those that ended more than ten minutes
//! before. What nobody has asked for since stays as it is.

use std::collections::VecDeque;
use std::str::FromStr;

use crate::units::excerpt;

/// How the expected service time comes from those seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimator {
    /// The mean of the last 64 requests (002 3.1).
    MovingAverage,
    /// The median of the means of 8 groups of the last 64 requests.
    #[default]
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
pub(crate) const WINDOW: usize = 64;

/// Into how many groups they are cut for [`Estimator::MedianOfMeans`].
const GROUPS: usize = 8;

/// No service counts as longer: one hour, so that sums of them stay in 64 bits.
pub(crate) const SERVICE_NS_MAX: u64 = 3_600_000_000_000;

/// Once newer ones have come, no more than so many count
pub(super) const OLD_MAX: usize = 2;
/// of those that are so much older, in nanoseconds.
pub(super) const OLD_NS: u64 = 600_000_000_000;

/// The last service times of a type, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    /// The oldest first.
    samples: VecDeque<Sample>,
    sum_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at_ns: u64,
    service_ns: u64,
}

impl Window {
    /// Counts one request more, and forgets those that are too old.
    pub(super) fn add(&mut self, at_ns: u64, service_ns: u64) {
        let service_ns = service_ns.min(SERVICE_NS_MAX);
        while self.samples.len() == WINDOW || self.is_old(OLD_MAX, at_ns) {
            if let Some(oldest) = self.samples.pop_front() {
                self.sum_ns -= oldest.service_ns;
            }
        }
        self.sum_ns += service_ns;
        self.samples.push_back(Sample { at_ns, service_ns });
    }

    /// Whether the one in a place is old at a time.
    fn is_old(&self, place: usize, at_ns: u64) -> bool {
        let sample = self.samples.get(place);
        sample.is_some_and(|sample| at_ns.saturating_sub(sample.at_ns) > OLD_NS)
    }

    /// Changes the unit of all times.
    pub(super) fn rescale(&mut self, factor: f64) {
        for sample in &mut self.samples {
            let service_ns = (sample.service_ns as f64 * factor) as u64;
            sample.service_ns = service_ns.min(SERVICE_NS_MAX);
        }
        self.sum_ns = self.samples.iter().map(|sample| sample.service_ns).sum();
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
        let count = self.samples.len();
        let groups = GROUPS.min(count).max(1);
        let mut means_ns = [0u64; GROUPS];
        let mut samples = self.samples.iter();
        for (group, mean_ns) in means_ns[..groups].iter_mut().enumerate() {
            let size = (group + 1) * count / groups - group * count / groups;
            let sum_ns: u64 = samples.by_ref().take(size).map(|one| one.service_ns).sum();
            *mean_ns = sum_ns / size.max(1) as u64;
        }
        let means_ns = &mut means_ns[..groups];
        means_ns.sort_unstable();
        if groups == 2 {
            // One of the two may be an outlier, and outliers are long.
            return means_ns[0];
        }
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
        samples.into_iter().for_each(|ns| window.add(0, ns));
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
        // Three at any time, or twenty in a row.
        for outliers in [vec![3, 30, 60], (20..40).collect()] {
            let sample = |place| {
                if outliers.contains(&place) {
                    1_000_000_000
                } else {
                    100
                }
            };
            let window = window((0..WINDOW).map(sample));
            assert_eq!(window.estimate_ns(Estimator::MedianOfMeans), Some(100));
            assert!(window.estimate_ns(Estimator::MovingAverage).unwrap() > 10_000_000);
        }
    }

    #[test]
    fn one_outlier_of_a_few_does_not_move_the_median_of_means() {
        for count in 2..20 {
            for outlier in 0..count {
                let sample = |place| if place == outlier { 1_000_000_000 } else { 100 };
                let window = window((0..count).map(sample));
                assert_eq!(window.estimate_ns(Estimator::MedianOfMeans), Some(100));
            }
        }
    }

    #[test]
    fn what_is_old_counts_little_once_newer_ones_come() {
        let mut window = window([1_000_000_000; WINDOW]);
        window.add(OLD_NS, 100);
        assert_eq!(window.len(), WINDOW);
        for _ in 0..3 {
            window.add(OLD_NS + 1, 100);
        }
        assert_eq!(window.len(), OLD_MAX + 4);
        assert_eq!(window.estimate_ns(Estimator::MedianOfMeans), Some(100));
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
