//! The question that a relay asks a gate.

use shortline_sched::admission::{NewRequest, Runaway, TenantId, TypeId};

use super::GateClient;
use super::client::Place;

/// Asks whether a request may run.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Its type.
    pub request_type: TypeId,
    /// Its client. If the request uses more than its estimate, the client's next ones pay for it.
    pub client: Option<&'a GateClient>,
    /// The tenant whose share it uses.
    pub tenant: TenantId,
    /// Whether it is admitted at once, up to `unqueued_max` such requests.
    pub never_waits: bool,
    /// What is done if it runs away. `None`: what the gate does with all.
    pub runaway: Option<Runaway>,
}

impl Question<'_> {
    pub(super) fn request(&self) -> NewRequest {
        NewRequest {
            request_type: self.request_type,
            client: self.place().map(|place| place.id),
            tenant: self.tenant,
            never_waits: self.never_waits,
            runaway: self.runaway,
        }
    }

    pub(super) fn place(&self) -> Option<&Place> {
        self.client.map(GateClient::place)
    }
}

impl From<TypeId> for Question<'_> {
    /// A request of that type, without a client and of the first tenant.
    fn from(request_type: TypeId) -> Self {
        Self {
            request_type,
            client: None,
            tenant: TenantId::default(),
            never_waits: false,
            runaway: None,
        }
    }
}
