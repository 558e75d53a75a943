//! Which server a unit goes to: a replica where it surely reads only, else the primary.
//!
//! What a replica is given it answers itself, and refuses writes (a hot standby does not take any, 25006). So a
//! rule that is wrong, or a client that changes its mind, is told so, and nothing is lost. A bare SELECT goes to
//! the primary: it may call what writes, and its client may have written just now what it wants to read.

use super::Pooled;
use crate::Gate;
use crate::classify::Class;
use crate::postgres::access::Opens;

/// What a session sets to read only. PostgreSQL reports it since version 14.
pub(super) const READ_ONLY: &[u8] = b"default_transaction_read_only";

impl Pooled {
    /// The replica for a unit that begins with `bytes`, and what admits it there; None for the primary.
    pub(super) fn replica_for(&self, class: &Class, bytes: &[u8]) -> Option<(usize, Gate)> {
        let nodes = &self.member.pool.common.nodes;
        let is_of_transactions = self.member.is_of_transactions;
        if !nodes.are_several() || !is_of_transactions || self.held.is_some() {
            return None;
        }
        let body_bytes_max = self.shared.config.relay.limits.message_bytes_max;
        let mut opens = Opens::of_messages(bytes, body_bytes_max, &self.types);
        opens.is_explicit |= self.begun.is_some();
        if !class.reads.allows(opens, self.is_read_only()) {
            return None;
        }
        nodes.replica().map(|(at, gate)| (at, gate.clone()))
    }

    /// Whether the session's transactions only read where they do not say anything else.
    fn is_read_only(&self) -> bool {
        let set = self.settings.value(READ_ONLY);
        set.map_or(self.member.begins_read_only, |value| value == b"on")
    }

    /// On a replica the client's next messages wait until what it asked for is answered: they may begin another
    /// transaction, which may write.
    pub(super) fn waits_for_answer(&self) -> bool {
        self.replica.is_some()
            && !self.conversation.is_copying()
            && !self.conversation.is_answered()
    }
}

/// Whether a client's connection begins with transactions that only read.
pub(in crate::postgres::pool) fn begins_read_only(
    parameters: &crate::postgres::pool::login::Parameters,
) -> bool {
    parameters
        .get(READ_ONLY)
        .is_some_and(|value| value == b"on")
}
