//! What grants are charged, to the regulator and to their connections, and what of it is taken back: because a
//! socket takes no more, a grant is not used, or a response is aborted.
//!
//! A grant goes back to others when the socket refuses its bytes, and not when they are late: after a pause
//! of our own process, bytes that were merely late came on top of those that were granted anew.

use super::Queue;
use crate::connections::{Charge, ConnectionId};

impl Queue {
    /// The socket takes no more: what was granted to the connection goes to others until it does.
    /// (A grant that is late because the processor was busy stays: its bytes are about to come,
    /// and in its stead others would be sent beside it.)
    pub fn blocked_by_socket(&mut self, id: ConnectionId) {
        let connection = self.connections.of_mut(id);
        let unwritten = connection.unwritten();
        if unwritten > 0 {
            connection.set_refunded(connection.refunded().saturating_add(unwritten));
            self.give_back(id, unwritten);
        }
    }

    /// All that was handed to the connection is in the socket.
    pub fn drained(&mut self, id: ConnectionId, now_ns: u64) {
        let connection = self.connections.of_mut(id);
        let (unwritten, refunded) = connection.drained();
        for job in connection.parked.drain(..) {
            self.scheduler.resume(job);
        }
        self.regulator.drained(id, unwritten, refunded, now_ns);
        self.charged_total += u64::from(refunded);
    }

    /// So many payload bytes of what was just written stay in the socket, as the congestion window is full.
    pub fn held_back(&mut self, id: ConnectionId, bytes: u32) {
        if bytes > 0 {
            let wire_bytes = self.connections.of(id).packets.wire_bytes(bytes);
            self.regulator.held_back(wire_bytes);
        }
    }

    /// The connection is over. What of it was charged and is not in its socket never will be: a response
    /// that was handed over whole is no job any more, so nobody else gives that back.
    pub fn ended(&mut self, id: ConnectionId) {
        self.cancel_bytes(id, u32::MAX);
    }

    /// By the socket's own count so many wire bytes were sent on the connection, where no device is read.
    pub fn correct(&mut self, id: ConnectionId, sent_bytes: u64) {
        let charged_bytes = self.connections.of_mut(id).correct(sent_bytes);
        self.charged_total = (self.charged_total + sent_bytes).saturating_sub(charged_bytes);
        self.regulator
            .correct(sent_bytes as f64 - charged_bytes as f64);
    }

    /// Charges a grant of so many payload bytes.
    pub(super) fn charge(&mut self, id: ConnectionId, bytes: u32, now_ns: u64) -> Charge {
        let connection = self.connections.of_mut(id);
        let wire_bytes = connection.packets.wire_bytes(bytes.max(1));
        let charge = connection.charge(wire_bytes);
        self.charged_total += u64::from(wire_bytes);
        self.active_ns = now_ns;
        let connections = &mut self.connections;
        self.regulator
            .charge(connections, id, bytes, wire_bytes, now_ns);
        charge
    }

    /// Forgets what of the charge is unwritten: it will not be sent.
    pub(super) fn cancel(&mut self, id: ConnectionId, charge: Charge) {
        self.cancel_bytes(id, charge.unwritten(self.connections.of(id)));
    }

    /// Forgets up to `charged_bytes` of what was charged to the connection: they will not be sent.
    fn cancel_bytes(&mut self, id: ConnectionId, charged_bytes: u32) {
        let connection = self.connections.of_mut(id);
        let back = charged_bytes.min(connection.unwritten());
        let left = connection.refunded().saturating_sub(charged_bytes - back);
        connection.set_refunded(left);
        if back > 0 {
            self.give_back(id, back);
        }
    }

    /// Takes `bytes` of the connection's unwritten charge back.
    fn give_back(&mut self, id: ConnectionId, bytes: u32) {
        self.refunds_total += 1;
        self.connections.of_mut(id).uncharge(bytes);
        self.charged_total = self.charged_total.saturating_sub(u64::from(bytes));
        self.regulator.give_back(&mut self.connections, id, bytes);
    }
}
