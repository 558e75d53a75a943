//! What a pool counts: its idle connections and the sessions that wait, and which of them gets what comes free.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use ahash::RandomState;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Connections, Held, Lending, Room};
use crate::pool::{Backend, Counts};
use crate::relay::Stream;

/// See the module's text.
#[derive(Debug)]
pub(super) struct State<B: Backend> {
    /// Connections that are idle, lent, or being opened.
    pub total: usize,
    /// By kind. The list of a kind may be empty.
    idle: HashMap<Arc<B::Kind>, Vec<Idle<B>>, RandomState>,
    /// In the order of arrival. Those with room are among them.
    waiting: VecDeque<Waiter<B>>,
}

/// A connection that is lent to nobody.
#[derive(Debug)]
pub(super) struct Idle<B: Backend> {
    /// It has no room while it is idle: its room counts in `State::total`.
    pub held: Box<Held<B>>,
    pub stream: Stream,
    pub since: Instant,
}

/// With more kinds than this, the list of one is dropped as soon as it is empty, and not at the next sweep. Where all
/// connections are in use it is empty after each.
const EMPTY_LISTS_FROM: usize = 64;

/// A session that waits.
#[derive(Debug)]
struct Waiter<B: Backend> {
    kind: Arc<B::Kind>,
    /// It may open a connection. Until that is open it takes one that comes back.
    has_room: bool,
    lend: mpsc::Sender<Lent<B>>,
}

/// What a session that waits receives: a connection, or room to open one.
#[derive(Debug)]
pub(super) enum Lent<B: Backend> {
    Ready(Box<Held<B>>, Stream),
    Room(Room<B>),
}

/// The most that one session receives: room, and then a connection.
const LENT_MAX: usize = 2;

impl<B: Backend> State<B> {
    /// None is open yet.
    pub fn new() -> Self {
        Self {
            total: 0,
            idle: HashMap::default(),
            waiting: VecDeque::new(),
        }
    }

    /// The counts at this moment.
    pub fn counts(&self) -> Counts {
        let waiting = self.waiting.iter().filter(|waiter| waiter.waits());
        let (opening, waiting): (Vec<_>, Vec<_>) = waiting.partition(|waiter| waiter.has_room);
        Counts {
            total: self.total,
            idle: self.idle.values().map(Vec::len).sum(),
            waiting: waiting.len(),
            opening: opening.len(),
        }
    }

    /// Whether a connection of this kind is idle.
    pub fn has_idle(&self, kind: &Arc<B::Kind>) -> bool {
        self.idle.get(kind).is_some_and(|idle| !idle.is_empty())
    }

    /// Whether a connection may be opened that nobody waits for.
    pub fn has_room_ahead(&mut self, size: usize) -> bool {
        self.total < size && !self.has_roomless()
    }

    /// Whether a session waits that has no room.
    pub fn has_roomless(&mut self) -> bool {
        self.waiting.retain(Waiter::waits);
        self.waiting.iter().any(|waiter| !waiter.has_room)
    }

    /// Adds a session that waits for a connection of this kind, and gives it room if there is some. `None` if it need not
    /// wait, as one is idle.
    pub fn enter(
        &mut self,
        pool: &Arc<Connections<B>>,
        kind: &Arc<B::Kind>,
    ) -> Option<mpsc::Receiver<Lent<B>>> {
        if self.has_idle(kind) {
            return None;
        }
        let (lend, lent) = mpsc::channel(LENT_MAX);
        self.waiting.push_back(Waiter {
            kind: Arc::clone(kind),
            has_room: false,
            lend,
        });
        self.give_room(pool, pool.size());
        Some(lent)
    }

    /// Lends a connection to the first session that waits for one of its kind. Returns it if there is none.
    pub fn lend(&mut self, held: Box<Held<B>>, stream: Stream) -> Option<Lending<B>> {
        self.waiting.retain(Waiter::waits);
        let (mut held, mut stream) = (held, stream);
        while let Some(at) = self
            .waiting
            .iter()
            .position(|waiter| waiter.kind == held.kind)
        {
            let Some(waiter) = self.waiting.remove(at) else {
                break;
            };
            match waiter.lend.try_send(Lent::Ready(held, stream)) {
                Ok(()) => return None,
                // The session has left in the meantime.
                Err(error) => match error.into_inner() {
                    Lent::Ready(back, back_stream) => (held, stream) = (back, back_stream),
                    Lent::Room(_) => unreachable!("a connection was sent"),
                },
            }
        }
        Some((held, stream))
    }

    /// Keeps a connection for the next session.
    pub fn rest(&mut self, idle: Idle<B>) {
        match self.idle.get_mut(&idle.held.kind) {
            Some(of_kind) => of_kind.push(idle),
            None => drop(self.idle.insert(Arc::clone(&idle.held.kind), vec![idle])),
        }
    }

    /// Takes the connection of this kind that came back last.
    pub fn take_idle(&mut self, kind: &Arc<B::Kind>) -> Option<Idle<B>> {
        let idle = self.idle.get_mut(kind)?;
        let taken = idle.pop();
        if idle.is_empty() && self.idle.len() > EMPTY_LISTS_FROM {
            self.idle.remove(kind);
        }
        taken
    }

    /// Gives room to those that wait, as far as the size allows. In a full pool the connection that has been idle longest
    /// is closed for it.
    pub fn give_room(&mut self, pool: &Arc<Connections<B>>, size: usize) {
        self.waiting.retain(Waiter::waits);
        for at in 0..self.waiting.len() {
            if self.waiting[at].has_room {
                continue;
            }
            if self.total >= size && (self.total > size || self.close_oldest().is_none()) {
                return;
            }
            self.total += 1;
            let waiter = &mut self.waiting[at];
            waiter.has_room = true;
            if let Err(error) = waiter.lend.try_send(Lent::Room(Room::of(pool))) {
                // It has left in the meantime. Dropping the room would take the lock.
                if let Lent::Room(mut room) = error.into_inner() {
                    room.0 = None;
                }
                self.total -= 1;
            }
        }
    }

    /// Closes idle connections until there are no more than this many in all.
    pub fn close_above(&mut self, size: usize) -> Vec<Idle<B>> {
        let mut closed = Vec::new();
        while self.total > size {
            match self.close_oldest() {
                Some(idle) => closed.push(idle),
                None => break,
            }
        }
        closed
    }

    /// Takes the idle connections for which `closes` says so, in the order of their numbers.
    pub fn close_where(&mut self, mut closes: impl FnMut(&mut Idle<B>) -> bool) -> Vec<Idle<B>> {
        let mut all: Vec<_> = self.idle.values_mut().flatten().collect();
        all.sort_by_key(|idle| idle.held.server.id());
        let over = all
            .into_iter()
            .filter_map(|idle| closes(idle).then(|| idle.held.server.id()));
        let over: HashSet<u64> = over.collect();
        let mut closed = Vec::new();
        for idle in self.idle.values_mut() {
            closed.extend(idle.extract_if(.., |idle| over.contains(&idle.held.server.id())));
        }
        self.idle.retain(|_, idle| !idle.is_empty());
        self.total -= closed.len();
        closed.sort_by_key(|idle| idle.held.server.id());
        closed
    }

    /// Takes the connection that has been idle longest.
    fn close_oldest(&mut self) -> Option<Idle<B>> {
        let first =
            |idle: &Vec<Idle<B>>| idle.first().map(|idle| (idle.since, idle.held.server.id()));
        let some = self.idle.iter().filter(|(_, idle)| !idle.is_empty());
        let oldest = some.min_by_key(|(_, idle)| first(idle));
        let kind = oldest.map(|(kind, _)| Arc::clone(kind))?;
        let of_kind = self.idle.get_mut(&kind)?;
        let idle = of_kind.remove(0);
        if of_kind.is_empty() {
            self.idle.remove(&kind);
        }
        self.total -= 1;
        Some(idle)
    }
}

impl<B: Backend> Waiter<B> {
    /// Whether the session still waits: it has not timed out, its client has not left, and its connection is not open.
    fn waits(&self) -> bool {
        !self.lend.is_closed()
    }
}
