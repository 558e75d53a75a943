//! Whose queue is it? Send less than is drained, and see whether it goes away.
//!
//! Nimbus (Goyal et al., SIGCOMM 2022, section 3) modulates the rate with pulses and looks for
//! their echo in the rate of the cross traffic, by an FFT over 5 s. That needs what was sent
//! and received of the very same packets, which a server without a box at the other end does
//! not have, and takes longer than the 5 s. But a queue has to be emptied anyway, and
//! doing that answers the same question: if all of the queue is ours (or the others' rate does
//! not depend on us), sending at a share f of the capacity for a time T takes (1 - f) T of
//! delay away. Elastic cross traffic takes the room instead, and the delay stays.

/// One trial: how much delay should have gone, and by when that must show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trial {
    started_ns: u64,
    delay_before_ns: u64,
    expected_ns: f64,
    /// When enough was held back; its effect is seen a round trip later.
    enough_at_ns: Option<u64>,
    share_wanted: f64,
}

/// What a trial has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Not enough has been held back yet.
    Pending,
    /// The delay went away: the queue is ours.
    Ours,
    /// It did not: others keep it standing.
    Theirs,
}

/// A trial that came to nothing in this time is decided as it stands.
const LONGEST_NS: u64 = 2_500_000_000;

impl Trial {
    /// Begins to hold back, at `now_ns`, with the delay that there is. The queue is ours if
    /// more than `share_wanted` of what should go has gone.
    pub fn new(now_ns: u64, delay_ns: u64, share_wanted: f64) -> Self {
        Self {
            started_ns: now_ns,
            delay_before_ns: delay_ns,
            expected_ns: 0.0,
            enough_at_ns: None,
            share_wanted,
        }
    }

    /// One observation later: `sent_share` of the capacity was sent for `span_ns`, and the
    /// delay is `delay_ns` now. Below `delay_done_ns` the queue has gone.
    pub fn step(
        &mut self,
        now_ns: u64,
        span_ns: u64,
        sent_share: f64,
        delay_ns: u64,
        delay_done_ns: u64,
        lag_ns: u64,
    ) -> Verdict {
        if delay_ns <= delay_done_ns {
            return Verdict::Ours;
        }
        self.expected_ns += (1.0 - sent_share).max(0.0) * span_ns as f64;
        let excess_ns = self.delay_before_ns.saturating_sub(delay_done_ns) as f64;
        if self.enough_at_ns.is_none() && self.expected_ns >= (0.4 * excess_ns).max(10e6) {
            self.enough_at_ns = Some(now_ns);
            self.expected_ns = self.expected_ns.min(excess_ns);
        }
        let ready = self
            .enough_at_ns
            .is_some_and(|at| now_ns >= at.saturating_add(lag_ns));
        if !ready && now_ns.saturating_sub(self.started_ns) < LONGEST_NS {
            return Verdict::Pending;
        }
        let gone_ns = self.delay_before_ns as f64 - delay_ns as f64;
        if gone_ns > self.share_wanted * self.expected_ns.min(excess_ns) {
            Verdict::Ours
        } else {
            Verdict::Theirs
        }
    }
}
