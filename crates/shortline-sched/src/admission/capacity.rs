//! The capacity: no limit, fixed, or found while the backend works ([`auto`]). A value for a fixed one
//! can be found beforehand under a load that an operator runs ([`Calibration`], and [`trials`] in
//! front of a backend). Where a higher limit does clearly more, it is raised ([`opening`]).

mod auto;
mod calibrate;
mod curve;
mod dwell;
mod flush;
mod lookout;
mod opening;
mod search;
mod trials;
mod watch;

pub use auto::{AutoReason, AutoView};
pub use calibrate::{Calibration, CalibrationError, Trial};
pub use opening::{Compared, OpeningStage, OpeningView};
pub use trials::{CalibrationStage, CalibrationView};

use serde::Serialize;

use super::config::{AdmissionConfig, Capacity};
use auto::Auto;
use opening::{After, Opening};
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

/// The limit in use: the capacity, or a higher one that does more ([`opening`]).
#[derive(Debug)]
pub(super) struct Control {
    way: Way,
    opening: Option<Box<Opening>>,
}

/// Where the capacity comes from.
#[derive(Debug)]
enum Way {
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
    /// What it counts as ([`super::kind::Work`]), in nanoseconds of load.
    pub(super) work_ns: u64,
}

impl Control {
    pub(super) fn new(config: &AdmissionConfig) -> Self {
        let way = match config.capacity {
            Capacity::Off => Way::Off,
            Capacity::Fixed(capacity_ns) => Way::Fixed(capacity_ns.get()),
            Capacity::Auto if config.dry_run => Way::Watch(Box::default()),
            Capacity::Auto => Way::Auto(Box::default()),
            Capacity::Calibrate => Way::Calibrate(Box::new(Trials::new(config.trial_ns.get()))),
        };
        // In a dry run nobody waits for the limit.
        let opening = Opening::new(config.capacity, config.open_up).filter(|_| !config.dry_run);
        Self {
            way,
            opening: opening.map(Box::new),
        }
    }

    /// The limit, in nanoseconds of load; `None` without one.
    pub(super) fn limit_ns(&self) -> Option<u64> {
        let raised_ns = self.opening.as_ref().and_then(|opening| opening.limit_ns());
        raised_ns.or_else(|| self.way.limit_ns())
    }

    /// What a request of this estimate adds to the load: the estimate, or under `auto` as much as every other.
    pub(super) fn adds_ns(&self, estimate_ns: u64) -> u64 {
        match &self.way {
            Way::Auto(auto) => auto.each_ns().unwrap_or(estimate_ns),
            _ => estimate_ns,
        }
    }

    /// Whether every request adds as much as every other, however long it takes.
    pub(super) fn counts_alike(&self) -> bool {
        matches!(&self.way, Way::Auto(auto) if auto.each_ns().is_some())
    }

    /// This many may run whatever they add to the load: one, so that work goes on, or more before `auto` has
    /// measured anything.
    pub(super) fn free(&self) -> usize {
        match &self.way {
            Way::Auto(auto) => auto.free(),
            _ => 1,
        }
    }

    /// The limit to keep across a restart. A limit that is only being tried, or was raised above a fixed
    /// one, is not kept.
    pub(super) fn kept_ns(&self) -> Option<u64> {
        match &self.way {
            Way::Calibrate(trials) => trials.found_ns(),
            Way::Watch(watch) => watch.kept_ns(),
            way => way.limit_ns(),
        }
    }

    /// From the last call until now, `active` requests with `load_ns` ran. `waits` is whether others waited.
    pub(super) fn pass(&mut self, now_ns: u64, active: usize, load_ns: u64, waits: bool) {
        let Some(opening) = &mut self.opening else {
            self.way.pass(now_ns, active, load_ns, waits);
            return;
        };
        let is_trying = opening.is_trying();
        let after = opening.pass(now_ns, active, load_ns, waits);
        if !is_trying {
            self.way.pass(now_ns, active, load_ns, waits);
            if let Some(capacity_ns) = self.way.settled_ns() {
                opening.begin_if_due(now_ns, active, capacity_ns);
            }
        }
        if let Some(after) = after {
            self.way.follow(now_ns, active, after);
        }
    }

    /// A request of the type at the place `kind` was completed, and `active` still run.
    pub(super) fn completed(&mut self, now_ns: u64, kind: usize, active: usize, ended: Ended) {
        match &mut self.opening {
            Some(opening) if opening.is_trying() => {
                if let Some(after) = opening.completed(now_ns, kind, ended) {
                    self.way.follow(now_ns, active, after);
                }
            }
            _ => self.way.completed(now_ns, kind, ended),
        }
    }

    /// Begins at a limit that was found before. A fixed limit stays, and a search by trials begins anew.
    pub(super) fn restore(&mut self, capacity_ns: u64) {
        match &mut self.way {
            Way::Auto(auto) => auto.restore(capacity_ns),
            Way::Watch(watch) => watch.restore(capacity_ns),
            Way::Off | Way::Fixed(_) | Way::Calibrate(_) => {}
        }
    }

    pub(super) fn state(&self) -> CapacityState {
        match &self.way {
            Way::Off => CapacityState::Off,
            Way::Fixed(_) => CapacityState::Fixed,
            Way::Auto(auto) => CapacityState::Auto(auto.view()),
            Way::Watch(watch) => CapacityState::Auto(watch.view()),
            Way::Calibrate(trials) => CapacityState::Calibrate(trials.view()),
        }
    }

    /// Whether and how far it has opened up; `None` if it never does.
    pub(super) fn opening(&self) -> Option<OpeningView> {
        let closed_ns = self.way.limit_ns()?;
        self.opening.as_ref().map(|opening| opening.view(closed_ns))
    }
}

impl Way {
    fn limit_ns(&self) -> Option<u64> {
        match self {
            Way::Off => None,
            Way::Fixed(capacity_ns) => Some(*capacity_ns),
            Way::Auto(auto) => Some(auto.capacity_ns()),
            Way::Watch(watch) => watch.limit_ns(),
            Way::Calibrate(trials) => Some(trials.capacity_ns()),
        }
    }

    /// The capacity, unless it is being searched.
    fn settled_ns(&self) -> Option<u64> {
        match self {
            Way::Fixed(capacity_ns) => Some(*capacity_ns),
            Way::Auto(auto) => auto.is_settled().then(|| auto.capacity_ns()),
            Way::Off | Way::Watch(_) | Way::Calibrate(_) => None,
        }
    }

    fn pass(&mut self, now_ns: u64, active: usize, load_ns: u64, waits: bool) {
        match self {
            Way::Off | Way::Fixed(_) => {}
            Way::Auto(auto) => auto.pass(now_ns, active, load_ns, waits),
            Way::Watch(watch) => watch.pass(now_ns, active, load_ns),
            Way::Calibrate(trials) => trials.pass(now_ns, active, load_ns, waits),
        }
    }

    fn completed(&mut self, now_ns: u64, kind: usize, ended: Ended) {
        match self {
            Way::Off | Way::Fixed(_) => {}
            Way::Auto(auto) => auto.completed(now_ns, ended),
            Way::Watch(watch) => watch.completed(ended),
            Way::Calibrate(trials) => trials.completed(now_ns, kind, ended),
        }
    }

    /// A trial of a higher limit has ended.
    fn follow(&mut self, now_ns: u64, active: usize, after: After) {
        if let Way::Auto(auto) = self {
            if let After::SearchUpFrom(capacity_ns) = after {
                auto.search_up_from(capacity_ns);
            }
            auto.go_on(now_ns, active);
        }
    }
}
