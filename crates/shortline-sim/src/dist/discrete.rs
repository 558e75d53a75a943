//! Finitely many sizes, each with its share: the sizes of a list, or a single one.
//!
//! The different sizes are kept in order with running sums, so a partial moment or a quantile takes
//! a binary search.

use std::sync::Arc;

use super::law::Law;

/// Powers whose partial sums are kept.
const POWERS: std::ops::RangeInclusive<i32> = -1..=3;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Discrete {
    table: Arc<Table>,
}

#[derive(Debug, PartialEq)]
struct Table {
    /// The different sizes, ascending.
    sizes: Vec<f64>,
    /// How many of the list are at most as large as the size at the same index.
    counts: Vec<u64>,
    /// For each power: the sum of size^power over the list up to the same index.
    sums: Vec<Vec<f64>>,
}

impl Discrete {
    /// From at least one size, ascending, each with its count.
    pub(super) fn new(counted: impl IntoIterator<Item = (f64, u64)>) -> Self {
        let mut until = 0;
        let (sizes, counts): (Vec<f64>, Vec<u64>) = counted
            .into_iter()
            .map(|(size, count)| {
                until += count;
                (size, until)
            })
            .unzip();
        let sums = POWERS
            .map(|power| running_sum(&sizes, &counts, power))
            .collect();
        Self {
            table: Arc::new(Table {
                sizes,
                counts,
                sums,
            }),
        }
    }

    /// Entries of the list.
    pub(super) fn count(&self) -> u64 {
        *self
            .table
            .counts
            .last()
            .expect("invariant: made of at least one size")
    }

    pub(super) fn atoms(&self) -> impl ExactSizeIterator<Item = (f64, f64)> + '_ {
        let Table { sizes, counts, .. } = &*self.table;
        let total = self.count() as f64;
        (0..sizes.len()).map(move |place| {
            let before = place.checked_sub(1).map_or(0, |place| counts[place]);
            (sizes[place], (counts[place] - before) as f64 / total)
        })
    }

    /// How many different sizes are at most `size`.
    fn places(&self, size: f64) -> usize {
        self.table.sizes.partition_point(|&other| other <= size)
    }
}

impl Law for Discrete {
    fn moment(&self, power: i32) -> f64 {
        self.partial_moment(power, f64::INFINITY)
    }

    fn partial_moment(&self, power: i32, size: f64) -> f64 {
        let Some(place) = self.places(size).checked_sub(1) else {
            return 0.0;
        };
        let sum = if POWERS.contains(&power) {
            self.table.sums[(power - POWERS.start()) as usize][place]
        } else {
            running_sum(&self.table.sizes, &self.table.counts, power)[place]
        };
        sum / self.count() as f64
    }

    fn share_above(&self, size: f64) -> f64 {
        let below = match self.places(size) {
            0 => 0,
            places => self.table.counts[places - 1],
        };
        (self.count() - below) as f64 / self.count() as f64
    }

    fn size_exceeded_by(&self, share: f64) -> f64 {
        let Table { sizes, counts, .. } = &*self.table;
        let total = self.count() as f64;
        // The smallest size above which at most `share` of the list lies.
        let above = |count: u64| (self.count() - count) as f64;
        let place = counts.partition_point(|&count| above(count) > share * total);
        sizes[place.min(sizes.len() - 1)]
    }

    fn range(&self) -> (f64, f64) {
        let sizes = &self.table.sizes;
        (sizes[0], sizes[sizes.len() - 1])
    }
}

fn running_sum(sizes: &[f64], counts: &[u64], power: i32) -> Vec<f64> {
    let mut before = 0;
    let mut sum = 0.0;
    sizes
        .iter()
        .zip(counts)
        .map(|(size, &count)| {
            sum += size.powi(power) * (count - before) as f64;
            before = count;
            sum
        })
        .collect()
}
