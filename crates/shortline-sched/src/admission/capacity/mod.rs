//! How much may run at once: without limit, fixed, or found while the backend works ([`auto`]).
//! What to fix it at can be found beforehand with a load that one runs ([`Calibration`]).

mod auto;
mod calibrate;
mod curve;
mod dwell;

pub use auto::{AutoReason, AutoView};
pub use calibrate::{Calibration, CalibrationError, Trial};

use serde::Serialize;

use super::config::Capacity;
use auto::Auto;

/// How the limit comes about.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum CapacityState {
    /// There is none.
    Off,
    /// As configured.
    Fixed,
    /// Found while the backend works.
    Auto(AutoView),
}

/// The limit at work.
#[derive(Debug)]
pub(super) enum Control {
    Off,
    Fixed(u64),
    Auto(Box<Auto>),
}

/// A request that ended, as the limit sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// How long it was served, in nanoseconds.
    pub(super) service_ns: u64,
    /// What it had added to the load.
    pub(super) load_ns: u64,
}

impl Control {
    pub(super) fn new(capacity: Capacity) -> Self {
        match capacity {
            Capacity::Off => Self::Off,
            Capacity::Fixed(capacity_ns) => Self::Fixed(capacity_ns.get()),
            Capacity::Auto => Self::Auto(Box::default()),
        }
    }

    /// The limit, in nanoseconds of load; `None` without one.
    pub(super) fn limit_ns(&self) -> Option<u64> {
        match self {
            Control::Off => None,
            Control::Fixed(capacity_ns) => Some(*capacity_ns),
            Control::Auto(auto) => Some(auto.capacity_ns()),
        }
    }

    /// So much has run, and whether others waited, from the last call until now.
    pub(super) fn pass(&mut self, now_ns: u64, active: usize, load_ns: u64, waits: bool) {
        if let Control::Auto(auto) = self {
            auto.pass(now_ns, active, load_ns, waits);
        }
    }

    /// A request was completed.
    pub(super) fn completed(&mut self, now_ns: u64, ended: Ended) {
        if let Control::Auto(auto) = self {
            auto.completed(now_ns, ended);
        }
    }

    /// Begins at a limit that was found before. A fixed one stays.
    pub(super) fn restore(&mut self, capacity_ns: u64) {
        if let Control::Auto(auto) = self {
            auto.restore(capacity_ns);
        }
    }

    pub(super) fn state(&self) -> CapacityState {
        match self {
            Control::Off => CapacityState::Off,
            Control::Fixed(_) => CapacityState::Fixed,
            Control::Auto(auto) => CapacityState::Auto(auto.view()),
        }
    }
}
