//! `calibrate` while the backend works: [`Calibration`]'s search over the load that an operator
//! runs meanwhile.
//!
//! 1. *Learning*: requests run one at a time for the length of a trial, which says what each type
//!    takes alone. These times are the units in which work is counted from then on, so that
//!    neither a slower backend nor another mix looks like more work. The search begins where two
//!    of the requests that take most of the time begin to fit.
//! 2. *Trials*: each capacity is tried for some seconds ([`AdmissionConfig::trial_ns`]), after
//!    what ran under the one before has ended and estimates had time to follow, for they are those
//!    of the load at that capacity (002 3.1). The work per second is taken as `auto` does
//!    ([`super::dwell`]); a trial is longer, four times at most, as long as its parts differ.
//! 3. *Over*: the best stays, as if it were fixed.
//!
//! A trial says nothing while the load that is run does not fill the capacity. It counts
//! nevertheless if nearly half of the capacity was in use or as much was done as at the best: then more
//! capacity than the load can fill changes nothing, and the search may end there. Else it waits for
//! load, and says so.
//!
//! [`AdmissionConfig::trial_ns`]: super::super::AdmissionConfig::trial_ns

use serde::Serialize;

use super::Ended;
use super::calibrate::{Calibration, Trial};
use super::dwell::{Dwell, Measured};

/// By how much the result may be off, as a factor.
const PRECISION: f64 = 1.1;
/// Rates that differ by less count as the same.
const NOISE: f64 = 0.02;
/// A trial goes on until the mean of its parts is so certain,
const ERROR_MAX: f64 = 0.01;
/// or it has lasted for so many times as long as it should.
const TRIAL_GROWTH_MAX: f64 = 4.0;
/// Parts of a trial, of which the mean is taken: so many at least.
const PARTS_MIN: usize = 4;
/// So long a share of a trial passes before it is measured.
const SETTLING: f64 = 0.5;
/// So many requests end first, if they do within a trial: as many as an estimate is made of.
const REQUESTS_SETTLED: usize = crate::estimate::WINDOW;
/// Somebody must have waited for such a share of the time.
const WAITED_MIN: f64 = 0.5;
/// Of the capacity so much, in the mean, counts as used: where the last one was filled, and this
/// one is twice as large, all that can come in is nearly half of it.
const USED_MIN: f64 = 0.4;

/// What the search is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CalibrationStage {
    /// Requests run one at a time, so that their service times are known.
    Learning,
    /// A capacity is set, and what ran under the last one ends.
    Settling,
    /// What is done at the capacity is measured.
    Measuring,
    /// The load is too small to say anything: run more of it.
    LoadTooSmall,
    /// The capacity was found.
    Over,
}

/// What can be seen of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CalibrationView {
    /// What it is doing.
    pub stage: CalibrationStage,
    /// Capacities tried so far.
    pub trials: usize,
    /// The last of them.
    pub last: Option<Trial>,
    /// The best of them: where the search is over, what it has found.
    pub best: Option<Trial>,
}

/// A search at work.
#[derive(Debug)]
pub(in crate::admission) struct Trials {
    trial_ns: f64,
    /// `None` while learning.
    search: Option<Calibration>,
    stage: CalibrationStage,
    last: Option<Trial>,
    capacity_ns: u64,
    /// What a request of each type takes alone, in nanoseconds; 0 of those not seen yet.
    alone_ns: Vec<Alone>,
    dwell: Dwell,
    dwell_last: f64,
    parts: Vec<Measured>,
    /// The load over the time of the parts.
    loaded: f64,
    last_ns: u64,
    settling: Settling,
}

/// The service times of a type while requests ran one at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Alone {
    sum_ns: f64,
    requests: f64,
}

/// Until when a new capacity is not measured.
#[derive(Clone, Copy, Debug, Default)]
struct Settling {
    since_ns: u64,
    /// Requests that have to end.
    left: usize,
}

impl Trials {
    pub(super) fn new(trial_ns: u64) -> Self {
        Self {
            trial_ns: trial_ns as f64,
            search: None,
            stage: CalibrationStage::Learning,
            last: None,
            // One at a time.
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

    /// What was found, once the search is over.
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
        self.dwell.completed(Ended {
            load_ns: work_ns,
            ..ended
        });
        if let Some(measured) = self.dwell.measured(self.dwell_last) {
            self.dwell = Dwell::default();
            self.dwell_last = measured.span;
            self.parts.push(measured);
            self.judge(now_ns);
        }
    }

    /// What a request counts as: its service time while it still runs alone, and from then on
    /// that of its type.
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

    /// Ends the trial once its parts say enough.
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
        // The rate is a mean of finite ones; were it not, the capacity is tried again.
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

    /// Tries the next capacity, or stays at the best.
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

    /// The least that a request of any type takes alone.
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
