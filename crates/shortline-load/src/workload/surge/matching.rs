//! Which file gets which popularity (SURGE's matching problem): with sizes s and shares p of the
//! requests, the share of requests below each size should be that of the requests' law F.
//!
//! The border between two neighbouring files is their geometric mean, and a file's demand is what F
//! has between its borders. Shares are placed in turn, the most popular first. Each goes to the
//! free file in the middle of the narrowest range of sizes (by logarithm) whose demand is still
//! that much, and uses the demand up from there outwards. The largest share is a single file, so
//! the two distributions differ by at least half of it; they differ by hardly more. SURGE's own
//! heuristic draws a size from F for each share instead.

/// The share of the requests of each file, in the order of `sizes`, which rise. `popularity` falls
/// and has the same length.
pub(super) fn matched(
    sizes: &[u64],
    share_below: impl Fn(f64) -> f64,
    popularity: &[f64],
) -> Vec<f64> {
    let mut demand = Demand::new(sizes, share_below);
    let mut shares = vec![None; sizes.len()];
    for &share in popularity {
        let centre = demand.centre(share);
        let file = nearest(centre, sizes.len(), |file| shares[file].is_none())
            .expect("invariant: there are as many files as shares");
        shares[file] = Some(share);
        demand.use_up(centre, share);
    }
    shares.into_iter().flatten().collect()
}

/// The index nearest to `centre` below `count` that `fits`.
pub(super) fn nearest(centre: usize, count: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    (0..count).find_map(|distance| {
        let below = centre.checked_sub(distance).filter(|index| fits(*index));
        let above = centre + distance;
        below.or_else(|| (above < count && fits(above)).then_some(above))
    })
}

struct Demand {
    logs: Vec<f64>,
    /// What is left of it, by file.
    left: Vec<f64>,
}

impl Demand {
    fn new(sizes: &[u64], share_below: impl Fn(f64) -> f64) -> Self {
        let logs: Vec<f64> = sizes.iter().map(|size| libm::log(*size as f64)).collect();
        let mut before = 0.0;
        let left = (0..sizes.len()).map(|file| {
            let until = match logs.get(file + 1) {
                Some(next) => share_below(libm::exp(f64::midpoint(logs[file], *next))),
                None => 1.0,
            };
            let share = until - before;
            before = until;
            share
        });
        Self {
            left: left.collect(),
            logs,
        }
    }

    /// The middle of the narrowest range of sizes that has this much demand left.
    fn centre(&self, share: f64) -> usize {
        // Rounding must not hide the last range.
        let enough = share * (1.0 - 1e-6);
        let (mut first, mut inside) = (0, 0.0);
        let mut narrowest: Option<(f64, usize, usize)> = None;
        for (last, left) in self.left.iter().enumerate() {
            inside += left;
            while first < last && inside - self.left[first] >= enough {
                inside -= self.left[first];
                first += 1;
            }
            let width = self.logs[last] - self.logs[first];
            if inside >= enough && narrowest.is_none_or(|(least, ..)| width < least) {
                narrowest = Some((width, first, last));
            }
        }
        let (_, first, last) = narrowest.unwrap_or((0.0, 0, self.left.len() - 1));
        self.middle(first, last)
    }

    /// Where half of the range's demand is reached.
    fn middle(&self, first: usize, last: usize) -> usize {
        let half = self.left[first..=last].iter().sum::<f64>() / 2.0;
        let mut inside = 0.0;
        let reached = (first..=last).find(|file| {
            inside += self.left[*file];
            inside >= half
        });
        reached.unwrap_or(last)
    }

    fn use_up(&mut self, centre: usize, share: f64) {
        let mut wanted = share;
        let count = self.left.len();
        for distance in 0..count {
            let sides = [centre.checked_sub(distance), Some(centre + distance)];
            for file in sides.into_iter().flatten().filter(|file| *file < count) {
                let used = self.left[file].min(wanted);
                self.left[file] -= used;
                wanted -= used;
            }
            if wanted <= 0.0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_shares_of_a_law_meet_it() {
        // Uniform by logarithm over ten sizes.
        let sizes: Vec<u64> = (0..10).map(|power| 1 << (power + 10)).collect();
        let law = |bytes: f64| (bytes.log2() - 9.5) / 10.0;
        assert_eq!(matched(&sizes, law, &[0.1; 10]), [0.1; 10]);
    }

    #[test]
    fn a_large_share_goes_where_the_demand_is() {
        let sizes = [100, 1_000, 10_000, 100_000];
        let law = |bytes: f64| if bytes < 5_000.0 { 0.1 } else { 0.9 };
        let shares = matched(&sizes, law, &[0.7, 0.1, 0.1, 0.1]);
        assert_eq!(shares, [0.1, 0.1, 0.7, 0.1]);
    }

    proptest! {
        #[test]
        fn every_share_is_given_once(
            steps in proptest::collection::vec(1u64..1_000, 1..60),
            mut popularity in proptest::collection::vec(0.001..1.0f64, 60),
        ) {
            let sizes: Vec<u64> = steps.iter().scan(0, |sum, step| {
                *sum += step;
                Some(*sum)
            }).collect();
            popularity.truncate(sizes.len());
            popularity.sort_unstable_by(|a, b| b.total_cmp(a));
            let largest = sizes[sizes.len() - 1] as f64;
            let mut got = matched(&sizes, |bytes| bytes / largest, &popularity);
            got.sort_unstable_by(|a, b| b.total_cmp(a));
            prop_assert_eq!(got, popularity);
        }
    }
}
