//! Trials: whether a queue is ours. Send less than is drained, and see whether the queue goes away.
//!
//! Nimbus (Goyal et al., SIGCOMM 2022, section 3) modulates the rate with pulses and looks for
//! their echo in the rate of the cross traffic, by an FFT over 5 s. That needs what was sent and
//! received of the very same packets, which a server without a box at the other end does not have,
//! and it takes those 5 s. But a queue has to be emptied anyway, and emptying it answers the same
//! question. If all of the queue is ours (or the others' rate does not depend on us), sending at a
//! share f of the capacity for a time T takes (1 - f) T of delay away. Elastic cross traffic takes
//! the room instead, and the delay stays.

use super::config::MS;

/// A trial that is undecided after this time is decided as it stands.
const LONGEST_NS: u64 = 2500 * MS;
/// A delay no longer falls if for a round trip it has not been lower than before by this share of
/// where it began.
const FALLS: f64 = 0.03;
/// A delay that then is still higher than ever by this factor is not ours.
const RISES: f64 = 1.05;
/// The least that must be held back before anything can be said.
const EXPECTED_NS_MIN: f64 = 10e6;

/// One trial: how much delay should go, and by when that must show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trial {
    started_ns: u64,
    delay_before_ns: f64,
    share_wanted: f64,
    expected_ns: f64,
    /// When enough was held back. The effect shows a round trip later.
    enough_at_ns: Option<u64>,
    lowest_ns: f64,
    lowest_at_ns: u64,
}

/// One observation of a trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
    pub now_ns: u64,
    pub span_ns: u64,
    /// What was sent, as a share of the capacity.
    pub sent_share: f64,
    /// The delay, and the value at or below which it has gone.
    pub delay_ns: u64,
    pub gone_below_ns: u64,
    /// How late the observation is: a round trip, and what the sampling adds.
    pub lag_ns: u64,
}

/// What a trial has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Not enough has been held back yet, or the delay still falls.
    Pending,
    /// The delay went away: the queue is ours.
    Ours,
    /// It did not: others keep it standing.
    Theirs,
}

impl Trial {
    /// Begins to hold back at `now_ns`, with the observed delay. The queue is ours if more than
    /// `share_wanted` of what should go has gone.
    pub fn new(now_ns: u64, delay_ns: u64, share_wanted: f64) -> Self {
        Self {
            started_ns: now_ns,
            delay_before_ns: delay_ns as f64,
            share_wanted,
            expected_ns: 0.0,
            enough_at_ns: None,
            lowest_ns: delay_ns as f64,
            lowest_at_ns: now_ns,
        }
    }

    /// Whether enough has been held back, and only the effect is awaited.
    pub fn is_enough(&self) -> bool {
        self.enough_at_ns.is_some()
    }

    /// Takes one observation.
    pub fn step(&mut self, effect: Effect) -> Verdict {
        if effect.delay_ns <= effect.gone_below_ns {
            return Verdict::Ours;
        }
        let delay_ns = effect.delay_ns as f64;
        if delay_ns > self.delay_before_ns {
            if delay_ns > RISES * self.delay_before_ns && self.is_seen(effect) {
                return Verdict::Theirs;
            }
            // Observations are late, and may still rise before they fall.
            self.delay_before_ns = delay_ns;
            self.lowest_ns = delay_ns;
            self.lowest_at_ns = effect.now_ns;
        }
        if delay_ns < self.lowest_ns - FALLS * self.delay_before_ns {
            self.lowest_ns = delay_ns;
            self.lowest_at_ns = effect.now_ns;
        }
        let excess_ns = self.delay_before_ns - effect.gone_below_ns as f64;
        if !self.is_enough() {
            self.expected_ns += (1.0 - effect.sent_share).max(0.0) * effect.span_ns as f64;
        }
        if self.expected_ns < (0.4 * excess_ns).max(EXPECTED_NS_MIN) {
            self.enough_at_ns = None;
        } else {
            self.enough_at_ns.get_or_insert(effect.now_ns);
        }
        self.judge(effect, self.expected_ns.min(excess_ns))
    }

    fn judge(&self, effect: Effect, expected_ns: f64) -> Verdict {
        let since = |at_ns: u64| effect.now_ns.saturating_sub(at_ns);
        let late = since(self.started_ns) > LONGEST_NS;
        if !late && !self.is_seen(effect) {
            return Verdict::Pending;
        }
        if self.delay_before_ns - effect.delay_ns as f64 > self.share_wanted * expected_ns {
            return Verdict::Ours;
        }
        let falls = since(self.lowest_at_ns) < effect.lag_ns;
        if falls && !late {
            Verdict::Pending
        } else {
            Verdict::Theirs
        }
    }

    /// Whether enough was held back and there was time to see it.
    fn is_seen(&self, effect: Effect) -> bool {
        self.enough_at_ns
            .is_some_and(|at_ns| effect.now_ns.saturating_sub(at_ns) >= effect.lag_ns)
    }
}
