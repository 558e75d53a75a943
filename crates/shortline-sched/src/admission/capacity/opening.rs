//! Opening up: whether the backend would do clearly more with a higher limit, found by trials, and what
//! follows from it.
//!
//! A limit hurts if more work were done without it. Nobody sees that from the requests that wait, so it is
//! tried ([`trial`]). The limit is *twice* the present one for a window, then as it was, and so on in turns.
//! It is never lifted at once: what holds beyond twice the limit is not known, and a database that has
//! thrashed does not recover at once. If clearly more is done, the gate opens up by that step, and tries the
//! next one.
//!
//! - **When.** Requests have waited for most of five seconds, and the pause is over. Each trial that shows
//!   nothing doubles the pause, up to an hour.
//! - **A fixed capacity** is a protection that a user has chosen. It is only exceeded up to the ceiling that
//!   the user gives ([`OpenUp::To`]). The raised limit stays. After ten minutes it is compared with the
//!   capacity, and the gate closes to that if no more is done, or if nobody waits there any more.
//! - **`auto`** has chosen its capacity itself, and only looks nearby. So there is no ceiling, and a step that
//!   does clearly more is where `auto` searches next. It is not measured by `auto` itself during a trial.
//!
//! Source: none. In turns, because throughput drifts by itself (caches, connections that warm up).

mod trial;

use serde::Serialize;

use super::super::config::{Capacity, OpenUp};
use super::Ended;
use trial::{Answer, Question, Trial};

/// A step up, as a factor.
const STEP: f64 = 2.0;
/// A step of less than this is not worth a trial.
const STEP_MIN: f64 = 1.1;

/// Requests must have waited for this share of this time, in nanoseconds.
const FULL_NS: u64 = 5_000_000_000;
const FULL: f64 = 0.8;

/// The pause before the first trial, in nanoseconds: with a fixed capacity, and with `auto`, which knows
/// more.
const PAUSE_NS_FIXED: u64 = 30_000_000_000;
const PAUSE_NS_AUTO: u64 = 300_000_000_000;
const PAUSE_NS_MAX: u64 = 3_600_000_000_000;
/// A raised limit is compared with the capacity after this long, in nanoseconds.
const RECHECK_NS: u64 = 600_000_000_000;

/// The stage of opening up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OpeningStage {
    /// The capacity is the limit.
    Closed,
    /// Two limits are compared.
    Trying,
    /// A higher limit is in use, because it does more.
    Open,
}

/// Two limits compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The lower limit, in nanoseconds.
    pub low_ns: u64,
    /// The higher one.
    pub high_ns: u64,
    /// By how much more work is done at the higher one, as a share: 1 is twice the work.
    pub gain: f64,
    /// Whether that is clear, so that the higher one is used.
    pub is_clear: bool,
}

/// The state of opening up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OpeningView {
    /// The present stage.
    pub stage: OpeningStage,
    /// The capacity as it is set or found, in nanoseconds.
    pub closed_ns: u64,
    /// The highest limit allowed, in nanoseconds; `None` without one.
    pub ceiling_ns: Option<u64>,
    /// The number of trials that have ended.
    pub trials: u64,
    /// How many times a higher limit came into use.
    pub openings: u64,
    /// How many times the capacity came into use again.
    pub closings: u64,
    /// The last comparison; `None` before the first.
    pub last: Option<Compared>,
}

/// What follows for `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The trial is over, and the capacity is right.
    GoOn,
    /// More is done at this capacity, in nanoseconds.
    SearchUpFrom(u64),
}

#[derive(Debug)]
pub(in crate::admission) struct Opening {
    /// The highest limit allowed, in nanoseconds.
    ceiling_ns: u64,
    /// Whether a raised limit stays here. With `auto` it becomes the capacity.
    keeps: bool,
    raised_ns: Option<u64>,
    trial: Option<Trial>,
    /// What the trial asks, or the next one.
    question: Question,
    due_ns: Option<u64>,
    pause_ns: u64,
    full: Full,
    trials: u64,
    openings: u64,
    closings: u64,
    last: Option<Compared>,
}

/// How long requests have waited of late.
#[derive(Clone, Copy, Debug, Default)]
struct Full {
    last_ns: u64,
    since_ns: u64,
    waited_ns: u64,
    is_full: bool,
}

impl Opening {
    /// `None` if this capacity is never exceeded.
    pub(super) fn new(capacity: Capacity, open_up: OpenUp) -> Option<Self> {
        let (keeps, ceiling_ns, pause_ns) = match (capacity, open_up) {
            (Capacity::Fixed(fixed_ns), OpenUp::To(ceiling_ns)) if ceiling_ns > fixed_ns => {
                (true, ceiling_ns.get(), PAUSE_NS_FIXED)
            }
            (Capacity::Auto, OpenUp::OwnOnly) => (false, u64::MAX, PAUSE_NS_AUTO),
            (Capacity::Auto, OpenUp::To(ceiling_ns)) => (false, ceiling_ns.get(), PAUSE_NS_AUTO),
            _ => return None,
        };
        Some(Self {
            ceiling_ns,
            keeps,
            raised_ns: None,
            trial: None,
            question: Question::Raise,
            due_ns: None,
            pause_ns,
            full: Full::default(),
            trials: 0,
            openings: 0,
            closings: 0,
            last: None,
        })
    }

    /// The limit in place of the capacity; `None` if that is in use.
    pub(super) fn limit_ns(&self) -> Option<u64> {
        match &self.trial {
            Some(trial) => Some(trial.limit_ns()),
            None => self.raised_ns,
        }
    }

    pub(super) fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    pub(super) fn view(&self, closed_ns: u64) -> OpeningView {
        OpeningView {
            stage: match (&self.trial, self.raised_ns) {
                (Some(_), _) => OpeningStage::Trying,
                (None, Some(_)) => OpeningStage::Open,
                (None, None) => OpeningStage::Closed,
            },
            closed_ns,
            ceiling_ns: (self.ceiling_ns < u64::MAX).then_some(self.ceiling_ns),
            trials: self.trials,
            openings: self.openings,
            closings: self.closings,
            last: self.last,
        }
    }

    /// From the last call until now, `active` requests with `load_ns` ran. `waits` is whether others waited.
    pub(super) fn pass(
        &mut self,
        now_ns: u64,
        active: usize,
        load_ns: u64,
        waits: bool,
    ) -> Option<After> {
        self.full.pass(now_ns, waits);
        let answer = self.trial.as_mut()?.pass(now_ns, active, load_ns, waits)?;
        Some(self.end(now_ns, answer))
    }

    /// A request of the type at the place `kind` was completed.
    pub(super) fn completed(&mut self, now_ns: u64, kind: usize, ended: Ended) -> Option<After> {
        let answer = self.trial.as_mut()?.completed(now_ns, kind, ended)?;
        Some(self.end(now_ns, answer))
    }

    /// Begins a trial if one is due. `capacity_ns` is the capacity as it is set or found. Called while none
    /// is under way.
    pub(super) fn begin_if_due(&mut self, now_ns: u64, active: usize, capacity_ns: u64) {
        if !self.full.is_full && self.question == Question::Raise {
            return;
        }
        let due_ns = *self
            .due_ns
            .get_or_insert(now_ns.saturating_add(self.pause_ns));
        if now_ns < due_ns {
            return;
        }
        let present_ns = self.raised_ns.unwrap_or(capacity_ns);
        let (low_ns, high_ns) = match self.question {
            Question::Raise => {
                let twice_ns = (present_ns as f64 * STEP) as u64;
                (present_ns, twice_ns.min(self.ceiling_ns))
            }
            Question::Recheck => (capacity_ns, present_ns),
        };
        if (high_ns as f64) < STEP_MIN * low_ns as f64 {
            self.put_off(now_ns);
            return;
        }
        // The estimates of `auto` do not depend on the load.
        let settles = self.keeps;
        self.trial = Some(Trial::new(
            self.question,
            (low_ns, high_ns),
            settles,
            now_ns,
            active,
        ));
    }

    /// There is nothing to try: the ceiling is reached.
    fn put_off(&mut self, now_ns: u64) {
        if self.raised_ns.is_some() {
            self.question = Question::Recheck;
        }
        self.due_ns = Some(now_ns.saturating_add(RECHECK_NS));
    }

    fn end(&mut self, now_ns: u64, answer: Answer) -> After {
        let Some(trial) = self.trial.take() else {
            return After::GoOn;
        };
        self.trials += 1;
        if let Answer::More(gain) | Answer::NoMore(gain) = answer {
            self.last = Some(Compared {
                low_ns: trial.low_ns,
                high_ns: trial.high_ns,
                gain: gain.exp() - 1.0,
                is_clear: matches!(answer, Answer::More(_)),
            });
        }
        match self.question {
            Question::Raise => self.raise(now_ns, answer, trial.high_ns),
            Question::Recheck => {
                self.recheck(now_ns, answer);
                After::GoOn
            }
        }
    }

    fn raise(&mut self, now_ns: u64, answer: Answer, high_ns: u64) -> After {
        match answer {
            Answer::More(_) => {
                self.openings += 1;
                if !self.keeps {
                    self.due_ns = Some(now_ns.saturating_add(PAUSE_NS_AUTO));
                    return After::SearchUpFrom(high_ns);
                }
                self.raised_ns = Some(high_ns);
                self.due_ns = Some(now_ns);
                // What is measured anew must have waited at the new limit.
                self.full.begin(now_ns);
                return After::GoOn;
            }
            _ if self.raised_ns.is_some() => {
                self.question = Question::Recheck;
                self.due_ns = Some(now_ns.saturating_add(RECHECK_NS));
            }
            Answer::NoMore(_) => self.pause(now_ns),
            Answer::NotFilled => self.due_ns = Some(now_ns.saturating_add(self.pause_ns)),
        }
        After::GoOn
    }

    fn recheck(&mut self, now_ns: u64, answer: Answer) {
        self.question = Question::Raise;
        match answer {
            Answer::More(_) => self.due_ns = Some(now_ns.saturating_add(RECHECK_NS)),
            Answer::NoMore(_) => {
                self.close();
                self.pause(now_ns);
            }
            Answer::NotFilled => {
                self.close();
                self.due_ns = Some(now_ns.saturating_add(self.pause_ns));
            }
        }
    }

    fn close(&mut self) {
        self.raised_ns = None;
        self.closings += 1;
    }

    /// Each pause is twice as long as the last.
    fn pause(&mut self, now_ns: u64) {
        self.due_ns = Some(now_ns.saturating_add(self.pause_ns));
        self.pause_ns = (2 * self.pause_ns).min(PAUSE_NS_MAX);
    }
}

impl Full {
    fn begin(&mut self, now_ns: u64) {
        *self = Self {
            last_ns: now_ns,
            since_ns: now_ns,
            ..Self::default()
        };
    }

    fn pass(&mut self, now_ns: u64, waits: bool) {
        let span_ns = now_ns.saturating_sub(std::mem::replace(&mut self.last_ns, now_ns));
        if waits {
            self.waited_ns += span_ns;
        }
        let past_ns = now_ns.saturating_sub(self.since_ns);
        if past_ns >= FULL_NS {
            let is_full = self.waited_ns as f64 >= FULL * past_ns as f64;
            self.begin(now_ns);
            self.is_full = is_full;
        }
    }
}
