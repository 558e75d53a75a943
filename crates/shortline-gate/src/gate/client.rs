//! A client whose requests are told apart from others', so that it pays for what they use beyond what
//! was expected ([`shortline_sched::admission::ClientId`]).

use std::hash::BuildHasher;

use shortline_sched::admission::ClientId;

use super::Gate;

/// A client that is there; it leaves when this is dropped, and what it owes waits for the next of its
/// account.
#[derive(Debug)]
pub struct GateClient {
    gate: Gate,
    id: ClientId,
}

impl Gate {
    /// A client comes, of an account that it cannot choose freely: the database user.
    pub fn client(&self, account: &str) -> GateClient {
        let account = self.0.hashes.hash_one(account);
        GateClient {
            gate: self.clone(),
            id: self.0.state.lock().admission.enter(account),
        }
    }
}

impl GateClient {
    pub(super) fn id(&self) -> ClientId {
        self.id
    }
}

impl Drop for GateClient {
    fn drop(&mut self) {
        self.gate.0.state.lock().admission.leave(self.id);
    }
}
