//! The backend's connections: opened ahead, lent out, and taken back.
//!
//! One bound holds for all users and databases together. A connection that is idle serves others of its own
//! [`Backend::Kind`] only; where there is room for no more, the one that has been idle for longest makes room for
//! another kind. Whoever finds none waits in the order of arrival: the order that counts was decided by the gate
//! before. A few are opened at a time, whatever the crowd.

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Context;
use std::time::Duration;

use futures_util::task::noop_waker_ref;
use parking_lot::Mutex;
use shortline_base::roster::Place;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

use super::cancels::Cancels;
use super::servers::{Server, Servers};
use super::{Backend, PoolLimits};
use crate::relay::Stream;

/// Connections that are opened at once at most: each costs the backend a process.
const OPENINGS_MAX: usize = 2;

/// All connections of a pool.
#[derive(Debug)]
pub struct Connections<B: Backend> {
    backend: B,
    /// Exchanged at a reload.
    size: AtomicUsize,
    idle_time_max: Duration,
    wait_max: Duration,
    state: Mutex<State<B>>,
    openings: Semaphore,
    servers: Servers,
}

#[derive(Debug)]
struct State<B: Backend> {
    /// Open, lent out, or being opened.
    total: usize,
    idle: HashMap<Arc<B::Kind>, Vec<Idle<B>>>,
    waiting: VecDeque<Waiter<B>>,
    /// A connection is being opened for whoever comes.
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

/// What a waiter gets: a connection, or room to open one.
#[derive(Debug)]
enum Lent<B: Backend> {
    Ready(Box<Held<B>>, Stream),
    Room(Room<B>),
}

/// Room for one connection; given to somebody else when dropped. None of it is left once the connection is idle.
#[derive(Debug)]
struct Room<B: Backend>(Option<Arc<Connections<B>>>);

/// A connection that somebody has. It is closed when this is dropped, unless it is given back.
#[derive(Debug)]
pub struct Held<B: Backend> {
    /// As an operator sees it.
    pub server: Place<Server>,
    /// Whom it can serve.
    pub kind: Arc<B::Kind>,
    /// What is known of it.
    pub known: B::Known,
    /// Cancel requests for it that are under way.
    pub cancels: Arc<Cancels>,
    room: Room<B>,
}

/// A connection, and what is known of it.
pub type Lending<B> = (Box<Held<B>>, Stream);

/// Why nobody gets a connection.
#[derive(Debug, thiserror::Error)]
pub enum AcquireError<E: Error> {
    /// It cannot be opened.
    #[error(transparent)]
    Login(#[from] E),
    /// All are in use for too long.
    #[error("none of the pool's {size} connections became free within {} ms", limit.as_millis())]
    Busy {
        /// How many there are.
        size: usize,
        /// How long it was waited for.
        limit: Duration,
    },
}

/// Numbers of a pool now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Open, or being opened.
    pub total: usize,
    /// Of these, lent to nobody.
    pub idle: usize,
    /// Sessions that wait for one.
    pub waiting: usize,
}

impl<B: Backend> Connections<B> {
    /// None is open yet.
    pub fn new(backend: B, limits: &PoolLimits) -> Arc<Self> {
        Arc::new(Self {
            backend,
            size: AtomicUsize::new(limits.size.get()),
            idle_time_max: limits.idle_time_max,
            wait_max: limits.wait_max,
            state: Mutex::new(State {
                total: 0,
                idle: HashMap::new(),
                waiting: VecDeque::new(),
                is_opening_ahead: false,
            }),
            openings: Semaphore::new(OPENINGS_MAX),
            servers: Servers::default(),
        })
    }

    /// How many there are.
    pub fn counts(&self) -> Counts {
        let state = self.state.lock();
        Counts {
            total: state.total,
            idle: state.idle.values().map(Vec::len).sum(),
            waiting: state.waiting.len(),
        }
    }

    /// How many there may be.
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// So many there may be from now on. Of more those that are idle close now, others as they are given back.
    pub fn resize(&self, size: usize) {
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
        drop(state);
    }

    /// What is seen of them.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Closes those of a database, or all: the idle ones now, each other once it is given back.
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

    /// One that is idle, if there is one.
    pub fn try_take(self: &Arc<Self>, kind: &Arc<B::Kind>) -> Option<Lending<B>> {
        loop {
            let mut idle = self.state.lock().take_idle(kind)?;
            let room = Room::of(self);
            // Whatever it says while nobody asks, it is not to be trusted with a client.
            let said = idle
                .stream
                .poll_read_some(&mut Context::from_waker(noop_waker_ref()), &mut [0; 1]);
            if said.is_pending() {
                let held = Held {
                    server: idle.server,
                    kind: Arc::clone(kind),
                    known: idle.known,
                    cancels: idle.cancels,
                    room,
                };
                return Some((Box::new(held), idle.stream));
            }
        }
    }

    /// A connection of this kind, as soon as there is one.
    ///
    /// # Errors
    /// [`AcquireError`]
    pub async fn acquire(
        self: Arc<Self>,
        kind: Arc<B::Kind>,
        login: B::Login,
    ) -> Result<Lending<B>, AcquireError<B::Refusal>> {
        let waiting = self.acquire_in_turn(&kind, &login);
        match tokio::time::timeout(self.wait_max, waiting).await {
            Ok(acquired) => Ok(acquired?),
            Err(_) => Err(AcquireError::Busy {
                size: self.size(),
                limit: self.wait_max,
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
        // One may have become idle meanwhile.
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
            room,
        };
        Ok((Box::new(held), stream))
    }

    /// Opens one more of a kind of which none is idle, so that the next to come finds one.
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

    /// Closes what has been idle for too long.
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

    /// Counts one connection more, if one may be opened, closing an idle one of another kind if it must.
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
    /// Gives it back, to serve whoever is next. Its session has nothing under way on it.
    pub fn give_back(self: Box<Self>, stream: Stream) {
        if self.cancels.are_none() {
            self.lend_on(stream);
            return;
        }
        // A cancel request that is under way would meet the next session's statement.
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
                // Its room is given to somebody else.
                drop(state);
                return;
            }
            state.waiting.retain(|waiter| !waiter.lend.is_closed());
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
                // It is closed, and its room goes to whoever waits for another kind.
                drop(state);
                return;
            };
            drop(state);
            match waiter.lend.send(Lent::Ready(held, stream)) {
                Ok(()) => return,
                // It has left meanwhile.
                Err(Lent::Ready(back, back_stream)) => (held, stream) = (back, back_stream),
                Err(Lent::Room(_)) => return,
            }
        }
    }
}

impl<B: Backend> Room<B> {
    /// Room that is counted already.
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
            state.waiting.retain(|waiter| !waiter.lend.is_closed());
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
        // Where the waiter has left meanwhile, the room comes back here and goes to the next.
        drop(waiter.lend.send(Lent::Room(Room::of(&pool))));
    }
}
