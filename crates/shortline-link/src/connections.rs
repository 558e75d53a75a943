//! The connections, as the queue knows them: each has a dense number, and everything that the queue and the
//! regulators read or write of it is here. No socket is: what only the kernel knows is asked through [`Sockets`].
//!
//! An entry lives while anybody holds it: the connection's handle, a slot that its bytes take, discovery that watches
//! it. So a slot can ask for bytes that nobody has acknowledged after the connection's end. When nobody holds it any more
//! the driver hears of it, and closes the socket.
//!
//! Everything changes under the link's lock, but for [`Marks`].

#![deny(clippy::disallowed_methods)]

use std::collections::VecDeque;
use std::sync::Arc;

use shortline_sched::JobId;
use slab::Slab;

use crate::bands::JobsBands;

mod ledger;
mod marks;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use ledger::{Charge, Ledger};
pub(crate) use marks::{Marks, Report};

/// What [`marks`] is made of; its tests have others.
mod sync {
    pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

/// A connection's number: dense, and used again after its entry has gone, but with another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId {
    index: u32,
    generation: u32,
}

impl ConnectionId {
    /// Its place, dense from 0: an index for what a driver keeps beside the entry.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// What only the kernel knows of a connection: a system call each, so they are made where the answer matters at
/// once. That is under the link's lock: whether a slot is free decides who is granted something now, and between
/// the look and the grant nobody may take it.
pub(crate) trait Sockets {
    /// Bytes that the peer has not acknowledged; 0 where the socket is gone.
    fn unacknowledged_bytes(&self, id: ConnectionId) -> u32;
    /// The path's smallest round trip in nanoseconds, 0 if unknown.
    fn rtt_ns_min(&self, id: ConnectionId) -> u64;
    /// Whether the client has acknowledged anything beside handshakes. Also if the socket is gone.
    fn has_acknowledged(&self, id: ConnectionId) -> bool;
}

/// What a connection's packets are like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packets {
    /// Payload bytes of a full segment.
    pub segment_bytes: u32,
    /// What each packet costs beside them.
    pub overhead_bytes: u32,
}

impl Packets {
    /// Wire bytes that `payload_bytes` cost: themselves and the headers of their packets.
    pub fn wire_bytes(self, payload_bytes: u32) -> u32 {
        let packets = payload_bytes.div_ceil(self.segment_bytes);
        payload_bytes.saturating_add(packets.saturating_mul(self.overhead_bytes))
    }
}

/// A connection that carries jobs.
pub(crate) struct Connection {
    generation: u32,
    /// Who holds the entry: the handle, slots, discovery.
    holds: u32,
    pub marks: Arc<Marks>,
    pub packets: Packets,
    pub ledger: Ledger,
    /// Jobs on it that have a place in the queue.
    pub jobs: u32,
    /// Jobs passed over while it could not send.
    pub parked: Vec<JobId>,
    /// Its slots among those taken, the oldest first (mode `slots`).
    pub slots: VecDeque<usize>,
    /// The unsent bytes before its socket counts as not writable.
    pub unsent_bytes_max: u32,
    /// The band that its packets wait in (mode `bands`); none before its first response.
    pub band: Option<usize>,
    /// The bands of its jobs that can send or wait for it (mode `bands`).
    pub jobs_bands: JobsBands,
    /// Something was granted on it before.
    pub is_known: bool,
    /// Discovery watches it, or is about to.
    pub is_watched: bool,
}

impl Connection {
    /// Whether a grant would be used now.
    pub fn can_send(&self) -> bool {
        self.marks.can_send()
    }

    /// Whether responses of it wait or are being sent.
    pub fn carries_jobs(&self) -> bool {
        self.jobs > 0 || self.marks.wholes() > 0
    }
}

/// The connections; see the module's text.
#[derive(Default)]
pub(crate) struct Connections {
    entries: Slab<Connection>,
    generation_next: u32,
    gone: Vec<ConnectionId>,
}

impl Connections {
    /// A new connection, held by its handle.
    pub fn open(&mut self, packets: Packets, unsent_bytes_max: u32) -> (ConnectionId, Arc<Marks>) {
        let marks = Arc::new(Marks::new());
        let generation = self.generation_next;
        self.generation_next = generation.wrapping_add(1);
        let index = self.entries.insert(Connection {
            generation,
            holds: 1,
            marks: Arc::clone(&marks),
            packets,
            ledger: Ledger::default(),
            jobs: 0,
            parked: Vec::new(),
            slots: VecDeque::new(),
            unsent_bytes_max,
            band: None,
            jobs_bands: JobsBands::default(),
            is_known: false,
            is_watched: false,
        });
        let index = u32::try_from(index).expect("invariant: fewer connections than descriptors");
        (ConnectionId { index, generation }, marks)
    }

    /// The connection, as long as anybody holds it.
    pub fn get(&self, id: ConnectionId) -> Option<&Connection> {
        let entry = self.entries.get(id.index());
        entry.filter(|entry| entry.generation == id.generation)
    }

    /// A connection that somebody holds.
    pub fn of(&self, id: ConnectionId) -> &Connection {
        self.get(id).expect(HELD)
    }

    /// The same, to be changed.
    pub fn of_mut(&mut self, id: ConnectionId) -> &mut Connection {
        let entry = self.entries.get_mut(id.index());
        entry
            .filter(|entry| entry.generation == id.generation)
            .expect(HELD)
    }

    /// Somebody else holds it, too.
    pub fn hold(&mut self, id: ConnectionId) {
        self.of_mut(id).holds += 1;
    }

    /// Somebody who held it does no longer.
    pub fn let_go(&mut self, id: ConnectionId) {
        if self.close(id) {
            self.gone.push(id);
        }
    }

    /// Its handle holds it no longer. Whether it has gone with that.
    pub fn close(&mut self, id: ConnectionId) -> bool {
        let entry = self.of_mut(id);
        entry.holds -= 1;
        let has_gone = entry.holds == 0;
        if has_gone {
            self.entries.remove(id.index());
        }
        has_gone
    }

    /// Whether any have gone since they were last asked for, beside those that went with their handle.
    pub fn has_gone(&self) -> bool {
        !self.gone.is_empty()
    }

    /// Which ones.
    pub fn take_gone(&mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.gone)
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

const HELD: &str = "invariant: whoever names a connection holds it";
