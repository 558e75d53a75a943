//! Pacing at the estimate: the states Searching and Confident.
//!
//! rate = C (1 - (d - d*) / (2 L)) is Nimbus' delay control (Goyal et al., SIGCOMM 2022, 4.1)
//! without its cross traffic term. C is the estimate, d the delay, d* its target, L how long a
//! change takes to show. At most half of C is held back. C itself follows
//! - what was delivered, where all of it came out of a queue, and where it differs from what went
//!   in a flight's time before. Where both are the same nothing follows for C; else a delay that is
//!   not ours would drive the rate to nothing;
//! - a trial that has shown that the queue was ours: what was delivered then is the capacity;
//! - the integral of the same error, near the target;
//! - without any queue, growth: 1 % in the first round, then twice as much in each up to a quarter,
//!   as long as something waits for the pacer. Near the highest recent measurement it grows only so
//!   much that the queue reaches 7 ms before it is seen. With clients far away that takes long.
//!
//! There are two measures of what was delivered. One is acknowledgements, which come late and from
//! few connections. The other is the delay: the bytes that leave a FIFO in a window entered it in a
//! window longer by as much as the delay fell, whoever sent them. Where nothing was lost the
//! greater counts.
//!
//! A delay that stays above the target begins a trial. A trial that finds others is made again
//! before the rate is given up for them: if the capacity was overestimated, too little was held
//! back. A rate that is held back for long without an end is given up, too.

use std::ops::Range;

use super::config::{MS, UplinkConfig};
use super::estimate::{Delivery, Estimate};
use super::meter::{Meter, Window};
use super::observation::Limit;
use super::sweep::Sweep;
use super::trial::{Effect, Trial, Verdict};

/// Two full packets on the wire, in bits.
const TWO_PACKETS_BITS: f64 = 2.0 * 1514.0 * 8.0;
/// The shortest delay to leave, except for the time of two packets.
const TARGET_NS_MIN: u64 = MS / 2;
/// Rates that differ by this share are different.
const DIFFERS: f64 = 0.05;
/// A trial is begun anew at most this often.
const RESTARTS_MAX: u32 = 2;
/// The most that is held back, as a share of the estimate.
const HELD_BACK_MAX: f64 = 0.5;
/// Growth per round without a queue: at first, and at most.
const GROWTH_FIRST: f64 = 0.01;
const GROWTH_MAX: f64 = 0.25;
/// Within these shares of the highest recent measurement a queue is to be expected. It may become
/// no longer than this before it is seen.
const NEAR_HIGHEST: Range<f64> = 0.92..1.12;
const QUEUE_OF_GROWTH_NS: f64 = 7e6;
/// At the target, earlier growth is forgotten over this time.
const GROWTH_MEMORY_NS: f64 = 1e9;
/// The queue is ours if at least this share of what should go in a trial goes.
const SHARE_WANTED: f64 = 0.4;
/// The most sent in a trial, as a share of what was delivered when it began.
const TRIAL_RATE: f64 = 0.85;
/// Delivery below this share of what it was lately, for this long, is stuck.
const STUCK: f64 = 0.6;
const STUCK_NS: u64 = 1500 * MS;
/// Recent deliveries and measurements are forgotten over this time, in nanoseconds.
const FORGETS_NS: f64 = 20e9;
/// A delay below this share of what it was lately is falling.
const FALLS: f64 = 0.95;
/// A delay above the target for this long is worth a trial.
const ABOVE_TARGET_NS: u64 = 1000 * MS;

/// What one observation shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight<'a> {
    pub config: &'a UplinkConfig,
    pub meter: &'a Meter,
    pub delivery: &'a Delivery,
    pub now_ns: u64,
    pub span_ns: u64,
    pub sent_bytes: u64,
    pub delay_ns: u64,
    /// A round trip without the queue.
    pub flight_ns: u64,
    pub lag_ns: u64,
    pub paths: u32,
    pub limited_by: Limit,
    /// Whether our own interface was the bottleneck until lately.
    pub queue_is_here: bool,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    /// Go on, at this rate.
    Pace(f64),
    /// Others keep the queue: get out of their way.
    Yield,
    /// What was measured no longer holds: begin anew.
    Restart,
}

/// The state of the pacing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paced {
    /// A trial, and what was delivered when it began, in bits per second.
    trial: Option<(Trial, f64)>,
    growth: f64,
    round_ns: u64,
    since_measured_ns: u64,
    above_target_ns: u64,
    /// How often this trial was begun anew, for another capacity.
    restarts: u32,
    usual_delay_ns: f64,
    best_bps: f64,
    /// The highest recent measurement.
    highest_bps: f64,
    stuck_ns: u64,
    stuck_delay_ns: u64,
    sweep: Sweep,
    /// No trial has ended yet.
    unswept: bool,
    paths: u32,
}

impl Paced {
    /// Begins with a standing queue, and a trial of whose it is.
    pub fn new(sight: &Sight<'_>, bps: f64) -> Self {
        Self {
            trial: Some((sight.trial(SHARE_WANTED), bps)),
            ..Self::drained(sight.paths)
        }
    }

    /// Begins with a queue that has just been shown to be ours.
    pub fn drained(paths: u32) -> Self {
        Self {
            trial: None,
            growth: GROWTH_FIRST,
            round_ns: 0,
            since_measured_ns: 0,
            above_target_ns: 0,
            restarts: 0,
            usual_delay_ns: 0.0,
            best_bps: 0.0,
            highest_bps: 0.0,
            stuck_ns: 0,
            stuck_delay_ns: 0,
            sweep: Sweep::new(),
            unswept: true,
            paths,
        }
    }

    /// The state after a pause: only the number of paths still holds.
    pub fn resumed(&self) -> Self {
        Self::drained(self.paths)
    }

    /// Takes one observation.
    pub fn step(&mut self, sight: &Sight<'_>, estimate: &mut Estimate) -> Next {
        let target_ns = sight.target_ns(estimate.bps);
        self.highest_bps = (self.highest_bps * sight.kept()).max(estimate.measured_bps);
        self.measure(sight, estimate);
        if self.judge(sight, estimate) == Some(Verdict::Theirs) {
            return Next::Yield;
        }
        if sight.delay_ns > target_ns * 5 / 2 {
            self.growth = GROWTH_FIRST;
            self.round_ns = 0;
        } else if sight.delay_ns < target_ns / 2 {
            if self.outgrown(sight) {
                return Next::Restart;
            }
            // A queue that a sweep has emptied says nothing about more capacity.
            if !self.sweep.is_running() {
                self.grow(sight, estimate);
            }
        }
        if sight.delay_ns >= target_ns / 2
            && sight.delay_ns <= sight.high_ns(estimate.bps)
            && sight.limited_by != Limit::Application
        {
            // The rate is right for now, so its growth is forgotten.
            let forgotten = (sight.span_ns as f64 / GROWTH_MEMORY_NS).min(1.0);
            self.growth -= forgotten * (self.growth - GROWTH_FIRST);
            let error_ns = target_ns as f64 - sight.delay_ns as f64;
            let lag_ns = sight.lag_ns as f64;
            estimate.scale(1.0 + error_ns / lag_ns * sight.span_ns as f64 / lag_ns / 8.0);
        }
        let excess = (sight.delay_ns as f64 - target_ns as f64) / (2.0 * sight.lag_ns as f64);
        let held_back = self.sweep.held_back(sight).max(excess);
        let bps = (estimate.bps * (1.0 - held_back.min(HELD_BACK_MAX))).min(self.trial_bps());
        if self.is_stuck(sight, bps) {
            return Next::Yield;
        }
        Next::Pace(bps)
    }

    /// Takes a measurement each window, if the window allows one.
    fn measure(&mut self, sight: &Sight<'_>, estimate: &mut Estimate) {
        self.since_measured_ns += sight.span_ns;
        let tolerated_ns = sight.tolerated_ns(estimate.bps);
        let Some(window) = sight.window(sight.target_ns(estimate.bps) / 2) else {
            return;
        };
        if self.since_measured_ns < window.span_ns || !window.is_busy() || !window.is_backlogged() {
            return;
        }
        let Some(bps) = sight.capacity_bps(&window) else {
            return;
        };
        self.since_measured_ns = 0;
        // Compares what came out with what went in a flight's time before.
        let sent = sight.meter.before(sight.flight_ns, window.span_ns, 0);
        let sent_bps = sent.map_or(bps, |sent| sent.sent_bps());
        // Without a changing queue the two are equal, even if round trips of different lengths blur
        // them.
        let stands = sight.delay_ns > tolerated_ns && sight.stood(&window, tolerated_ns / 3);
        if stands {
            self.restart_above(sight, bps);
        }
        if !stands || (bps - sent_bps).abs() <= DIFFERS * sent_bps {
            estimate.confirm(bps);
            return;
        }
        if (bps - estimate.bps).abs() > 2.0 * DIFFERS * estimate.bps && self.trial.is_some() {
            // The trial's expectation came from the wrong capacity.
            self.restart(sight, bps);
        }
        estimate.measure(bps);
    }

    /// A trial whose capacity was measured before the link slowed down holds back too little to
    /// show anything.
    fn restart_above(&mut self, sight: &Sight<'_>, bps: f64) {
        let too_high =
            |(_, capacity_bps): &(Trial, f64)| bps < (1.0 - 2.0 * DIFFERS) * capacity_bps;
        if self.trial.as_ref().is_some_and(too_high) {
            self.restart(sight, bps);
        }
    }

    /// Begins the trial anew with this capacity; `false` if that was done often enough.
    fn restart(&mut self, sight: &Sight<'_>, capacity_bps: f64) -> bool {
        let may = self.restarts < RESTARTS_MAX;
        if may {
            self.restarts += 1;
            self.trial = Some((sight.trial(SHARE_WANTED), capacity_bps));
        }
        may
    }

    /// Begins a trial where the delay asks for one, and continues the one that runs.
    fn judge(&mut self, sight: &Sight<'_>, estimate: &mut Estimate) -> Option<Verdict> {
        let high_ns = sight.high_ns(estimate.bps);
        let tolerated_ns = sight.tolerated_ns(estimate.bps);
        let standing = sight.delay_ns > tolerated_ns && !self.falls(sight);
        self.above_target_ns = if standing {
            self.above_target_ns + sight.span_ns
        } else {
            0
        };
        let Some((trial, capacity_bps)) = &mut self.trial else {
            let patience_ns = if sight.delay_ns > high_ns {
                sight.lag_ns
            } else {
                ABOVE_TARGET_NS
            };
            if self.above_target_ns > patience_ns {
                self.restarts = 0;
                let delivered_bps = sight.delivered_lately_bps();
                let capacity_bps = delivered_bps.unwrap_or(estimate.bps).min(estimate.bps);
                self.trial = Some((sight.trial(SHARE_WANTED), capacity_bps));
            }
            return None;
        };
        let capacity_bps = *capacity_bps;
        let verdict = trial.step(sight.effect(capacity_bps));
        match verdict {
            Verdict::Pending => return None,
            Verdict::Ours => {
                // The queue was ours, so what was delivered is the bottleneck's capacity.
                let delivered_bps = sight.delivered_from_queue_bps(tolerated_ns / 3);
                estimate.measure(delivered_bps.unwrap_or(capacity_bps));
                self.trial = None;
                if std::mem::take(&mut self.unswept) {
                    self.sweep.begin();
                }
            }
            Verdict::Theirs => {
                let delivered_bps = sight.delivered_lately_bps();
                let capacity_bps = delivered_bps.unwrap_or(capacity_bps).min(capacity_bps);
                if self.restart(sight, capacity_bps) {
                    return None;
                }
            }
        }
        Some(verdict)
    }

    /// Whether the delay is already falling.
    fn falls(&mut self, sight: &Sight<'_>) -> bool {
        let delay_ns = sight.delay_ns as f64;
        let over_ns = sight.lag_ns as f64;
        self.usual_delay_ns +=
            (sight.span_ns as f64 / over_ns).min(1.0) * (delay_ns - self.usual_delay_ns);
        delay_ns < FALLS * self.usual_delay_ns
    }

    /// The limit while a trial runs: a little less than was delivered when it began, and exactly
    /// that once enough has been held back.
    fn trial_bps(&self) -> f64 {
        match &self.trial {
            Some((trial, bps)) if trial.is_enough() => *bps,
            Some((_, bps)) => TRIAL_RATE * bps,
            None => f64::INFINITY,
        }
    }

    /// Whether much less than lately has been sent for long while the delay has not even
    /// halved. Then holding back is not worth the loss, whatever causes the delay.
    fn is_stuck(&mut self, sight: &Sight<'_>, bps: f64) -> bool {
        let delivered = sight.window(0).map_or(0.0, |window| window.delivered_bps());
        self.best_bps = (self.best_bps * sight.kept()).max(delivered);
        let held = bps < STUCK * self.best_bps && sight.delay_ns > sight.tolerated_ns(bps);
        if !held || sight.delay_ns < self.stuck_delay_ns / 2 {
            self.stuck_ns = 0;
        }
        if self.stuck_ns == 0 {
            self.stuck_delay_ns = sight.delay_ns;
        }
        self.stuck_ns += sight.span_ns;
        self.stuck_ns > STUCK_NS
    }

    /// Without a queue and with something waiting, tries more.
    fn grow(&mut self, sight: &Sight<'_>, estimate: &mut Estimate) {
        if sight.limited_by != Limit::Pacing {
            return;
        }
        self.round_ns += sight.span_ns;
        if self.round_ns >= sight.lag_ns + 50 * MS {
            self.round_ns = 0;
            self.growth = self
                .growth
                .min(sight.growth_max(estimate.bps / self.highest_bps));
            estimate.scale(1.0 + self.growth);
            self.growth *= 2.0;
        }
    }

    /// Whether the estimate comes from so few paths that it may have been one client's own
    /// bottleneck, while the many paths there are now see no queue.
    fn outgrown(&mut self, sight: &Sight<'_>) -> bool {
        let outgrown =
            self.paths <= 2 && sight.paths > 2 * self.paths && sight.limited_by == Limit::Pacing;
        self.paths = self.paths.max(sight.paths.min(3));
        outgrown
    }
}

impl Sight<'_> {
    /// The delay to leave at the bottleneck. Where round trips are short it is shorter, because
    /// they vary less and it means more to them.
    pub fn target_ns(&self, bps: f64) -> u64 {
        let of_flight_ns = TARGET_NS_MIN + self.flight_ns / 8;
        let wanted_ns = self.config.delay_target_ns.min(of_flight_ns);
        wanted_ns.max(two_packets_ns(bps))
    }

    /// A delay that is not worth a trial, whatever the target is.
    pub fn tolerated_ns(&self, bps: f64) -> u64 {
        self.config.delay_target_ns.max(two_packets_ns(bps)) * 3 / 2
    }

    /// A delay above this is too much.
    pub fn high_ns(&self, bps: f64) -> u64 {
        self.config.delay_target_ns.max(two_packets_ns(bps)) * 5 / 2
    }

    /// The window to measure a rate over: longer where there are few packets.
    pub fn window(&self, busy_delay_ns: u64) -> Option<Window> {
        let shortest_ns = self.lag_ns + 2 * self.flight_ns;
        self.window_of(self.config.window_ns_min.max(shortest_ns), busy_delay_ns)
    }

    /// The window for the first estimate, which only needs to be good enough to empty the queue.
    pub fn first_window(&self) -> Option<Window> {
        let shortest_ns = (self.config.window_ns_min / 2).max(2 * self.lag_ns);
        self.window_of(shortest_ns, self.config.delay_start_ns)
    }

    fn window_of(&self, shortest_ns: u64, busy_delay_ns: u64) -> Option<Window> {
        let window = self
            .meter
            .last(shortest_ns.min(self.config.window_ns_max), busy_delay_ns)?;
        if window.delivered_bytes >= 24 * 1514 {
            return Some(window);
        }
        self.meter.last(self.config.window_ns_max, busy_delay_ns)
    }

    /// Whether a queue stood all the time in which the bottleneck sent what a window has seen
    /// delivered. Far clients report it a flight later, some of them two average flights.
    fn stood(&self, window: &Window, busy_delay_ns: u64) -> bool {
        let since_ns = window.span_ns + 2 * self.flight_ns;
        let stood = self
            .meter
            .last(since_ns.min(self.config.window_ns_max), busy_delay_ns);
        stood.is_some_and(|window| window.is_busy())
    }

    /// What is kept of the recent highest values.
    fn kept(&self) -> f64 {
        1.0 - (self.span_ns as f64 / FORGETS_NS).min(1.0)
    }

    /// How much more may be tried at once, at such a share of the highest recent measurement.
    fn growth_max(&self, of_highest: f64) -> f64 {
        if !NEAR_HIGHEST.contains(&of_highest) {
            return GROWTH_MAX;
        }
        let unseen_ns = (self.lag_ns + 2 * self.flight_ns) as f64;
        (QUEUE_OF_GROWTH_NS / unseen_ns).clamp(GROWTH_FIRST, GROWTH_MAX)
    }

    /// What was delivered in a window.
    pub fn delivered_bps(&self, window: &Window) -> Option<f64> {
        self.delivery.delivered_bps(self.meter, self.config, window)
    }

    /// What was delivered, by acknowledgements or by the delay, whichever is more.
    fn capacity_bps(&self, window: &Window) -> Option<f64> {
        let acknowledged_bps = self.delivered_bps(window)?;
        let drained_bps = self.drained_bps(window).unwrap_or(0.0);
        Some(drained_bps.max(acknowledged_bps))
    }

    /// What left a FIFO in a window. It entered between the packets that the window's first and
    /// last delay belong to.
    fn drained_bps(&self, window: &Window) -> Option<f64> {
        let then_ns = self.meter.delay_before(window.span_ns)?;
        let entered_ns = (window.span_ns + then_ns).checked_sub(self.delay_ns)?;
        let ago_ns = self.flight_ns + self.delay_ns;
        let sent = self.meter.before(ago_ns, entered_ns.max(1), 0)?;
        let bps = sent.sent_bps() * entered_ns as f64 / window.span_ns as f64;
        (window.lost_bytes == 0 && sent.lost_bytes == 0).then_some(bps)
    }

    /// What was delivered in the last window.
    fn delivered_lately_bps(&self) -> Option<f64> {
        self.window(0)
            .and_then(|window| self.delivered_bps(&window))
    }

    /// The same, if all of it came out of a queue.
    fn delivered_from_queue_bps(&self, busy_delay_ns: u64) -> Option<f64> {
        let window = self.window(0)?;
        let stood = self.stood(&window, busy_delay_ns);
        stood.then(|| self.capacity_bps(&window)).flatten()
    }

    /// A trial that begins now.
    pub fn trial(&self, share_wanted: f64) -> Trial {
        Trial::new(self.now_ns, self.delay_ns, share_wanted)
    }

    /// What a trial sees now.
    pub fn effect(&self, capacity_bps: f64) -> Effect {
        Effect {
            now_ns: self.now_ns,
            span_ns: self.span_ns,
            sent_share: self.sent_bytes as f64 * 8e9 / self.span_ns as f64 / capacity_bps,
            delay_ns: self.delay_ns,
            gone_below_ns: self.tolerated_ns(capacity_bps),
            lag_ns: self.lag_ns,
        }
    }
}

fn two_packets_ns(bps: f64) -> u64 {
    (TWO_PACKETS_BITS * 1e9 / bps) as u64
}
