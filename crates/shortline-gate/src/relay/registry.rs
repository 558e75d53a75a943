//! The open connections, and what they are told from outside.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Poll, Waker};

use futures_util::task::AtomicWaker;
use shortline_base::roster::{Place, Roster};

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
#[derive(Debug, Default)]
pub struct Handle {
    order: AtomicU8,
    /// A transaction waits for admission, and whoever takes this away decides what becomes of it.
    waiting: AtomicBool,
    waker: AtomicWaker,
}

impl Handle {
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

    /// Tells the connection to do this, or more.
    pub(super) fn give(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::AcqRel);
        self.waker.wake();
    }
}

/// Connections of a relay, now and since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Open now.
    pub open: usize,
    /// Accepted since the start.
    pub total: u64,
    /// Closed because there were too many.
    pub refused_total: u64,
    /// Ended by an error: of the protocol, of a socket, of the backend.
    pub failed_total: u64,
}

/// All connections of a relay.
#[derive(Debug, Default)]
pub struct Registry {
    roster: Arc<Roster<Handle>>,
    total: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

/// A connection's place in the registry, given back when dropped.
#[derive(Debug)]
pub struct Registration {
    /// The connection, as others see it.
    pub handle: Place<Handle>,
    /// There are more connections than allowed: this one is to be told so and closed.
    pub is_too_many: bool,
}

impl Registry {
    /// Takes a connection in.
    pub fn register(&self, connections_max: usize) -> Registration {
        let (handle, open) = self.roster.enter(Handle::default());
        self.total.fetch_add(1, Ordering::Relaxed);
        let is_too_many = open > connections_max;
        self.refused
            .fetch_add(u64::from(is_too_many), Ordering::Relaxed);
        Registration {
            handle,
            is_too_many,
        }
    }

    /// A connection ended by an error; clients cause most of them, so they are only counted.
    pub fn count_failure(&self, error: &(dyn std::error::Error + 'static)) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        tracing::debug!("connection ended: {error}");
    }

    /// Connections open now.
    pub fn open(&self) -> usize {
        self.roster.open()
    }

    /// All counts now.
    pub fn counts(&self) -> ConnectionCounts {
        ConnectionCounts {
            open: self.open(),
            total: self.total.load(Ordering::Relaxed),
            refused_total: self.refused.load(Ordering::Relaxed),
            failed_total: self.failed.load(Ordering::Relaxed),
        }
    }

    /// Tells every connection to do as ordered.
    pub fn give_all(&self, order: Order) {
        self.roster.for_each(|handle| handle.give(order));
    }

    /// Waits until no connection is left.
    pub async fn empty(&self) {
        self.roster.empty().await;
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

    #[test]
    fn an_order_is_not_taken_back() {
        let registry = Registry::default();
        let registration = registry.register(1);
        assert!(!registration.is_too_many);
        assert!(registry.register(1).is_too_many);
        registry.give_all(Order::Close);
        registry.give_all(Order::Drain);
        assert_eq!(registration.handle.order(), Order::Close);
        drop(registration);
        let counts = registry.counts();
        assert_eq!((counts.open, counts.total, counts.refused_total), (0, 2, 1));
    }
}
