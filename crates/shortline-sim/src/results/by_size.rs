//! Results by size of job: 60 bins of ratio 1.2 and 200 percentile buckets, as in paper 003's Fig
//! 5, and groups by nines (2 is the 99th percentile, 3 the 99.9th), which go on to the largest
//! jobs.
//!
//! Jobs are added up in cells of 0.8 % of size ([`super::log_cells`]), so the table's length does
//! not depend on the number of jobs. The bins end at the largest size and go down from there, each
//! [x, 1.2 x] wide; the first also has everything smaller than the 60. A percentile bucket is half
//! a percent of the jobs in the order of size. A cell that lies across a border, of buckets or of
//! nines, gives to both sides in proportion.

use serde::Serialize;

use super::log_cells::LogCells;

/// The most bins of size.
pub const SIZE_BINS: usize = 60;
/// The ratio of a bin's ends.
pub const SIZE_BIN_RATIO: f64 = 1.2;
/// How many percentile buckets there are.
pub const PERCENTILE_BUCKETS: usize = 200;
/// Groups per power of ten of larger jobs.
const GROUPS_PER_NINE: f64 = 4.0;

/// Sums over the jobs of a size.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SizeSums {
    pub jobs: f64,
    pub size: f64,
    pub sojourn_ns: f64,
    pub slowdown: f64,
    pub slowdown_max: f64,
    pub stretch: f64,
}

/// Jobs of a range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizeGroup {
    /// Where the range begins: bytes for a bin, percent of the jobs for a bucket, nines of them.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// How many jobs; a bucket's may be a fraction.
    pub jobs: f64,
    /// Their mean size, in bytes.
    pub size_mean: f64,
    /// Their mean time in the system, in seconds.
    pub sojourn_mean: f64,
    /// Their mean slowdown.
    pub slowdown_mean: f64,
    /// Their largest slowdown (of all sizes that touch the range).
    pub slowdown_max: f64,
    /// Their mean starvation stretch; absent if it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stretch_mean: Option<f64>,
}

#[derive(Clone, Debug)]
pub(crate) struct BySize {
    cells: LogCells<SizeSums>,
}

impl BySize {
    pub(crate) fn new() -> Self {
        Self {
            cells: LogCells::new(),
        }
    }

    pub(crate) fn add(&mut self, of_one: &SizeSums) {
        self.cells.at(of_one.size).add(of_one, 1.0);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.cells
            .merge(&other.cells, |mine, theirs| mine.add(theirs, 1.0));
    }

    /// Bins with jobs, smallest first.
    pub(crate) fn bins(&self, with_stretch: bool) -> Vec<SizeGroup> {
        let Some(largest) = self.filled().next_back().map(SizeSums::size_mean) else {
            return Vec::new();
        };
        let mut bins = vec![SizeSums::default(); SIZE_BINS];
        for cell in self.filled() {
            // A hair is taken off, so that the largest size itself is in the last bin.
            let steps = ((largest / cell.size_mean()).ln() / SIZE_BIN_RATIO.ln() - 1e-9).max(0.0);
            let from_end = (steps as usize).min(SIZE_BINS - 1);
            bins[SIZE_BINS - 1 - from_end].add(cell, 1.0);
        }
        let border = |from_end: usize| largest / SIZE_BIN_RATIO.powi(from_end as i32);
        let groups = bins.iter().enumerate().filter(|(_, sums)| sums.jobs > 0.0);
        groups
            .map(|(index, sums)| {
                let from_end = SIZE_BINS - 1 - index;
                let from = if index == 0 {
                    0.0
                } else {
                    border(from_end + 1)
                };
                sums.group(from, border(from_end), with_stretch)
            })
            .collect()
    }

    /// All percentile buckets, smallest sizes first; none without jobs.
    pub(crate) fn percentiles(&self, with_stretch: bool) -> Vec<SizeGroup> {
        let percent = |index: usize| index as f64 * 100.0 / PERCENTILE_BUCKETS as f64;
        let share_below = |index: usize| index as f64 / PERCENTILE_BUCKETS as f64;
        self.by_rank(PERCENTILE_BUCKETS, share_below, percent, with_stretch)
    }

    /// Groups of a quarter of a power of ten of larger jobs each, smallest sizes first, up to
    /// the largest job; none without jobs.
    pub(crate) fn nines(&self, with_stretch: bool) -> Vec<SizeGroup> {
        let nines = |index: usize| index as f64 / GROUPS_PER_NINE;
        let share_below = |index: usize| 1.0 - 10f64.powf(-nines(index));
        let groups = (self.jobs().log10() * GROUPS_PER_NINE).ceil().max(1.0) as usize;
        self.by_rank(groups, share_below, nines, with_stretch)
    }

    /// Groups by the share of jobs that are smaller, from that of one index to that of the next;
    /// each is named by its indexes. The last takes everything that is left.
    fn by_rank(
        &self,
        groups: usize,
        share_below: impl Fn(usize) -> f64,
        name: impl Fn(usize) -> f64,
        with_stretch: bool,
    ) -> Vec<SizeGroup> {
        let jobs = self.jobs();
        let mut sums = vec![SizeSums::default(); groups];
        let border = |group: usize| share_below(group + 1) * jobs;
        let (mut before, mut group) = (0.0, 0);
        for cell in self.filled() {
            let end = before + cell.jobs;
            while before < end {
                while group + 1 < groups && border(group) <= before {
                    group += 1;
                }
                let until = if group + 1 == groups {
                    end
                } else {
                    border(group).min(end)
                };
                sums[group].add(cell, (until - before) / cell.jobs);
                before = until;
            }
        }
        let filled = sums.iter().enumerate().filter(|(_, sums)| sums.jobs > 0.0);
        filled
            .map(|(index, sums)| sums.group(name(index), name(index + 1), with_stretch))
            .collect()
    }

    fn jobs(&self) -> f64 {
        self.filled().map(|cell| cell.jobs).sum()
    }

    fn filled(&self) -> impl DoubleEndedIterator<Item = &SizeSums> {
        self.cells
            .iter()
            .map(|(_, _, sums)| sums)
            .filter(|sums| sums.jobs > 0.0)
    }
}

impl SizeSums {
    /// Adds a share of other jobs.
    fn add(&mut self, other: &Self, share: f64) {
        self.jobs += other.jobs * share;
        self.size += other.size * share;
        self.sojourn_ns += other.sojourn_ns * share;
        self.slowdown += other.slowdown * share;
        self.slowdown_max = self.slowdown_max.max(other.slowdown_max);
        self.stretch += other.stretch * share;
    }

    fn size_mean(&self) -> f64 {
        self.size / self.jobs
    }

    fn group(&self, from: f64, to: f64, with_stretch: bool) -> SizeGroup {
        SizeGroup {
            from,
            to,
            jobs: self.jobs,
            size_mean: self.size_mean(),
            sojourn_mean: self.sojourn_ns / self.jobs / 1e9,
            slowdown_mean: self.slowdown / self.jobs,
            slowdown_max: self.slowdown_max,
            stretch_mean: with_stretch.then(|| self.stretch / self.jobs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs of sizes 1 to 1000, each as long in the system as it is large.
    fn thousand() -> BySize {
        let mut by_size = BySize::new();
        for size in 1..=1000 {
            by_size.add(&SizeSums {
                jobs: 1.0,
                size: f64::from(size),
                sojourn_ns: f64::from(size) * 1e9,
                slowdown: 2.0,
                slowdown_max: 2.0,
                stretch: 0.5,
            });
        }
        by_size
    }

    #[test]
    fn bins_have_their_ratio_and_lose_nobody() {
        let bins = thousand().bins(false);
        assert_eq!(bins.iter().map(|bin| bin.jobs).sum::<f64>(), 1000.0);
        assert_eq!(bins.last().map(|bin| bin.to.round()), Some(1000.0));
        for bin in &bins {
            assert!((bin.to / bin.from - SIZE_BIN_RATIO).abs() < 1e-9);
            assert!(bin.from <= bin.size_mean && bin.size_mean <= bin.to);
            assert_eq!((bin.slowdown_mean, bin.stretch_mean), (2.0, None));
        }
    }

    #[test]
    fn buckets_hold_half_a_percent_each() {
        let buckets = thousand().percentiles(true);
        assert_eq!(buckets.len(), PERCENTILE_BUCKETS);
        for (index, bucket) in buckets.iter().enumerate() {
            assert!((bucket.jobs - 5.0).abs() < 1e-6);
            // Sizes 5 index + 1 to 5 index + 5, to a cell's width.
            let mean = 5.0 * index as f64 + 3.0;
            assert!((bucket.sojourn_mean / mean - 1.0).abs() < 0.01, "{index}");
            assert_eq!(bucket.stretch_mean, Some(0.5));
        }
    }

    #[test]
    fn nines_go_on_to_the_largest_job() {
        let nines = thousand().nines(false);
        assert_eq!(nines.len(), 12);
        assert!((nines.iter().map(|group| group.jobs).sum::<f64>() - 1000.0).abs() < 1e-6);
        // The largest 10 are above two nines, from 991 on.
        let tail: f64 = nines[8..].iter().map(|group| group.jobs).sum();
        assert!((tail - 10.0).abs() < 1e-6, "{tail}");
        assert_eq!((nines[8].from, nines[11].to), (2.0, 3.0));
        assert!(nines.is_sorted_by(|a, b| a.sojourn_mean < b.sojourn_mean));
        assert!(BySize::new().nines(false).is_empty());
    }

    #[test]
    fn one_size_is_in_all_buckets() {
        let mut by_size = BySize::new();
        by_size.add(&SizeSums {
            jobs: 1.0,
            size: 7.0,
            ..SizeSums::default()
        });
        assert_eq!(by_size.percentiles(false).len(), PERCENTILE_BUCKETS);
        assert_eq!(by_size.bins(false).len(), 1);
        assert!(BySize::new().bins(false).is_empty());
    }
}
