//! What `auto` tells of itself: the reason for the present capacity, and what it has measured.

use serde::Serialize;

/// The reason for the present capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoReason {
    /// Nothing has been measured yet.
    Starting,
    /// It doubles as long as that does more work.
    Rising,
    /// It is halved as long as that does not do less work.
    Falling,
    /// No request waits, so another capacity would change nothing.
    NobodyWaits,
    /// A larger capacity does more work, with confidence.
    MoreIsBetter,
    /// A smaller capacity does more work, with confidence.
    LessIsBetter,
    /// Near the top, as far as can be measured.
    AtTheTop,
    /// The backend has changed, and is learnt anew.
    BackendChanged,
    /// In a dry run: no load was seen at which less work was done than at a smaller one.
    NotKnown,
}

/// The state of `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AutoView {
    /// The reason for the present capacity.
    pub reason: AutoReason,
    /// The capacity around which it probes, in nanoseconds. If it is not known, the largest load seen.
    pub center_ns: u64,
    /// What each request adds to the load, in nanoseconds. 0 until something was measured; until then its estimate.
    pub each_ns: u64,
    /// Work completed per second in the last measurement, in seconds of load.
    pub work_rate: f64,
    /// By how many per cent the work grows per per cent of capacity, less the 0.02 that more capacity must bring.
    pub slope: f64,
    /// The standard deviation of the slope.
    pub slope_error: f64,
    /// The number of measurements.
    pub measurements: u64,
    /// How many times a change of the backend was noticed.
    pub changes: u64,
}

impl AutoView {
    /// The view before any measurement.
    pub(in super::super) fn new(reason: AutoReason) -> Self {
        Self {
            reason,
            center_ns: 0,
            each_ns: 0,
            work_rate: 0.0,
            slope: 0.0,
            slope_error: 0.0,
            measurements: 0,
            changes: 0,
        }
    }
}
