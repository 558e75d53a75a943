//! An experiment with the bookstore, as data: loads, doors before the database, outcomes and claims.

pub mod check;
pub mod counters;
pub mod design;
pub mod door;
pub mod figures;
pub mod gate_seen;
pub mod load;
pub mod measure;
pub mod outcome;

use thiserror::Error;

pub use check::Check;
pub use design::{Design, RESULTS, Run, Stage, Step, Trial};
pub use door::Door;
pub use load::{Load, Pace};
pub use measure::Measure;
pub use outcome::Outcome;

/// An unknown name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ShopNameError {
    /// No load has that name.
    #[error(
        "unknown load `{0}`: want alone, N-browsers, N-browsers-slowed, N-browsers-other-mix, \
            N-browsers-short-sessions, alternating or alternating-clicks"
    )]
    Load(String),
    /// No door has that name.
    #[error(
        "unknown door `{0}`: want none, fifo, sjf or sjf-aging-X, with a fixed capacity such as fifo@40ms, \
            pool-N or pgbouncer-N with N connections, or a database of the study"
    )]
    Door(String),
}
