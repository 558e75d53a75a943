//! An experiment with the bookstore, as data: who comes, what is before the database, what came out, and
//! what is claimed of it.

pub mod check;
pub mod counters;
pub mod design;
pub mod door;
pub mod figures;
pub mod gate_seen;
pub mod load;
pub mod outcome;

use thiserror::Error;

pub use check::{Check, Measure};
pub use design::{Design, RESULTS, Run, Stage, Step, Trial};
pub use door::Door;
pub use load::{Load, Pace};
pub use outcome::Outcome;

/// A name that is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ShopNameError {
    /// No load of that name comes to the bookstore.
    #[error(
        "unknown load `{0}`: want alone, N-browsers, N-browsers-slowed, N-browsers-other-mix, \
            N-browsers-short-sessions, alternating or alternating-clicks"
    )]
    Load(String),
    /// Nothing of that name is before the bookstore's database.
    #[error(
        "unknown door `{0}`: want none, fifo, sjf or sjf-aging-X, with a fixed capacity such as fifo@40ms, \
            or pool-N or pgbouncer-N with N connections"
    )]
    Door(String),
}
