//! A client whose requests are told apart from others', so that it pays for what they use beyond what
//! was expected ([`shortline_sched::admission::ClientId`]).

use std::hash::BuildHasher;
use std::sync::Arc;

use shortline_sched::admission::ClientId;

use super::Gate;
use super::locks::Slot;

/// A client that is there; it leaves when this is dropped, and what it owes waits for the next of its
/// account.
#[derive(Debug)]
pub struct GateClient {
    gate: Gate,
    id: ClientId,
    /// The number of its connection to the backend, and where that is watched.
    watched: Option<(u32, Arc<Slot>)>,
}

impl Gate {
    /// A client comes, of an account that it cannot choose freely: the database user. Its connection to
    /// the backend has the number `backend` there.
    pub fn client(&self, account: &str, backend: Option<u32>) -> GateClient {
        let account = self.0.hashes.hash_one(account);
        let locks = self.0.locks.as_ref().zip(backend);
        GateClient {
            gate: self.clone(),
            watched: locks.map(|(locks, backend)| (backend, locks.enter(backend))),
            id: self.0.state.lock().admission.enter(account),
        }
    }
}

impl GateClient {
    pub(super) fn id(&self) -> ClientId {
        self.id
    }

    pub(super) fn slot(&self) -> Option<Arc<Slot>> {
        self.watched.as_ref().map(|(_, slot)| Arc::clone(slot))
    }
}

impl Drop for GateClient {
    fn drop(&mut self) {
        if let (Some(locks), Some((backend, slot))) = (&self.gate.0.locks, &self.watched) {
            locks.leave(*backend, slot);
        }
        self.gate.0.state.lock().admission.leave(self.id);
    }
}
