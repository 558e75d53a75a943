//! A task that waits at the gate, and how it is woken.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use shortline_sched::admission::{Outcome, Refusal, RequestId};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::locks::Slot;
use super::{Admitted, Gate};

/// The channel to wake each waiting request.
#[derive(Debug, Default)]
pub(super) struct Waiters(HashMap<RequestId, oneshot::Sender<()>>);

impl Waiters {
    /// Adds a waiting request. The receiver is ready when it may run.
    pub(super) fn enter(&mut self, id: RequestId) -> oneshot::Receiver<()> {
        let (tell, told) = oneshot::channel();
        self.0.insert(id, tell);
        told
    }

    /// Whether no request waits.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes a request.
    pub(super) fn leave(&mut self, id: RequestId) -> Option<oneshot::Sender<()>> {
        self.0.remove(&id)
    }
}

/// Requests to wake once the lock is released.
#[derive(Debug, Default)]
pub(super) struct Woken(Vec<oneshot::Sender<()>>);

impl Woken {
    pub(super) fn add(&mut self, tell: Option<oneshot::Sender<()>>) {
        self.0.extend(tell);
    }

    pub(super) fn wake(self) {
        for tell in self.0 {
            // A receiver that is gone has withdrawn, or does so in its drop.
            let _ = tell.send(());
        }
    }
}

/// A request that waits. Dropping it withdraws the request. If the request was admitted in the
/// meantime, its load is given back.
#[derive(Debug)]
pub(super) struct Waiting {
    gate: Gate,
    id: RequestId,
    arrival: Instant,
    told: oneshot::Receiver<()>,
    /// The slot in which its work is watched.
    slot: Option<Arc<Slot>>,
    /// Whether an [`Admitted`] has taken over.
    over: bool,
}

impl Waiting {
    pub(super) fn new(
        gate: Gate,
        id: RequestId,
        arrival: Instant,
        told: oneshot::Receiver<()>,
        slot: Option<Arc<Slot>>,
    ) -> Self {
        Self {
            gate,
            id,
            arrival,
            told,
            slot,
            over: false,
        }
    }

    /// When it began to wait here.
    pub(super) fn arrival(&self) -> Instant {
        self.arrival
    }

    /// Waits until the request may run, for at most `wait_max`, of which it has waited `before` already. Time while the
    /// gate is paused does not count.
    pub(super) async fn admitted_within(
        mut self,
        wait_max: Duration,
        before: Duration,
    ) -> Result<Admitted, Refusal> {
        let left = wait_max.saturating_sub(before);
        let gate = self.gate.clone();
        let doors = &gate.0.doors;
        let paused_before = doors.paused_time();
        let in_time = loop {
            let paused = doors.paused_time().saturating_sub(paused_before);
            let until = self.arrival + left + paused;
            if timeout_at(until, &mut self.told).await.is_ok() {
                break true;
            }
            gate.opened(None).await;
            if doors.paused_time().saturating_sub(paused_before) == paused {
                break false;
            }
        };
        let waited = self.arrival.elapsed();
        if !in_time && self.withdraw() {
            self.over = true;
            let wait_ns = u64::try_from((before + waited).as_nanos()).unwrap_or(u64::MAX);
            return Err(Refusal::WaitedTooLong { wait_ns });
        }
        self.over = true;
        let slot = self.slot.take();
        Ok(Admitted::new(self.gate.clone(), self.id, waited, slot))
    }

    /// Leaves the queue. Returns false if the request was already admitted.
    fn withdraw(&self) -> bool {
        let now_ns = self.gate.ns(Instant::now());
        let mut state = self.gate.0.state.lock();
        state.waiters.leave(self.id);
        let left = state.admission.withdraw(now_ns, self.id);
        // The request may have been a head that did not fit. Those behind it may fit.
        let woken = state.admit_waiting(now_ns);
        drop(state);
        woken.wake();
        left
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.over && !self.withdraw() {
            self.gate.after(|admission, now_ns| {
                admission.finish(now_ns, self.id, Outcome::Failed);
            });
        }
    }
}
