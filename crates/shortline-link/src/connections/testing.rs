//! Connections without a network, for tests.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::{ConnectionId, Connections, Packets, Sockets};

/// As over Ethernet.
pub const PACKETS: Packets = Packets {
    segment_bytes: 1448,
    overhead_bytes: 52 + 14,
};

/// So many open connections.
pub fn connections<const N: usize>() -> (Connections, [ConnectionId; N]) {
    let mut connections = Connections::default();
    let ids = std::array::from_fn(|_| connections.open(PACKETS, 0).0);
    (connections, ids)
}

/// Sockets that say what they are told to, at first that all has arrived.
#[derive(Default)]
pub struct FakeSockets {
    unacknowledged_bytes: RefCell<HashMap<ConnectionId, u32>>,
    looks: Cell<u32>,
    /// The connections whose clients never acknowledge anything.
    pub deaf: RefCell<Vec<ConnectionId>>,
}

impl FakeSockets {
    /// The client of a connection has to acknowledge so much.
    pub fn holds(&self, id: ConnectionId, bytes: u32) {
        self.unacknowledged_bytes.borrow_mut().insert(id, bytes);
    }

    /// How often it was asked what is not acknowledged.
    pub fn looks(&self) -> u32 {
        self.looks.get()
    }
}

impl Sockets for FakeSockets {
    fn unacknowledged_bytes(&self, id: ConnectionId) -> u32 {
        self.looks.set(self.looks.get() + 1);
        let held = self.unacknowledged_bytes.borrow();
        held.get(&id).copied().unwrap_or(0)
    }

    fn rtt_ns_min(&self, _: ConnectionId) -> u64 {
        0
    }

    fn has_acknowledged(&self, id: ConnectionId) -> bool {
        !self.deaf.borrow().contains(&id)
    }
}
