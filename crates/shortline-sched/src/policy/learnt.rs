//! Cutoffs learnt from the sizes seen.
//!
//! Source: the rules of thumb of papers 003 3.3.1 and 000 3.2. The lowest cutoff lies at the
//! median, the highest has 0.5-1 % of the sizes above it (here 0.75 %), and the others lie evenly
//! between by the logarithm.
//!
//! Sizes are counted in bins, 32 to the octave. So a cutoff is within 3 % of the exact quantile,
//! and cutoffs even by the logarithm are an equal number of bins apart. New cutoffs are drawn after
//! 16, 32, 64 ... 1024 sizes and then after each 1024. All counts are halved whenever their sum
//! reaches 65,536, so that a site that changes is learnt anew. Before the first 16 sizes there is
//! one band for all.

use super::cutoffs::CUTOFFS_MAX;

const SUB_BITS: u32 = 5;
/// Bins to the octave.
const SUB_BINS: usize = 1 << SUB_BITS;
const BINS: usize = (u64::BITS - SUB_BITS + 1) as usize * SUB_BINS;
const LEARN_FIRST: u32 = 16;
const LEARN_EACH: u32 = 1024;
const SEEN_MAX: u32 = 1 << 16;
/// The share of sizes above the highest cutoff, 3 in 400.
const ABOVE_NUMERATOR: u64 = 3;
const ABOVE_DENOMINATOR: u64 = 400;

/// The sizes seen, and when to learn from them.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    counts: Box<[u32; BINS]>,
    seen: u32,
    learn_at: u32,
    cutoffs: usize,
}

impl Sizes {
    pub(super) fn new(bands: usize) -> Self {
        Self {
            counts: Box::new([0; BINS]),
            seen: 0,
            learn_at: LEARN_FIRST,
            cutoffs: bands - 1,
        }
    }

    /// How many cutoffs are learnt.
    pub(super) fn cutoffs(&self) -> usize {
        self.cutoffs
    }

    /// Counts a size. Returns new cutoffs when they are due.
    pub(super) fn see(&mut self, size: u64) -> Option<[u64; CUTOFFS_MAX]> {
        self.counts[bin(size)] += 1;
        self.seen += 1;
        if self.seen < self.learn_at {
            return None;
        }
        let learnt = self.learn();
        if self.seen >= SEEN_MAX {
            self.forget_half();
        }
        self.learn_at = self.seen + self.seen.min(LEARN_EACH);
        Some(learnt)
    }

    fn learn(&self) -> [u64; CUTOFFS_MAX] {
        let seen = u64::from(self.seen);
        let lowest = self.bin_with_at_most_above(seen / 2);
        let above = seen * ABOVE_NUMERATOR / ABOVE_DENOMINATOR;
        let highest = self.bin_with_at_most_above(above);
        let steps = (self.cutoffs - 1).max(1);
        let mut learnt = [0; CUTOFFS_MAX];
        for (step, cutoff) in learnt.iter_mut().take(self.cutoffs).enumerate() {
            *cutoff = largest_in(lowest + (highest - lowest) * step / steps);
        }
        learnt
    }

    /// The lowest bin with at most `above_max` sizes above it.
    fn bin_with_at_most_above(&self, above_max: u64) -> usize {
        let mut above = u64::from(self.seen);
        for (bin, &count) in self.counts.iter().enumerate() {
            above -= u64::from(count);
            if above <= above_max {
                return bin;
            }
        }
        BINS - 1
    }

    fn forget_half(&mut self) {
        for count in self.counts.iter_mut() {
            *count /= 2;
        }
        self.seen = self.counts.iter().sum();
    }
}

/// The bin of a size: its octave and the bits that follow its highest one.
fn bin(size: u64) -> usize {
    let Some(octave) = size.checked_ilog2().filter(|&octave| octave >= SUB_BITS) else {
        return size as usize;
    };
    let shift = octave - SUB_BITS;
    let sub = (size >> shift) as usize - SUB_BINS;
    (shift as usize + 1) * SUB_BINS + sub
}

/// The largest size in a bin.
fn largest_in(bin: usize) -> u64 {
    if bin < SUB_BINS {
        return bin as u64;
    }
    let shift = (bin / SUB_BINS - 1) as u32;
    let smallest = ((SUB_BINS + bin % SUB_BINS) as u64) << shift;
    smallest + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    /// A Pareto distribution of index 1.1, evenly from its quantiles, shuffled by a stride.
    fn heavy_tailed(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |index| {
            let place = index * 7_919 % count;
            let above = (place as f64 + 0.5) / count as f64;
            (300.0 * above.powf(-1.0 / 1.1)) as u64
        })
    }

    fn learnt(bands: usize, sizes: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut seen = Sizes::new(bands);
        let mut cutoffs = None;
        for size in sizes {
            cutoffs = seen.see(size).or(cutoffs);
        }
        cutoffs.map_or(vec![], |cutoffs| cutoffs[..bands - 1].to_vec())
    }

    fn share_above(cutoff: u64) -> f64 {
        let above = heavy_tailed(50_000).filter(|&size| size > cutoff);
        above.count() as f64 / 50_000.0
    }

    #[test]
    fn the_rules_of_thumb_hold_for_heavy_tails() {
        for bands in [3, 5, 6, 16] {
            let cutoffs = learnt(bands, heavy_tailed(50_000));
            assert!((share_above(cutoffs[0]) - 0.5).abs() < 0.02, "{cutoffs:?}");
            let above = share_above(cutoffs[bands - 2]);
            assert!((0.005..=0.01).contains(&above), "{bands}: {above}");
            let logarithms = cutoffs.iter().map(|&cutoff| (cutoff as f64).ln());
            let logarithms: Vec<f64> = logarithms.collect();
            let even = (logarithms[bands - 2] - logarithms[0]) / (bands - 2) as f64;
            for step in logarithms.windows(2) {
                // Bins are even by the logarithm to a tenth.
                assert!((step[1] - step[0] - even).abs() < 0.1, "{cutoffs:?}");
            }
        }
    }

    #[test]
    fn two_bands_part_at_the_median() {
        let cutoffs = learnt(2, heavy_tailed(50_000));
        assert!((share_above(cutoffs[0]) - 0.5).abs() < 0.02, "{cutoffs:?}");
    }

    #[test]
    fn a_few_sizes_are_not_learnt_from() {
        assert!(learnt(5, heavy_tailed(15)).is_empty());
        assert_eq!(learnt(5, heavy_tailed(16)).len(), 4);
    }

    #[test]
    fn what_changes_is_learnt_anew() {
        let sizes = (0..200_000)
            .map(|_| 1_000)
            .chain((0..200_000).map(|_| 9_000));
        let cutoff = learnt(2, sizes)[0];
        assert!((9_000..9_300).contains(&cutoff), "{cutoff}");
    }

    proptest! {
        #[test]
        fn a_bin_holds_what_lies_up_to_its_largest_size(size: u64) {
            let bin = bin(size);
            prop_assert!(bin < BINS);
            prop_assert!(size <= largest_in(bin));
            prop_assert!(bin == 0 || size > largest_in(bin - 1));
            // Within 3 %.
            prop_assert!(largest_in(bin) - size <= size / 32);
        }

        #[test]
        fn cutoffs_never_fall(sizes in prop::collection::vec(any::<u64>(), 16..200)) {
            prop_assert!(learnt(16, sizes.into_iter()).is_sorted());
        }
    }
}
