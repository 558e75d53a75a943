//! Percentiles of any number of values in bounded memory.
//!
//! Up to [`EXACT_MAX`] values they are exact, by nearest rank. Beyond that values are counted in
//! cells 0.8 % wide and read off on a straight line within a cell; the largest stays exact.

use super::log_cells::LogCells;

/// This many values are kept one by one.
pub(crate) const EXACT_MAX: usize = 100_000;

/// Values that percentiles are asked of.
#[derive(Clone, Debug)]
pub struct Quantiles {
    exact: Vec<f64>,
    /// The cells, once there are too many values.
    cells: LogCells<u64>,
    count: u64,
    max: f64,
}

impl Default for Quantiles {
    fn default() -> Self {
        Self::new()
    }
}

impl Quantiles {
    /// Without values.
    pub fn new() -> Self {
        Self {
            exact: Vec::new(),
            cells: LogCells::new(),
            count: 0,
            max: 0.0,
        }
    }

    /// Counts a value, finite and not below 0.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.max = self.max.max(value);
        if self.count as usize <= EXACT_MAX {
            self.exact.push(value);
            return;
        }
        self.spill();
        *self.cells.at(value) += 1;
    }

    /// Adds the values of another.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.max = self.max.max(other.max);
        self.exact.extend(&other.exact);
        self.cells
            .merge(&other.cells, |mine, theirs| *mine += theirs);
        if self.count as usize > EXACT_MAX {
            self.spill();
        }
    }

    pub(crate) fn max(&self) -> f64 {
        self.max
    }

    /// The smallest values that at least these shares of all do not exceed; 0 without values.
    pub fn at<const N: usize>(&self, shares: [f64; N]) -> [f64; N] {
        let rank = |share: f64| ((share * self.count as f64).ceil() as u64).clamp(1, self.count);
        if self.count == 0 {
            return [0.0; N];
        }
        if self.count as usize <= EXACT_MAX {
            let mut sorted = self.exact.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            return shares.map(|share| sorted[rank(share) as usize - 1]);
        }
        shares.map(|share| self.in_cells(rank(share)))
    }

    /// The share of values above `threshold`; with cells, to within a cell's width.
    pub(crate) fn complementary(&self, points: usize) -> Vec<(f64, f64)> {
        let shares = (0..points).map(|step| {
            // Dense in the tail, where values are few and matter.
            let exponent = step as f64 / (points - 1).max(1) as f64;
            (self.count as f64).powf(-exponent)
        });
        if self.count as usize <= EXACT_MAX {
            let mut sorted = self.exact.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let at = |above: f64| {
                let rank = ((1.0 - above) * self.count as f64).ceil() as usize;
                Some((*sorted.get(rank.max(1) - 1)?, above))
            };
            return shares.filter_map(at).collect();
        }
        let at = |above: f64| {
            let rank = ((1.0 - above) * self.count as f64).ceil() as u64;
            (self.in_cells(rank.max(1)), above)
        };
        shares.map(at).collect()
    }

    fn in_cells(&self, rank: u64) -> f64 {
        let mut before = 0;
        for (low, high, &count) in self.cells.iter() {
            if before + count >= rank {
                let share = (rank - before) as f64 / count as f64;
                return (low + (high - low) * share).min(self.max);
            }
            before += count;
        }
        self.max
    }

    fn spill(&mut self) {
        for value in std::mem::take(&mut self.exact) {
            *self.cells.at(value) += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_exact() {
        let mut quantiles = Quantiles::new();
        for value in [4.0, 1.0, 3.0, 2.0] {
            quantiles.add(value);
        }
        assert_eq!(quantiles.at([0.5, 0.75, 0.76, 1.0]), [2.0, 3.0, 4.0, 4.0]);
        assert_eq!(Quantiles::new().at([0.5]), [0.0]);
    }

    #[test]
    fn many_values_are_within_a_cell() {
        let (mut first, mut second) = (Quantiles::new(), Quantiles::new());
        for value in 1..=200_000 {
            if value % 3 == 0 {
                &mut first
            } else {
                &mut second
            }
            .add(f64::from(value));
        }
        first.merge(&second);
        let shares = [0.01, 0.5, 0.99, 1.0];
        for (share, value) in shares.into_iter().zip(first.at(shares)) {
            let exact = share * 200_000.0;
            assert!((value / exact - 1.0).abs() < 0.008, "{share}: {value}");
        }
        assert_eq!(first.max(), 200_000.0);
        let tail = first.complementary(100);
        assert!(tail.is_sorted_by(|a, b| a.0 <= b.0 && a.1 >= b.1));
    }
}
