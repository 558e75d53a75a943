//! What the gate may do that a connection of one's own does not: refuse, and end sessions, for the reasons that the
//! scenario has. Without a reason it is a fault.

use shortline_gate::pool::PoolMode;

use super::scenario::{Order, Scenario};

/// What an error says. One may say several of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The gate's queue is full.
    Queue,
    /// The gate has not admitted it in time.
    Wait,
    /// No connection became free in time.
    Busy,
    /// A connection could not be opened.
    Login,
    /// Somebody ends: the gate, or the server.
    Stop,
    /// The server has ended a connection.
    Lost,
    /// The server does not speak the protocol.
    Garbled,
    /// Too many sessions keep a connection.
    Keepers,
}

/// An error that a client is told.
pub trait Failure {
    /// Whether it says this.
    fn is(&self, reason: Reason) -> bool;
}

impl Scenario {
    /// Whether a session may get this for a unit that has not begun.
    pub fn may_refuse(&self, told: &impl Failure) -> bool {
        let gates = self.orders.iter().filter_map(|(_, order)| match order {
            Order::Reload(gate) => Some(&**gate),
            _ => None,
        });
        let mut gates = gates.chain([&self.gate]);
        let by_gate = gates.any(|gate| {
            gate.admission.queue_max < 100 && told.is(Reason::Queue)
                || gate.wait_max.as_secs() == 0 && told.is(Reason::Wait)
        });
        by_gate
            || self.may_be_busy() && told.is(Reason::Busy)
            || (self.faults.hinders_logins() || self.ends_connections()) && told.is(Reason::Login)
            || self.may_wait_long() && told.is(Reason::Wait)
            || self.is_told(|order| matches!(order, Order::Drain)) && told.is(Reason::Stop)
    }

    /// Whether a session may end with this. `is_open`: it has asked for something, or is in a transaction.
    pub fn may_end(&self, told: &impl Failure, is_open: bool) -> bool {
        self.ends_connections() && (told.is(Reason::Stop) || told.is(Reason::Lost))
            || self.faults.garbles > 0.0 && told.is(Reason::Garbled)
            || self.is_told(|order| matches!(order, Order::Drain)) && told.is(Reason::Stop)
            // A session whose state cannot be asked for keeps its connection.
            || (self.has_keepers || self.ends_connections()) && told.is(Reason::Keepers)
            // The gate has answered its BEGIN already.
            || is_open && self.may_refuse(told)
    }

    /// Whether a client may be kept out with this.
    pub fn may_keep_out(&self, told: &impl Failure) -> bool {
        self.may_refuse(told) || self.may_end(told, false)
    }

    /// Whether a session may end without a word.
    pub fn may_cut_off(&self) -> bool {
        let drains = self.is_told(|order| matches!(order, Order::Drain));
        self.ends_connections() || self.faults.garbles > 0.0 || drains
    }

    /// Whether a connection may end at any time.
    fn ends_connections(&self) -> bool {
        self.faults.ends_connections() || self.has_killers
    }

    /// Whether a session may wait too long to be admitted. A login that hangs, or waits for the rest of a garbled
    /// message, takes half as long. In a pool that is made smaller, those that keep a connection may leave none. Who
    /// ends another session in the middle of a transaction may wait for a connection, and all others for its own.
    fn may_wait_long(&self) -> bool {
        let shrinks = self.is_told(|order| matches!(order, Order::Resize(_)));
        let hangs = self.faults.hangs + self.faults.garbles > 0.0;
        hangs || self.has_keepers && shrinks || self.has_killers
    }

    /// Whether a session may wait too long for a connection.
    fn may_be_busy(&self) -> bool {
        self.has_keepers
            || self.faults.hinders_logins()
            || self.limits.wait_max.as_secs() < 10
            || self.limits.mode == PoolMode::Session
            || self.is_told(|order| matches!(order, Order::Resize(_)))
    }
}
