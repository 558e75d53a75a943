//! The capacity: no limit, fixed, or found while the backend works ([`auto`]). A value for a fixed one
//! can be found beforehand under a load that an operator runs ([`Calibration`], and [`trials`] in
//! front of a backend).

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

/// How the capacity is set or found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum CapacityState {
    /// There is no limit.
    Off,
    /// As configured.
    Fixed,
    /// Found while the backend works.
    Auto(AutoView),
    /// Found by trials under the running load, and then fixed.
    Calibrate(CalibrationView),
}

/// The limit in use.
#[derive(Debug)]
pub(super) enum Control {
    Off,
    Fixed(u64),
    Auto(Box<Auto>),
    /// `auto` in a dry run.
    Watch(Box<Watch>),
    Calibrate(Box<Trials>),
}

/// A request that ended, as the measurements use it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// Its service, in nanoseconds.
    pub(super) service_ns: u64,
    /// Its estimate when it started, in nanoseconds of load.
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

    /// This many may run whatever they add to the load: one, so that work goes on, or more before `auto` has
    /// measured anything.
    pub(super) fn free(&self) -> usize {
        match self {
            Control::Auto(auto) => auto.free(),
            _ => 1,
        }
    }

    /// The limit to keep across a restart. A limit that is only being tried is not kept.
    pub(super) fn kept_ns(&self) -> Option<u64> {
        match self {
            Control::Calibrate(trials) => trials.found_ns(),
            Control::Watch(watch) => watch.kept_ns(),
            _ => self.limit_ns(),
        }
    }

    /// From the last call until now, `active` requests with `load_ns` ran. `waits` is whether others waited.
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

    /// Begins at a limit that was found before. A fixed limit stays, and a search by trials begins anew.
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
