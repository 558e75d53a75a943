//! What databases log: PostgreSQL's lines, CSV and JSON, slow query logs, rows of `pg_stat_statements`. Whatever surrounds a
//! statement, it is read or counted, and what is computed of those read adds up.

use std::num::NonZeroUsize;

use shortline_gain::{Content, GainError, Mix, Statements};
use shortline_load::trace::LogInput;

/// A whole log, of any kind.
pub fn log(bytes: &[u8]) {
    let Ok(mut input) = LogInput::of_bytes(bytes.to_vec()) else {
        return;
    };
    let _ = Content::of(&mut input);
    match Statements::read(vec![input], |_| {}) {
        Ok(statements) => check(&statements),
        Err(error) => crate::assert_one_line(&error),
    }
    let Ok(input) = LogInput::of_bytes(bytes.to_vec()) else {
        return;
    };
    match Mix::read(input) {
        Ok(mix) => {
            assert_eq!(
                mix.calls,
                mix.kinds.iter().map(|kind| kind.calls).sum::<u64>()
            );
            assert!(
                mix.loads
                    .iter()
                    .all(|at| at.shortline_s >= 0.0 && at.fifo_s >= 0.0)
            );
        }
        Err(error) => crate::assert_one_line(&error),
    }
}

fn check(statements: &Statements) {
    let gain = statements.gain(NonZeroUsize::new(2));
    let gain = match gain {
        Ok(gain) => gain,
        Err(GainError::Simulation(error)) => return crate::assert_one_line(&error),
        Err(error) => panic!("{error}"),
    };
    let by_kind: u64 = gain.kinds.iter().map(|kind| kind.statements).sum();
    assert_eq!(by_kind, gain.busiest_statements);
    assert!(gain.busiest_statements <= gain.statements);
    assert!(
        gain.waits
            .iter()
            .all(|waits| waits.mean_s.is_finite() && waits.mean_s >= 0.0)
    );
    for line in &gain.notes {
        crate::assert_one_line(line);
    }
}
