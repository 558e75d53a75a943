//! The open connections, and orders to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use shortline_base::roster::{Place, Roster};
use tokio::sync::{mpsc, watch};

use super::{ClientView, Handle, Order};
use crate::handover::{Arrivals, Cancels, Departures, Offer};

/// The counts of a relay's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Open now.
    pub open: usize,
    /// Accepted since the start.
    pub total: u64,
    /// Closed because there were too many.
    pub refused_total: u64,
    /// Ended by an error of the protocol, of a socket or of the backend.
    pub failed_total: u64,
}

/// All connections of a relay.
#[derive(Debug, Default)]
pub struct Registry {
    roster: Arc<Roster<Handle>>,
    total: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    /// Whether the last attempt to connect to the backend succeeded.
    is_backend_reached: AtomicBool,
    accepting: watch::Sender<Accepting>,
    /// Threads that accept now.
    acceptors: watch::Sender<usize>,
    departures: Arc<Departures>,
    arrivals: Arrivals,
    cancels: Cancels,
}

/// Whether connections are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accepting {
    /// They are.
    #[default]
    Open,
    /// Not now: another process does.
    Paused,
    /// Never again.
    Shut,
}

/// A thread that accepts, until this is dropped.
#[derive(Debug)]
pub struct Acceptor<'a>(&'a Registry);

impl Drop for Acceptor<'_> {
    fn drop(&mut self) {
        self.0.acceptors.send_modify(|acceptors| *acceptors -= 1);
    }
}

/// A connection's place in the registry, given back when dropped.
#[derive(Debug)]
pub struct Registration {
    /// The handle of the connection.
    pub handle: Place<Handle>,
    /// Whether it is above the limit. It is then to get an error and be closed.
    pub is_too_many: bool,
}

impl Registry {
    /// Registers a connection.
    pub fn register(&self, connections_max: usize) -> Registration {
        let id = self.total.fetch_add(1, Ordering::Relaxed) + 1;
        let (handle, open) = self.roster.enter(Handle::of(id, &self.departures));
        let is_too_many = open > connections_max;
        self.refused
            .fetch_add(u64::from(is_too_many), Ordering::Relaxed);
        Registration {
            handle,
            is_too_many,
        }
    }

    /// Counts a connection that ended by an error. Clients cause most of these, so they are logged only at debug
    /// level.
    pub fn count_failure(&self, error: &(dyn std::error::Error + 'static)) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        tracing::debug!("connection ended: {error}");
    }

    /// Records whether an attempt to connect to the backend succeeded.
    pub fn note_backend(&self, is_reached: bool) {
        self.is_backend_reached.store(is_reached, Ordering::Relaxed);
    }

    /// Whether the last attempt to connect to the backend succeeded.
    pub fn is_backend_reached(&self) -> bool {
        self.is_backend_reached.load(Ordering::Relaxed)
    }

    /// Connections open now.
    pub fn open(&self) -> usize {
        self.roster.open()
    }

    /// The counts at this moment.
    pub fn counts(&self) -> ConnectionCounts {
        ConnectionCounts {
            open: self.open(),
            total: self.total.load(Ordering::Relaxed),
            refused_total: self.refused.load(Ordering::Relaxed),
            failed_total: self.failed.load(Ordering::Relaxed),
        }
    }

    /// Gives every connection this order.
    pub fn give_all(&self, order: Order) {
        self.roster.for_each(|handle| handle.give(order));
    }

    /// All connections whose client is known.
    pub fn clients(&self) -> Vec<ClientView> {
        let mut handles = Vec::new();
        self.roster
            .for_each(|handle| handles.push(Arc::clone(handle)));
        handles.iter().filter_map(|handle| handle.view()).collect()
    }

    /// Gives the connection of this number an order. Returns false if there is none.
    pub fn give(&self, id: u64, order: Order) -> bool {
        self.give_where(order, |handle| handle.id() == id) > 0
    }

    /// Gives an order to the connections of a database, or to all whose client is known. Returns their number.
    pub fn give_to_clients(&self, database: Option<&str>, order: Order) -> usize {
        self.give_where(order, |handle| handle.is_of(database))
    }

    /// Whether a unit runs for a client of this database, or of any if it is `None`.
    pub fn any_active(&self, database: Option<&str>) -> bool {
        let mut is_any = false;
        self.roster
            .for_each(|handle| is_any |= handle.is_active() && handle.is_of(database));
        is_any
    }

    fn give_where(&self, order: Order, is_meant: impl Fn(&Handle) -> bool) -> usize {
        let mut given = 0;
        self.roster.for_each(|handle| {
            if is_meant(handle) {
                handle.give(order);
                given += 1;
            }
        });
        given
    }

    /// Stops accepting. Open connections stay.
    pub fn shut(&self) {
        self.accepting.send_replace(Accepting::Shut);
    }

    /// Stops accepting for as long as another process does.
    pub fn pause_accepting(&self) {
        self.accepting.send_replace(Accepting::Paused);
    }

    /// Accepts again after a pause.
    pub fn resume_accepting(&self) {
        self.accepting.send_replace(Accepting::Open);
    }

    /// Whether connections are accepted now.
    pub fn is_accepting(&self) -> bool {
        *self.accepting.borrow() == Accepting::Open
    }

    /// Waits until this is so, and returns what is so then.
    pub async fn until_accepting(&self, wanted: impl Fn(Accepting) -> bool) -> Accepting {
        let mut accepting = self.accepting.subscribe();
        let is = accepting.wait_for(|is| wanted(*is)).await;
        // The sender is here: this never fails.
        is.map_or(Accepting::Shut, |is| *is)
    }

    /// One more thread accepts.
    pub fn acceptor(&self) -> Acceptor<'_> {
        self.acceptors.send_modify(|acceptors| *acceptors += 1);
        Acceptor(self)
    }

    /// Waits until no connection is left, and no thread accepts one.
    pub async fn deserted(&self) {
        let mut acceptors = self.acceptors.subscribe();
        // The sender is here: this never fails.
        let _ = acceptors.wait_for(|acceptors| *acceptors == 0).await;
        self.empty().await;
    }

    /// Shows each connection to `look`.
    pub fn for_each(&self, look: impl FnMut(&Arc<Handle>)) {
        self.roster.for_each(look);
    }

    /// A handover to another process begins: sessions that rest come out here.
    pub fn begin_departures(&self) -> mpsc::Receiver<Offer> {
        let offered = self.departures.begin();
        self.roster.for_each(|handle| handle.begin_departure());
        offered
    }

    /// The handover is over; sessions that are here stay.
    pub fn end_departures(&self) {
        self.departures.end();
    }

    /// Sessions that come from another process.
    pub fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }

    /// Cancel requests that another process passes on, or is to be passed.
    pub fn cancels(&self) -> &Cancels {
        &self.cancels
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
