//! A task that waits at the gate, and how it is told what becomes of it.
//!
//! Thousands may wait at once, and in an overload each request does. So a waiter has no alarm of its own and watches
//! nothing: whoever admits it, or keeps out its database, tells it. One task of the gate ends the waits that have become
//! too long ([`Gate::expire`]).

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ahash::RandomState;
use shortline_sched::admission::{Outcome, Refusal, RequestId};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::locks::Slot;
use super::{Admitted, Gate};

/// The least time between two looks for waits that are too long.
const EXPIRE_PAUSE: Duration = Duration::from_millis(10);

/// What a waiter is told. It has left the queue by then.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It may run.
    Admitted,
    /// Its database is kept out. It has waited this long.
    KeptOut(Duration),
    /// It has waited this long, which is too long.
    TooLong(Duration),
}

/// A waiter, as the gate knows it.
#[derive(Debug)]
pub(super) struct Waiter {
    /// By which an operator can keep it out.
    pub(super) database: Option<Arc<str>>,
    /// When it came.
    pub(super) since: Instant,
    /// How long everything had been paused by then.
    pub(super) paused_before: Duration,
    /// How long it had waited by then, before its database was kept out.
    pub(super) before: Duration,
    /// The longest wait.
    pub(super) wait_max: Duration,
}

impl Waiter {
    /// How long it has waited, without time in which everything was paused. `paused` is how long that was until `now`.
    fn waited(&self, now: Instant, paused: Duration) -> Duration {
        let meanwhile = paused.saturating_sub(self.paused_before);
        let since = now.saturating_duration_since(self.since);
        self.before + since.saturating_sub(meanwhile)
    }
}

/// All that wait.
#[derive(Debug, Default)]
pub(super) struct Waiters(HashMap<RequestId, (Waiter, oneshot::Sender<Verdict>), RandomState>);

impl Waiters {
    /// Adds a waiter. The receiver is ready when it is told something.
    pub(super) fn enter(&mut self, id: RequestId, waiter: Waiter) -> oneshot::Receiver<Verdict> {
        let (tell, told) = oneshot::channel();
        self.0.insert(id, (waiter, tell));
        told
    }

    /// Whether no request waits.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes a request.
    pub(super) fn leave(&mut self, id: RequestId) -> Option<(Waiter, oneshot::Sender<Verdict>)> {
        self.0.remove(&id)
    }

    /// The waiters of which this is so, in the order of arrival.
    fn which(&self, is_so: impl Fn(&Waiter) -> bool) -> Vec<RequestId> {
        let all = self.0.iter();
        let found = all.filter_map(|(id, (waiter, _))| is_so(waiter).then_some(*id));
        let mut found: Vec<_> = found.collect();
        found.sort_unstable();
        found
    }
}

/// What to tell waiters once the lock is released. Mostly nobody or one.
#[derive(Debug, Default)]
pub(super) struct Woken {
    first: Option<(oneshot::Sender<Verdict>, Verdict)>,
    others: Vec<(oneshot::Sender<Verdict>, Verdict)>,
}

impl Woken {
    pub(super) fn add(&mut self, tell: Option<oneshot::Sender<Verdict>>, what: Verdict) {
        let Some(tell) = tell else { return };
        match self.first {
            None => self.first = Some((tell, what)),
            Some(_) => self.others.push((tell, what)),
        }
    }

    pub(super) fn wake(self) {
        for (tell, what) in self.first.into_iter().chain(self.others) {
            // A receiver that is gone has withdrawn, or does so in its drop.
            let _ = tell.send(what);
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
    told: oneshot::Receiver<Verdict>,
    /// The slot in which its work is watched.
    slot: Option<Arc<Slot>>,
    /// Whether it was told something.
    over: bool,
}

/// How a wait in the queue ends, if it is not too long.
#[derive(Debug)]
pub(super) enum Answer {
    /// It runs.
    Admitted(Admitted),
    /// Its database is kept out. It has waited this long.
    KeptOut(Duration),
}

impl Waiting {
    pub(super) fn new(
        gate: Gate,
        id: RequestId,
        arrival: Instant,
        told: oneshot::Receiver<Verdict>,
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

impl Future for Waiting {
    type Output = Result<Answer, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let told = ready!(Pin::new(&mut self.told).poll(context));
        self.over = true;
        Poll::Ready(match told.unwrap_or(Verdict::Admitted) {
            Verdict::Admitted => {
                let now = Instant::now();
                let waited = now.saturating_duration_since(self.arrival);
                let (gate, slot) = (self.gate.clone(), self.slot.take());
                Ok(Answer::Admitted(Admitted::new(
                    gate, self.id, now, waited, slot,
                )))
            }
            Verdict::KeptOut(waited) => Ok(Answer::KeptOut(waited)),
            Verdict::TooLong(waited) => {
                let wait_ns = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
                Err(Refusal::WaitedTooLong { wait_ns })
            }
        })
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

impl Gate {
    /// Takes the waiters of a database out of the queue, as it is kept out.
    pub(super) fn keep_out(&self, database: &str) {
        self.turn_away(Verdict::KeptOut, |waiter, _| {
            waiter.database.as_deref() == Some(database)
        });
    }

    /// Takes the waiters of which this is so out of the queue, and tells them that, with how long they have waited.
    fn turn_away(&self, what: fn(Duration) -> Verdict, is_so: impl Fn(&Waiter, Duration) -> bool) {
        let now = Instant::now();
        let (now_ns, paused) = (self.ns(now), self.0.doors.paused_time());
        let mut state = self.0.state.lock();
        let found = state
            .waiters
            .which(|waiter| is_so(waiter, waiter.waited(now, paused)));
        let mut woken = Woken::default();
        for id in found {
            if state.admission.withdraw(now_ns, id)
                && let Some((waiter, tell)) = state.waiters.leave(id)
            {
                woken.add(Some(tell), what(waiter.waited(now, paused)));
            }
        }
        let admitted = state.admit_waiting(now_ns);
        drop(state);
        woken.wake();
        admitted.wake();
    }

    /// Starts the task of `expire`. Without a runtime nobody waits.
    pub(super) fn expire_if(&self, begins: bool) {
        if !begins {
            return;
        }
        let expires = Expires(Some(self.clone()));
        if let Ok(runtime) = runtime::Handle::try_current() {
            drop(runtime.spawn(expires.run()));
        }
    }

    /// Ends waits that are too long, until nobody waits.
    async fn expire(&self) {
        loop {
            self.turn_away(Verdict::TooLong, |waiter, waited| waited >= waiter.wait_max);
            let Some(next) = self.expires_next() else {
                return;
            };
            sleep_until(next.max(Instant::now() + EXPIRE_PAUSE)).await;
            // Time while the gate is paused does not count.
            self.opened(None).await;
        }
    }

    /// When the next wait may be too long. `None` if nobody waits: then the task is to end.
    fn expires_next(&self) -> Option<Instant> {
        let (now, paused) = (Instant::now(), self.0.doors.paused_time());
        let mut state = self.0.state.lock();
        let left = |waiter: &Waiter| waiter.wait_max.saturating_sub(waiter.waited(now, paused));
        let least = state
            .waiters
            .0
            .values()
            .map(|(waiter, _)| left(waiter))
            .min();
        state.expiring = least.is_some();
        least.map(|least| now + least)
    }
}

/// The task of `expire`. If it ends with its runtime, the next that waits starts another.
struct Expires(Option<Gate>);

impl Expires {
    async fn run(mut self) {
        if let Some(gate) = &self.0 {
            gate.expire().await;
        }
        self.0 = None;
    }
}

impl Drop for Expires {
    fn drop(&mut self) {
        if let Some(gate) = &self.0 {
            gate.0.state.lock().expiring = false;
        }
    }
}
