//! What a gate is asked.

use shortline_sched::admission::{NewRequest, TenantId, TypeId};

use super::GateClient;
use super::client::Place;

/// Whether a request may run.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Of what type it is.
    pub request_type: TypeId,
    /// Who pays with the next ones for what it uses beyond what was expected.
    pub client: Option<&'a GateClient>,
    /// Whose share it is of.
    pub tenant: TenantId,
    /// It is admitted at once, as far as that is allowed.
    pub never_waits: bool,
}

impl Question<'_> {
    pub(super) fn request(&self) -> NewRequest {
        NewRequest {
            request_type: self.request_type,
            client: self.place().map(|place| place.id),
            tenant: self.tenant,
            never_waits: self.never_waits,
        }
    }

    pub(super) fn place(&self) -> Option<&Place> {
        self.client.map(GateClient::place)
    }
}

impl From<TypeId> for Question<'_> {
    /// A request of that type, of no known client and of the first tenant.
    fn from(request_type: TypeId) -> Self {
        Self {
            request_type,
            client: None,
            tenant: TenantId::default(),
            never_waits: false,
        }
    }
}
