//! The permit of a request, from its admission to its end.

use std::sync::Arc;
use std::time::Duration;

use shortline_sched::admission::{Outcome, RequestId};
use tokio::time::Instant;

use super::Gate;
use super::locks::Slot;

/// The permit of a request. Dropping it ends the request as [`Outcome::Failed`] and gives its load
/// back.
#[derive(Debug)]
#[must_use = "dropping it at once gives its load back"]
pub struct Admitted {
    gate: Gate,
    id: RequestId,
    waited: Duration,
    /// The start of its current statement. `None` while it is paused.
    statement_since: Option<Instant>,
    /// Its longest statement so far.
    longest: Duration,
    /// The slot in which its statement is watched.
    slot: Option<Arc<Slot>>,
    /// Whether its end was reported.
    ended: bool,
}

impl Admitted {
    pub(super) fn new(
        gate: Gate,
        id: RequestId,
        now: Instant,
        waited: Duration,
        slot: Option<Arc<Slot>>,
    ) -> Self {
        let mut admitted = Self {
            gate,
            id,
            waited,
            statement_since: None,
            longest: Duration::ZERO,
            slot,
            ended: false,
        };
        admitted.begin_statement(now);
        admitted
    }

    /// How long it waited before it was admitted.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// The request waits for its own client, which is idle in a transaction or sends the data of a
    /// COPY. This time is not service, and other requests may run meanwhile.
    pub fn pause(&mut self) {
        let now = Instant::now();
        self.end_statement(now);
        self.gate
            .after_at(now, |admission, now_ns| admission.pause(now_ns, self.id));
    }

    /// The client goes on. The request is not queued again.
    pub fn resume(&mut self) {
        let now = Instant::now();
        self.begin_statement(now);
        self.gate
            .after_at(now, |admission, now_ns| admission.resume(now_ns, self.id));
    }

    /// A statement has ended and the next one begins.
    pub fn next_statement(&mut self) {
        let now = Instant::now();
        self.end_statement(now);
        self.begin_statement(now);
    }

    fn begin_statement(&mut self, now: Instant) {
        self.statement_since = Some(now);
        if let Some(slot) = &self.slot {
            slot.begin(self.id, now);
        }
    }

    fn end_statement(&mut self, now: Instant) {
        if let Some(since) = self.statement_since.take() {
            self.longest = self.longest.max(now.saturating_duration_since(since));
        }
        if let Some(slot) = &self.slot {
            slot.end();
        }
    }

    /// The start of its current statement. `None` while it is paused.
    pub fn statement_since(&self) -> Option<Instant> {
        self.statement_since
    }

    /// The request has ended.
    pub fn finish(self, outcome: Outcome) {
        self.finish_at(Instant::now(), outcome);
    }

    /// As `finish`, with the time `now` of the end.
    pub fn finish_at(mut self, now: Instant, outcome: Outcome) {
        self.end(now, outcome);
    }

    fn end(&mut self, now: Instant, outcome: Outcome) {
        if !self.ended {
            self.ended = true;
            self.end_statement(now);
            let longest_ns = u64::try_from(self.longest.as_nanos()).unwrap_or(u64::MAX);
            self.gate.after_at(now, |admission, now_ns| {
                admission.excuse(self.id, longest_ns);
                admission.finish(now_ns, self.id, outcome);
            });
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.end(Instant::now(), Outcome::Failed);
    }
}
