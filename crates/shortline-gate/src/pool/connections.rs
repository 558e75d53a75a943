//! The backend's connections: opened ahead, lent, and taken back.
//!
//! One bound holds for all users and databases together. An idle connection serves only its own [`Backend::Kind`].
//! If the pool is full, the connection that has been idle longest is closed to make room for another kind. A session
//! that finds no connection waits in the order of arrival. The gate has already decided the order that counts. Only
//! a few connections are opened at a time, however many sessions wait.

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Context;
use std::time::Duration;

use futures_util::task::noop_waker_ref;
use parking_lot::{Mutex, RwLock};
use shortline_base::roster::Place;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

use super::cancels::Cancels;
use super::servers::{Server, Servers};
use super::{Backend, Counts, PoolLimits};
use crate::cluster::NoPrimary;
use crate::relay::Stream;

/// The most connections that are opened at once. Each costs the backend a process.
const OPENINGS_MAX: usize = 2;

/// All connections of a pool.
#[derive(Debug)]
pub struct Connections<B: Backend> {
    backend: B,
    /// The number of the server in its cluster.
    node: usize,
    /// The most connections. Replaced at a reload.
    size: AtomicUsize,
    idle_time_max: Duration,
    /// Replaced at a reload.
    wait_max: RwLock<Duration>,
    state: Mutex<State<B>>,
    openings: Semaphore,
    servers: Servers,
}

#[derive(Debug)]
struct State<B: Backend> {
    /// Connections that are idle, lent, or being opened.
    total: usize,
    idle: HashMap<Arc<B::Kind>, Vec<Idle<B>>>,
    waiting: VecDeque<Waiter<B>>,
    /// Whether a connection is being opened for the next session.
    is_opening_ahead: bool,
}

#[derive(Debug)]
struct Idle<B: Backend> {
    server: Place<Server>,
    known: B::Known,
    cancels: Arc<Cancels>,
    stream: Stream,
    since: Instant,
}

#[derive(Debug)]
struct Waiter<B: Backend> {
    kind: Arc<B::Kind>,
    lend: oneshot::Sender<Lent<B>>,
}

/// What a waiter receives: a connection, or room to open one.
#[derive(Debug)]
enum Lent<B: Backend> {
    Ready(Box<Held<B>>, Stream),
    Room(Room<B>),
}

/// Room for one connection. When dropped, it goes to the next waiter. `None` once the connection is idle.
#[derive(Debug)]
struct Room<B: Backend>(Option<Arc<Connections<B>>>);

/// A lent connection. Dropping this closes it. `give_back` keeps it open.
#[derive(Debug)]
pub struct Held<B: Backend> {
    /// Its entry in an operator's view.
    pub server: Place<Server>,
    /// Its kind.
    pub kind: Arc<B::Kind>,
    /// The protocol's state of it.
    pub known: B::Known,
    /// The cancel requests under way for it.
    pub cancels: Arc<Cancels>,
    /// The number of its server in the cluster.
    pub node: usize,
    room: Room<B>,
}

/// A lent connection and its stream.
pub type Lending<B> = (Box<Held<B>>, Stream);

/// Why a session gets no connection.
#[derive(Debug, thiserror::Error)]
pub enum AcquireError<E: Error> {
    /// It cannot be opened.
    #[error(transparent)]
    Login(#[from] E),
    /// All connections were in use for too long.
    #[error("none of the pool's {size} connections became free within {} ms", limit.as_millis())]
    Busy {
        /// The most connections of the pool.
        size: usize,
        /// How long the session waited.
        limit: Duration,
    },
    /// No server takes writes.
    #[error(transparent)]
    NoPrimary(NoPrimary),
}

impl<B: Backend> Connections<B> {
    /// None is open yet. They are of the server of this number, and have the numbers that come next.
    pub fn new(backend: B, node: usize, limits: &PoolLimits, ids: &Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self {
            backend,
            node,
            size: AtomicUsize::new(limits.size.get()),
            idle_time_max: limits.idle_time_max,
            wait_max: RwLock::new(limits.wait_max),
            state: Mutex::new(State {
                total: 0,
                idle: HashMap::new(),
                waiting: VecDeque::new(),
                is_opening_ahead: false,
            }),
            openings: Semaphore::new(OPENINGS_MAX),
            servers: Servers::new(ids),
        })
    }

    /// The counts at this moment.
    pub fn counts(&self) -> Counts {
        let state = self.state.lock();
        Counts {
            total: state.total,
            idle: state.idle.values().map(Vec::len).sum(),
            waiting: state.waiting.iter().filter(|waiter| waiter.waits()).count(),
        }
    }

    /// The most connections.
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Sets the most connections. Of those above it, idle ones close now and lent ones when they are given back.
    pub fn resize(self: &Arc<Self>, size: usize) {
        self.size.store(size, Ordering::Relaxed);
        let mut closed = Vec::new();
        let mut state = self.state.lock();
        let total = state.total;
        for idle in state.idle.values_mut() {
            let left = (total - closed.len()).saturating_sub(size).min(idle.len());
            closed.extend(idle.drain(..left));
        }
        state.idle.retain(|_, idle| !idle.is_empty());
        state.total -= closed.len();
        let served = state.make_room_for_waiters(size);
        drop(state);
        for waiter in served {
            // If the waiter has left in the meantime, the room goes to the next.
            drop(waiter.lend.send(Lent::Room(Room::of(self))));
        }
    }

    /// Sets how long a session waits for a connection at most.
    pub fn set_wait_max(&self, wait_max: Duration) {
        *self.wait_max.write() = wait_max;
    }

    /// An operator's view of the connections.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Closes the connections of a database, or all. Idle ones close now, lent ones when they are given back.
    pub fn close(&self, database: Option<&str>) {
        self.servers.close(database);
        let mut closed = Vec::new();
        let mut state = self.state.lock();
        for idle in state.idle.values_mut() {
            closed.extend(idle.extract_if(.., |idle| idle.server.is_of(database)));
        }
        state.idle.retain(|_, idle| !idle.is_empty());
        state.total -= closed.len();
        drop(state);
    }

    /// Lends an idle connection of this kind, if there is one.
    pub fn try_take(self: &Arc<Self>, kind: &Arc<B::Kind>) -> Option<Lending<B>> {
        loop {
            let mut idle = self.state.lock().take_idle(kind)?;
            let room = Room::of(self);
            // A backend that sends unasked, or has closed, must not get a client.
            let said = idle
                .stream
                .poll_read_some(&mut Context::from_waker(noop_waker_ref()), &mut [0; 1]);
            if said.is_pending() {
                let held = Held {
                    server: idle.server,
                    kind: Arc::clone(kind),
                    known: idle.known,
                    cancels: idle.cancels,
                    node: self.node,
                    room,
                };
                return Some((Box::new(held), idle.stream));
            }
        }
    }

    /// Lends a connection of this kind. Waits until there is one.
    ///
    /// # Errors
    /// [`AcquireError`]
    pub async fn acquire(
        self: Arc<Self>,
        kind: Arc<B::Kind>,
        login: B::Login,
    ) -> Result<Lending<B>, AcquireError<B::Refusal>> {
        let waiting = self.acquire_in_turn(&kind, &login);
        let limit = *self.wait_max.read();
        match tokio::time::timeout(limit, waiting).await {
            Ok(acquired) => Ok(acquired?),
            Err(_) => Err(AcquireError::Busy {
                size: self.size(),
                limit,
            }),
        }
    }

    async fn acquire_in_turn(
        self: &Arc<Self>,
        kind: &Arc<B::Kind>,
        login: &B::Login,
    ) -> Result<Lending<B>, B::Refusal> {
        if let Some(taken) = self.try_take(kind) {
            self.open_ahead(kind, login);
            return Ok(taken);
        }
        let (room, lent) = {
            let mut state = self.state.lock();
            if state.make_room(self.size()) {
                (Some(Room::of(self)), None)
            } else {
                let (lend, lent) = oneshot::channel();
                let kind = Arc::clone(kind);
                state.waiting.push_back(Waiter { kind, lend });
                (None, Some(lent))
            }
        };
        let room = match (room, lent) {
            (Some(room), _) => room,
            (None, Some(lent)) => match lent
                .await
                .expect("invariant: a waiter is dropped only as it is served")
            {
                Lent::Ready(held, stream) => return Ok((held, stream)),
                Lent::Room(room) => room,
            },
            (None, None) => unreachable!("one of the two is made above"),
        };
        let opened = self.open(room, kind, login).await?;
        self.open_ahead(kind, login);
        Ok(opened)
    }

    async fn open(
        self: &Arc<Self>,
        room: Room<B>,
        kind: &Arc<B::Kind>,
        login: &B::Login,
    ) -> Result<Lending<B>, B::Refusal> {
        let _turn = self
            .openings
            .acquire()
            .await
            .expect("invariant: it is never closed");
        // A connection may have become idle in the meantime.
        if let Some(taken) = self.try_take(kind) {
            return Ok(taken);
        }
        let (known, stream) = self.backend.open(kind, login).await?;
        let names = self.backend.names(kind, &known);
        let held = Held {
            server: self.servers.enter(names),
            kind: Arc::clone(kind),
            known,
            cancels: Arc::default(),
            node: self.node,
            room,
        };
        Ok((Box::new(held), stream))
    }

    /// Opens a connection ahead if none of this kind is idle, so that the next session finds one.
    fn open_ahead(self: &Arc<Self>, kind: &Arc<B::Kind>, login: &B::Login) {
        {
            let mut state = self.state.lock();
            let has_idle = state.idle.get(kind).is_some_and(|idle| !idle.is_empty());
            if has_idle
                || state.is_opening_ahead
                || state.total >= self.size()
                || !state.waiting.is_empty()
            {
                return;
            }
            state.total += 1;
            state.is_opening_ahead = true;
        }
        let room = Room::of(self);
        let (pool, kind, login) = (Arc::clone(self), Arc::clone(kind), login.clone());
        tokio::spawn(async move {
            let opened = pool.open(room, &kind, &login).await;
            pool.state.lock().is_opening_ahead = false;
            match opened {
                Ok((held, stream)) => held.give_back(stream),
                Err(error) => tracing::debug!("no connection was opened ahead: {error}"),
            }
        });
    }

    /// Closes connections that have been idle for too long.
    pub fn sweep(&self) {
        let now = Instant::now();
        let mut closed = Vec::new();
        let mut state = self.state.lock();
        for idle in state.idle.values_mut() {
            closed.extend(idle.extract_if(.., |idle| {
                now.duration_since(idle.since) >= self.idle_time_max
            }));
        }
        state.idle.retain(|_, idle| !idle.is_empty());
        state.total -= closed.len();
        drop(state);
    }
}

impl<B: Backend> State<B> {
    fn take_idle(&mut self, kind: &Arc<B::Kind>) -> Option<Idle<B>> {
        let idle = self.idle.get_mut(kind)?;
        let taken = idle.pop();
        if idle.is_empty() {
            self.idle.remove(kind);
        }
        taken
    }

    /// Counts a connection more for each waiter, as far as the size allows. Those waiters.
    fn make_room_for_waiters(&mut self, size: usize) -> Vec<Waiter<B>> {
        self.waiting.retain(Waiter::waits);
        let room = size.saturating_sub(self.total).min(self.waiting.len());
        self.total += room;
        self.waiting.drain(..room).collect()
    }

    /// Counts one more connection, if one may be opened. In a full pool it closes the one idle longest.
    fn make_room(&mut self, size: usize) -> bool {
        if self.total < size {
            self.total += 1;
            return true;
        }
        let oldest = self
            .idle
            .iter()
            .min_by_key(|(_, idle)| idle.first().map(|idle| idle.since));
        let Some(kind) = oldest.map(|(kind, _)| Arc::clone(kind)) else {
            return false;
        };
        if let Some(idle) = self.idle.get_mut(&kind) {
            idle.remove(0);
            if idle.is_empty() {
                self.idle.remove(&kind);
            }
        }
        true
    }
}

impl<B: Backend> Held<B> {
    /// Gives it back, for the next session. Nothing may be under way on it.
    pub fn give_back(self: Box<Self>, stream: Stream) {
        if self.cancels.are_none() {
            self.lend_on(stream);
            return;
        }
        // A cancel request under way could cancel the next session's statement.
        let cancels = Arc::clone(&self.cancels);
        tokio::spawn(async move {
            cancels.end().await;
            self.lend_on(stream);
        });
    }

    fn lend_on(self: Box<Self>, stream: Stream) {
        let Some(pool) = self.room.0.clone() else {
            return;
        };
        let (mut held, mut stream) = (self, stream);
        held.server.rest();
        loop {
            let mut state = pool.state.lock();
            if held.server.is_to_close() || state.total > pool.size() {
                // Dropping it closes it and passes its room on.
                drop(state);
                return;
            }
            state.waiting.retain(Waiter::waits);
            let of_kind = state
                .waiting
                .iter()
                .position(|waiter| waiter.kind == held.kind);
            let Some(waiter) = of_kind.and_then(|at| state.waiting.remove(at)) else {
                if state.waiting.is_empty() {
                    let Held {
                        server,
                        kind,
                        known,
                        cancels,
                        mut room,
                        ..
                    } = *held;
                    room.0 = None;
                    let idle = Idle {
                        server,
                        known,
                        cancels,
                        stream,
                        since: Instant::now(),
                    };
                    state.idle.entry(kind).or_default().push(idle);
                    return;
                }
                // Dropping it closes it. Its room goes to a waiter of another kind.
                drop(state);
                return;
            };
            drop(state);
            match waiter.lend.send(Lent::Ready(held, stream)) {
                Ok(()) => return,
                // The waiter has left in the meantime.
                Err(Lent::Ready(back, back_stream)) => (held, stream) = (back, back_stream),
                Err(Lent::Room(_)) => return,
            }
        }
    }
}

impl<B: Backend> Waiter<B> {
    /// Whether the session still waits: it has not timed out, and its client has not left.
    fn waits(&self) -> bool {
        !self.lend.is_closed()
    }
}

impl<B: Backend> Room<B> {
    /// Room that is already counted.
    fn of(pool: &Arc<Connections<B>>) -> Self {
        Self(Some(Arc::clone(pool)))
    }
}

impl<B: Backend> Drop for Room<B> {
    fn drop(&mut self) {
        let Some(pool) = self.0.take() else {
            return;
        };
        let waiter = {
            let mut state = pool.state.lock();
            state.waiting.retain(Waiter::waits);
            if state.total > pool.size() {
                state.total -= 1;
                return;
            }
            let Some(waiter) = state.waiting.pop_front() else {
                state.total -= 1;
                return;
            };
            waiter
        };
        // If the waiter has left in the meantime, the room is dropped here and goes to the next.
        drop(waiter.lend.send(Lent::Room(Room::of(&pool))));
    }
}
