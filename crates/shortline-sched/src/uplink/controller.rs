//! The controller: takes observations in, filters them, and runs the present state.

use super::config::UplinkConfig;
use super::decision::{Decision, State};
use super::delay::Delay;
use super::estimate::{Delivery, Estimate};
use super::local::Local;
use super::meter::{Meter, Reading};
use super::observation::{Limit, Observation};
use super::paced::{Next, Paced, Sight};
use super::sweep::Sweep;
use super::yielding::{After, Yielding};

/// An estimate of at least this confidence can be relied on.
const CONFIDENT: f64 = 0.7;
/// What the sampling itself adds to a round trip before a change shows.
const SAMPLING_NS: u64 = 20_000_000;
/// A known delay is valid for this long.
const DELAY_AGE_NS_MAX: u64 = 500_000_000;
/// After a pause no longer than this, what was begun goes on.
const PAUSE_NS_MAX: u64 = 1_000_000_000;
/// Longer round trips than this are not believed.
const RTT_NS_MAX: u64 = 1_000_000_000;

/// Finds the uplink's rate from the link's observations.
#[derive(Clone, Debug)]
pub struct Controller {
    config: UplinkConfig,
    last_ns: Option<u64>,
    meter: Meter,
    delay: Option<Delay>,
    delay_age_ns: u64,
    rtt_ns: f64,
    unseen_ns: u64,
    free: Free,
    local: Local,
    mode: Mode,
    delivery: Delivery,
    estimate: Option<Estimate>,
    /// `None`: nothing is held back.
    rate_bps: Option<f64>,
    decision: Decision,
}

#[derive(Clone, Copy, Debug)]
enum Mode {
    /// Nothing is held back: no queue yet, or none at all.
    Free,
    Paced(Paced),
    Yielding(Yielding),
}

impl Controller {
    /// A controller in its first state, without an estimate.
    pub fn new(config: UplinkConfig) -> Self {
        let decision = Decision {
            pacing_rate_bps: Some(config.rate_bps_max),
            state: State::Starting,
            estimate_bps: None,
            confidence: 0.0,
        };
        Self {
            last_ns: None,
            meter: Meter::default(),
            delay: None,
            delay_age_ns: 0,
            rtt_ns: config.rtt_ns_assumed as f64,
            unseen_ns: 0,
            free: Free::new(),
            local: Local::default(),
            mode: Mode::Free,
            delivery: Delivery::new(),
            estimate: None,
            rate_bps: None,
            decision,
            config,
        }
    }

    /// Takes in what the link saw, and returns what it must do until the next observation. Never
    /// fails: impossible values are left out.
    pub fn observe(&mut self, observation: &Observation) -> Decision {
        self.local.observe(observation.local, observation.now_ns);
        if let Some(span_ns) = self.advance(observation.now_ns) {
            self.take_in(observation, span_ns);
            self.step(observation, span_ns);
            self.decide();
        }
        self.decision
    }

    /// The last decision.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// The queueing delay that all paths share, smoothed, in nanoseconds.
    pub fn delay_ns(&self) -> Option<u64> {
        self.delay.map(|delay| delay.ns() as u64)
    }

    /// The time since the previous observation; `None` where the two do not belong together.
    fn advance(&mut self, now_ns: u64) -> Option<u64> {
        let last_ns = self.last_ns.replace(now_ns);
        let span_ns = last_ns.and_then(|last_ns| now_ns.checked_sub(last_ns));
        match span_ns {
            Some(span_ns) if span_ns > 0 && span_ns <= self.config.gap_ns_max => Some(span_ns),
            Some(0) => None,
            Some(span_ns) if span_ns <= PAUSE_NS_MAX => {
                self.forget_the_moment();
                if let Mode::Yielding(yielding) = &mut self.mode {
                    yielding.pause(span_ns);
                }
                None
            }
            _ => {
                self.forget_the_moment();
                self.mode = match self.mode {
                    Mode::Paced(paced) => Mode::Paced(paced.resumed()),
                    Mode::Yielding(_) => Mode::Yielding(Yielding::new()),
                    Mode::Free => Mode::Free,
                };
                None
            }
        }
    }

    /// After a pause or a jump of the clock the measurements begin anew. The estimate stays. After
    /// a short pause so does what is under way, because a busy machine has many of them.
    fn forget_the_moment(&mut self) {
        self.meter.clear();
        self.delay = None;
        self.unseen_ns = 0;
        self.free = Free::new();
    }

    fn take_in(&mut self, observation: &Observation, span_ns: u64) {
        self.take_in_delay(observation, span_ns);
        if let Some(rtt_ns) = observation.rtt_ns {
            self.rtt_ns += 0.1 * (rtt_ns.min(RTT_NS_MAX) as f64 - self.rtt_ns);
        }
        self.meter.push(Reading {
            span_ns,
            sent_bytes: observation.sent_wire_bytes,
            delivered_bytes: observation.delivered_wire_bytes,
            lost_bytes: observation.lost_wire_bytes,
            delay_ns: self.delay_ns(),
            backlogged: observation.limited_by != Limit::Application,
        });
    }

    /// A round trip without the queue.
    fn flight_ns(&self) -> u64 {
        (self.rtt_ns - self.delay.map_or(0.0, |delay| delay.ns())).max(0.0) as u64
    }

    fn take_in_delay(&mut self, observation: &Observation, span_ns: u64) {
        let seen = observation
            .shared_delay_ns
            .filter(|_| observation.paths > 0);
        let Some(shared_ns) = seen else {
            self.delay_age_ns += span_ns;
            if self.delay_age_ns > DELAY_AGE_NS_MAX {
                self.delay = None;
            }
            if observation.sent_wire_bytes > 0 {
                self.unseen_ns += span_ns;
            }
            return;
        };
        self.delay_age_ns = 0;
        self.unseen_ns = 0;
        let delay_ns = self.local.beyond_ns(shared_ns, observation.local) as f64;
        match &mut self.delay {
            Some(delay) => delay.take_in(delay_ns, span_ns as f64),
            none => *none = Some(Delay::new(delay_ns)),
        }
    }

    /// Runs the present state. While no delay is known, everything stays as it is.
    fn step(&mut self, observation: &Observation, span_ns: u64) {
        let Some(delay_ns) = self.delay_ns() else {
            return;
        };
        let sight = Sight {
            config: &self.config,
            meter: &self.meter,
            delivery: &self.delivery,
            now_ns: observation.now_ns,
            span_ns,
            sent_bytes: observation.sent_wire_bytes,
            delay_ns,
            flight_ns: self.flight_ns(),
            lag_ns: self.rtt_ns as u64 + SAMPLING_NS,
            paths: observation.paths,
            limited_by: observation.limited_by,
            queue_is_here: self.local.is_bottleneck_lately(observation.now_ns),
        };
        let (mode, estimate, rate_bps) = match self.mode {
            Mode::Free => start(&sight, self.estimate, &mut self.free),
            Mode::Paced(paced) => pace(&sight, paced, self.estimate),
            Mode::Yielding(yielding) => give_way(&sight, yielding, self.estimate),
        };
        let high_ns = estimate.map_or(0, |estimate| sight.high_ns(estimate.bps));
        // A measurement in other bytes than we send is repeated.
        let strange = matches!(mode, Mode::Paced(_))
            && self
                .delivery
                .learn(&self.meter, &self.config, span_ns, high_ns);
        let (mode, estimate, rate_bps) = if strange {
            (Mode::Free, None, None)
        } else {
            (mode, estimate, rate_bps)
        };
        self.mode = mode;
        self.estimate = estimate.map(|estimate| estimate.within(&self.config));
        self.rate_bps = rate_bps;
    }

    fn decide(&mut self) {
        let highest_bps = self
            .local
            .rate_bps()
            .map_or(self.config.rate_bps_max, |rate| {
                rate.min(self.config.rate_bps_max)
            });
        let highest_bps = highest_bps.max(self.config.rate_bps_min);
        let confidence = self.estimate.map_or(0.0, |estimate| estimate.confidence());
        let state = self.state(confidence);
        let rate_bps = match self.rate_bps {
            Some(bps) if bps.is_finite() => {
                (bps as u64).clamp(self.config.rate_bps_min, highest_bps)
            }
            _ => highest_bps,
        };
        let (estimate_bps, confidence) = match state {
            State::Local => (self.local.rate_bps(), 1.0),
            _ => (
                self.estimate
                    .map(|estimate| (estimate.bps as u64).min(highest_bps)),
                confidence,
            ),
        };
        self.decision = Decision {
            pacing_rate_bps: (state != State::Blind).then_some(rate_bps),
            state,
            estimate_bps,
            confidence,
        };
    }

    fn state(&self, confidence: f64) -> State {
        match self.mode {
            Mode::Free if self.local.is_bottleneck() => State::Local,
            _ if self.unseen_ns > self.config.blind_ns => State::Blind,
            Mode::Free if self.free.queueless_ns > self.config.open_ns => State::Open,
            Mode::Free => State::Starting,
            Mode::Yielding(_) => State::Yielding,
            Mode::Paced(_) if confidence >= CONFIDENT => State::Confident,
            Mode::Paced(_) => State::Searching,
        }
    }
}

type Step = (Mode, Option<Estimate>, Option<f64>);

/// The state while nothing is held back.
#[derive(Clone, Copy, Debug)]
struct Free {
    /// How long no queue has shown although more could have been sent, less how long one has.
    queueless_ns: u64,
    /// Whether something was lost meanwhile, as happens behind a full queue.
    lost: bool,
    sweep: Sweep,
    /// What was delivered when the sweep began.
    delivered_bps: f64,
}

impl Free {
    fn new() -> Self {
        let mut sweep = Sweep::new();
        sweep.begin();
        Self {
            queueless_ns: 0,
            lost: false,
            sweep,
            delivered_bps: 0.0,
        }
    }

    /// Notes an observation, with a queue or without.
    fn look(&mut self, sight: &Sight<'_>, queue: bool) {
        if queue {
            self.queueless_ns = self.queueless_ns.saturating_sub(sight.span_ns);
        } else if sight.limited_by != Limit::Application {
            self.queueless_ns = self.queueless_ns.saturating_add(sight.span_ns);
        }
        // Where our own interface has the queue, losses do not mean a queue beyond it.
        let lost = sight.window(0).is_some_and(|window| window.lost_bytes > 0);
        self.lost = (self.lost || lost) && !sight.queue_is_here;
    }

    /// The rate of a sweep. A queue that was full when every path was first seen, and has been
    /// since, is taken for the ground, and only losses show it. So a little is held back now and
    /// then.
    fn sweep_bps(&mut self, sight: &Sight<'_>) -> Option<f64> {
        if !self.lost || self.queueless_ns <= sight.config.open_ns {
            return None;
        }
        if !self.sweep.is_running() {
            self.delivered_bps = sight.window(0)?.delivered_bps();
        }
        let held_back = self.sweep.held_back(sight);
        let sweeps = self.sweep.is_running();
        sweeps.then_some(self.delivered_bps * (1.0 - held_back))
    }
}

/// Only sweeps hold anything back, until a queue stands long enough to measure what goes through
/// it.
fn start(sight: &Sight<'_>, estimate: Option<Estimate>, free: &mut Free) -> Step {
    let queue = sight.delay_ns >= sight.config.delay_start_ns;
    free.look(sight, queue);
    let window = sight.first_window();
    let measured = window.filter(|window| queue && window.is_busy() && window.is_backlogged());
    let Some(bps) = measured.and_then(|window| sight.delivered_bps(&window)) else {
        return (Mode::Free, estimate, free.sweep_bps(sight));
    };
    pace(sight, Paced::new(sight, bps), Some(Estimate::new(bps)))
}

fn pace(sight: &Sight<'_>, mut paced: Paced, estimate: Option<Estimate>) -> Step {
    let Some(mut estimate) = estimate else {
        return (Mode::Free, None, None);
    };
    match paced.step(sight, &mut estimate) {
        Next::Pace(bps) => (Mode::Paced(paced), Some(estimate), Some(bps)),
        Next::Yield => (Mode::Yielding(Yielding::new()), Some(estimate), None),
        Next::Restart => (Mode::Free, None, None),
    }
}

fn give_way(sight: &Sight<'_>, mut yielding: Yielding, estimate: Option<Estimate>) -> Step {
    match yielding.step(sight) {
        After::Yield(bps) => (Mode::Yielding(yielding), estimate, bps),
        After::Pace(estimate) => (
            Mode::Paced(Paced::drained(sight.paths)),
            Some(estimate),
            Some(estimate.bps),
        ),
        After::Restart => (Mode::Free, None, None),
    }
}

#[cfg(test)]
mod tests;
