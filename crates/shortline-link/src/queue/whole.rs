//! Responses that need no place in the queue: nobody waits who could go first, a grant is due, and it
//! covers all of the response. Any policy would take it next, and after that grant nothing of it is
//! left to order.
//!
//! So it is charged and gone: no entry in the scheduler, and the lock is not taken again when it ends.
//! In mode `bands` none is such: there a response has to say how urgent its connection is.

use shortline_sched::{Client, JobId, PathView, QueueFull};

use super::{Length, Queue};
use crate::connections::{Charge, ConnectionId, Marks, Sockets};

/// A response that was granted whole.
pub(crate) struct Whole {
    client: Client,
    arrival_ns: u64,
    length_bytes: u64,
    handed_over_bytes: u64,
    granted_bytes: u32,
    charge: Charge,
}

impl Whole {
    /// Payload bytes of its grant.
    pub fn granted_bytes(&self) -> u32 {
        self.granted_bytes
    }

    /// So many payload bytes are with its connection now.
    pub fn hand_over(&mut self, marks: &Marks, payload_bytes: u32) {
        if payload_bytes > 0 {
            marks.begin();
        }
        self.handed_over_bytes += u64::from(payload_bytes);
    }
}

impl Queue {
    /// Grants a response all of its `length` at once, if that is what the queue would do.
    pub fn grant_whole(
        &mut self,
        connection: ConnectionId,
        client: Client,
        length: Length,
        sockets: &dyn Sockets,
        now_ns: u64,
    ) -> Option<Whole> {
        let Length::Known(length_bytes) = length else {
            return None;
        };
        // What a client got while others are there counts, where the order goes by it.
        let ordered = self.regulator.regulates();
        let counted = ordered && self.scheduler.counts_clients() && !self.scheduler.is_empty();
        let banded = self.regulator.bands().is_some();
        let can_send = self.connections.of(connection).can_send();
        if banded || counted || self.scheduler.waiting() > 0 || !can_send {
            return None;
        }
        let granted_bytes = self.quantum();
        let bytes = u32::try_from(length_bytes).ok()?;
        if bytes > granted_bytes || !self.is_due(sockets, now_ns) {
            return None;
        }
        if !self.has_room(client.name, connection, sockets, now_ns) {
            return None;
        }
        self.connections.of(connection).marks.whole_began();
        self.note_grant(connection, client.name, now_ns);
        Some(Whole {
            client,
            arrival_ns: now_ns,
            length_bytes,
            handed_over_bytes: 0,
            granted_bytes,
            charge: self.charge(connection, bytes, now_ns),
        })
    }

    /// The grant will not be used, or not all of it.
    pub fn cancel_whole(&mut self, connection: ConnectionId, whole: &mut Whole) {
        self.cancel(connection, std::mem::take(&mut whole.charge));
    }

    /// A place for it in the queue after all: it has declined its grant, or has more to send than it said.
    pub fn submit_whole(
        &mut self,
        connection: ConnectionId,
        whole: &Whole,
        path: Option<PathView>,
    ) -> Result<JobId, QueueFull> {
        let length = Length::Known(whole.length_bytes);
        let id = self.submit(connection, whole.client, length, path, whole.arrival_ns)?;
        // It was one of the connection's before.
        self.connections.of(connection).marks.whole_ended();
        self.scheduler.record(id, whole.handed_over_bytes);
        self.job_mut(id).charge = whole.charge;
        Ok(id)
    }
}
