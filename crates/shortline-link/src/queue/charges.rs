//! What grants are charged, to the regulator and to their connections, and what of it is taken back: because a
//! socket takes no more, a grant is not used, or a response is aborted.
//!
//! A grant goes back to others when the socket refuses its bytes, and not when they are late: after a pause
//! of our own process, bytes that were merely late came on top of those that were granted anew.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{LinkJob, Queue};
use crate::transport::Transport;

/// What a grant was charged: of the connection's unwritten bytes until these are in the socket.
#[derive(Clone, Copy, Default)]
pub(super) struct Charge {
    wire_bytes: u32,
    /// [`crate::transport::Ledger::drains`] when it was made.
    drains: u64,
}

impl Charge {
    /// What of it is unwritten: nothing once the connection has drained.
    pub(super) fn unwritten(self, transport: &Transport) -> u32 {
        let drained = self.drains != transport.ledger.drains.load(Ordering::Acquire);
        if drained { 0 } else { self.wire_bytes }
    }
}

impl LinkJob {
    /// What is unwritten of its charge.
    pub(crate) fn charged_unwritten(&self) -> u32 {
        self.charge.unwritten(&self.transport)
    }

    /// Takes back what is unwritten of its charge.
    pub(super) fn take_unwritten(&mut self) -> u32 {
        std::mem::take(&mut self.charge).unwritten(&self.transport)
    }
}

impl Queue {
    /// The socket takes no more: what was granted to the connection goes to others until it does.
    /// (A grant that is late because the processor was busy stays: its bytes are about to come,
    /// and in its stead others would be sent beside it.)
    pub fn transport_blocked(&mut self, transport: &Arc<Transport>) {
        let unwritten = transport.ledger.unwritten.load(Ordering::Acquire);
        if unwritten > 0 {
            self.give_back(transport, unwritten);
            transport
                .ledger
                .refunded
                .fetch_add(unwritten, Ordering::AcqRel);
        }
    }

    /// All that was handed to the connection is in the socket.
    pub fn transport_drained(&mut self, transport: &Arc<Transport>, now_ns: u64) {
        let unwritten = transport.ledger.unwritten.swap(0, Ordering::AcqRel);
        let refunded = transport.ledger.refunded.swap(0, Ordering::AcqRel);
        self.regulator
            .drained(transport, unwritten, refunded, now_ns);
        self.charged_total += u64::from(refunded);
        transport
            .ledger
            .charged
            .fetch_add(u64::from(unwritten + refunded), Ordering::AcqRel);
        transport.ledger.drains.fetch_add(1, Ordering::AcqRel);
        transport.readiness.told();
        for id in transport.parked.lock().drain(..) {
            self.scheduler.resume(id);
        }
    }

    /// The connection is over. What of it was charged and is not in its socket never will be: a response
    /// that was handed over whole is no job any more, so nobody else gives that back.
    pub fn transport_ended(&mut self, transport: &Arc<Transport>) {
        self.cancel_charge(transport, u32::MAX);
    }

    /// Charges a grant of so many payload bytes.
    pub(super) fn charge(&mut self, transport: &Arc<Transport>, bytes: u32, now_ns: u64) -> Charge {
        let wire_bytes = transport.wire_bytes(bytes.max(1));
        self.charged_total += u64::from(wire_bytes);
        self.active_ns = now_ns;
        let ledger = &transport.ledger;
        ledger.unwritten.fetch_add(wire_bytes, Ordering::AcqRel);
        self.regulator.charge(transport, bytes, wire_bytes, now_ns);
        Charge {
            wire_bytes,
            drains: ledger.drains.load(Ordering::Acquire),
        }
    }

    /// Forgets up to `charged_bytes` of what was charged to the connection: they will not be sent.
    pub(super) fn cancel_charge(&mut self, transport: &Arc<Transport>, charged_bytes: u32) {
        let back = charged_bytes.min(transport.ledger.unwritten.load(Ordering::Acquire));
        if back > 0 {
            self.give_back(transport, back);
        }
        let refunded = transport.ledger.refunded.load(Ordering::Acquire);
        let left = refunded.saturating_sub(charged_bytes - back);
        transport.ledger.refunded.store(left, Ordering::Release);
    }

    /// Takes `bytes` of the connection's unwritten charge back.
    fn give_back(&mut self, transport: &Arc<Transport>, bytes: u32) {
        self.refunds_total += 1;
        transport
            .ledger
            .unwritten
            .fetch_sub(bytes, Ordering::AcqRel);
        self.charged_total = self.charged_total.saturating_sub(u64::from(bytes));
        self.regulator.give_back(transport, bytes);
    }
}
