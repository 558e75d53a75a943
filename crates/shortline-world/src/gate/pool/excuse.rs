//! What the gate may do that a connection of one's own does not: refuse, and end sessions, for the reasons that the
//! scenario has. Without a reason it is a fault.

use std::fmt;

use shortline_gate::pool::PoolMode;

use super::scenario::{Order, Scenario};

/// An error that a client is told.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    /// Whether its session is over.
    pub is_fatal: bool,
    /// The SQLSTATE.
    pub code: String,
    text: String,
}

impl Failure {
    /// Reads the body of an ErrorResponse.
    pub fn of(body: &[u8]) -> Self {
        let mut told = Self::default();
        for field in body.split(|byte| *byte == 0) {
            let text = || String::from_utf8_lossy(&field[1..]).into_owned();
            match field.first() {
                Some(b'S') => told.is_fatal = field == b"SFATAL",
                Some(b'C') => told.code = text(),
                Some(b'M') => told.text = text(),
                _ => {}
            }
        }
        told
    }

    fn is(&self, code: &str, text: &str) -> bool {
        self.code == code && self.text.contains(text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.text)
    }
}

impl Scenario {
    /// Whether a session may get this for a unit that has not begun.
    pub fn may_refuse(&self, told: &Failure) -> bool {
        let gates = self.orders.iter().filter_map(|(_, order)| match order {
            Order::Reload(gate) => Some(&**gate),
            _ => None,
        });
        let mut gates = gates.chain([&self.gate]);
        let by_gate = gates.any(|gate| {
            gate.admission.queue_max < 100 && told.is("53300", "queue")
                || gate.wait_max.as_secs() == 0 && told.is("57014", "within")
        });
        by_gate
            || self.may_be_busy() && told.is("53300", "became free within")
            || (self.faults.hinders_logins() || self.faults.ends_connections()) && is_of_login(told)
            || self.may_wait_long() && told.is("57014", "did not admit the request within")
            || self.is_told(|order| matches!(order, Order::Drain)) && told.code == "57P01"
    }

    /// Whether a session may end with this. `is_open`: it has asked for something, or is in a transaction.
    pub fn may_end(&self, told: &Failure, is_open: bool) -> bool {
        let by_server =
            told.code == "57P01" || told.code == "08006" && !told.text.contains("cancel");
        self.faults.ends_connections() && by_server
            || self.faults.garbles > 0.0 && told.is("08P01", "the backend does not speak")
            || self.is_told(|order| matches!(order, Order::Drain)) && told.code == "57P01"
            || self.has_keepers() && told.is("53300", "too many do")
            // The gate has answered its BEGIN already.
            || is_open && self.may_refuse(told)
    }

    /// Whether a client may be kept out with this.
    pub fn may_keep_out(&self, told: &Failure) -> bool {
        self.may_refuse(told) || self.may_end(told, false)
    }

    /// Whether a session may wait too long to be admitted. A login that hangs, or waits for the rest of a garbled
    /// message, takes half as long. In a pool that is made smaller, those that keep a connection may leave none.
    fn may_wait_long(&self) -> bool {
        let shrinks = self.is_told(|order| matches!(order, Order::Resize(_)));
        self.faults.hangs + self.faults.garbles > 0.0 || self.has_keepers() && shrinks
    }

    /// Whether a session may wait too long for a connection.
    fn may_be_busy(&self) -> bool {
        self.has_keepers()
            || self.faults.hinders_logins()
            || self.limits.wait_max.as_secs() < 10
            || self.limits.mode == PoolMode::Session
            || self.is_told(|order| matches!(order, Order::Resize(_)))
    }
}

fn is_of_login(told: &Failure) -> bool {
    told.code == "57P03" || told.code == "08006" && told.text.contains("backend")
}
