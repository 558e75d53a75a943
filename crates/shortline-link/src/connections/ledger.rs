//! What was charged for a connection, in wire bytes.
//!
//! Where no regulator waits to hear of it, the connection's own thread says in its [marks](super::Marks) that what was charged is
//! in the socket, and takes no lock. So the ledger is brought up to date before it is read or changed.

use super::Connection;

/// The ledger of a connection.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Charged, and not yet in the socket.
    unwritten: u32,
    /// Charged before, given back because the socket took no more.
    refunded: u32,
    /// Everything that stayed charged.
    charged: u64,
    /// How often the connection had drained when this was up to date.
    drains: u64,
}

impl Ledger {
    /// What was unwritten is in the socket if the connection has drained since.
    fn advance(&mut self, drains: u64) {
        if self.drains != drains {
            self.drains = drains;
            self.charged += u64::from(std::mem::take(&mut self.unwritten));
        }
    }
}

/// What a grant was charged: of the connection's unwritten bytes until these are in the socket.
#[derive(Clone, Copy, Default)]
pub(crate) struct Charge {
    wire_bytes: u32,
    /// How often the connection had drained when it was made.
    drains: u64,
}

impl Charge {
    /// What of it is unwritten: nothing once the connection has drained.
    pub fn unwritten(self, connection: &Connection) -> u32 {
        let drained = self.drains != connection.marks.drains();
        if drained { 0 } else { self.wire_bytes }
    }
}

impl Connection {
    /// What was charged and is not known to be in the socket.
    pub fn unwritten(&self) -> u32 {
        let drained = self.ledger.drains != self.marks.drains();
        if drained { 0 } else { self.ledger.unwritten }
    }

    /// What was given back and is charged again once it is written.
    pub fn refunded(&self) -> u32 {
        self.ledger.refunded
    }

    /// Everything that is charged and was not given back, written or not.
    #[cfg(test)]
    pub fn charged(&self) -> u64 {
        self.ledger.charged + u64::from(self.ledger.unwritten)
    }

    /// So many wire bytes are charged.
    pub fn charge(&mut self, wire_bytes: u32) -> Charge {
        let drains = self.marks.charge();
        self.ledger.advance(drains);
        self.ledger.unwritten = self.ledger.unwritten.saturating_add(wire_bytes);
        Charge { wire_bytes, drains }
    }

    /// So many of the unwritten bytes are charged no more.
    pub fn uncharge(&mut self, wire_bytes: u32) {
        self.ledger.advance(self.marks.drains());
        self.ledger.unwritten = self.ledger.unwritten.saturating_sub(wire_bytes);
        if self.ledger.unwritten == 0 {
            self.marks.clear_unwritten();
        }
    }

    /// What was uncharged is charged again once it is written: so many bytes in all.
    pub fn set_refunded(&mut self, wire_bytes: u32) {
        if self.ledger.refunded != wire_bytes {
            self.ledger.refunded = wire_bytes;
            self.marks.set_refunded(wire_bytes > 0);
        }
    }

    /// All that was handed over is in the socket, and nobody waits any more: what was unwritten until now, and what
    /// was given back before and is written after all.
    pub fn drained(&mut self) -> (u32, u32) {
        let drains = self.marks.told();
        self.ledger.advance(drains);
        let unwritten = std::mem::take(&mut self.ledger.unwritten);
        let refunded = std::mem::take(&mut self.ledger.refunded);
        self.ledger.charged += u64::from(unwritten) + u64::from(refunded);
        self.ledger.drains = drains + 1;
        (unwritten, refunded)
    }

    /// By the socket's own count so many wire bytes were sent. What stayed charged until now.
    pub fn correct(&mut self, sent_bytes: u64) -> u64 {
        self.ledger.advance(self.marks.drains());
        std::mem::replace(&mut self.ledger.charged, sent_bytes)
    }
}
