//! A client of the gate. Its requests are told apart from others', so that it pays for requests that use
//! more than their estimate ([`shortline_sched::admission::ClientId`]).

use std::hash::BuildHasher;
use std::sync::Arc;

use shortline_sched::admission::{ClientId, Refusal, TenantId};

use super::Gate;
use super::locks::{BackendConnection, Slot};

/// A connected client. Dropping it disconnects the client. Its debt then passes to the next client of its
/// account.
#[derive(Debug)]
pub struct GateClient {
    gate: Gate,
    place: Place,
    /// Who pays: a hash of the account's name.
    account: u64,
    /// The tenant of its requests, by name.
    tenant_name: Option<Arc<str>>,
    /// The tenant that counts its connection, once it has joined one.
    tenant: Option<TenantId>,
    /// Its connection to the backend, while it has one.
    backend: Option<BackendConnection>,
}

/// The client of a request.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) id: ClientId,
    /// The slot in which its work is watched. `None` unless waits for locks are watched.
    pub(super) slot: Option<Arc<Slot>>,
    database: Option<Arc<str>>,
}

impl Place {
    pub(super) fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    pub(super) fn shared_database(&self) -> Option<Arc<str>> {
        self.database.clone()
    }
}

impl Gate {
    /// Adds a client. `account` must be a name that it cannot choose freely, such as the database user.
    pub fn client(&self, account: &str) -> GateClient {
        self.client_of(self.0.hashes.hash_one(account))
    }

    fn client_of(&self, account: u64) -> GateClient {
        GateClient {
            gate: self.clone(),
            backend: None,
            tenant: None,
            account,
            tenant_name: None,
            place: Place {
                id: self.0.state.lock().admission.enter(account),
                slot: self.0.locks.as_ref().map(|_| Arc::default()),
                database: None,
            },
        }
    }
}

impl GateClient {
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Sets its database. An operator can pause a database by this name.
    pub fn set_database(&mut self, name: &str) {
        self.place.database = Some(name.into());
    }

    /// Makes it a client of the tenant of that name, or of the first tenant. Its connection counts there.
    ///
    /// # Errors
    /// [`Refusal`] if the tenant has as many connections as it may.
    pub fn join(&mut self, tenant: Option<&str>) -> Result<(), Refusal> {
        let mut state = self.gate.0.state.lock();
        let admission = &mut state.admission;
        let name = tenant;
        let tenant = tenant.map_or_else(TenantId::default, |name| admission.tenant_of(name));
        admission.connect(tenant)?;
        self.tenant_name = name.map(Arc::from);
        if let Some(left) = self.tenant.replace(tenant) {
            admission.disconnect(left);
        }
        Ok(())
    }

    /// The same client at a gate beside this one. It counts among its tenant's connections here alone.
    pub fn at(&self, gate: &Gate) -> Self {
        let mut client = gate.client_of(self.account);
        client.place.database.clone_from(&self.place.database);
        client.tenant_name.clone_from(&self.tenant_name);
        client
    }

    /// The tenant of its requests: the first one, unless it has joined another.
    pub fn tenant(&self) -> TenantId {
        let name = self.tenant_name.as_deref();
        self.tenant
            .or_else(|| name.map(|name| self.gate.tenant_of(name)))
            .unwrap_or_default()
    }

    /// Sets its connection to the backend. `None` if it has none.
    pub fn set_backend(&mut self, backend: Option<BackendConnection>) {
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
        let mut state = self.gate.0.state.lock();
        state.admission.leave(self.place.id);
        if let Some(tenant) = self.tenant {
            state.admission.disconnect(tenant);
        }
    }
}
