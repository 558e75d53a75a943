//! The service time of a type, from the last requests of that type.
//!
//! [`Estimator::MovingAverage`] is paper 002's (3.1): the mean of the last requests, at the present load. One
//! long transaction, whose type is that of its first statement, spoils it. The experiments of 002 use it.
//!
//! [`Estimator::MedianOfMeans`], the default, is for heavy tails. The last requests are cut into groups, and
//! the estimate is the median of the groups' means. One outlier spoils only one group. So the error has the
//! tail of a normal distribution if the variance is finite (Lugosi and Mendelson, Mean estimation and
//! regression under heavy-tailed distributions, 2019, 2.1; after Nemirovsky and Yudin 1983). A group is a run
//! of consecutive requests, so a short slow period also spoils only a few groups. For a skewed distribution
//! the estimate is somewhat below the mean. Of two requests it is the shorter.
//!
//! Old requests fade: once a newer one ends, at most two count of those that ended more than ten minutes
//! before it. The estimate of a type without new requests stays as it is.

use std::collections::VecDeque;
use std::str::FromStr;

use crate::units::excerpt;

/// How the expected service time is computed from the last requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimator {
    /// The mean of the last 64 requests (002 3.1).
    MovingAverage,
    /// The median of the means of 8 groups of the last 64 requests.
    #[default]
    MedianOfMeans,
}

/// A text that is not the name of an estimator.
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

/// The number of a type's last requests that count.
pub(crate) const WINDOW: usize = 64;

/// The number of groups for [`Estimator::MedianOfMeans`].
const GROUPS: usize = 8;

/// The longest service that counts, in nanoseconds: one hour, so that sums fit 64 bits.
pub(crate) const SERVICE_NS_MAX: u64 = 3_600_000_000_000;

/// The most old requests that count once a newer one has ended.
pub(super) const OLD_MAX: usize = 2;
/// A request is old if it ended this much earlier than the newest, in nanoseconds.
pub(super) const OLD_NS: u64 = 600_000_000_000;

/// The last service times of a type, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    /// The oldest first.
    samples: VecDeque<Sample>,
    /// The sum of all that were forgotten. Sums wrap; what lies between two of them is exact.
    forgotten_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at_ns: u64,
    service_ns: u64,
    /// The sum up to here, this one included: the sum of a group is one difference.
    sum_ns: u64,
}

impl Window {
    /// Adds a request, and forgets old ones.
    pub(super) fn add(&mut self, at_ns: u64, service_ns: u64) {
        let service_ns = service_ns.min(SERVICE_NS_MAX);
        while self.samples.len() == WINDOW || self.is_old(OLD_MAX, at_ns) {
            if let Some(oldest) = self.samples.pop_front() {
                self.forgotten_ns = oldest.sum_ns;
            }
        }
        let sum_ns = self.sum_ns(self.samples.len()).wrapping_add(service_ns);
        self.samples.push_back(Sample {
            at_ns,
            service_ns,
            sum_ns,
        });
    }

    /// Whether the sample at `place` is old at `at_ns`.
    fn is_old(&self, place: usize, at_ns: u64) -> bool {
        let sample = self.samples.get(place);
        sample.is_some_and(|sample| at_ns.saturating_sub(sample.at_ns) > OLD_NS)
    }

    /// Changes the unit of all times.
    pub(super) fn rescale(&mut self, factor: f64) {
        let mut sum_ns = self.forgotten_ns;
        for sample in &mut self.samples {
            let service_ns = (sample.service_ns as f64 * factor) as u64;
            sample.service_ns = service_ns.min(SERVICE_NS_MAX);
            sum_ns = sum_ns.wrapping_add(sample.service_ns);
            sample.sum_ns = sum_ns;
        }
    }

    /// The sum of the first `count` that count, and of all that were forgotten.
    fn sum_ns(&self, count: usize) -> u64 {
        let last = count.checked_sub(1).map(|last| &self.samples[last]);
        last.map_or(self.forgotten_ns, |last| last.sum_ns)
    }

    /// The mean of those from the place `from` to the one before `to`. `None` if that is nothing.
    fn mean_ns(&self, from: usize, to: usize) -> Option<u64> {
        let sum_ns = self.sum_ns(to).wrapping_sub(self.sum_ns(from));
        sum_ns.checked_div((to - from) as u64)
    }

    /// The number of requests that count.
    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    /// The expected service time, at least one nanosecond; `None` before the first request ended.
    pub(super) fn estimate_ns(&self, estimator: Estimator) -> Option<u64> {
        let mean_ns = self.mean_ns(0, self.samples.len())?;
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
        for (group, mean_ns) in means_ns[..groups].iter_mut().enumerate() {
            let (from, to) = (group * count / groups, (group + 1) * count / groups);
            *mean_ns = self.mean_ns(from, to).unwrap_or(0);
        }
        let means_ns = &mut means_ns[..groups];
        means_ns.sort_unstable();
        if groups == 2 {
            // The longer one may be an outlier.
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
