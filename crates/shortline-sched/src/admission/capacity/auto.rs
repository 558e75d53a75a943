//! `auto`: the capacity at which the backend does most work, found and followed while it works.
//!
//! **What is limited is how many run at once.** From the first measurement on, each request adds the same to the load, as
//! much as the mean one. 002 adds up estimates (3.2), as a capacity that an operator gives does. But a backend depends on
//! the number: at 400 ms one report leaves three of four processors idle, and a hundred short requests may run. No sum is
//! right for every mix, and the order itself changes the mix (measured: `tests/plants/surges.rs`).
//!
//! The capacity stays for a *dwell* of a quarter of a second or more ([`super::dwell`]). The work
//! completed per second is measured in it. Then the capacity moves:
//!
//! - **Searching.** Nothing is known at first, so a sum of estimates has no meaning yet. Four requests
//!   may run whatever they add. A search begins at four, first up and then down ([`super::search`]).
//! - **Tracking.** A parabola through nearby measurements ([`super::curve`]) gives the top and its
//!   error. The capacity moves towards the top, within a trust region. It probes above and below by half
//!   of the top's error, but by at least 5 %. The probes are part of normal operation.
//! - **Changes.** Each measurement is compared with the expected one. Deviations of one sign add up (a
//!   CUSUM, Page 1954). If they cannot be chance, what was learnt is forgotten, and tracking begins anew
//!   from the present capacity. Deviations of either sign widen the assumed errors.
//! - **No waiters.** Only time in which requests wait counts for the above. Otherwise the work done is the
//!   work requested, at any capacity. Many running requests without waiters may slow each other down, and
//!   nothing is ordered. So if more than four run, the capacity goes a little below the load. If less work
//!   is done there, it returns, but to at most twice the largest load. It looks again when the load has
//!   changed, or after ever longer pauses. If as much is done, it goes on downwards. If services take less
//!   than 5 ms, there is nothing to gain, and it stays. The same is done from time to time where the curve
//!   is flat, because it is flat beyond a cliff, too.
//! - **Old values.** A capacity that was found long ago, or kept across a restart, is a hint. If nothing
//!   was measured for half a minute, a search begins from it, first down and then up.
//!
//! Work is counted in estimates divided by the slowdown common to all types
//! ([`super::super::slowdown`]). So neither a change of the mix nor the load itself looks like a change
//! of the backend. A request counts as the mean of many estimates of its type ([`super::super::kind::Work`]),
//! so that the error of the last one does not either.
//!
//! As in published work, throughput against the requests in flight decides, not latency
//! against a baseline (the covariance in Uber's Cinnamon auto-tuner, the correlations in failsafe-go's
//! adaptive limiter). It does not probe a minimum by pinning concurrency (Envoy #11579), and does not mix
//! the latencies of types (Netflix concurrency-limits #37, #165).

mod view;

pub use view::{AutoReason, AutoView};

use super::Ended;
use super::curve::{Curve, Fit, Point};
use super::dwell::{Dwell, Measured};
use super::flush::Flush;
use super::lookout::Lookout;
use super::search::{FAR, GENTLE, Next, Search};

/// The first capacity, and its bounds, in nanoseconds.
const CAPACITY_FIRST: f64 = 20e6;
const CAPACITY_MIN: f64 = 1.0;
const CAPACITY_MAX: f64 = 1e17;

/// Before anything has been measured, this many requests may run whatever they add to the load. A backend
/// usually has several processors, and does not thrash with so few.
const FREE: usize = 4;

/// With more than this many inside, a flat curve may be that beyond a cliff.
const MANY: f64 = 16.0;

/// If none waits and the mean service is at most this, an order gains nothing, and a look below the load
/// costs work. In nanoseconds.
const QUICK: f64 = 5e6;

/// The distance of probes from the center, as logarithms.
const PROBE_MIN: f64 = 0.05;
const PROBE_MAX: f64 = 0.5;
/// The order of probes: above, at, below, at.
const PROBES: [f64; 4] = [1.0, 0.0, -1.0, 0.0];

/// The longest step while tracking, as a logarithm: at first, at least and at most.
const TRUST: f64 = 0.3;
const TRUST_MIN: f64 = 0.2;
const TRUST_MAX: f64 = 0.7;

/// A larger sum of deviations, in standard deviations, cannot be chance.
const SURPRISE_MAX: f64 = 6.0;
/// The least error assumed of a prediction, relatively.
const PREDICTION_ERROR: f64 = 0.02;

/// After this long without a measurement, in nanoseconds, the capacity is doubted.
const TRUST_NS: u64 = 30_000_000_000;

#[derive(Debug)]
pub(in crate::admission) struct Auto {
    capacity: f64,
    /// The logarithm of the capacity around which it probes.
    center: f64,
    /// The distance of probes from the center.
    spread: f64,
    phase: usize,
    trust: f64,
    /// The sign of the last step.
    direction: f64,
    /// When it was last measured.
    measured_ns: u64,
    lookout: Lookout,
    search: Option<Search>,
    curve: Curve,
    surprise: f64,
    /// The factor by which variances exceed those from service times alone.
    inflation: f64,
    /// What each request adds to the load, in nanoseconds; none before the first measurement.
    each: Option<f64>,
    stage: Stage,
    last_ns: u64,
    /// Whether requests waited in the last interval.
    waits: bool,
    /// How many requests ran in the last interval.
    active: usize,
    dwell_last: f64,
    view: AutoView,
}

/// The present stage.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Waiting until the requests that ran at the change have ended.
    Flushing(Flush),
    Measuring(Dwells),
}

/// The dwells since the capacity moved: one of the time with waiters, one of the time without.
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
            each: None,
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

    /// This many may run whatever they add to the load.
    pub(super) fn free(&self) -> usize {
        if self.search.is_some() && self.view.measurements == 0 {
            FREE
        } else {
            1
        }
    }

    /// What a request adds to the load whatever its estimate; `None` before anything has been measured.
    pub(super) fn each_ns(&self) -> Option<u64> {
        self.each.map(|each| each as u64)
    }

    /// The least capacity: one request.
    fn each(&self) -> f64 {
        self.each.unwrap_or(CAPACITY_MIN)
    }

    /// From the first measurement on, each request adds as much as the mean one did in it.
    fn count_alike(&mut self, measured: Measured) {
        let each = self
            .each
            .get_or_insert(measured.estimate_ns.max(CAPACITY_MIN));
        self.view.each_ns = *each as u64;
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

    /// Whether no search is under way.
    pub(super) fn is_settled(&self) -> bool {
        self.search.is_none()
    }

    /// Goes on after a time in which another capacity was in use and nothing was measured here.
    pub(super) fn go_on(&mut self, now_ns: u64, active: usize) {
        (self.last_ns, self.measured_ns, self.active) = (now_ns, now_ns, active);
        self.flush(now_ns);
    }

    /// Searches upwards from a capacity that does more than the present one ([`super::opening`]).
    pub(super) fn search_up_from(&mut self, capacity_ns: u64) {
        self.curve.clear();
        self.surprise = 0.0;
        let center = (capacity_ns as f64).clamp(CAPACITY_MIN, CAPACITY_MAX).ln();
        let search = Search::Rising { flat: 0 };
        self.follow(self.measured_ns, search, Next::At(center));
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
            Stage::Flushing(flush) => {
                if flush.is_over(now_ns, active, load_ns, self.capacity) {
                    self.stage = Stage::Measuring(Dwells::default());
                }
            }
        }
    }

    pub(super) fn completed(&mut self, now_ns: u64, ended: Ended) {
        let dwells = match &mut self.stage {
            Stage::Flushing(flush) => return flush.completed(now_ns, ended),
            Stage::Measuring(dwells) => dwells,
        };
        dwells.of(self.waits).completed(ended);
        let Dwells { waiting, quiet } = *dwells;
        let measured = waiting.measured(self.dwell_last);
        if let Some(measured) = measured.or_else(|| self.clearly_less(now_ns, waiting)) {
            self.decide(now_ns, measured);
        } else if let Some(measured) = quiet.measured(self.dwell_last) {
            let quiet = Dwell::default();
            self.stage = Stage::Measuring(Dwells { waiting, quiet });
            self.nobody_waits(now_ns, measured);
        }
    }

    /// What a look below has measured so far, if that is clearly less.
    fn clearly_less(&self, now_ns: u64, dwell: Dwell) -> Option<Measured> {
        let search = self.search?;
        let measured = dwell.so_far()?;
        let so_far = self.point(now_ns, self.capacity, measured);
        search.is_clearly_less(so_far).then_some(measured)
    }

    fn decide(&mut self, now_ns: u64, measured: Measured) {
        self.dwell_last = measured.span;
        self.count_alike(measured);
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
            // The curve may be flat here because too many are inside, and have its top elsewhere.
            None if self.seems_right(measured) && self.lookout.is_due(now_ns, measured) => {
                self.look_below(now_ns, measured, point, (self.center, FAR));
            }
            None => self.track(now_ns, point),
        }
        self.flush(now_ns);
    }

    /// A measurement without waiters.
    fn nobody_waits(&mut self, now_ns: u64, measured: Measured) {
        self.view.reason = AutoReason::NobodyWaits;
        let few = measured.active <= FREE as f64;
        if few || measured.service_ns <= QUICK || !self.lookout.is_due(now_ns, measured) {
            return;
        }
        self.dwell_last = measured.span;
        self.count_alike(measured);
        let load = self.point(now_ns, measured.load, measured);
        let needed = (2.0 * measured.load_max as f64).ln();
        self.look_below(now_ns, measured, load, (self.center.min(needed), GENTLE));
        self.flush(now_ns);
    }

    /// Whether no other capacity nearby does more work, although many requests run.
    fn seems_right(&self, measured: Measured) -> bool {
        self.view.reason == AutoReason::AtTheTop && measured.active > MANY
    }

    /// Searches downwards for a capacity that does as much work, first by `step`. Returns to `back` if there
    /// is none.
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
        let (search, next) = Search::below(point, back, step, self.each().ln());
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

    /// Waits for the requests inside to end, because they belong to another capacity.
    fn flush(&mut self, now_ns: u64) {
        self.stage = Stage::Flushing(Flush::begin(now_ns, self.active));
    }

    fn search(&mut self, now_ns: u64, mut search: Search, point: Point) {
        let (begin, least) = ((FREE as f64 * self.each()).ln(), self.each().ln());
        let rises = matches!(search, Search::Rising { .. });
        // In the first measurement more than the capacity was inside, so it cannot be compared.
        if rises && self.view.measurements == 1 && point.x < begin {
            self.view.reason = AutoReason::Rising;
            self.curve.clear();
            self.center = begin;
            self.move_to(self.center);
            return;
        }
        let next = search.measured(point, least, &mut self.curve);
        self.follow(now_ns, search, next);
    }

    /// Moves to the next capacity of a search.
    fn follow(&mut self, now_ns: u64, search: Search, next: Next) {
        let (Next::At(center) | Next::Found(center)) = next;
        self.center = center;
        self.move_to(self.center);
        if let Next::Found(_) = next {
            self.search = None;
            self.lookout.searched(now_ns);
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
        self.center = self.center.max(self.each().ln());
        self.move_to(self.center + probe * self.spread);
        self.show(&fit);
        if changed {
            self.view.reason = AutoReason::BackendChanged;
        }
    }

    /// Moves the center by a step within the trust region. Returns whether the step was cut.
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

    /// Whether the deviations so far cannot be chance.
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
        let least = self.each();
        let bounded = |x: f64| x.exp().clamp(least, CAPACITY_MAX);
        self.capacity = bounded(x);
        self.view.center_ns = bounded(self.center) as u64;
        self.center = self.center.min(CAPACITY_MAX.ln());
    }
}
