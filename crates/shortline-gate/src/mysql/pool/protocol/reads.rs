//! Which server a unit goes to: a replica where it surely reads only, else the primary.
//!
//! A unit on a replica is told to be read only (`SET TRANSACTION READ ONLY`), so that a rule that is wrong is found
//! out by the server (1792), and nothing is written there. A prepared statement goes where its text would.

use super::Pooled;
use crate::Gate;
use crate::classify::Class;
use crate::postgres::access::{Access, Opens};

impl Pooled {
    /// The replica for a unit that begins with this statement, if it is one and known whole, and what admits it
    /// there; None for the primary.
    pub(super) fn replica_for(
        &self,
        class: &Class,
        statement: Option<&[u8]>,
    ) -> Option<(usize, Gate)> {
        let nodes = &self.member.pool.common.nodes;
        let is_of_transactions = self.member.is_of_transactions;
        if !nodes.are_several() || !is_of_transactions || self.held.is_some() {
            return None;
        }
        let mut opens = opens(statement?);
        opens.is_explicit |= self.begun.is_some() || self.settings.is_autocommit_off();
        // What the gate says holds for one transaction.
        if !opens.is_single || !class.reads.allows(opens, self.settings.is_read_only()) {
            return None;
        }
        nodes.replica().map(|(at, gate)| (at, gate.clone()))
    }
}

/// What a statement says of its transaction. `SET TRANSACTION` says it of the next one here, and a comment that is
/// run (`/*! */`) may say anything.
fn opens(statement: &[u8]) -> Opens {
    let mut opens = Opens::of(statement);
    let is_run = |part: &[u8]| part == b"/*!" || part == b"/*M";
    let is_set = opens.access == Access::Read && !opens.is_explicit;
    if is_set || statement.windows(3).any(is_run) {
        opens.access = opens.access.max(Access::Unsure);
        opens.is_single = false;
    }
    opens
}
