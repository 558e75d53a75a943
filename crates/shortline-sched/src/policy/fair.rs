//! `fair`: round robin, one quantum each; processor sharing in the limit of small quanta.
//!
//! Source: paper 001 3.1 (its size-independent policy), and the fair bands of 003 3.3. A job draws
//! a turn whenever it enters the index, so a served job goes behind all that wait. The simulator
//! uses exact processor sharing instead of quanta ([`crate::processor_sharing`]).

use super::Needs;
use crate::job::Job;

pub(super) const NEEDS: Needs = Needs::Sizes;

/// The rank: the turn the job drew when it last entered the index.
pub(super) fn rank(job: &Job) -> u64 {
    job.turn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_by_the_turn_drawn() {
        let mut first = Job::arrived(5, 10);
        first.turn = 1;
        let mut second = Job::arrived(0, 1);
        second.turn = 2;
        assert!(rank(&first) < rank(&second));
    }
}
