//! How far a replica of PostgreSQL is behind, by positions in the log (LSN) instead of clocks.
//!
//! `now() - pg_last_xact_replay_timestamp()` grows for ever beside a primary that has nothing to do, and is nought
//! for a replica that has replayed all it received and receives nothing any more. So the gate remembers when the
//! primary was at which position. A replica that has replayed up to a position is as fresh as the last moment at
//! which the primary was not beyond it. No two machines' clocks are compared.
//!
//! It is as fine as the looks are frequent, and errs towards more. While the primary does not answer, the lag is
//! that of its last answer: nobody is known to have written since.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Positions that are remembered. One that is older is too far behind for any limit that makes sense.
const POSITIONS_MAX: usize = 600;

/// Where the primary was, and when.
#[derive(Debug, Default)]
pub struct Positions(VecDeque<Sample>);

#[derive(Clone, Copy, Debug)]
struct Sample {
    position: u64,
    /// When it was seen there last.
    last: Instant,
}

impl Positions {
    /// The primary is there now.
    pub fn note(&mut self, position: u64, now: Instant) {
        match self.0.back_mut() {
            Some(sample) if sample.position == position => sample.last = now,
            // It was restored from a backup, or is another server.
            Some(sample) if sample.position > position => {
                self.0.clear();
                self.push(position, now);
            }
            _ => self.push(position, now),
        }
    }

    fn push(&mut self, position: u64, now: Instant) {
        if self.0.len() >= POSITIONS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Sample {
            position,
            last: now,
        });
    }

    /// Another server is the primary from now on.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// How far one is behind that has replayed up to there; `None` if that is further than is remembered, or
    /// nothing is.
    pub fn lag_of(&self, replayed: u64) -> Option<Duration> {
        let newest = self.0.back()?;
        let behind = self.0.partition_point(|sample| sample.position <= replayed);
        let reached = self.0.get(behind.checked_sub(1)?)?;
        Some(newest.last.saturating_duration_since(reached.last))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_idle_primary_makes_no_lag_and_a_replica_that_is_cut_off_does() {
        let start = Instant::now();
        let mut positions = Positions::default();
        assert_eq!(positions.lag_of(100), None);
        for second in 0..5 {
            positions.note(100, start + SECOND * second);
        }
        assert_eq!(positions.lag_of(100), Some(Duration::ZERO));
        assert_eq!(positions.lag_of(99), None);
        for second in 5..8 {
            positions.note(100 + u64::from(second), start + SECOND * second);
        }
        assert_eq!(positions.lag_of(100), Some(SECOND * 3));
        assert_eq!(positions.lag_of(106), Some(SECOND));
        assert_eq!(positions.lag_of(200), Some(Duration::ZERO));
        positions.note(50, start + SECOND * 9);
        assert_eq!(positions.lag_of(49), None);
    }

    proptest! {
        /// Who has replayed more is behind by no more, and nobody by less than nothing.
        #[test]
        fn more_is_fresher(steps in prop::collection::vec(0..3_u64, 1..1000), replayed in 0..3000_u64) {
            let start = Instant::now();
            let (mut positions, mut at) = (Positions::default(), 1_u64);
            for (second, step) in steps.iter().enumerate() {
                at += step;
                positions.note(at, start + SECOND * second as u32);
            }
            prop_assert_eq!(positions.lag_of(at), Some(Duration::ZERO));
            let (less, more) = (positions.lag_of(replayed), positions.lag_of(replayed + 1));
            prop_assert!(less.is_none() || more.is_some_and(|more| less >= Some(more)));
        }
    }
}
