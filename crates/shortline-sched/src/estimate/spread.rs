//! A distribution of bounded size that forgets old values: how many values were near each size.
//!
//! Values are counted in cells, eight to the octave. Each cell has the sum, the least and the largest of its
//! values. So the mean is exact, a quantile is off by at most an eighth, and a few values in different cells
//! are kept exactly. Only cells in use take memory: 40 bytes each, usually some dozens, 500 at most.
//!
//! Once [`COUNT_MAX`] values are counted, all counts are halved, so about the last thousand values count. A
//! cell with less than a tenth of a value is dropped.
//!
//! **The Gittins rank** of a job that has had `a` of a service `S` of this distribution is
//!
//! ```text
//! inf over d of  E[min(S - a, d) | S > a] / P(S - a <= d | S > a)
//! ```
//!
//! the least expected work per completed job, if service may stop after `d`. Serving the smallest rank first
//! has the least mean response time of all orders with the same information (Gittins 1989; Scully, Grosof and
//! Harchol-Balter, SIGMETRICS 2021, 2.2). If `S` is one known size, `d` is what remains, and the order is
//! SRPT. The infimum over a sample is too small, because a single small value would determine it. So a `d`
//! counts only if a sixteenth of the values has ended by it.
//!
//! **Outliers.** The largest values dominate `E[e^(g S)]`. One long transaction, whose type is that of its first
//! statement, would spoil it. [`Spread::without_outliers`] counts the largest values (one in 32, at least one)
//! as the largest of the others.

/// The bits of a value below its highest one that choose a cell: eight cells to the octave.
const SUB_BITS: u32 = 3;

/// At this count all counts are halved.
const COUNT_MAX: f64 = 2048.0;

/// A cell with a smaller count is dropped.
const COUNT_MIN: f64 = 0.1;

/// One in this many values is an outlier, and at least one.
const OUTLIER_OF: f64 = 32.0;
/// With fewer values than this there are no outliers.
const OUTLIER_FROM: f64 = 3.0;

/// The share of jobs that must end by a stopping point for it to count.
const STOP_SHARE: f64 = 1.0 / 16.0;

/// The distribution of a quantity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// By rising size.
    cells: Vec<Cell>,
    count: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    place: u16,
    count: f64,
    sum: f64,
    least: f64,
    most: f64,
}

impl Cell {
    /// The mean of its values, which stands for all of them.
    fn value(&self) -> f64 {
        self.sum / self.count
    }

    /// The number of its values that exceed an age, and their mean excess. The values of a cell are assumed to
    /// be evenly spread.
    fn beyond(&self, age: f64) -> (f64, f64) {
        if age < self.least {
            return (self.count, self.value() - age);
        }
        let left = self.most - age;
        let share = left / (self.most - self.least).max(f64::MIN_POSITIVE);
        (self.count * share.clamp(0.0, 1.0), left / 2.0)
    }
}

impl Spread {
    /// The number of values. Older ones count in part.
    pub fn count(&self) -> f64 {
        self.count
    }

    /// `E[S]`; 0 without values.
    pub fn mean(&self) -> f64 {
        self.expect(|value| value)
    }

    /// `E[S²]`.
    pub fn second_moment(&self) -> f64 {
        self.expect(|value| value * value)
    }

    /// `E[e^(rate S)]`, which may be infinite.
    pub fn exp_moment(&self, rate: f64) -> f64 {
        self.expect(|value| (rate * value).exp())
    }

    /// The quantile: the least value such that at least `share` of all values are not larger. 0 without values.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut left = share * self.count;
        for cell in &self.cells {
            left -= cell.count;
            if left <= 1e-9 * self.count {
                return cell.value();
            }
        }
        self.cells.last().map_or(0.0, Cell::value)
    }

    /// The Gittins rank of a job with service `age` so far. It is infinite if the job has outlived all values,
    /// because nothing is known of it then.
    pub fn gittins(&self, age: f64) -> f64 {
        let older = || self.cells.iter().filter(|cell| cell.most > age);
        let alive: f64 = older().map(|cell| cell.beyond(age).0).sum();
        let (mut ended, mut work, mut least) = (0.0, 0.0, f64::INFINITY);
        for cell in older() {
            let (count, left) = cell.beyond(age);
            ended += count;
            work += count * left;
            let on = (alive - ended).max(0.0) * (cell.most - age);
            if ended >= alive * STOP_SHARE {
                least = least.min((work + on) / ended);
            }
        }
        least
    }

    /// The distribution with its largest values reduced; see the module's text.
    #[must_use]
    pub fn without_outliers(&self) -> Self {
        if self.count < OUTLIER_FROM {
            return self.clone();
        }
        let mut trimmed = self.clone();
        let cut = (self.count / OUTLIER_OF).max(1.0);
        let mut over = cut;
        while let Some(last) = trimmed.cells.last_mut() {
            let value = last.value();
            if last.count > over {
                // The values cut off here and above count as this value.
                last.count += cut - over;
                last.sum = value * last.count;
                break;
            }
            over -= last.count;
            trimmed.cells.pop();
        }
        trimmed
    }

    /// Adds a value.
    pub(crate) fn add(&mut self, value: f64) {
        self.add_weighted(value, 1.0);
        if self.count >= COUNT_MAX {
            self.fade(0.5);
        }
    }

    /// Adds a value `count` times. A value that is not finite or is below 0 is ignored, and so is a count that
    /// is not above 0 or exceeds [`COUNT_MAX`].
    pub(crate) fn add_weighted(&mut self, value: f64, count: f64) {
        let fits = value.is_finite() && value >= 0.0 && count > 0.0 && count <= COUNT_MAX;
        if !fits {
            return;
        }
        let place = place(value);
        let at = self.cells.partition_point(|cell| cell.place < place);
        match self.cells.get_mut(at) {
            Some(cell) if cell.place == place => {
                cell.count += count;
                cell.sum += value * count;
                cell.least = cell.least.min(value);
                cell.most = cell.most.max(value);
            }
            _ => {
                let cell = Cell {
                    place,
                    count,
                    sum: value * count,
                    least: value,
                    most: value,
                };
                self.cells.insert(at, cell);
            }
        }
        self.count += count;
    }

    /// Reduces all counts, so that their sum is at most `count_max`.
    pub(crate) fn fade_to(&mut self, count_max: f64) {
        if self.count > count_max {
            self.fade(count_max / self.count);
        }
    }

    /// Changes the unit of all values.
    pub(crate) fn rescale(&mut self, factor: f64) {
        let before = std::mem::take(self);
        for cell in before.cells {
            self.add_weighted(cell.value() * factor, cell.count);
        }
    }

    /// The mean of each cell, with its count.
    pub(crate) fn values(&self) -> impl Iterator<Item = (f64, f64)> {
        self.cells.iter().map(|cell| (cell.value(), cell.count))
    }

    fn fade(&mut self, factor: f64) {
        for cell in &mut self.cells {
            cell.count *= factor;
            cell.sum *= factor;
        }
        if let Some(most) = self.cells.iter().map(|cell| cell.count).reduce(f64::max) {
            // At least one cell always stays.
            let least = COUNT_MIN.min(most);
            self.cells.retain(|cell| cell.count >= least);
        }
        self.count = self.cells.iter().map(|cell| cell.count).sum();
    }

    fn expect(&self, of: impl Fn(f64) -> f64) -> f64 {
        if self.count <= 0.0 {
            return 0.0;
        }
        let sum: f64 = self.values().map(|(value, count)| count * of(value)).sum();
        sum / self.count
    }
}

/// The cell of a value: its octave and the bits that follow its highest one.
fn place(value: f64) -> u16 {
    let value = value as u64;
    let Some(octave) = value.checked_ilog2().filter(|&octave| octave >= SUB_BITS) else {
        return value as u16;
    };
    let shift = octave - SUB_BITS;
    let sub = (value >> shift) as u16 - (1 << SUB_BITS);
    (shift as u16 + 1) * (1 << SUB_BITS) + sub
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn spread(values: impl IntoIterator<Item = u64>) -> Spread {
        let mut spread = Spread::default();
        values
            .into_iter()
            .for_each(|value| spread.add(value as f64));
        spread
    }

    fn close(found: f64, exact: f64, within: f64) {
        assert!((found / exact - 1.0).abs() <= within, "{found} for {exact}");
    }

    #[test]
    fn a_few_values_are_those_values() {
        let spread = spread([10, 10, 10, 1000]);
        assert_eq!((spread.count(), spread.mean()), (4.0, 257.5));
        assert_eq!(spread.second_moment(), 250_075.0);
        assert_eq!(
            (spread.quantile(0.75), spread.quantile(0.76)),
            (10.0, 1000.0)
        );
        close(
            spread.exp_moment(0.01),
            0.75 * 0.1f64.exp() + 0.25 * 10f64.exp(),
            1e-12,
        );
        // Three of four end after 10, so the rank is 40 / 3 and not the mean.
        close(spread.gittins(0.0), 40.0 / 3.0, 1e-12);
        assert_eq!(spread.gittins(10.0), 990.0);
        assert_eq!(spread.gittins(1000.0), f64::INFINITY);
        assert_eq!(Spread::default().mean(), 0.0);
    }

    #[test]
    fn of_an_exponential_the_rank_is_the_mean_at_every_age() {
        let count = 2000;
        let values = (0..count).map(|k| {
            let share = (f64::from(k) + 0.5) / f64::from(count);
            (-1e6 * (1.0 - share).ln()) as u64
        });
        let spread = spread(values);
        close(spread.mean(), 1e6, 0.01);
        close(spread.second_moment(), 2e12, 0.02);
        close(spread.quantile(0.5), 693_147.0, 0.09);
        close(spread.quantile(0.99), 4_605_170.0, 0.09);
        close(spread.exp_moment(0.3e-6), 1.0 / 0.7, 0.02);
        for age in [0.0, 3e5, 1e6, 2e6] {
            close(spread.gittins(age), 1e6, 0.12);
        }
    }

    #[test]
    fn one_outlier_moves_nothing_but_what_says_so() {
        for count in 3..100 {
            let spread = spread((0..count).map(|k| if k == 1 { 1_000_000 } else { 100 }));
            let robust = spread.without_outliers();
            assert_eq!((robust.mean(), robust.count()), (100.0, spread.count()));
            assert!(spread.mean() > 10_000.0);
        }
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let spread = spread((0..20_000).map(|k| if k < 2000 { 1_000_000 } else { 100 }));
        assert!(spread.count() <= COUNT_MAX);
        assert_eq!(spread.quantile(0.999), 100.0);
        assert!(spread.cells.len() <= 2);
    }

    proptest! {
        #[test]
        fn of_one_known_size_the_rank_is_what_remains(size in 1..1_000_000_000u64, part in 0.0..1.0f64, times in 1..5000u32) {
            let mut known = Spread::default();
            (0..times).for_each(|_| known.add(size as f64));
            let age = (size as f64 * part).floor();
            let rank = known.gittins(age);
            prop_assert!((rank - (size as f64 - age)).abs() <= 1e-6 * size as f64, "{rank}");
        }

        #[test]
        fn memory_is_bounded_and_sums_are_kept(values in prop::collection::vec(any::<u64>(), 1..3000), factor in 0.01..100.0f64) {
            let mut spread = spread(values.iter().map(|value| value >> 22));
            prop_assert!(spread.cells.len() <= 500);
            let (mean, count) = (spread.mean(), spread.count());
            spread.rescale(factor);
            prop_assert!((spread.count() - count).abs() <= 1e-6 * count);
            prop_assert!((spread.mean() - factor * mean).abs() <= 1e-6 * factor * mean);
        }

        #[test]
        fn the_rank_is_the_least_over_all_places_to_stop(values in prop::collection::vec(1..7u64, 1..40), age in 0..7u64) {
            let rank = spread(values.iter().copied()).gittins(age as f64);
            let older: Vec<u64> = values.iter().copied().filter(|&value| value > age).collect();
            let cost = |d: u64| {
                let work: u64 = older.iter().map(|&value| (value - age).min(d)).sum();
                let ended = older.iter().filter(|&&value| value - age <= d).count();
                work as f64 / ended as f64
            };
            let counts = |d: &u64| 16 * older.iter().filter(|&&value| value - age <= *d).count() >= older.len();
            let least = (1..8).filter(counts).map(cost).fold(f64::INFINITY, f64::min);
            prop_assert!(rank == least || (rank - least).abs() < 1e-9 * least, "{rank} for {least}");
        }
    }
}
