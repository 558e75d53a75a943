//! What can be seen of admission from outside: plain values, for metrics and pages.

use serde::Serialize;

/// The queue, the load and the types at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdmissionView {
    /// Requests that wait.
    pub waiting: usize,
    /// Requests that were admitted and have not ended.
    pub running: usize,
    /// Those of them that are not paused.
    pub active: usize,
    /// The sum of the estimates of the active ones, in nanoseconds.
    pub load_ns: u64,
    /// How much of that is admitted at most; `None` without a limit.
    pub capacity_ns: Option<u64>,
    /// Each type; the first is the one that all share for which the table has no room.
    pub types: Vec<TypeView>,
}

/// What is known of a type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeView {
    /// Its name.
    pub name: String,
    /// Its expected service time, in nanoseconds.
    pub estimate_ns: u64,
    /// Requests of it that wait.
    pub waiting: usize,
    /// Requests of it that were admitted and have not ended.
    pub running: usize,
    /// How many were admitted so far.
    pub admitted: u64,
    /// How many ended well.
    pub completed: u64,
    /// How many broke off after they were admitted.
    pub failed: u64,
    /// How many were refused on arrival.
    pub refused: u64,
    /// How many went away while they waited, at their limit or before.
    pub withdrawn: u64,
    /// How long those admitted have waited, all together, in nanoseconds.
    pub waited_ns_sum: u64,
    /// The longest of these waits, in nanoseconds.
    pub waited_ns_max: u64,
}
