//! The few statistics of repeated runs.

use serde::Serialize;

/// Median and extremes of a few repeated measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Spread {
    /// The spread of a sample in any order. `None` if it is empty.
    pub fn of(sample: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sample: Vec<f64> = sample.into_iter().collect();
        sample.sort_unstable_by(f64::total_cmp);
        let (low, high) = (*sample.first()?, *sample.last()?);
        let middle = sample.len() / 2;
        let median = if sample.len().is_multiple_of(2) {
            f64::midpoint(sample[middle - 1], sample[middle])
        } else {
            sample[middle]
        };
        Some(Self { median, low, high })
    }
}

/// The mean. `None` of an empty sample.
pub fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_median_of_odd_and_even_numbers() {
        let odd = Spread::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!((odd.median, odd.low, odd.high), (2.0, 1.0, 3.0));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of([]), None);
    }
}
