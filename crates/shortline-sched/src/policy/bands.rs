//! `bands`: ranks by the band of the remaining size; fair inside a band.
//!
//! Source: papers 003 3.3 and 000 3.2. A few bands come close to SRPT. Within a band all requests
//! share as if there were no sizes. A job as large as a cutoff belongs to the band below it. The
//! cutoffs are fixed ([`Cutoffs`]) or learnt ([`super::learnt`]). When they change, a waiting job
//! keeps its band until it is served, so nothing needs sorting anew.

use super::Needs;
use super::cutoffs::{CUTOFFS_MAX, Cutoffs};
use super::learnt::Sizes;
use crate::job::Job;

pub(super) const NEEDS: Needs = Needs::Sizes;

/// The bits of a rank below the band: enough for centuries of turns.
const TURN_BITS: u32 = 59;

/// The rank: the band of what remains, in turn.
pub(super) fn rank(job: &Job, bands: &Bands) -> u64 {
    in_turn(bands.index(job.remaining_estimate()), job.turn)
}

/// A rank that goes by the band, and within one by the turn.
pub(super) fn in_turn(band: usize, turn: u64) -> u64 {
    (band as u64) << TURN_BITS | turn
}

/// The bands as they are at present.
#[derive(Clone, Debug)]
pub(crate) struct Bands {
    /// The largest size of each band but the last, rising.
    cutoffs: [u64; CUTOFFS_MAX],
    count: usize,
    learning: Option<Sizes>,
}

impl Bands {
    pub(crate) fn new(cutoffs: &Cutoffs) -> Self {
        let mut bands = Self {
            cutoffs: [0; CUTOFFS_MAX],
            count: 0,
            learning: cutoffs.learnt_bands().map(Sizes::new),
        };
        bands.set(cutoffs.sizes());
        bands
    }

    /// Lets the cutoffs learn from a job's size.
    pub(crate) fn see(&mut self, size: u64) {
        let Some(sizes) = &mut self.learning else {
            return;
        };
        if let Some(cutoffs) = sizes.see(size) {
            self.cutoffs = cutoffs;
            self.count = sizes.cutoffs();
        }
    }

    /// The cutoffs at present, rising.
    pub(crate) fn cutoffs(&self) -> &[u64] {
        &self.cutoffs[..self.count]
    }

    /// The band of a size, from 0.
    pub(crate) fn index(&self, size: u64) -> usize {
        self.cutoffs()
            .iter()
            .filter(|&&cutoff| cutoff < size)
            .count()
    }

    /// The lower limit of the band of `size`: every size in it is larger. 0 for the first band.
    pub(crate) fn floor(&self, size: u64) -> u64 {
        match self.index(size) {
            0 => 0,
            band => self.cutoffs[band - 1],
        }
    }

    fn set(&mut self, cutoffs: &[u64]) {
        self.count = cutoffs.len();
        self.cutoffs[..self.count].copy_from_slice(cutoffs);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_papers_bands_are_those_of_five_priorities() {
        let bands = Bands::new(&Cutoffs::default());
        let sizes = [1, 1_000, 1_001, 2_000, 5_000, 5_001, 50_000, 50_001];
        let indexes = sizes.map(|size| bands.index(size));
        assert_eq!(indexes, [0, 0, 1, 1, 2, 3, 3, 4]);
        let floors = sizes.map(|size| bands.floor(size));
        assert_eq!(floors, [0, 0, 1_000, 1_000, 2_000, 5_000, 5_000, 50_000]);
    }

    #[test]
    fn a_job_rises_as_it_is_served_and_waits_its_turn_inside_a_band() {
        let bands = Bands::new(&Cutoffs::default());
        let mut large = Job::arrived(0, 60_000);
        large.turn = 1;
        let mut small = Job::arrived(0, 3_000);
        small.turn = 2;
        assert!(rank(&small, &bands) < rank(&large, &bands));
        large.work_done = 55_500;
        assert!(rank(&large, &bands) < rank(&small, &bands));
        large.turn = 3;
        assert!(rank(&small, &bands) < rank(&large, &bands));
    }
}
