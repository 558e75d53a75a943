//! Which file is asked for next: as often as its popularity says, and as soon again as the temporal
//! locality says (SURGE's last step).
//!
//! Files lie on a stack, the last requested on top. A reference's stack distance is how deep its
//! file lies, and should be log-normal. Future requests are drawn by popularity into a pool. Each
//! reference draws a distance and takes from the pool the file nearest to that depth. So popularity
//! holds to within what waits in the pool, and distances hold as far as the pool has a file there:
//! with [`POOL_PER_FILE`] requests for each file their quartiles are within a tenth. SURGE orders a
//! sequence of fixed length this way; the pool makes it endless. It runs before the first reference
//! until it has settled.

use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::matching::nearest;

/// Requests in the pool for each file of the site.
const POOL_PER_FILE: usize = 4;
/// References that are made and discarded at first, in pools.
const POOLS_FORGOTTEN: usize = 10;
/// Mean and deviation of the decimal logarithm of stack distances.
const LOG10_MEAN: f64 = 1.5;
const LOG10_DEVIATION: f64 = 0.80;

/// An endless sequence of files.
#[derive(Clone, Debug)]
pub(in super::super) struct References {
    /// The cumulative share of the requests up to and with each file.
    shares_summed: Vec<f64>,
    /// Files, the last requested first.
    stack: Vec<usize>,
    /// Requests in the pool, by file.
    pool: Vec<u32>,
}

impl References {
    /// References to files with these shares of the requests; at least one file.
    pub(in super::super) fn new(shares: &[f64], rng: &mut ChaCha8Rng) -> Self {
        let mut sum = 0.0;
        let shares_summed = shares.iter().map(|share| {
            sum += share;
            sum
        });
        let mut references = Self {
            shares_summed: shares_summed.collect(),
            stack: (0..shares.len()).collect(),
            pool: vec![0; shares.len()],
        };
        references.stack.shuffle(rng);
        let pool = POOL_PER_FILE * shares.len();
        for _ in 0..pool {
            references.refill(rng);
        }
        for _ in 0..POOLS_FORGOTTEN * pool {
            references.next(rng);
        }
        references
    }

    /// The file of the next request, as its place in the site.
    pub(in super::super) fn next(&mut self, rng: &mut ChaCha8Rng) -> usize {
        self.next_with_depth(rng).0
    }

    /// The same, and the stack distance: 1 if it is the last requested file.
    fn next_with_depth(&mut self, rng: &mut ChaCha8Rng) -> (usize, usize) {
        self.refill(rng);
        let wanted = draw_depth(self.stack.len(), rng) - 1;
        let waits = |depth: usize| self.pool[self.stack[depth]] > 0;
        let depth = nearest(wanted, self.stack.len(), waits)
            .expect("invariant: the pool holds at least the request that was just put in");
        let file = self.stack[depth];
        self.stack[..=depth].rotate_right(1);
        self.pool[file] -= 1;
        (file, depth + 1)
    }

    /// One more request, by popularity.
    fn refill(&mut self, rng: &mut ChaCha8Rng) {
        let total = self.shares_summed.last().copied().unwrap_or_default();
        let point = rng.random::<f64>() * total;
        let file = self.shares_summed.partition_point(|sum| *sum <= point);
        // Rounding may put the point at the very end.
        self.pool[file.min(self.stack.len() - 1)] += 1;
    }
}

/// A stack distance from 1 to `files`.
fn draw_depth(files: usize, rng: &mut ChaCha8Rng) -> usize {
    loop {
        let log10 = LOG10_MEAN + LOG10_DEVIATION * standard_normal(rng);
        let depth = libm::pow(10.0, log10);
        if depth <= files as f64 {
            return (depth as usize).max(1);
        }
    }
}

/// Box and Muller's transformation; one of its two numbers.
fn standard_normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.random::<f64>()));
    radius * libm::cos(std::f64::consts::TAU * rng.random::<f64>())
}

#[cfg(test)]
mod tests {
    use super::super::zipf;
    use super::*;
    use rand::SeedableRng;

    const FILES: usize = 400;
    const COUNT: usize = 40_000;

    fn references(seed: u64) -> Vec<(usize, usize)> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut references = References::new(&zipf(FILES), &mut rng);
        (0..COUNT)
            .map(|_| references.next_with_depth(&mut rng))
            .collect()
    }

    #[test]
    fn files_are_asked_for_as_their_popularity_says() {
        let shares = zipf(FILES);
        let made = references(1);
        // Within what waits in the pool, or five deviations.
        for (from, to) in [(0, 1), (1, 10), (10, 100), (100, FILES)] {
            let inside = made.iter().filter(|(file, _)| (from..to).contains(file));
            let got = inside.count() as f64 / COUNT as f64;
            let want: f64 = shares[from..to].iter().sum();
            assert!(
                (got - want).abs() < 0.02,
                "{from} to {to}: {got}, not {want}"
            );
        }
    }

    #[test]
    fn stack_distances_are_log_normal() {
        let mut depths: Vec<usize> = references(2).into_iter().map(|(_, depth)| depth).collect();
        depths.sort_unstable();
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut wanted: Vec<usize> = (0..COUNT).map(|_| draw_depth(FILES, &mut rng)).collect();
        wanted.sort_unstable();
        for share in [0.25, 0.5, 0.75, 0.9] {
            let at = (share * COUNT as f64) as usize;
            let (got, want) = (depths[at] as f64, wanted[at] as f64);
            assert!(
                (got / want).log10().abs() < 0.1,
                "{share}: {got}, not {want}"
            );
        }
    }

    #[test]
    fn drawn_distances_have_the_closed_forms_quantiles() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let depths: Vec<usize> = (0..COUNT)
            .map(|_| draw_depth(usize::MAX, &mut rng))
            .collect();
        for depth in [2, 5, 32, 100, 1_000] {
            let below = depths.iter().filter(|drawn| **drawn < depth).count();
            let got = below as f64 / COUNT as f64;
            let deviations = ((depth as f64).log10() - 1.5) / 0.8;
            let want = 0.5 * libm::erfc(-deviations / std::f64::consts::SQRT_2);
            let chance = (want * (1.0 - want) / COUNT as f64).sqrt();
            assert!(
                (got - want).abs() < 5.0 * chance,
                "{depth}: {got}, not {want}"
            );
        }
    }

    #[test]
    fn a_seed_gives_the_same_references() {
        assert_eq!(references(5), references(5));
        assert_ne!(references(5), references(6));
    }

    #[test]
    fn one_file_is_asked_for_again_and_again() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut references = References::new(&[1.0], &mut rng);
        assert_eq!(references.next_with_depth(&mut rng), (0, 1));
    }
}
