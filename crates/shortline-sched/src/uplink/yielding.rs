//! Out of the way of elastic cross traffic: the state Yielding.
//!
//! Nothing is held back, so that every connection competes as it would behind a plain server
//! (Bundler, 5.2). Whether the others have gone shows in what we get. When that rises by a quarter,
//! and every few seconds anyway, a trial begins. It holds back three tenths until a part of the
//! queue should have gone, and then little until the effect shows. It ends at once where the queue
//! goes away by itself.

use super::config::MS;
use super::estimate::Estimate;
use super::paced::Sight;
use super::trial::{Trial, Verdict};

/// What we get settles for this long first.
const SETTLE_NS: u64 = 1500 * MS;
/// If what we get rises by this factor, a trial is worth it.
const RISE: f64 = 1.25;
/// What is sent in a trial, as a share of what we got before.
const TRIAL_SHARE: f64 = 0.7;
/// What is sent once enough has been held back and the effect is awaited.
const WAITING_SHARE: f64 = 0.95;
/// The queue is ours if this share of what should go in a trial goes. With one connection of ours
/// and one of theirs it is about half.
const SHARE_WANTED: f64 = 0.75;
/// Without a queue for this long the others have gone, and so have we.
const QUEUELESS_NS: u64 = 500 * MS;

/// The state of the yielding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Yielding {
    waited_ns: u64,
    queueless_ns: u64,
    usual_bps: Option<f64>,
    trial: Option<(Trial, f64)>,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum After {
    /// Go on, at this rate; None: hold nothing back.
    Yield(Option<f64>),
    /// The queue is ours again, and this is what goes through it.
    Pace(Estimate),
    /// There is no queue.
    Restart,
}

impl Yielding {
    pub fn new() -> Self {
        Self {
            waited_ns: 0,
            queueless_ns: 0,
            usual_bps: None,
            trial: None,
        }
    }

    /// Takes one observation.
    pub fn step(&mut self, sight: &Sight<'_>) -> After {
        let window = sight.window(sight.config.delay_start_ns);
        let got_bps = window.and_then(|window| sight.delivered_bps(&window));
        self.queueless_ns = if sight.delay_ns < sight.config.delay_start_ns / 2 {
            self.queueless_ns + sight.span_ns
        } else {
            0
        };
        if let Some((trial, bps)) = self.trial {
            return self.try_on(sight, trial, bps);
        }
        if self.queueless_ns > QUEUELESS_NS {
            return After::Restart;
        }
        self.waited_ns += sight.span_ns;
        if let Some(bps) = got_bps
            && self.is_due(sight, bps)
        {
            self.trial = Some((sight.trial(SHARE_WANTED), bps));
            return After::Yield(Some(TRIAL_SHARE * bps));
        }
        After::Yield(None)
    }

    /// Notes time of which nothing is known.
    pub fn pause(&mut self, span_ns: u64) {
        self.waited_ns += span_ns;
    }

    fn is_due(&mut self, sight: &Sight<'_>, got_bps: f64) -> bool {
        if self.waited_ns < SETTLE_NS {
            return false;
        }
        let usual_bps = *self.usual_bps.get_or_insert(got_bps);
        let weight = (sight.span_ns as f64 / SETTLE_NS as f64).min(1.0);
        self.usual_bps = Some(usual_bps + weight * (got_bps - usual_bps));
        got_bps > RISE * usual_bps || self.waited_ns > sight.config.yield_retry_ns
    }

    fn try_on(&mut self, sight: &Sight<'_>, mut trial: Trial, bps: f64) -> After {
        match trial.step(sight.effect(bps)) {
            Verdict::Pending => {
                self.trial = Some((trial, bps));
                // What has gone by then is kept away, and nothing more is given up.
                let share = if trial.is_enough() {
                    WAITING_SHARE
                } else {
                    TRIAL_SHARE
                };
                After::Yield(Some(share * bps))
            }
            Verdict::Ours => After::Pace(Estimate::new(bps)),
            Verdict::Theirs => {
                *self = Self::new();
                After::Yield(None)
            }
        }
    }
}
