//! The handle of a client's connection: its client, its state, and orders to it.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::time::Instant;

use crate::Gate;
use crate::classify::ClientNames;
use crate::handover::{Departures, Stay};

/// An order to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Order {
    /// No order.
    None = 0,
    /// Close as soon as no transaction is under way.
    Drain = 1,
    /// Close at once.
    Close = 2,
}

/// A client's connection, as the rest of the gate sees it.
#[derive(Debug)]
pub struct Handle {
    id: u64,
    opened: Instant,
    about: OnceLock<Box<About>>,
    state: AtomicU8,
    /// The start of that state, in milliseconds since it was opened.
    since_ms: AtomicU64,
    /// The number of the connection to the backend that is lent to it. 0 for none.
    link: AtomicU64,
    /// Whether it waits to log in because its database is paused.
    is_kept_out: AtomicBool,
    order: AtomicU8,
    /// Whether a transaction waits for admission. The side that clears this decides: admission or a cancel.
    waiting: AtomicBool,
    waker: AtomicWaker,
    /// Sessions that go to another process.
    departures: Arc<Departures>,
    /// Why this one does not.
    stay: AtomicU8,
}

/// A connection's client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Where it connects from.
    pub peer: Option<SocketAddr>,
    /// Where it connects to.
    pub local: Option<SocketAddr>,
    /// Whether it uses TLS.
    pub is_secure: bool,
    /// The names that it gave at login.
    pub names: Arc<ClientNames>,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ClientState {
    /// It has no unit of work.
    Idle = 0,
    /// Its unit waits for admission.
    Waiting = 1,
    /// Its unit runs.
    Active = 2,
}

/// A connection at one moment.
#[derive(Clone, Debug)]
pub struct ClientView {
    /// Its number, unique since the start.
    pub id: u64,
    /// Its client.
    pub about: About,
    /// Its state.
    pub state: ClientState,
    /// How long it has been in that state.
    pub in_state: Duration,
    /// How long it has been open.
    pub open: Duration,
    /// The number of the connection to the backend that is lent to it, if any.
    pub link: Option<u64>,
}

impl Default for Handle {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Handle {
    /// The handle of a connection that opens now, with this number.
    pub fn new(id: u64) -> Self {
        Self {
            id,
            opened: Instant::now(),
            about: OnceLock::new(),
            state: AtomicU8::new(ClientState::Idle as u8),
            since_ms: AtomicU64::new(0),
            link: AtomicU64::new(0),
            is_kept_out: AtomicBool::new(false),
            order: AtomicU8::new(Order::None as u8),
            waiting: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            departures: Arc::default(),
            stay: AtomicU8::new(Stay::Busy as u8),
        }
    }

    /// A connection that opens now, and goes to another process by these.
    pub fn of(id: u64, departures: &Arc<Departures>) -> Self {
        Self {
            departures: Arc::clone(departures),
            ..Self::new(id)
        }
    }

    /// Sessions that go to another process.
    pub fn departures(&self) -> &Departures {
        &self.departures
    }

    /// A handover begins.
    pub fn begin_departure(&self) {
        self.note_stay(Stay::Busy);
        self.waker.wake();
    }

    /// Records why the session does not go to another process.
    pub fn note_stay(&self, stay: Stay) {
        self.stay.store(stay as u8, Ordering::Relaxed);
    }

    /// Why it does not.
    pub fn stay(&self) -> Stay {
        Stay::of(self.stay.load(Ordering::Relaxed))
    }

    /// Who its client is, if that is known.
    pub fn about(&self) -> Option<&About> {
        self.about.get().map(|about| &**about)
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Sets its client.
    pub fn introduce(&self, about: About) {
        // This is called once.
        let _ = self.about.set(Box::new(about));
    }

    /// Whether its client is known and of this database. `None` stands for any database.
    pub fn is_of(&self, database: Option<&str>) -> bool {
        let about = self.about.get();
        about.is_some_and(|about| database.is_none() || about.names.database.as_deref() == database)
    }

    /// Records its state from `now` on.
    pub fn note(&self, state: ClientState, now: Instant) {
        let since = now.saturating_duration_since(self.opened).as_millis();
        let since_ms = u64::try_from(since).unwrap_or(u64::MAX);
        self.since_ms.store(since_ms, Ordering::Relaxed);
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// Whether its unit runs.
    pub fn is_active(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ClientState::Active as u8
    }

    /// Records the connection to the backend that is lent to it, if any.
    pub fn set_link(&self, server: Option<u64>) {
        self.link.store(server.unwrap_or(0), Ordering::Relaxed);
    }

    /// Whether it waits to log in because its database is paused.
    pub fn is_kept_out(&self) -> bool {
        self.is_kept_out.load(Ordering::Acquire)
    }

    /// Waits until its database is not paused.
    pub async fn wait_to_enter(&self, gate: &Gate, database: Option<&str>) {
        self.is_kept_out.store(true, Ordering::Release);
        gate.opened(database).await;
        self.is_kept_out.store(false, Ordering::Release);
    }

    /// Its state at this moment. `None` while its client is not known.
    pub fn view(&self) -> Option<ClientView> {
        let about = self.about.get()?;
        let open = self.opened.elapsed();
        let since = Duration::from_millis(self.since_ms.load(Ordering::Relaxed));
        Some(ClientView {
            id: self.id,
            about: About::clone(about),
            state: match self.state.load(Ordering::Relaxed) {
                0 => ClientState::Idle,
                1 => ClientState::Waiting,
                _ => ClientState::Active,
            },
            in_state: open.saturating_sub(since),
            open,
            link: Some(self.link.load(Ordering::Relaxed)).filter(|link| *link > 0),
        })
    }

    /// Sets the task to wake when something changes here.
    pub fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// The order to the connection.
    pub fn order(&self) -> Order {
        match self.order.load(Ordering::Acquire) {
            0 => Order::None,
            1 => Order::Drain,
            _ => Order::Close,
        }
    }

    /// Waits until the connection has this order or a stronger one. Only one task of a connection may wait.
    pub async fn ordered(&self, order: Order) {
        poll_fn(|context| {
            self.register(context.waker());
            if self.order() >= order {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Records that a transaction waits for admission. It can be cancelled from now on.
    pub fn begin_waiting(&self) {
        self.waiting.store(true, Ordering::Release);
    }

    /// Ends the wait. Returns false if the transaction was cancelled before.
    pub fn end_waiting(&self) -> bool {
        self.waiting.swap(false, Ordering::AcqRel)
    }

    /// Whether the transaction still waits: neither admitted nor cancelled.
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// Cancels the transaction that waits for admission. Returns false if none waits.
    pub fn cancel_waiting(&self) -> bool {
        let cancelled = self.end_waiting();
        if cancelled {
            self.waker.wake();
        }
        cancelled
    }

    /// Gives it an order, unless it has a stronger one.
    pub fn give(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::AcqRel);
        self.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_ended_by_one_only() {
        let handle = Handle::default();
        assert!(!handle.cancel_waiting());
        handle.begin_waiting();
        assert!(handle.cancel_waiting());
        assert!(!handle.end_waiting());
        handle.begin_waiting();
        assert!(handle.end_waiting());
        assert!(!handle.cancel_waiting());
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_connection_does_is_seen_once_its_client_is_known() {
        let handle = Handle::new(7);
        assert!(handle.view().is_none() && !handle.is_of(None));
        let names = ClientNames {
            database: Some("shop".into()),
            ..ClientNames::default()
        };
        handle.introduce(About {
            names: Arc::new(names),
            ..About::default()
        });
        assert!(handle.is_of(None) && handle.is_of(Some("shop")) && !handle.is_of(Some("other")));
        tokio::time::advance(Duration::from_secs(2)).await;
        handle.note(ClientState::Waiting, Instant::now());
        handle.set_link(Some(3));
        tokio::time::advance(Duration::from_secs(3)).await;
        let view = handle
            .view()
            .map(|view| (view.id, view.state, view.in_state, view.link));
        let expected = (7, ClientState::Waiting, Duration::from_secs(3), Some(3));
        assert_eq!(view, Some(expected));
    }
}
