//! The gate as its relays use it: ask, wait, run, tell how it ended.
//!
//! [`Gate::admit`] may be dropped at any point and then leaves the queue; an [`Admitted`] that is
//! dropped gives its load back. What is decided is decided by
//! [`shortline_sched::admission::Admission`] behind one lock, which is held for well under a
//! microsecond and never across an await. Tasks that may go on are woken after it is released.

mod client;
mod config;
mod doors;
mod locks;
mod question;
mod waiting;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::hash::RandomState;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use shortline_base::throttle::Throttle;
use shortline_sched::admission::{
    Admission, AdmissionView, Kept, NewRequest, Outcome, Refusal, RequestId, RunawayAction,
    TenantId, TypeId,
};
use tokio::time::{Instant, sleep_until};

pub use client::GateClient;
use client::Place;
pub use config::{GateConfig, GateSnapshot, TenantTable};
use doors::Doors;
pub use doors::{Closed, DoorError};
use locks::{Locks, Slot};
pub use question::Question;
use waiting::{Waiters, Waiting};

/// A gate in front of a backend; clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Exchanged at a reload.
    config: RwLock<GateConfig>,
    slow_waits: Mutex<Throttle>,
    /// The origin of the times that are told.
    origin: Instant,
    /// Names accounts.
    hashes: RandomState,
    doors: Doors,
    /// Who is at work, if somebody watches waits for locks.
    locks: Option<Locks>,
    /// Whether those who watch are to cancel runaways.
    cancels_runaways: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    admission: Admission,
    waiters: Waiters,
    /// Whether a task looks after those that wait when nothing else happens.
    watched: bool,
}

/// What a gate says to a request.
pub enum Decision {
    /// It may run.
    Admitted(Admitted),
    /// It waits until this is ready.
    Waits(Wait),
}

/// A request that waits, until it is admitted or has waited for too long. Dropping it leaves the
/// queue.
pub type Wait = Pin<Box<dyn Future<Output = Result<Admitted, Refusal>> + Send>>;

/// A request that may run, or runs. Dropping it gives its load back as [`Outcome::Failed`].
#[derive(Debug)]
#[must_use = "dropping it at once gives its load back"]
pub struct Admitted {
    gate: Gate,
    id: RequestId,
    waited: Duration,
    /// Since when its statement runs; `None` while it is paused.
    statement_since: Option<Instant>,
    /// Its longest statement so far.
    longest: Duration,
    /// Where its connection is watched.
    slot: Option<Arc<Slot>>,
    /// Whether its end was told.
    ended: bool,
}

impl Gate {
    /// A gate that nobody has passed yet.
    pub fn new(config: GateConfig) -> Self {
        let tenants = config.tenants.clone();
        let gate = Self::without_tenants(config);
        gate.set_tenants(&tenants);
        gate
    }

    fn without_tenants(config: GateConfig) -> Self {
        Self(Arc::new(Shared {
            slow_waits: Mutex::default(),
            origin: Instant::now(),
            hashes: RandomState::new(),
            doors: Doors::default(),
            locks: config.watches_locks.then(Locks::default),
            cancels_runaways: config
                .admission
                .runaway
                .is_some_and(|runaway| runaway.action == RunawayAction::Cancel),
            state: Mutex::new(State {
                admission: Admission::new(config.admission()),
                waiters: Waiters::default(),
                watched: false,
            }),
            config: RwLock::new(config),
        }))
    }

    /// The type of that name, entered into the table if it is new and there is room; else the
    /// one that the rare types share.
    pub fn type_of(&self, name: &str) -> TypeId {
        self.0.state.lock().admission.type_of(name)
    }

    /// The tenant of that name, entered into the table if it is new and there is room; else the first one.
    pub fn tenant_of(&self, name: &str) -> TenantId {
        self.0.state.lock().admission.tenant_of(name)
    }

    /// The weights and limits of tenants from now on.
    fn set_tenants(&self, tenants: &TenantTable) {
        let named = tenants.named.iter();
        let named = named.map(|(name, limits)| (name.as_str(), *limits));
        self.after(|admission, _| admission.set_tenants(named, tenants.others));
    }

    /// Waits until a request may run. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// [`Refusal`] if it may not wait, or has waited for as long as it may.
    pub async fn admit(&self, question: impl Into<Question<'_>>) -> Result<Admitted, Refusal> {
        match self.ask(question)? {
            Decision::Admitted(admitted) => Ok(admitted),
            Decision::Waits(wait) => wait.await,
        }
    }

    /// Admits a request if it may run at once; else says how to wait. Nearly every
    /// request of a backend without overload is admitted at once, and needs no future for it. What it
    /// uses beyond what was expected its client pays with its next ones.
    ///
    /// # Errors
    /// [`Refusal`] if it may not even wait.
    pub fn ask<'a>(&self, question: impl Into<Question<'a>>) -> Result<Decision, Refusal> {
        let arrival = Instant::now();
        let question = question.into();
        let (request, place) = (question.request(), question.place());
        let mut waiting = None;
        if !self.0.doors.keeps_out(place.and_then(Place::database)) {
            match self.arrive(arrival, request, place)? {
                Arrival::Admitted(admitted) => return Ok(Decision::Admitted(admitted)),
                Arrival::Waits(waits) => waiting = Some(waits),
            }
        }
        let (gate, place) = (self.clone(), place.cloned());
        Ok(Decision::Waits(Box::pin(async move {
            let answer = gate.wait(waiting, request, place.as_ref()).await;
            let waited = arrival.elapsed();
            let slow_wait = gate.0.config.read().slow_wait;
            if slow_wait.is_some_and(|slow| waited >= slow) {
                gate.tell_slow_wait(request.request_type, waited, answer.is_ok());
            }
            answer
        })))
    }

    /// Waits for admission, and before that until the client's database is not kept out.
    async fn wait(
        &self,
        mut waiting: Option<Waiting>,
        request: NewRequest,
        place: Option<&Place>,
    ) -> Result<Admitted, Refusal> {
        let doors = &self.0.doors;
        let database = place.and_then(Place::database);
        let wait_max = self.0.config.read().wait_max;
        loop {
            let admitted = match waiting.take() {
                Some(waiting) => tokio::select! {
                    biased;
                    answer = waiting.admitted_within(wait_max) => Some(answer?),
                    () = doors.keeping_out(database, true) => None,
                },
                None => {
                    doors.keeping_out(database, false).await;
                    match self.arrive(Instant::now(), request, place)? {
                        Arrival::Admitted(admitted) => Some(admitted),
                        Arrival::Waits(waits) => {
                            waiting = Some(waits);
                            None
                        }
                    }
                }
            };
            match admitted {
                // What was admitted as the door closed has not begun.
                Some(admitted) if !doors.keeps_out(database) => return Ok(admitted),
                _ => {}
            }
        }
    }

    /// Logs a long wait, unless too many are logged already.
    fn tell_slow_wait(&self, request_type: TypeId, waited: Duration, is_admitted: bool) {
        let Some(untold) = self.0.slow_waits.lock().allow(Instant::now()) else {
            return;
        };
        let (name, waiting) = {
            let state = self.0.state.lock();
            let name = state.admission.type_name(request_type).to_owned();
            (name, state.admission.waiting())
        };
        tracing::info!(
            r#type = name,
            waited_ms = waited.as_millis() as u64,
            is_admitted,
            waiting,
            untold,
            "slow wait"
        );
    }

    /// The queue, the load against the capacity, and what is known of each type.
    pub fn snapshot(&self) -> GateSnapshot {
        let AdmissionView {
            waiting,
            running,
            active,
            load_ns,
            capacity_ns,
            capacity_state,
            slowdown,
            oldest,
            totals,
            times,
            tenants,
            types,
        } = self
            .0
            .state
            .lock()
            .admission
            .view_at(self.ns(Instant::now()));
        GateSnapshot {
            waiting,
            running,
            active,
            load_ns,
            capacity_ns,
            capacity_state,
            slowdown,
            oldest,
            totals,
            times,
            tenants,
            types,
        }
    }

    /// At most so many requests run at once from now on, paused ones too.
    pub fn set_running_max(&self, running_max: NonZeroUsize) {
        self.after(|admission, _| admission.set_running_max(Some(running_max)));
    }

    /// Goes on with the capacity, the tenants and the limits of `config`. The order stays, and what estimates come from.
    pub fn reconfigure(&self, config: &GateConfig) {
        let old = std::mem::replace(&mut *self.0.config.write(), config.clone());
        self.after(|admission, now_ns| {
            admission.reconfigure(now_ns, &old.admission(), &config.admission());
        });
        self.set_tenants(&config.tenants);
        self.watch_if_any_waits();
    }

    /// Requests that were admitted and have not ended.
    pub fn running(&self) -> usize {
        self.0.state.lock().admission.running()
    }

    /// What was learnt, to be kept over a restart.
    pub fn kept(&self) -> Kept {
        self.0.state.lock().admission.kept()
    }

    /// Begins with what was learnt before.
    pub fn restore(&self, kept: &Kept) {
        self.0.state.lock().admission.restore(kept);
    }

    fn arrive(
        &self,
        arrival: Instant,
        request: NewRequest,
        place: Option<&Place>,
    ) -> Result<Arrival, Refusal> {
        let now_ns = self.ns(arrival);
        let slot = place.and_then(|place| place.slot.clone());
        let mut state = self.0.state.lock();
        let id = state.admission.take_in(now_ns, request)?;
        let woken = state.admit_waiting(now_ns);
        let told = state
            .admission
            .is_waiting(id)
            .then(|| state.waiters.enter(id));
        let watch = told.is_some()
            && state.admission.next_change_ns().is_some()
            && !std::mem::replace(&mut state.watched, true);
        drop(state);
        woken.wake();
        if watch {
            tokio::spawn(self.clone().watch());
        }
        Ok(match told {
            Some(told) => Arrival::Waits(Waiting::new(self.clone(), id, arrival, told, slot)),
            None => Arrival::Admitted(Admitted::new(self.clone(), id, Duration::ZERO, slot)),
        })
    }

    /// Begins to look after those that wait, if nobody does: nothing was to be seen for a while.
    fn watch_if_any_waits(&self) {
        let mut state = self.0.state.lock();
        let begins = state.admission.next_change_ns().is_some()
            && !std::mem::replace(&mut state.watched, true);
        drop(state);
        if begins {
            tokio::spawn(self.clone().watch());
        }
    }

    /// Looks after those that wait, as long as somebody does.
    async fn watch(self) {
        loop {
            let next_ns = self.after(|admission, _| admission.next_change_ns());
            let Some(next_ns) = next_ns.or_else(|| self.watched_until_now()) else {
                return;
            };
            sleep_until(self.0.origin + Duration::from_nanos(next_ns)).await;
        }
    }

    /// Ends the watch if nobody waits; else says when to look next.
    fn watched_until_now(&self) -> Option<u64> {
        let mut state = self.0.state.lock();
        let next_ns = state.admission.next_change_ns();
        state.watched = next_ns.is_some();
        next_ns
    }

    /// Lets `change` happen to the queue, then wakes whoever may run because of it.
    fn after<T>(&self, change: impl FnOnce(&mut Admission, u64) -> T) -> T {
        self.after_at(Instant::now(), change)
    }

    fn after_at<T>(&self, now: Instant, change: impl FnOnce(&mut Admission, u64) -> T) -> T {
        let now_ns = self.ns(now);
        let mut state = self.0.state.lock();
        let answer = change(&mut state.admission, now_ns);
        let woken = state.admit_waiting(now_ns);
        drop(state);
        woken.wake();
        answer
    }

    fn ns(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.0.origin);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Admitted {
    fn new(gate: Gate, id: RequestId, waited: Duration, slot: Option<Arc<Slot>>) -> Self {
        let mut admitted = Self {
            gate,
            id,
            waited,
            statement_since: None,
            longest: Duration::ZERO,
            slot,
            ended: false,
        };
        admitted.begin_statement();
        admitted
    }

    /// How long it waited before it was admitted.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// The client itself keeps the request from going on (it is idle in a transaction, or sends
    /// what a COPY waits for): no service, and others may run meanwhile.
    pub fn pause(&mut self) {
        self.end_statement(Instant::now());
        self.gate
            .after(|admission, now_ns| admission.pause(now_ns, self.id));
    }

    /// The client has gone on. The request is not queued again.
    pub fn resume(&mut self) {
        self.begin_statement();
        self.gate
            .after(|admission, now_ns| admission.resume(now_ns, self.id));
    }

    /// One of its statements has ended, and another follows.
    pub fn next_statement(&mut self) {
        self.end_statement(Instant::now());
        self.begin_statement();
    }

    fn begin_statement(&mut self) {
        self.statement_since = Some(Instant::now());
        if let Some(slot) = &self.slot {
            slot.set(Some(self.id));
        }
    }

    fn end_statement(&mut self, now: Instant) {
        if let Some(since) = self.statement_since.take() {
            self.longest = self.longest.max(now.saturating_duration_since(since));
        }
        if let Some(slot) = &self.slot {
            slot.set(None);
        }
    }

    /// Since when its statement runs; None while it is paused.
    pub fn statement_since(&self) -> Option<Instant> {
        self.statement_since
    }

    /// The request has ended.
    pub fn finish(self, outcome: Outcome) {
        self.finish_at(Instant::now(), outcome);
    }

    /// The same, for whoever knows the time.
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

/// What becomes of a request at once.
enum Arrival {
    Admitted(Admitted),
    Waits(Waiting),
}

impl State {
    /// Admits all that may run.
    fn admit_waiting(&mut self, now_ns: u64) -> waiting::Woken {
        let mut woken = waiting::Woken::default();
        while let Some(id) = self.admission.admit_next(now_ns) {
            woken.add(self.waiters.leave(id));
        }
        woken
    }
}
