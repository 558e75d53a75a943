//! One connection of a client, as others see it: who it is, what it does, and what it is told.

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

/// What a connection is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Order {
    /// Nothing.
    None = 0,
    /// Close as soon as no transaction is under way.
    Drain = 1,
    /// Close at once.
    Close = 2,
}

/// One connection, as others see it.
#[derive(Debug)]
pub struct Handle {
    id: u64,
    opened: Instant,
    about: OnceLock<Box<About>>,
    state: AtomicU8,
    /// Since when it is in that state, in milliseconds since it was opened.
    since_ms: AtomicU64,
    /// The number of the connection to the backend that is lent to it; 0 for none.
    link: AtomicU64,
    /// It waits to be let in because its database is kept out.
    is_kept_out: AtomicBool,
    order: AtomicU8,
    /// A transaction waits for admission, and whoever takes this away decides what becomes of it.
    waiting: AtomicBool,
    waker: AtomicWaker,
}

/// Who a connection's client is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Where it connects from.
    pub peer: Option<SocketAddr>,
    /// Where it connects to.
    pub local: Option<SocketAddr>,
    /// Whether it has TLS.
    pub is_secure: bool,
    /// What it says of itself.
    pub names: Arc<ClientNames>,
}

/// What a connection is doing.
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

/// A connection as it is now.
#[derive(Clone, Debug)]
pub struct ClientView {
    /// Its number, which no other has or had.
    pub id: u64,
    /// Whose it is.
    pub about: About,
    /// What it does.
    pub state: ClientState,
    /// How long it has done so.
    pub in_state: Duration,
    /// How long it is open.
    pub open: Duration,
    /// The number of the connection to the backend that is lent to it.
    pub link: Option<u64>,
}

impl Default for Handle {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Handle {
    /// A connection that opens now, by this number.
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
        }
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its client is this one.
    pub fn introduce(&self, about: About) {
        // It is introduced once.
        let _ = self.about.set(Box::new(about));
    }

    /// Whether its client is known, and of this database if one is named.
    pub fn is_of(&self, database: Option<&str>) -> bool {
        let about = self.about.get();
        about.is_some_and(|about| database.is_none() || about.names.database.as_deref() == database)
    }

    /// It does this from now on.
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

    /// This connection to the backend is lent to it, or none.
    pub fn set_link(&self, server: Option<u64>) {
        self.link.store(server.unwrap_or(0), Ordering::Relaxed);
    }

    /// Whether it waits to be let in, because its database is kept out.
    pub fn is_kept_out(&self) -> bool {
        self.is_kept_out.load(Ordering::Acquire)
    }

    /// Waits until its database is not kept out.
    pub async fn wait_to_enter(&self, gate: &Gate, database: Option<&str>) {
        self.is_kept_out.store(true, Ordering::Release);
        gate.opened(database).await;
        self.is_kept_out.store(false, Ordering::Release);
    }

    /// As it is now; None while its client is not known.
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

    /// The task to wake when something changes here.
    pub fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// What the connection is told to do.
    pub fn order(&self) -> Order {
        match self.order.load(Ordering::Acquire) {
            0 => Order::None,
            1 => Order::Drain,
            _ => Order::Close,
        }
    }

    /// Waits until the connection is told to do this, or more. Of a connection one task may.
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

    /// A transaction waits for admission from now on; it can be cancelled.
    pub fn begin_waiting(&self) {
        self.waiting.store(true, Ordering::Release);
    }

    /// The wait is over. False if the transaction was cancelled before.
    pub fn end_waiting(&self) -> bool {
        self.waiting.swap(false, Ordering::AcqRel)
    }

    /// Whether the transaction still waits: neither admitted nor cancelled.
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// Cancels the transaction that waits for admission. False if none does.
    pub fn cancel_waiting(&self) -> bool {
        let cancelled = self.end_waiting();
        if cancelled {
            self.waker.wake();
        }
        cancelled
    }

    /// Tells it to do as ordered, or more.
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
