//! Confidence intervals by batch means.
//!
//! Times in the system of jobs near each other depend on each other; means over long batches of
//! jobs hardly do. Jobs go to batches in the order of arrival, so a job counts in the same batch
//! under every policy. There are 20 to 39 batches: at 40, neighbours are joined and batches are
//! twice as long from then on. The interval is Student's, over the batches of all replications:
//!
//! ```text
//! half-width = t(1 - (1 - confidence) / 2, n - 1) * deviation of the batch means / sqrt(n)
//! ```
//!
//! That holds if batches do not depend on each other, which their correlation at lag 1 shows: of n
//! independent ones it is about 0, with a deviation of 1/sqrt(n).

use statrs::distribution::{ContinuousCDF, StudentsT};

const BATCHES_MAX: usize = 40;
/// Neighbours resemble each other if they correlate by more than this and more than chance.
const ALIKE: f64 = 0.25;
/// What chance hardly ever exceeds, in deviations.
const CHANCE: f64 = 3.0;
/// Fewer pairs of neighbours say nothing.
const PAIRS_MIN: usize = 10;

#[derive(Clone, Debug)]
pub(crate) struct Batches {
    batch_jobs: u64,
    /// Sum and number of each batch, run after run.
    runs: Vec<Vec<(f64, u64)>>,
}

impl Batches {
    pub(crate) fn new() -> Self {
        Self {
            batch_jobs: 1,
            runs: vec![Vec::new()],
        }
    }

    /// Counts the value of the job that is `number`th to arrive, from 0.
    pub(crate) fn add(&mut self, number: u64, value: f64) {
        while number / self.batch_jobs >= BATCHES_MAX as u64 {
            self.double();
        }
        let batch = (number / self.batch_jobs) as usize;
        let run = &mut self.runs[0];
        if batch >= run.len() {
            run.resize(batch + 1, (0.0, 0));
        }
        run[batch].0 += value;
        run[batch].1 += 1;
    }

    /// Adds the batches of other runs.
    pub(crate) fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        while self.batch_jobs < other.batch_jobs {
            self.double();
        }
        while other.batch_jobs < self.batch_jobs {
            other.double();
        }
        self.runs.append(&mut other.runs);
    }

    /// Half the width of the interval around the mean; `None` for fewer than two full batches.
    pub(crate) fn half_width(&self, confidence: f64) -> Option<f64> {
        let means = self.means().concat();
        let n = means.len() as f64;
        let freedom = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
        let mean = means.iter().sum::<f64>() / n;
        let variance = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Some(freedom.inverse_cdf(0.5 + confidence / 2.0) * (variance / n).sqrt())
    }

    /// The correlation of neighbouring batches if they resemble each other, so that the interval is
    /// too narrow. `None` if they do not, or are too few to tell.
    pub(crate) fn resemblance(&self) -> Option<f64> {
        let runs = self.means();
        let all = runs.concat();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let variance = all.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / all.len() as f64;
        let products: Vec<f64> = runs
            .iter()
            .flat_map(|run| run.windows(2))
            .map(|pair| (pair[0] - mean) * (pair[1] - mean))
            .collect();
        let pairs = products.len() as f64;
        let correlation = products.iter().sum::<f64>() / pairs / variance;
        let alike = correlation > ALIKE && correlation > CHANCE / pairs.sqrt();
        (products.len() >= PAIRS_MIN && alike).then_some(correlation)
    }

    /// The means of the full batches of each run.
    fn means(&self) -> Vec<Vec<f64>> {
        let full = |run: &Vec<(f64, u64)>| {
            run.iter()
                .filter(|(_, jobs)| *jobs == self.batch_jobs)
                .map(|(sum, jobs)| sum / *jobs as f64)
                .collect()
        };
        self.runs.iter().map(full).collect()
    }

    fn double(&mut self) {
        self.batch_jobs *= 2;
        for run in &mut self.runs {
            *run = run
                .chunks(2)
                .map(|pair| {
                    pair.iter()
                        .fold((0.0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
                })
                .collect();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_interval_of_known_batches() {
        let mut batches = Batches::new();
        for (number, value) in [1.0, 2.0, 3.0, 4.0].into_iter().enumerate() {
            batches.add(number as u64, value);
        }
        // Deviation sqrt(5/3), t(0.995, 3) = 5.841.
        let expected = 5.8409 * (5.0f64 / 3.0).sqrt() / 2.0;
        assert!((batches.half_width(0.99).unwrap() - expected).abs() < 1e-3);
        assert_eq!(Batches::new().half_width(0.99), None);
    }

    #[test]
    fn batches_that_drift_resemble_their_neighbours() {
        let resemblance = |value: fn(u64) -> f64, jobs: u64| {
            let mut batches = Batches::new();
            (0..jobs).for_each(|number| batches.add(number, value(number)));
            batches.resemblance()
        };
        assert!(resemblance(|number| number as f64, 1000).unwrap() > 0.7);
        // Independent enough: a whole number's bits mixed.
        let mixed = |number: u64| ((number * 0x9E37_79B9) >> 7 & 0xFF) as f64;
        assert_eq!(resemblance(mixed, 1000), None);
        assert_eq!(resemblance(|_| 1.0, 1000), None);
        assert_eq!(resemblance(|number| number as f64, 8), None);
    }

    #[test]
    fn batches_grow_and_merge() {
        let (mut one, mut two) = (Batches::new(), Batches::new());
        for number in 0..1000 {
            one.add(number, 1.0);
        }
        for number in 0..100 {
            two.add(number, 3.0);
        }
        two.merge(&one);
        assert_eq!(two.batch_jobs, 32);
        let full = two.runs.iter().flatten().filter(|(_, jobs)| *jobs == 32);
        assert_eq!(full.count(), 31 + 3);
        assert!(two.half_width(0.9).unwrap() > 0.0);
    }
}
