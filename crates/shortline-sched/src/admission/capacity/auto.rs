//! `auto`: the capacity at which the backend does most, found while it works and followed.
//!
//! The capacity stays for a *dwell* of a quarter of a second or more ([`super::dwell`]), in which
//! the work completed per second is measured. Then it moves:
//!
//! - **Searching.** Nothing is known at first, so that a sum of estimates says nothing: four requests
//!   may run whatever they add, and the capacity that is what they add is where a search begins, up
//!   and then down ([`super::search`]).
//! - **Tracking.** A parabola through what was measured nearby ([`super::curve`]) says where the
//!   top is and how sure that is. The capacity goes there, by no more than a trust region allows,
//!   and is probed above and below as far as that is uncertain, but never by less than 5 %: there
//!   is no pause in which nothing but a probe runs.
//! - **Changes.** What is measured is compared with what was expected. Deviations of one sign add
//!   up (a CUSUM, Page 1954); if they cannot be chance, what was learnt is forgotten, and tracking
//!   begins anew from where it is. Deviations of either sign widen the errors believed.
//!
//! - **Nobody waits.** Only time in which somebody waits counts for all of that: else the work done is what is
//!   asked for, at whatever capacity. Where nobody waits although more run than a few, it may be that they
//!   slow each other and nothing is ordered. So the capacity goes a little below the load: if less is done
//!   there, it returns, and looks again when the load is another one or after ever longer pauses; if as much is
//!   done, it goes on downwards. It stays where services take less than 5 ms: then nothing would be gained. In no case
//!   does it stay above twice the load that needs it. The same is done now and then where the curve is
//!   flat: beyond a cliff it is flat, too.
//! - **Trust fades.** What was found long ago, or was kept over a restart, is a hint: where it was not
//!   measured for half a minute a search begins from it, first down and then up.
//!
//! Work is counted in estimates divided by the slowdown common to all types
//! ([`super::super::slowdown`]), so that neither a change of the mix nor the load itself looks like a
//! change of the backend. From the published: throughput against what is in flight decides, not
//! latency against a baseline (the covariance in Uber's Cinnamon auto-tuner, the correlations in
//! failsafe-go's adaptive limiter); no probing of a minimum by pinning concurrency (Envoy #11579)
//! and no one latency over mixed types (Netflix concurrency-limits #37, #165).

use serde::Serialize;

use super::Ended;
use super::curve::{Curve, Fit, Point};
use super::dwell::{Dwell, Measured};
use super::lookout::Lookout;
use super::search::{FAR, GENTLE, Next, Search};

/// Where it begins, and its bounds, in nanoseconds.
const CAPACITY_FIRST: f64 = 20e6;
const CAPACITY_MIN: f64 = 1.0;
const CAPACITY_MAX: f64 = 1e17;

/// So many requests may run whatever they add to the load before anything has been measured: a backend
/// of today has several processors, and does not thrash with so few.
const FREE: usize = 4;

/// So many inside may be beyond a cliff, where a curve is flat, too.
const MANY: f64 = 16.0;

/// While services take no longer than that in the mean and nobody waits, there is nothing to gain by an
/// order, and work to lose by looking for one. In nanoseconds.
const QUICK: f64 = 5e6;

/// How far apart probes are, as logarithms.
const PROBE_MIN: f64 = 0.05;
const PROBE_MAX: f64 = 0.5;
/// The order of probes: above, at, below, at.
const PROBES: [f64; 4] = [1.0, 0.0, -1.0, 0.0];

/// How far it goes at a time while tracking: at first, at least and at most.
const TRUST: f64 = 0.3;
const TRUST_MIN: f64 = 0.2;
const TRUST_MAX: f64 = 0.7;

/// The sum of deviations, in standard deviations, that is no chance.
const SURPRISE_MAX: f64 = 6.0;
/// No prediction is held to be more exact than this.
const PREDICTION_ERROR: f64 = 0.02;

/// What has not been measured for so long is doubted, in nanoseconds.
const TRUST_NS: u64 = 30_000_000_000;

/// Of what ran at a change, this share must have ended before measuring begins,
const FLUSHED: f64 = 0.8;
/// or this much time must have passed, in nanoseconds; the load must fit the capacity anyway.
const FLUSH_NS_MAX: u64 = 2_000_000_000;

/// Why the capacity is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoReason {
    /// Nothing has been measured yet.
    Starting,
    /// It doubles as long as that does more work.
    Rising,
    /// It is halved as long as that does no less work.
    Falling,
    /// Nobody waits: another capacity would change nothing.
    NobodyWaits,
    /// More work is done at a larger one, surely.
    MoreIsBetter,
    /// More work is done at a smaller one, surely.
    LessIsBetter,
    /// Near the top, as far as can be told.
    AtTheTop,
    /// The backend is not what it was: learning anew.
    BackendChanged,
    /// In a dry run: at no load that was seen less was done than at a smaller one.
    NotKnown,
}

/// What can be seen of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AutoView {
    /// Why the capacity is what it is.
    pub reason: AutoReason,
    /// What it is probed around, in nanoseconds; where it is not known, the largest load seen.
    pub center_ns: u64,
    /// Work completed per second when last measured, in seconds of load.
    pub work_rate: f64,
    /// By how many per cent that grows per per cent of capacity, as far as is known.
    pub slope: f64,
    /// The standard deviation of the slope.
    pub slope_error: f64,
    /// How many times it was measured.
    pub measurements: u64,
    /// How many times a change of the backend was noticed.
    pub changes: u64,
}

impl AutoView {
    /// Nothing has been measured yet.
    pub(super) fn new(reason: AutoReason) -> Self {
        Self {
            reason,
            center_ns: 0,
            work_rate: 0.0,
            slope: 0.0,
            slope_error: 0.0,
            measurements: 0,
            changes: 0,
        }
    }
}

#[derive(Debug)]
pub(in crate::admission) struct Auto {
    capacity: f64,
    /// The logarithm of what is probed around.
    center: f64,
    /// Half of the distance between probes.
    spread: f64,
    phase: usize,
    trust: f64,
    /// Where the last step went.
    direction: f64,
    /// When it was measured last, and which load was looked below last.
    measured_ns: u64,
    lookout: Lookout,
    search: Option<Search>,
    curve: Curve,
    surprise: f64,
    /// By how much errors are larger than service times alone make them.
    inflation: f64,
    /// The capacity below which requests run one at a time.
    alone: f64,
    stage: Stage,
    last_ns: u64,
    /// Whether somebody waited until now.
    waits: bool,
    /// How many ran when last told.
    active: usize,
    dwell_last: f64,
    view: AutoView,
}

/// What is done now.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Waiting for what ran at the change to end.
    Flushing {
        since_ns: u64,
        left: f64,
    },
    Measuring(Dwells),
}

/// What has been seen since the capacity moved: while somebody waited, and while nobody did.
#[derive(Clone, Copy, Debug, Default)]
struct Dwells {
    waiting: Dwell,
    quiet: Dwell,
}

impl Dwells {
    fn of(&mut self, waits: bool) -> &mut Dwell {
        if waits {
            &mut self.waiting
        } else {
            &mut self.quiet
        }
    }
}

impl Default for Auto {
    fn default() -> Self {
        Self {
            capacity: CAPACITY_FIRST,
            center: CAPACITY_FIRST.ln(),
            spread: PROBE_MAX,
            phase: 0,
            trust: TRUST,
            direction: 0.0,
            measured_ns: 0,
            lookout: Lookout::default(),
            search: Some(Search::Rising { flat: 0 }),
            curve: Curve::default(),
            surprise: 0.0,
            inflation: 1.0,
            alone: CAPACITY_MIN,
            stage: Stage::Measuring(Dwells::default()),
            last_ns: 0,
            waits: false,
            active: 0,
            dwell_last: 0.0,
            view: AutoView {
                center_ns: CAPACITY_FIRST as u64,
                ..AutoView::new(AutoReason::Starting)
            },
        }
    }
}

impl Auto {
    pub(super) fn capacity_ns(&self) -> u64 {
        self.capacity as u64
    }

    /// So many may run whatever they add.
    pub(super) fn free(&self) -> usize {
        if self.search.is_some() && self.view.measurements == 0 {
            FREE
        } else {
            1
        }
    }

    pub(super) fn view(&self) -> AutoView {
        self.view
    }

    /// Begins at a capacity that was found before.
    pub(super) fn restore(&mut self, capacity_ns: u64) {
        self.search = Some(Search::Doubting);
        self.center = (capacity_ns as f64).clamp(CAPACITY_MIN, CAPACITY_MAX).ln();
        self.move_to(self.center);
    }

    pub(super) fn pass(&mut self, now_ns: u64, active: usize, load_ns: u64, waits: bool) {
        let span_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns = now_ns;
        (self.active, self.waits) = (active, waits);
        match &mut self.stage {
            Stage::Measuring(dwells) => {
                let dwell = dwells.of(waits);
                dwell.pass(span_ns as f64, active, load_ns, waits);
            }
            Stage::Flushing { since_ns, left } => {
                // A load above the capacity ends only with what runs; one request is always let in.
                let drained = load_ns as f64 <= self.capacity || active <= 1;
                let flushed = *left <= 0.0 || now_ns.saturating_sub(*since_ns) > FLUSH_NS_MAX;
                if drained && flushed {
                    self.stage = Stage::Measuring(Dwells::default());
                }
            }
        }
    }

    pub(super) fn completed(&mut self, now_ns: u64, ended: Ended) {
        match &mut self.stage {
            Stage::Flushing { since_ns, left } => {
                if now_ns.saturating_sub(ended.service_ns) < *since_ns {
                    *left -= 1.0;
                }
            }
            Stage::Measuring(dwells) => {
                dwells.of(self.waits).completed(ended);
                if let Some(measured) = dwells.waiting.measured(self.dwell_last) {
                    self.decide(now_ns, measured);
                } else if let Some(measured) = dwells.quiet.measured(self.dwell_last) {
                    dwells.quiet = Dwell::default();
                    self.nobody_waits(now_ns, measured);
                }
            }
        }
    }

    fn decide(&mut self, now_ns: u64, measured: Measured) {
        self.dwell_last = measured.span;
        self.alone = measured.alone_ns.max(CAPACITY_MIN);
        self.view.work_rate = measured.work_rate;
        self.view.measurements += 1;
        let last_ns = std::mem::replace(&mut self.measured_ns, now_ns);
        if self.view.measurements > 1 && now_ns.saturating_sub(last_ns) > TRUST_NS {
            self.curve.clear();
            self.search = Some(Search::Doubting);
        }
        let point = self.point(now_ns, self.capacity, measured);
        match self.search {
            Some(search) => self.search(now_ns, search, point),
            // More may be inside than does any good: a curve that is flat here has its top elsewhere.
            None if self.seems_right(measured) && self.lookout.is_due(now_ns, measured) => {
                self.look_below(now_ns, measured, point, (self.center, FAR));
            }
            None => self.track(now_ns, point),
        }
        self.flush(now_ns);
    }

    /// So much is done while nobody waits.
    fn nobody_waits(&mut self, now_ns: u64, measured: Measured) {
        self.view.reason = AutoReason::NobodyWaits;
        let few = measured.active <= FREE as f64;
        if few || measured.service_ns <= QUICK || !self.lookout.is_due(now_ns, measured) {
            return;
        }
        self.dwell_last = measured.span;
        self.alone = measured.alone_ns.max(CAPACITY_MIN);
        let load = self.point(now_ns, measured.load, measured);
        let needed = (2.0 * measured.load_max as f64).ln();
        self.look_below(now_ns, measured, load, (self.center.min(needed), GENTLE));
        self.flush(now_ns);
    }

    /// Whether no other capacity nearby does more, although more run than a few.
    fn seems_right(&self, measured: Measured) -> bool {
        self.view.reason == AutoReason::AtTheTop && measured.active > MANY
    }

    /// Looks whether as much is done with less inside, so far below; else goes `back`.
    fn look_below(
        &mut self,
        now_ns: u64,
        measured: Measured,
        point: Point,
        (back, step): (f64, f64),
    ) {
        self.lookout.look(now_ns, measured);
        self.curve.clear();
        self.curve.add(point);
        let (search, next) = Search::below(point, back, step, self.alone.ln());
        self.follow(now_ns, search, next);
    }

    fn point(&self, now_ns: u64, capacity: f64, measured: Measured) -> Point {
        Point {
            at_s: now_ns as f64 / 1e9,
            x: capacity.ln(),
            y: measured.work_rate.ln(),
            variance: measured.variance * self.inflation,
        }
    }

    /// What is inside belongs to another capacity.
    fn flush(&mut self, now_ns: u64) {
        self.stage = Stage::Flushing {
            since_ns: now_ns,
            left: FLUSHED * self.active as f64,
        };
    }

    fn search(&mut self, now_ns: u64, mut search: Search, point: Point) {
        let (begin, least) = ((FREE as f64 * self.alone).ln(), self.alone.ln());
        let rises = matches!(search, Search::Rising { .. });
        // At first more than the capacity was inside, and below the least one at a time: neither can be
        // compared. Long requests end late, so that the least grows.
        if rises && (self.view.measurements == 1 && point.x < begin || point.x < least) {
            self.view.reason = AutoReason::Rising;
            self.curve.clear();
            self.center = begin;
            self.move_to(self.center);
            return;
        }
        let next = search.measured(point, least, &mut self.curve);
        self.follow(now_ns, search, next);
    }

    /// Goes where a search says.
    fn follow(&mut self, now_ns: u64, search: Search, next: Next) {
        let (Next::At(center) | Next::Found(center)) = next;
        self.center = center;
        self.move_to(self.center);
        if let Next::Found(_) = next {
            self.search = None;
            self.show(&self.fit(now_ns, self.spread));
            return;
        }
        self.search = Some(search);
        self.view.reason = match search {
            Search::Rising { .. } => AutoReason::Rising,
            Search::Doubting | Search::Falling(_) => AutoReason::Falling,
        };
    }

    fn track(&mut self, now_ns: u64, point: Point) {
        let changed = self.is_surprised(now_ns, point);
        if changed {
            self.curve.clear();
            self.surprise = 0.0;
            self.spread = PROBE_MAX;
            self.view.changes += 1;
        }
        self.curve.add(point);
        let fit = self.fit(now_ns, self.spread);
        let limited = self.step(fit.step());
        self.spread = (fit.step_error() / 2.0).clamp(PROBE_MIN, PROBE_MAX);
        self.phase = (self.phase + 1) % PROBES.len();
        let probe = if limited { 0.0 } else { PROBES[self.phase] };
        self.center = self.center.max(self.alone.ln());
        self.move_to(self.center + probe * self.spread);
        self.show(&fit);
        if changed {
            self.view.reason = AutoReason::BackendChanged;
        }
    }

    /// Goes as far as trusted; whether that is less far than wished.
    fn step(&mut self, step: f64) -> bool {
        let onwards = step * self.direction;
        if step.abs() > self.trust {
            if onwards > 0.0 {
                self.trust = (self.trust * 1.5).min(TRUST_MAX);
            }
        } else {
            self.trust = (self.trust * 0.8).max(TRUST_MIN);
        }
        if onwards < 0.0 {
            self.trust = (self.trust * 0.7).max(TRUST_MIN);
        }
        self.direction = step.signum();
        self.center += step.clamp(-self.trust, self.trust);
        step.abs() >= self.trust
    }

    /// Whether what was measured cannot be by chance where so much else is known.
    fn is_surprised(&mut self, now_ns: u64, point: Point) -> bool {
        if self.curve.points().len() < 3 || (point.x - self.center).abs() >= PROBE_MAX {
            return false;
        }
        let (expected, variance) = self.fit(now_ns, self.spread.max(0.1)).height(point.x);
        let error = (variance + point.variance + PREDICTION_ERROR * PREDICTION_ERROR).sqrt();
        let deviation = (point.y - expected) / error;
        let excess = (deviation * deviation).min(9.0) - 1.0;
        self.inflation = (self.inflation * (1.0 + 0.1 * excess)).clamp(1.0, 16.0);
        let deviation = deviation.clamp(-4.0, 4.0);
        self.surprise = if deviation * self.surprise > 0.0 {
            self.surprise + deviation
        } else {
            deviation
        };
        self.surprise.abs() > SURPRISE_MAX
    }

    fn fit(&self, now_ns: u64, spread: f64) -> Fit {
        let reach = (3.0 * spread).max(0.2);
        self.curve.fit(now_ns as f64 / 1e9, self.center, reach)
    }

    fn show(&mut self, fit: &Fit) {
        let (slope, error) = (fit.slope(), fit.slope_error());
        self.view.slope = slope;
        self.view.slope_error = error;
        self.view.reason = match slope {
            _ if slope > 1.64 * error => AutoReason::MoreIsBetter,
            _ if slope < -1.64 * error => AutoReason::LessIsBetter,
            _ => AutoReason::AtTheTop,
        };
    }

    fn move_to(&mut self, x: f64) {
        let bounded = |x: f64| x.exp().clamp(self.alone.max(CAPACITY_MIN), CAPACITY_MAX);
        self.capacity = bounded(x);
        self.view.center_ns = bounded(self.center) as u64;
        self.center = self.center.min(CAPACITY_MAX.ln());
    }
}
