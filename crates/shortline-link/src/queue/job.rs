//! A job's side of the link: what the queue keeps beside the scheduler's.

use std::task::Waker;

use crate::connections::{Charge, ConnectionId};

/// What is known of how much a response sends: payload bytes, its head and framing included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// All of it.
    Known(u64),
    /// Nothing, as of a response that is being made while it is sent. It is taken to have as much
    /// left as it has sent, so that under `srpt` it ranks by the bytes sent so far, as under `las`:
    /// what a long tail leaves to expect grows with what there was already.
    Unknown,
}

/// A job's side of the link.
pub(crate) struct LinkJob {
    pub connection: ConnectionId,
    pub waker: Option<Waker>,
    /// Payload bytes granted and not yet taken.
    pub granted_bytes: Option<u32>,
    /// The job wants a grant: it waits in the scheduler, or is parked on its connection.
    pub wanting: bool,
    /// The name of whoever asks.
    pub(super) client: u128,
    /// Its place among those that wait because their connection is new.
    pub(super) held: Option<u64>,
    /// Whether its length is known only at its end.
    pub(super) unknown: bool,
    /// Payload bytes that it has to hand over now, where it waits for more to be made.
    pub(super) at_hand_bytes: Option<u32>,
    /// What its last grant was charged.
    pub charge: Charge,
}

impl LinkJob {
    /// Whether it waits apart because its connection is new.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }
}
