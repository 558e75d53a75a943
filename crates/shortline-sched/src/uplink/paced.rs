//! Pacing at the estimate: the states Searching and Confident.
//!
//! rate = C (1 - (d - d*) / (2 L)), Nimbus' delay control (Goyal et al., SIGCOMM 2022, 4.1)
//! without its cross traffic term: C the estimate, d the delay, d* its target, L how long a
//! change takes to show. At most half of C is held back. C itself follows
//! - what was delivered, while a queue stands and either more than C came out, or less than
//!   went in (of a queue that stands while as much comes out as goes in, nothing follows for C:
//!   else a delay that is not ours would drive the rate to nothing);
//! - the integral of the same error, near the target;
//! - without any queue, growth: 1 % in the first round, then twice as much in each up to a
//!   quarter, as long as something waits for the pacer.

use super::config::{MS, UplinkConfig};
use super::estimate::{Delivery, Estimate};
use super::meter::{Meter, Window};
use super::observation::Limit;
use super::trial::{Effect, Trial, Verdict};

/// Two full packets on the wire, in bits.
const TWO_PACKETS_BITS: f64 = 2.0 * 1514.0 * 8.0;
/// The most that is held back, as a share of the estimate.
const HELD_BACK_MAX: f64 = 0.5;
/// Growth per round without a queue: at first, and at most.
const GROWTH_FIRST: f64 = 0.01;
const GROWTH_MAX: f64 = 0.25;
/// The queue is ours if this share of what should go in a trial goes.
const TRIAL_SHARE: f64 = 0.4;
/// A delay above the target for this long is worth a trial.
const ABOVE_TARGET_NS: u64 = 2000 * MS;

/// What is seen at one observation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight<'a> {
    pub config: &'a UplinkConfig,
    pub meter: &'a Meter,
    pub delivery: &'a Delivery,
    pub now_ns: u64,
    pub span_ns: u64,
    pub sent_bytes: u64,
    /// The delay as it should be by now.
    pub delay_ns: u64,
    /// The delay as it is observed, and how much older than a round trip that is.
    pub observed_ns: u64,
    pub age_ns: u64,
    pub lag_ns: u64,
    pub paths: u32,
    pub limited_by: Limit,
}

/// What comes of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    /// Go on, at this rate.
    Pace(f64),
    /// Others keep the queue: get out of their way.
    Yield,
    /// What was measured does not hold any more: begin anew.
    Restart,
}

/// Where the pacing stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paced {
    trial: Option<Trial>,
    growth: f64,
    round_ns: u64,
    since_measured_ns: u64,
    above_target_ns: u64,
    paths: u32,
}

impl Paced {
    /// Begins with a queue that stands, seen on so many paths, and a trial of whose it is.
    pub fn new(sight: &Sight<'_>) -> Self {
        Self {
            trial: Some(sight.trial(TRIAL_SHARE)),
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
            paths,
        }
    }

    /// Whether no trial runs and the rate does not grow in strides.
    pub fn is_steady(&self) -> bool {
        self.trial.is_none() && self.growth <= 2.0 * GROWTH_FIRST
    }

    /// After a pause: nothing of the moment holds, only how many paths there were.
    pub fn resumed(&self) -> Self {
        Self::drained(self.paths)
    }

    /// One observation later.
    pub fn step(&mut self, sight: &Sight<'_>, estimate: &mut Estimate) -> Next {
        let target_ns = sight.target_ns(estimate.bps);
        let high_ns = sight.high_ns(estimate.bps);
        self.measure(sight, estimate, target_ns / 2);
        if self.judge(sight, estimate, target_ns) == Some(Verdict::Theirs) {
            return Next::Yield;
        }
        if sight.delay_ns > high_ns {
            self.growth = GROWTH_FIRST;
            self.round_ns = 0;
        } else if sight.delay_ns < target_ns / 2 {
            if self.outgrown(sight) {
                return Next::Restart;
            }
            self.grow(sight, estimate);
        } else if sight.limited_by != Limit::Application {
            let error_ns = target_ns as f64 - sight.delay_ns as f64;
            let lag_ns = sight.lag_ns as f64;
            estimate.scale(1.0 + error_ns / lag_ns * sight.span_ns as f64 / lag_ns / 8.0);
        }
        let excess = (sight.delay_ns as f64 - target_ns as f64) / (2.0 * sight.lag_ns as f64);
        Next::Pace(estimate.bps * (1.0 - excess.min(HELD_BACK_MAX)))
    }

    /// Takes a measurement each window, where one says anything.
    fn measure(&mut self, sight: &Sight<'_>, estimate: &mut Estimate, busy_ns: u64) {
        self.since_measured_ns += sight.span_ns;
        let Some(window) = sight.window(busy_ns) else {
            return;
        };
        if self.since_measured_ns < window.span_ns || !window.is_busy() || !window.is_backlogged() {
            return;
        }
        let Some(bps) = sight.delivered_bps(&window) else {
            return;
        };
        self.since_measured_ns = 0;
        if bps > estimate.bps || bps < 0.95 * window.sent_bps() {
            estimate.measure(bps);
        } else {
            estimate.confirm(bps);
        }
    }

    /// Begins a trial where the delay asks for one, and goes on with the one that runs.
    fn judge(&mut self, sight: &Sight<'_>, estimate: &Estimate, target_ns: u64) -> Option<Verdict> {
        let high_ns = sight.high_ns(estimate.bps);
        self.above_target_ns = if sight.delay_ns > target_ns * 3 / 2 {
            self.above_target_ns + sight.span_ns
        } else {
            0
        };
        let Some(trial) = &mut self.trial else {
            let patience_ns = if sight.delay_ns > high_ns {
                sight.lag_ns
            } else {
                ABOVE_TARGET_NS
            };
            if self.above_target_ns > patience_ns {
                self.trial = Some(sight.trial(TRIAL_SHARE));
            }
            return None;
        };
        let verdict = trial.step(sight.effect(estimate.bps));
        match verdict {
            Verdict::Pending => return None,
            Verdict::Ours => self.trial = None,
            Verdict::Theirs => {}
        }
        Some(verdict)
    }

    /// Without a queue and with something waiting, more is tried.
    fn grow(&mut self, sight: &Sight<'_>, estimate: &mut Estimate) {
        if sight.limited_by != Limit::Pacing {
            return;
        }
        self.round_ns += sight.span_ns;
        if self.round_ns >= sight.lag_ns + 50 * MS {
            self.round_ns = 0;
            estimate.scale(1.0 + self.growth);
            self.growth = (2.0 * self.growth).min(GROWTH_MAX);
        }
    }

    /// Whether the estimate comes from so few paths that it may have been one client's own
    /// bottleneck, and the many there are now see no queue.
    fn outgrown(&mut self, sight: &Sight<'_>) -> bool {
        let outgrown =
            self.paths <= 2 && sight.paths > 2 * self.paths && sight.limited_by == Limit::Pacing;
        self.paths = self.paths.max(sight.paths.min(3));
        outgrown
    }
}

impl Sight<'_> {
    /// The delay to leave at the bottleneck.
    pub fn target_ns(&self, bps: f64) -> u64 {
        self.config
            .delay_target_ns
            .max((TWO_PACKETS_BITS * 1e9 / bps) as u64)
    }

    /// A delay above this is too much.
    pub fn high_ns(&self, bps: f64) -> u64 {
        self.target_ns(bps) * 5 / 2
    }

    /// The window to measure a rate over: longer where there are few packets.
    pub fn window(&self, busy_delay_ns: u64) -> Option<Window> {
        let shortest_ns = self.config.window_ns_min.max(self.lag_ns / 2);
        let window = self
            .meter
            .last(shortest_ns.min(self.config.window_ns_max), busy_delay_ns)?;
        if window.delivered_bytes >= 24 * 1514 {
            return Some(window);
        }
        self.meter.last(self.config.window_ns_max, busy_delay_ns)
    }

    /// What was delivered in a window.
    pub fn delivered_bps(&self, window: &Window) -> Option<f64> {
        self.delivery.delivered_bps(self.meter, self.config, window)
    }

    /// A trial that begins now.
    pub fn trial(&self, share_wanted: f64) -> Trial {
        Trial::new(self.now_ns, self.observed_ns, share_wanted)
    }

    /// What a trial sees now.
    pub fn effect(&self, capacity_bps: f64) -> Effect {
        Effect {
            now_ns: self.now_ns,
            span_ns: self.span_ns,
            sent_share: self.sent_bytes as f64 * 8e9 / self.span_ns as f64 / capacity_bps,
            delay_ns: self.observed_ns,
            gone_below_ns: self.target_ns(capacity_bps) * 3 / 2,
            lag_ns: self.lag_ns,
            age_ns: self.age_ns,
        }
    }
}
