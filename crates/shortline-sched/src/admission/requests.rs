//! The requests inside: waiting or running, each in a slot that is used again.

use slab::Slab;

use super::next::{Next, Turn};
use super::tenants::Charge;

/// Names a request from its arrival until it finished or was withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId {
    /// Counts arrivals: tells the request from others that had its slot, and orders by arrival.
    pub(super) sequence: u64,
    pub(super) slot: usize,
}

/// Names a client, from [`Admission::enter`](super::Admission::enter) to
/// [`Admission::leave`](super::Admission::leave).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientId {
    pub(super) slot: usize,
    /// Tells the client from others that had its slot.
    pub(super) sequence: u64,
}

/// A request that waits or runs.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) sequence: u64,
    /// The index of its type.
    pub(super) kind: usize,
    /// The index of its tenant.
    pub(super) tenant: usize,
    pub(super) arrival_ns: u64,
    /// Whose it is, if its client is known.
    pub(super) client: Option<ClientId>,
    pub(super) stage: Stage,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    Waiting(Waiting),
    Running(Running),
}

/// What is kept of a request that waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    /// Its neighbours in the list of its type.
    pub(super) before: Option<RequestId>,
    pub(super) after: Option<RequestId>,
    /// Since when it has waited for too long, where there is aging.
    pub(super) deadline_ns: u64,
    /// Until when it is put aside for its client's debt, in time of the fair share.
    pub(super) held_until_ns: Option<u64>,
}

/// What is kept of a request that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    admitted_ns: u64,
    /// What it adds now, to be subtracted again.
    pub(super) load_ns: u64,
    /// How long it was expected to be served.
    pub(super) expected_ns: u64,
    /// What it was expected to add.
    pub(super) estimate_ns: u64,
    /// By what right it was admitted.
    pub(super) turn: Turn,
    pub(super) paused_at_ns: Option<u64>,
    /// The sum of the pauses that ended.
    pub(super) paused_ns: u64,
    /// How long it waited for a lock inside the backend, as far as anybody noticed.
    pub(super) locked_ns: u64,
    /// So much of its service leaves no debt.
    pub(super) excused_ns: u64,
    /// What its tenant was charged for it.
    pub(super) charge: Charge,
    /// It did not wait for its turn.
    pub(super) is_unqueued: bool,
}

impl Running {
    pub(super) fn start(now_ns: u64, next: Next, expected_ns: u64, charge: Charge) -> Self {
        Self {
            admitted_ns: now_ns,
            load_ns: next.load_ns,
            expected_ns,
            estimate_ns: next.estimate_ns,
            turn: next.turn,
            paused_at_ns: None,
            paused_ns: 0,
            locked_ns: 0,
            excused_ns: 0,
            charge,
            is_unqueued: next.is_unqueued,
        }
    }

    /// How long it has been served so far, in nanoseconds, pauses and waits for locks left out.
    pub(super) fn service_ns(&self, now_ns: u64) -> u64 {
        self.paused_at_ns
            .unwrap_or(now_ns)
            .saturating_sub(self.admitted_ns)
            .saturating_sub(self.paused_ns)
            .saturating_sub(self.locked_ns)
    }
}

/// All requests inside.
#[derive(Debug, Default)]
pub(super) struct Requests {
    slots: Slab<Request>,
    sequence_next: u64,
}

impl Requests {
    pub(super) fn add(
        &mut self,
        kind: usize,
        tenant: usize,
        arrival_ns: u64,
        client: Option<ClientId>,
    ) -> RequestId {
        let sequence = self.sequence_next;
        self.sequence_next += 1;
        let slot = self.slots.insert(Request {
            sequence,
            kind,
            tenant,
            arrival_ns,
            client,
            stage: Stage::Waiting(Waiting::default()),
        });
        RequestId { sequence, slot }
    }

    pub(super) fn get(&self, id: RequestId) -> Option<&Request> {
        self.slots
            .get(id.slot)
            .filter(|request| request.sequence == id.sequence)
    }

    pub(super) fn get_mut(&mut self, id: RequestId) -> Option<&mut Request> {
        self.slots
            .get_mut(id.slot)
            .filter(|request| request.sequence == id.sequence)
    }

    pub(super) fn waiting(&self, id: RequestId) -> Option<&Waiting> {
        match &self.get(id)?.stage {
            Stage::Waiting(waiting) => Some(waiting),
            Stage::Running(_) => None,
        }
    }

    pub(super) fn waiting_mut(&mut self, id: RequestId) -> Option<&mut Waiting> {
        match &mut self.get_mut(id)?.stage {
            Stage::Waiting(waiting) => Some(waiting),
            Stage::Running(_) => None,
        }
    }

    pub(super) fn running(&self, id: RequestId) -> Option<&Running> {
        match &self.get(id)?.stage {
            Stage::Running(running) => Some(running),
            Stage::Waiting(_) => None,
        }
    }

    pub(super) fn running_mut(&mut self, id: RequestId) -> Option<&mut Running> {
        match &mut self.get_mut(id)?.stage {
            Stage::Running(running) => Some(running),
            Stage::Waiting(_) => None,
        }
    }

    /// All that run.
    pub(super) fn running_all_mut(&mut self) -> impl Iterator<Item = &mut Running> {
        self.slots
            .iter_mut()
            .filter_map(|(_, request)| match &mut request.stage {
                Stage::Running(running) => Some(running),
                Stage::Waiting(_) => None,
            })
    }

    pub(super) fn remove(&mut self, id: RequestId) -> Option<Request> {
        self.get(id)?;
        self.slots.try_remove(id.slot)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Request> {
        self.slots.iter().map(|(_, request)| request)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}
