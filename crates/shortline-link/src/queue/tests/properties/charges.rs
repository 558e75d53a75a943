//! The model's charges, each by itself.

use crate::connections::ConnectionId;
use crate::regulator::slots::STALL_NS_MAX;

/// What has become of a charge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    Unwritten,
    /// Given back, for the socket was full: charged again once the queue hears that it is written.
    Refunded,
    /// Written since, and the queue has not heard.
    RefundedAndWritten,
    Written,
    Cancelled,
}

pub struct Charged {
    pub connection: ConnectionId,
    pub wire_bytes: u32,
    /// When it was charged.
    pub charged_ns: u64,
    pub fate: Fate,
}

impl Charged {
    /// Whether a slot that it holds may be given to others by now, though its bytes are not written.
    pub fn may_stall(&self, now_ns: u64) -> bool {
        self.fate == Fate::Unwritten && now_ns.saturating_sub(self.charged_ns) >= STALL_NS_MAX
    }
}
