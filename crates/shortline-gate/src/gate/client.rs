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
    place: Place,
    /// The number of its connection to the backend, while it has one.
    backend: Option<u32>,
}

/// What a request of a client says of it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) id: ClientId,
    /// Where its work is watched, if anybody looks.
    pub(super) slot: Option<Arc<Slot>>,
    database: Option<Arc<str>>,
}

impl Place {
    pub(super) fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }
}

impl Gate {
    /// A client comes, of an account that it cannot choose freely: the database user. Its connection to
    /// the backend has the number `backend` there.
    pub fn client(&self, account: &str, backend: Option<u32>) -> GateClient {
        let account = self.0.hashes.hash_one(account);
        let mut client = GateClient {
            gate: self.clone(),
            backend: None,
            place: Place {
                id: self.0.state.lock().admission.enter(account),
                slot: self.0.locks.as_ref().map(|_| Arc::default()),
                database: None,
            },
        };
        client.set_backend(backend);
        client
    }
}

impl GateClient {
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Its work is in this database: an operator may keep it out by this name.
    pub fn set_database(&mut self, name: &str) {
        self.place.database = Some(name.into());
    }

    /// Its connection to the backend has this number from now on, or it has none.
    pub fn set_backend(&mut self, backend: Option<u32>) {
        let left = std::mem::replace(&mut self.backend, backend);
        if let (Some(locks), Some(slot)) = (&self.gate.0.locks, &self.place.slot) {
            if let Some(left) = left {
                locks.leave(left, slot);
            }
            if let Some(backend) = backend {
                locks.enter(backend, slot);
            }
        }
    }
}

impl Drop for GateClient {
    fn drop(&mut self) {
        self.set_backend(None);
        self.gate.0.state.lock().admission.leave(self.place.id);
    }
}
