//! How much may run at once: without limit, fixed, or found while the backend works ([`auto`]).
//! What to fix it at can be found beforehand with a load that one runs ([`Calibration`], and
//! [`trials`] in front of a backend).

mod auto;
mod calibrate;
mod curve;
mod dwell;
mod lookout;
mod search;
mod trials;
mod watch;

pub use auto::{AutoReason, AutoView};
pub use calibrate::{Calibration, CalibrationError, Trial};
pub use trials::{CalibrationStage, CalibrationView};

use serde::Serialize;

use super::config::{AdmissionConfig, Capacity};
use auto::Auto;
use trials::Trials;
use watch::Watch;

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
    /// Searched for under the load that runs, and then as found.
    Calibrate(CalibrationView),
}

/// The limit at work.
#[derive(Debug)]
pub(super) enum Control {
    Off,
    Fixed(u64),
    Auto(Box<Auto>),
    /// The same in a dry run.
    Watch(Box<Watch>),
    Calibrate(Box<Trials>),
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
    pub(super) fn new(config: &AdmissionConfig) -> Self {
        match config.capacity {
            Capacity::Off => Self::Off,
            Capacity::Fixed(capacity_ns) => Self::Fixed(capacity_ns.get()),
            Capacity::Auto if config.dry_run => Self::Watch(Box::default()),
            Capacity::Auto => Self::Auto(Box::default()),
            Capacity::Calibrate => Self::Calibrate(Box::new(Trials::new(config.trial_ns.get()))),
        }
    }

    /// The limit, in nanoseconds of load; `None` without one.
    pub(super) fn limit_ns(&self) -> Option<u64> {
        match self {
            Control::Off => None,
            Control::Fixed(capacity_ns) => Some(*capacity_ns),
            Control::Auto(auto) => Some(auto.capacity_ns()),
            Control::Watch(watch) => watch.limit_ns(),
            Control::Calibrate(trials) => Some(trials.capacity_ns()),
        }
    }

    /// So many may run whatever they add to the load: one, that something goes on, or more where nothing is
    /// known yet.
    pub(super) fn free(&self) -> usize {
        match self {
            Control::Auto(auto) => auto.free(),
            _ => 1,
        }
    }

    /// The limit as far as it is worth keeping: not one that is only tried.
    pub(super) fn kept_ns(&self) -> Option<u64> {
        match self {
            Control::Calibrate(trials) => trials.found_ns(),
            Control::Watch(watch) => watch.kept_ns(),
            _ => self.limit_ns(),
        }
    }

    /// So much has run, and whether others waited, from the last call until now.
    pub(super) fn pass(&mut self, now_ns: u64, active: usize, load_ns: u64, waits: bool) {
        match self {
            Control::Off | Control::Fixed(_) => {}
            Control::Auto(auto) => auto.pass(now_ns, active, load_ns, waits),
            Control::Watch(watch) => watch.pass(now_ns, active, load_ns),
            Control::Calibrate(trials) => trials.pass(now_ns, active, load_ns, waits),
        }
    }

    /// A request of the type at the place `kind` was completed.
    pub(super) fn completed(&mut self, now_ns: u64, kind: usize, ended: Ended) {
        match self {
            Control::Off | Control::Fixed(_) => {}
            Control::Auto(auto) => auto.completed(now_ns, ended),
            Control::Watch(watch) => watch.completed(ended),
            Control::Calibrate(trials) => trials.completed(now_ns, kind, ended),
        }
    }

    /// Begins at a limit that was found before. A fixed one stays, and a search begins anew.
    pub(super) fn restore(&mut self, capacity_ns: u64) {
        match self {
            Control::Auto(auto) => auto.restore(capacity_ns),
            Control::Watch(watch) => watch.restore(capacity_ns),
            Control::Off | Control::Fixed(_) | Control::Calibrate(_) => {}
        }
    }

    pub(super) fn state(&self) -> CapacityState {
        match self {
            Control::Off => CapacityState::Off,
            Control::Fixed(_) => CapacityState::Fixed,
            Control::Auto(auto) => CapacityState::Auto(auto.view()),
            Control::Watch(watch) => CapacityState::Auto(watch.view()),
            Control::Calibrate(trials) => CapacityState::Calibrate(trials.view()),
        }
    }
}
