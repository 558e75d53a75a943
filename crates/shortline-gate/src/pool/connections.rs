//! The backend's connections: opened ahead, lent, and taken back.
//!
//! One bound holds for all users and databases together. An idle connection serves only its own [`Backend::Kind`].
//! If the pool is full, the connection that has been idle longest is closed to make room for another kind. A session
//! that finds no connection waits in the order of arrival. The gate has already decided the order that counts. Only
//! a few connections are opened at a time, however many sessions wait. A session whose connection is being opened
//! takes one that comes back before, and the other goes to the next.
//!
//! | part | what it does |
//! |---|---|
//! | `state` | what is counted: idle connections, sessions that wait, and who gets what comes free |
//! | `turn` | a session that waits: for a connection, for room, for one to be opened |

mod state;
mod turn;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use shortline_base::roster::Place;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::cancels::Cancels;
use super::servers::{Server, Servers};
use super::{Backend, Counts, PoolLimits};
use crate::cluster::NoPrimary;
use crate::relay::Stream;
use state::{Idle, State};
use turn::Turn;

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
    openings: Arc<Semaphore>,
    /// Whether a connection is being opened for the next session.
    is_opening_ahead: AtomicBool,
    servers: Servers,
}

/// Room for one connection. When dropped, it goes to the next waiter. `None` once the connection is idle.
#[derive(Debug)]
struct Room<B: Backend>(Option<Arc<Connections<B>>>);

/// A lent connection. Dropping this closes it. `give_back` keeps it open, in the same box.
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
            state: Mutex::new(State::new()),
            openings: Arc::new(Semaphore::new(OPENINGS_MAX)),
            is_opening_ahead: AtomicBool::new(false),
            servers: Servers::new(ids),
        })
    }

    /// The counts at this moment.
    pub fn counts(&self) -> Counts {
        self.state.lock().counts()
    }

    /// The most connections.
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Sets the most connections. Of those above it, idle ones close now and lent ones when they are given back.
    pub fn resize(self: &Arc<Self>, size: usize) {
        self.size.store(size, Ordering::Relaxed);
        let mut state = self.state.lock();
        let closed = state.close_above(size);
        state.give_room(self, size);
        drop(state);
        drop(closed);
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
    pub fn close(self: &Arc<Self>, database: Option<&str>) {
        self.servers.close(database);
        self.close_idle(|idle| idle.held.server.is_of(database));
    }

    /// Lends an idle connection of this kind, if there is one.
    pub fn try_take(self: &Arc<Self>, kind: &Arc<B::Kind>) -> Option<Lending<B>> {
        loop {
            let mut idle = self.state.lock().take_idle(kind)?;
            // Given up again with the connection, if that is of no use.
            idle.held.room = Room::of(self);
            if idle.stream.is_silent() {
                return Some((idle.held, idle.stream));
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
        loop {
            if let Some(taken) = self.try_take(kind) {
                self.open_ahead(kind, login);
                return Ok(taken);
            }
            // One of this kind may have come back in the meantime.
            let Some(turn) = Turn::begin(self, kind) else {
                continue;
            };
            let lent = turn.lent(login).await?;
            if lent.is_new {
                self.open_ahead(kind, login);
            }
            return Ok(lent.lending);
        }
    }

    /// Opens a connection in this room. Only so many have a turn at once.
    async fn open(
        self: &Arc<Self>,
        room: Room<B>,
        _turn: OwnedSemaphorePermit,
        kind: &Arc<B::Kind>,
        login: &B::Login,
    ) -> Result<Lending<B>, B::Refusal> {
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

    async fn turn_to_open(&self) -> OwnedSemaphorePermit {
        let openings = Arc::clone(&self.openings);
        let turn = openings.acquire_owned().await;
        turn.expect("invariant: it is never closed")
    }

    /// Opens a connection ahead if none of this kind is idle, so that the next session finds one.
    fn open_ahead(self: &Arc<Self>, kind: &Arc<B::Kind>, login: &B::Login) {
        {
            let mut state = self.state.lock();
            if state.has_idle(kind) || !state.has_room_ahead(self.size()) {
                return;
            }
            if self.is_opening_ahead.swap(true, Ordering::AcqRel) {
                return;
            }
            state.total += 1;
        }
        let (room, ahead) = (Room::of(self), Ahead(Arc::clone(self)));
        let (pool, kind, login) = (Arc::clone(self), Arc::clone(kind), login.clone());
        tokio::spawn(async move {
            let turn = pool.turn_to_open().await;
            let opened = pool.open(room, turn, &kind, &login).await;
            drop(ahead);
            match opened {
                Ok((held, stream)) => held.give_back(stream),
                Err(error) => tracing::debug!("no connection was opened ahead: {error}"),
            }
        });
    }

    /// Closes connections that have been idle for too long, and those that the backend has closed.
    pub fn sweep(self: &Arc<Self>) {
        let now = Instant::now();
        let is_over = |since| now.duration_since(since) >= self.idle_time_max;
        self.close_idle(|idle| is_over(idle.since) || !idle.stream.is_silent());
    }

    fn close_idle(self: &Arc<Self>, closes: impl FnMut(&mut Idle<B>) -> bool) {
        let mut state = self.state.lock();
        let closed = state.close_where(closes);
        state.give_room(self, self.size());
        drop(state);
        drop(closed);
    }
}

/// A connection is being opened ahead for as long as this lives.
struct Ahead<B: Backend>(Arc<Connections<B>>);

impl<B: Backend> Drop for Ahead<B> {
    fn drop(&mut self) {
        self.0.is_opening_ahead.store(false, Ordering::Release);
    }
}

impl<B: Backend> Held<B> {
    /// Gives it back, for the next session. Nothing may be under way on it.
    pub fn give_back(self: Box<Self>, stream: Stream) {
        self.give_back_at(Instant::now(), stream);
    }

    /// As `give_back`, with the present time.
    pub fn give_back_at(self: Box<Self>, now: Instant, stream: Stream) {
        if self.cancels.are_none() {
            self.lend_on(now, stream);
            return;
        }
        // A cancel request under way could cancel the next session's statement.
        let cancels = Arc::clone(&self.cancels);
        tokio::spawn(async move {
            cancels.end().await;
            self.lend_on(Instant::now(), stream);
        });
    }

    fn lend_on(self: Box<Self>, now: Instant, mut stream: Stream) {
        let Some(pool) = self.room.0.clone() else {
            return;
        };
        self.server.rest(now);
        // Dropping it closes it and passes its room on.
        if !stream.is_silent() {
            return;
        }
        let mut state = pool.state.lock();
        if self.server.is_to_close() || state.total > pool.size() {
            drop(state);
            return;
        }
        let Some((mut held, stream)) = state.lend(self, stream) else {
            return;
        };
        if state.has_roomless() {
            // Its room goes to a session that waits for another kind.
            drop(state);
            return;
        }
        held.room.0 = None;
        state.rest(Idle {
            held,
            stream,
            since: now,
        });
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
        if let Some(pool) = self.0.take() {
            let mut state = pool.state.lock();
            state.total -= 1;
            state.give_room(&pool, pool.size());
        }
    }
}

#[cfg(test)]
mod tests;
