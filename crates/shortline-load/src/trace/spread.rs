//! Spreads the requests of one second over it, for the formats that have only whole seconds.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Request, Spread};

pub(super) const NS_PER_S: u64 = 1_000_000_000;

/// Spreads requests as [`Spread`] says.
pub(super) struct Spreader(Option<ChaCha8Rng>);

impl Spreader {
    pub(super) fn new(spread: Spread) -> Self {
        Self(match spread {
            Spread::Even => None,
            Spread::Random { seed } => Some(ChaCha8Rng::seed_from_u64(seed)),
        })
    }

    /// Spreads the requests of one second, which so far are all at its start, over it.
    pub(super) fn spread(&mut self, second: &mut [Request]) {
        let count = second.len() as u64;
        let mut offsets: Vec<u64> = match &mut self.0 {
            None => (0..count).map(|i| i * NS_PER_S / count).collect(),
            Some(rng) => (0..count).map(|_| rng.random_range(0..NS_PER_S)).collect(),
        };
        offsets.sort_unstable();
        for (request, offset) in second.iter_mut().zip(offsets) {
            request.at_ns += offset;
        }
    }
}
