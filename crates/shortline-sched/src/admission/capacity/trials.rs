//! `calibrate` while the backend works: [`Calibration`]'s search, under the load that an operator
//! runs meanwhile.
//!
//! 1. *Learning*: requests run one at a time for the length of a trial. This gives the time that each
//!    type takes alone. From then on work is counted in these times, so neither a slower backend nor
//!    another mix looks like more work. The search begins at the mean load of this stage.
//! 2. *Trials*: each capacity is tried for some seconds ([`AdmissionConfig::trial_ns`]). Before that,
//!    requests admitted under the last capacity end, and estimates settle, because estimates depend on
//!    the load (002 3.1). The work per second is measured as in `auto` ([`super::dwell`]). A trial lasts
//!    longer while its parts differ, up to four times as long.
//! 3. *Over*: the best capacity stays, as if it were fixed.
//!
//! A trial shows nothing if the load does not fill the capacity. It still counts if nearly half of the
//! capacity was in use, or as much work was done as at the best. More capacity than the load can fill
//! then changes nothing, and the search may end there. Otherwise the trial waits for load, and its stage
//! says so.
//!
//! [`AdmissionConfig::trial_ns`]: super::super::AdmissionConfig::trial_ns

use serde::Serialize;

use super::Ended;
use super::calibrate::{Calibration, Trial};
use super::dwell::{Dwell, Measured};

/// The error of the result, as a factor.
const PRECISION: f64 = 1.1;
/// Rates that differ by less than this share count as the same.
const NOISE: f64 = 0.02;
/// A trial goes on until the relative error of its mean is at most this.
const ERROR_MAX: f64 = 0.01;
/// A trial ends at this multiple of its length, whatever its error.
const TRIAL_GROWTH_MAX: f64 = 4.0;
/// The least number of parts in a trial's mean.
const PARTS_MIN: usize = 4;
/// The share of a trial's length that passes before it is measured.
const SETTLING: f64 = 0.5;
/// This many requests end before a trial is measured, unless a trial's length passes first. It is the
/// number of requests in an estimate.
const REQUESTS_SETTLED: usize = crate::estimate::WINDOW;
/// Requests must have waited for this share of the time.
const WAITED_MIN: f64 = 0.5;
/// The mean load, as a share of the capacity, that counts as in use. If the load just filled the last
/// capacity, it fills nearly half of one twice as large.
const USED_MIN: f64 = 0.4;

/// The stage of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CalibrationStage {
    /// Requests run one at a time, to measure their service times.
    Learning,
    /// A capacity is set, and requests admitted under the last one end.
    Settling,
    /// The work done at the capacity is measured.
    Measuring,
    /// The load is too small to show anything. More of it must be run.
    LoadTooSmall,
    /// The capacity was found.
    Over,
}

/// The state of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CalibrationView {
    /// Its stage.
    pub stage: CalibrationStage,
    /// Capacities tried so far.
    pub trials: usize,
    /// The last trial.
    pub last: Option<Trial>,
    /// The best trial. Once the search is over, its result.
    pub best: Option<Trial>,
}

/// A search in front of a backend.
#[derive(Debug)]
pub(in crate::admission) struct Trials {
    trial_ns: f64,
    /// `None` while learning.
    search: Option<Calibration>,
    stage: CalibrationStage,
    last: Option<Trial>,
    capacity_ns: u64,
    /// What a request takes alone, by the type's place.
    alone_ns: Vec<Alone>,
    dwell: Dwell,
    dwell_last: f64,
    parts: Vec<Measured>,
    /// The integral of the load over the time of the parts.
    loaded: f64,
    last_ns: u64,
    settling: Settling,
}

/// The service times of a type while requests ran one at a time, or its first one after that.
#[derive(Clone, Copy, Debug, Default)]
struct Alone {
    sum_ns: f64,
    requests: f64,
}

/// How long a new capacity settles before it is measured.
#[derive(Clone, Copy, Debug, Default)]
struct Settling {
    since_ns: u64,
    /// Requests that must still end.
    left: usize,
}

impl Trials {
    pub(super) fn new(trial_ns: u64) -> Self {
        Self {
            trial_ns: trial_ns as f64,
            search: None,
            stage: CalibrationStage::Learning,
            last: None,
            // Requests run one at a time.
            capacity_ns: 1,
            alone_ns: Vec::new(),
            dwell: Dwell::default(),
            dwell_last: 0.0,
            parts: Vec::new(),
            loaded: 0.0,
            last_ns: 0,
            settling: Settling::default(),
        }
    }

    pub(super) fn capacity_ns(&self) -> u64 {
        self.capacity_ns
    }

    /// The capacity found, once the search is over.
    pub(super) fn found_ns(&self) -> Option<u64> {
        (self.stage == CalibrationStage::Over).then_some(self.capacity_ns)
    }

    pub(super) fn view(&self) -> CalibrationView {
        let search = self.search.as_ref();
        CalibrationView {
            stage: self.stage,
            trials: search.map_or(0, |search| search.trials().len()),
            last: self.last,
            best: search.and_then(Calibration::best),
        }
    }

    pub(super) fn pass(&mut self, now_ns: u64, active: usize, load_ns: u64, waits: bool) {
        let span_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns = now_ns;
        match self.stage {
            CalibrationStage::Over => {}
            CalibrationStage::Settling => {
                let past_ns = now_ns.saturating_sub(self.settling.since_ns) as f64;
                let drained = load_ns <= self.capacity_ns || active <= 1;
                let ended = self.settling.left == 0 || past_ns > self.trial_ns;
                if past_ns >= SETTLING * self.trial_ns && drained && ended {
                    self.stage = CalibrationStage::Measuring;
                }
            }
            _ => {
                self.loaded += span_ns as f64 * load_ns as f64;
                self.dwell.pass(span_ns as f64, active, load_ns, waits);
            }
        }
    }

    pub(super) fn completed(&mut self, now_ns: u64, kind: usize, ended: Ended) {
        match self.stage {
            CalibrationStage::Over => return,
            CalibrationStage::Settling => {
                self.settling.left = self.settling.left.saturating_sub(1);
                return;
            }
            _ => {}
        }
        let work_ns = self.work_ns(kind, ended);
        self.dwell.completed(Ended { work_ns, ..ended });
        if let Some(measured) = self.dwell.measured(self.dwell_last) {
            self.dwell = Dwell::default();
            self.dwell_last = measured.span;
            self.parts.push(measured);
            self.judge(now_ns);
        }
    }

    /// The work of a request: its service time while learning, and then its type's time alone.
    fn work_ns(&mut self, kind: usize, ended: Ended) -> u64 {
        if self.alone_ns.len() <= kind {
            self.alone_ns.resize(kind + 1, Alone::default());
        }
        let alone = &mut self.alone_ns[kind];
        if self.search.is_none() || alone.requests == 0.0 {
            alone.sum_ns += ended.service_ns as f64;
            alone.requests += 1.0;
        }
        if self.search.is_none() {
            return ended.service_ns.max(1);
        }
        (alone.sum_ns / alone.requests).max(1.0) as u64
    }

    /// Ends the trial once its parts suffice.
    fn judge(&mut self, now_ns: u64) {
        let span: f64 = self.parts.iter().map(|part| part.span).sum();
        if span < self.trial_ns {
            return;
        }
        let mean = |of: fn(&Measured) -> f64| {
            let sum: f64 = self.parts.iter().map(|part| part.span * of(part)).sum();
            sum / span
        };
        let waited = mean(|part| part.waited);
        let Some(search) = &mut self.search else {
            let alone_ns = mean(|part| part.alone_ns);
            self.learnt(now_ns, waited, alone_ns);
            return;
        };
        let work_rate = mean(|part| part.work_rate);
        let certain = self.parts.len() >= PARTS_MIN && error(&self.parts, work_rate) <= ERROR_MAX;
        if !certain && span < TRIAL_GROWTH_MAX * self.trial_ns {
            return;
        }
        let used = self.loaded / span >= USED_MIN * self.capacity_ns as f64;
        let best = search.best().map_or(f64::INFINITY, |best| best.work_rate);
        self.parts.clear();
        self.loaded = 0.0;
        if waited < WAITED_MIN && !used && work_rate < best * (1.0 - NOISE) {
            self.stage = CalibrationStage::LoadTooSmall;
            return;
        }
        self.last = search.next_ns().map(|capacity_ns| Trial {
            capacity_ns,
            work_rate,
        });
        // The rate is a mean of finite rates. If it were not finite, the capacity would be tried again.
        let _ = search.report(work_rate);
        self.go_on(now_ns);
    }

    fn learnt(&mut self, now_ns: u64, waited: f64, alone_ns: f64) {
        self.parts.clear();
        self.loaded = 0.0;
        if waited < WAITED_MIN {
            self.stage = CalibrationStage::LoadTooSmall;
            return;
        }
        let first_ns = (alone_ns as u64).max(1);
        self.search = Calibration::new(first_ns, PRECISION, NOISE).ok();
        self.go_on(now_ns);
    }

    /// Tries the next capacity, or stays at the best one.
    fn go_on(&mut self, now_ns: u64) {
        let Some(search) = &self.search else { return };
        let best_ns = search.best().map(|best| best.capacity_ns);
        let one_at_a_time_ns = self.shortest_ns();
        // Below the shortest service requests run one at a time, whatever the capacity.
        let differs =
            |ns| ns >= one_at_a_time_ns || best_ns.is_none_or(|best| best >= one_at_a_time_ns);
        match (search.next_ns().filter(|&ns| differs(ns)), best_ns) {
            (Some(next_ns), _) => {
                self.capacity_ns = next_ns.max(1);
                self.stage = CalibrationStage::Settling;
                self.settling = Settling {
                    since_ns: now_ns,
                    left: REQUESTS_SETTLED,
                };
            }
            (None, best_ns) => {
                self.capacity_ns = best_ns.unwrap_or(self.capacity_ns);
                self.stage = CalibrationStage::Over;
            }
        }
    }

    /// The shortest time that a request of any type takes alone, in nanoseconds.
    fn shortest_ns(&self) -> u64 {
        let known = self.alone_ns.iter().filter(|alone| alone.requests > 0.0);
        let means = known.map(|alone| alone.sum_ns / alone.requests);
        means.reduce(f64::min).map_or(1, |least| least as u64)
    }
}

/// The relative error of the mean of parts.
fn error(parts: &[Measured], mean: f64) -> f64 {
    let count = parts.len() as f64;
    let squares = parts.iter().map(|part| (part.work_rate - mean).powi(2));
    let variance = squares.sum::<f64>() / (count - 1.0).max(1.0);
    (variance / count).sqrt() / mean
}
