//! The gate as its relays use it: ask, wait, run, report the outcome.
//!
//! A future of [`Gate::admit`] can be dropped at any point. The request then leaves the queue.
//! A dropped [`Admitted`] gives its load back. [`shortline_sched::admission::Admission`] makes all
//! decisions, behind one lock. The lock is held for well under a microsecond and never across an
//! await. Admitted tasks are woken after it is released.

mod admitted;
mod beside;
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
use shortline_sched::admission::{Admission, Kept, NewRequest, Refusal, TenantId, TypeId};
use tokio::runtime;
use tokio::time::{Instant, sleep_until};

pub use admitted::Admitted;
pub use client::GateClient;
use client::Place;
pub use config::{GateConfig, GateSnapshot, TenantTable};
use doors::Doors;
pub use doors::{Closed, DoorError};
pub use locks::BackendConnection;
use locks::Locks;
pub use question::Question;
use waiting::{Answer, Verdict, Waiter, Waiters, Waiting};

/// The least time between two looks at what time alone lets start.
const WATCH_PAUSE: Duration = Duration::from_millis(10);

/// A gate in front of a backend. A handle: clones share it.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Replaced at a reload.
    config: RwLock<GateConfig>,
    slow_waits: Mutex<Throttle>,
    /// The zero of the times that `admission` receives.
    origin: Instant,
    /// Hashes the names of accounts.
    hashes: RandomState,
    /// Shared with the gates beside it.
    doors: Arc<Doors>,
    /// Gates before other servers of the same kind, which follow this one's settings.
    beside: RwLock<Vec<Gate>>,
    /// The connections at work. `None` unless waits for locks are watched.
    locks: Option<Locks>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    admission: Admission,
    waiters: Waiters,
    /// Whether the task of `Gate::watch` runs.
    watched: bool,
    /// Whether the task of `Gate::expire` runs.
    expiring: bool,
    /// The longest wait of those that come now, as in the configuration.
    wait_max: Duration,
}

/// The gate's answer to a request.
pub enum Decision {
    /// The request may run.
    Admitted(Admitted),
    /// The request waits until this future is ready.
    Waits(Wait),
}

/// A request that waits. Ready when the request is admitted or has waited too long. Dropping it
/// leaves the queue.
pub type Wait = Pin<Box<dyn Future<Output = Result<Admitted, Refusal>> + Send>>;

impl Gate {
    /// A gate without requests.
    pub fn new(config: GateConfig) -> Self {
        let tenants = config.tenants.clone();
        let gate = Self::without_tenants(config, Arc::default());
        gate.set_tenants(&tenants);
        gate
    }

    fn without_tenants(config: GateConfig, doors: Arc<Doors>) -> Self {
        Self(Arc::new(Shared {
            slow_waits: Mutex::default(),
            origin: Instant::now(),
            hashes: RandomState::new(),
            doors,
            beside: RwLock::default(),
            locks: config.watches_locks.then(Locks::default),
            state: Mutex::new(State {
                admission: Admission::new(config.admission()),
                waiters: Waiters::default(),
                watched: false,
                expiring: false,
                wait_max: config.wait_max,
            }),
            config: RwLock::new(config),
        }))
    }

    /// The type of that name. A new name is entered into the table if there is room. Otherwise
    /// returns the type that rare types share.
    pub fn type_of(&self, name: &str) -> TypeId {
        self.0.state.lock().admission.type_of(name)
    }

    /// The tenant of that name. A new name is entered into the table if there is room. Otherwise
    /// returns the first tenant.
    pub fn tenant_of(&self, name: &str) -> TenantId {
        self.0.state.lock().admission.tenant_of(name)
    }

    /// [`Self::type_of`] and [`Self::tenant_of`] at once.
    pub fn named(&self, request_type: &str, tenant: Option<&str>) -> (TypeId, Option<TenantId>) {
        let admission = &mut self.0.state.lock().admission;
        let tenant = tenant.map(|name| admission.tenant_of(name));
        (admission.type_of(request_type), tenant)
    }

    /// Uses these weights and limits of tenants from now on.
    fn set_tenants(&self, tenants: &TenantTable) {
        let named = tenants.named.iter();
        let named = named.map(|(name, limits)| (name.as_str(), *limits));
        self.after(|admission, _| admission.set_tenants(named, tenants.others));
    }

    /// Waits until a request may run. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// [`Refusal`] if the request may not wait, or has waited for the longest time allowed.
    pub async fn admit(&self, question: impl Into<Question<'_>>) -> Result<Admitted, Refusal> {
        match self.ask(question)? {
            Decision::Admitted(admitted) => Ok(admitted),
            Decision::Waits(wait) => wait.await,
        }
    }

    /// Admits a request if it may run at once. Otherwise returns a future to wait on. Without
    /// overload nearly every request is admitted at once and needs no future. If a request uses more
    /// than its estimate, the next requests of its client pay for it.
    ///
    /// # Errors
    /// [`Refusal`] if the request may not wait.
    pub fn ask<'a>(&self, question: impl Into<Question<'a>>) -> Result<Decision, Refusal> {
        let arrival = Instant::now();
        let question = question.into();
        let (request, place) = (question.request(), question.place());
        let mut inside = None;
        if !self.0.doors.keeps_out(place.and_then(Place::database)) {
            match self.arrive(arrival, request, place, Duration::ZERO)? {
                Arrival::Admitted(admitted) => return Ok(Decision::Admitted(admitted)),
                Arrival::Waits(waits) => inside = Some(waits),
            }
        }
        let (gate, place) = (self.clone(), place.cloned());
        Ok(Decision::Waits(Box::pin(async move {
            let answer = gate.wait(inside, request, place.as_ref()).await;
            let slow_wait = gate.0.config.read().slow_wait;
            if let Some(slow) = slow_wait
                && let waited = arrival.elapsed()
                && waited >= slow
            {
                gate.tell_slow_wait(request.request_type, waited, answer.is_ok());
            }
            answer
        })))
    }

    /// Waits for admission. While the client's database is kept out, it waits before the queue. Only the time in the queue
    /// counts.
    async fn wait(
        &self,
        mut inside: Option<Waiting>,
        request: NewRequest,
        place: Option<&Place>,
    ) -> Result<Admitted, Refusal> {
        let doors = &self.0.doors;
        let database = place.and_then(Place::database);
        let mut waited = Duration::ZERO;
        loop {
            let answer = match inside.take() {
                Some(waiting) => waiting.await?,
                None => {
                    // Boxed: an operator hardly ever keeps a database out.
                    Box::pin(doors.until_let_in(database)).await;
                    match self.arrive(Instant::now(), request, place, waited)? {
                        Arrival::Admitted(admitted) => Answer::Admitted(admitted),
                        Arrival::Waits(waits) => {
                            inside = Some(waits);
                            continue;
                        }
                    }
                }
            };
            match answer {
                // If the door closed in the meantime, the permit is dropped. The request has not
                // begun, and waits again.
                Answer::Admitted(admitted) if !doors.keeps_out(database) => return Ok(admitted),
                Answer::Admitted(_) => {}
                Answer::KeptOut(until_now) => waited = until_now,
            }
        }
    }

    /// Logs a long wait, unless too many were logged already.
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

    /// The queue, the load, the capacity, and the state of each tenant and type.
    pub fn snapshot(&self) -> GateSnapshot {
        let state = self.0.state.lock();
        state.admission.view_at(self.ns(Instant::now()))
    }

    /// Runs at most `running_max` requests at once from now on. Paused ones count.
    pub fn set_running_max(&self, running_max: NonZeroUsize) {
        self.after(|admission, _| admission.set_running_max(Some(running_max)));
    }

    /// Uses the order, the capacity, the tenants and the limits of `config` from now on. The estimator stays.
    pub fn reconfigure(&self, config: &GateConfig) {
        let old = std::mem::replace(&mut *self.0.config.write(), config.clone());
        self.0.state.lock().wait_max = config.wait_max;
        self.after(|admission, now_ns| {
            admission.reconfigure(now_ns, &old.admission(), &config.admission());
        });
        self.set_tenants(&config.tenants);
        self.each_beside(|gate| gate.reconfigure(config));
    }

    /// What was learnt, to be kept across a restart.
    pub fn kept(&self) -> Kept {
        self.0.state.lock().admission.kept()
    }

    /// Restores what was learnt before a restart.
    pub fn restore(&self, kept: &Kept) {
        self.0.state.lock().admission.restore(kept);
    }

    fn arrive(
        &self,
        arrival: Instant,
        request: NewRequest,
        place: Option<&Place>,
        waited: Duration,
    ) -> Result<Arrival, Refusal> {
        let now_ns = self.ns(arrival);
        let slot = place.and_then(|place| place.slot.clone());
        let mut state = self.0.state.lock();
        let id = state.admission.take_in(now_ns, request)?;
        let woken = state.admit_waiting(now_ns);
        let told = state.admission.is_waiting(id).then(|| {
            let waiter = Waiter {
                database: place.and_then(Place::shared_database),
                since: arrival,
                paused_before: self.0.doors.paused_time(),
                before: waited,
                wait_max: state.wait_max,
            };
            state.waiters.enter(id, waiter)
        });
        let begins = told.is_some() && state.begins_watch();
        let expires = told.is_some() && !std::mem::replace(&mut state.expiring, true);
        drop(state);
        woken.wake();
        self.watch_if(begins);
        self.expire_if(expires);
        // It may have been kept out before it was among the waiters.
        if let (Some(_), Some(database)) = (&told, place.and_then(Place::database))
            && self.0.doors.keeps_out(Some(database))
        {
            self.keep_out(database);
        }
        Ok(match told {
            Some(told) => Arrival::Waits(Waiting::new(self.clone(), id, arrival, told, slot)),
            None => {
                let waited = Duration::ZERO;
                Arrival::Admitted(Admitted::new(self.clone(), id, arrival, waited, slot))
            }
        })
    }

    /// Starts the task of `watch`. Without a runtime nobody waits.
    fn watch_if(&self, begins: bool) {
        if !begins {
            return;
        }
        match runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(self.clone().watch())),
            Err(_) => self.0.state.lock().watched = false,
        }
    }

    /// Admits requests that become due with time alone. Ends when no more can become due.
    async fn watch(self) {
        loop {
            let next_ns = self.after(|admission, _| admission.next_change_ns());
            let Some(next_ns) = next_ns.or_else(|| self.watched_until_now()) else {
                return;
            };
            // Whatever it waits for, it does not ask again and again.
            let not_before = Instant::now() + WATCH_PAUSE;
            sleep_until(not_before.max(self.0.origin + Duration::from_nanos(next_ns))).await;
        }
    }

    /// Returns the time of the next look. `None` if nothing is due, and then the watch has ended.
    fn watched_until_now(&self) -> Option<u64> {
        let mut state = self.0.state.lock();
        let next_ns = state.admission.next_change_ns();
        state.watched = next_ns.is_some();
        next_ns
    }

    /// Applies `change` to the queue, then wakes the requests that may run now.
    fn after<T>(&self, change: impl FnOnce(&mut Admission, u64) -> T) -> T {
        self.after_at(Instant::now(), change)
    }

    fn after_at<T>(&self, now: Instant, change: impl FnOnce(&mut Admission, u64) -> T) -> T {
        let now_ns = self.ns(now);
        let mut state = self.0.state.lock();
        let answer = change(&mut state.admission, now_ns);
        let woken = state.admit_waiting(now_ns);
        // With a place that has become free, time may let a request start that it did not before.
        let begins = state.begins_watch();
        drop(state);
        woken.wake();
        self.watch_if(begins);
        answer
    }

    fn ns(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.0.origin);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The immediate result of an arrival.
enum Arrival {
    Admitted(Admitted),
    Waits(Waiting),
}

impl State {
    /// Whether the task of `Gate::watch` must be started: it does not run, and something can become due.
    fn begins_watch(&mut self) -> bool {
        self.admission.next_change_ns().is_some() && !std::mem::replace(&mut self.watched, true)
    }

    /// Admits all requests that may run.
    fn admit_waiting(&mut self, now_ns: u64) -> waiting::Woken {
        let mut woken = waiting::Woken::default();
        while let Some(id) = self.admission.admit_next(now_ns) {
            let waiter = self.waiters.leave(id);
            woken.add(waiter.map(|(_, tell)| tell), Verdict::Admitted);
        }
        woken
    }
}
