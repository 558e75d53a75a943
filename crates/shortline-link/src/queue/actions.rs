//! What the queue has decided and does not do itself: the link does it ([`crate::Link`]).

use std::task::Waker;

use crate::connections::ConnectionId;

/// What is to be done, in this order.
#[derive(Default)]
pub(crate) struct Actions {
    /// What sockets are to be told. Before the lock is given back: of two changes of one socket the later one has to
    /// come last.
    pub set: Vec<(ConnectionId, Setting)>,
    /// Connections that nobody holds any more. Their sockets are closed.
    pub gone: Vec<ConnectionId>,
    /// Jobs that got a grant, and discovery where it slept.
    pub wake: Vec<Waker>,
}

impl Actions {
    /// Whether there is nothing to do, but for connections that have gone.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.wake.is_empty()
    }
}

/// What a socket is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// The priority of its packets, which says in which band of the kernel they wait.
    Priority(u32),
    /// It counts as not writable from so many unsent bytes on.
    UnsentBytesMax(u32),
}
