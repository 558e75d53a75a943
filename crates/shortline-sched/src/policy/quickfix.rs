//! `quickfix`: small jobs before large ones, fair within each kind.
//!
//! Source: paper 003 7, "quick fix". Half of the requests are small, by their total size, so the
//! limit is the median; there it was 1 KB. The limit is either given or the median of the sizes
//! seen so far ([`super::learnt`]). The band that 003 keeps for SYN-ACKs belongs to the link.

use super::Needs;
use super::bands::{Bands, in_turn};
use crate::job::Job;

pub(super) const NEEDS: Needs = Needs::Sizes;

/// The rank: small jobs first, in turn.
pub(super) fn rank(job: &Job, bands: &Bands) -> u64 {
    in_turn(bands.index(job.work_estimate), job.turn)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::Cutoffs;
    use super::*;

    #[test]
    fn small_before_large_whatever_is_done_and_in_turn() {
        let bands = Bands::new(&Cutoffs::fixed(&[1_000]).unwrap());
        let job = |size, turn| Job {
            turn,
            ..Job::arrived(0, size)
        };
        let mut nearly_done = job(9_000, 1);
        nearly_done.work_done = 8_999;
        assert!(rank(&job(1_000, 2), &bands) < rank(&nearly_done, &bands));
        assert!(rank(&nearly_done, &bands) < rank(&job(1_001, 2), &bands));
        assert!(rank(&job(900, 1), &bands) < rank(&job(100, 2), &bands));
    }
}
