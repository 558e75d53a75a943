//! The requests inside, waiting or running. Each has a slot, which is reused.

use slab::Slab;

use super::arrival::NewRequest;
use super::charge::Charge;
use super::config::Runaway;

/// Names a request from its arrival until it finishes or is withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId {
    /// Counts arrivals. It distinguishes the request from others that had its slot, and orders by arrival.
    pub(super) sequence: u64,
    pub(super) slot: usize,
}

/// Names a client, from [`Admission::enter`](super::Admission::enter) to
/// [`Admission::leave`](super::Admission::leave).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientId {
    pub(super) slot: usize,
    /// Distinguishes the client from others that had its slot.
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
    /// Its client, if known.
    pub(super) client: Option<ClientId>,
    /// What is done if it runs away, if it has a rule of its own.
    pub(super) runaway: Option<Runaway>,
    pub(super) stage: Stage,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    Waiting(Waiting),
    Running(Running),
}

/// The state of a waiting request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    /// Its neighbours in the list of its type.
    pub(super) before: Option<RequestId>,
    pub(super) after: Option<RequestId>,
    /// When it becomes overdue, if there is aging.
    pub(super) deadline_ns: u64,
    /// Until when it is held back for its client's debt, in time of the fair share.
    pub(super) held_until_ns: Option<u64>,
}

/// Why a request is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The order of the policy.
    Policy,
    /// It has waited longest ([`super::oldest`]).
    Oldest,
    /// Its type is new ([`super::newcomers`]).
    Newcomer,
}

/// The next request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) id: RequestId,
    pub(super) kind: usize,
    pub(super) turn: Turn,
    /// Its estimate, in nanoseconds of load.
    pub(super) estimate_ns: u64,
    /// What it adds to the load when it starts.
    pub(super) load_ns: u64,
    /// Whether it skips the queue.
    pub(super) is_unqueued: bool,
}

/// The state of a running request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    admitted_ns: u64,
    /// What it adds to the load now.
    pub(super) load_ns: u64,
    /// The service expected when it started, in nanoseconds of service.
    pub(super) expected_ns: u64,
    /// The estimate when it started, in nanoseconds of load.
    pub(super) estimate_ns: u64,
    /// Why it was admitted.
    pub(super) turn: Turn,
    pub(super) paused_at_ns: Option<u64>,
    /// The sum of the pauses that ended.
    pub(super) paused_ns: u64,
    /// How long it waited for locks inside the backend, as far as it was reported.
    pub(super) locked_ns: u64,
    /// The part of its service that leaves no debt.
    pub(super) excused_ns: u64,
    /// What its tenant was charged for it.
    pub(super) charge: Charge,
    /// Whether it skipped the queue.
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

    /// Its service so far in nanoseconds, without pauses and waits for locks.
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
        request: NewRequest,
    ) -> RequestId {
        let sequence = self.sequence_next;
        self.sequence_next += 1;
        let slot = self.slots.insert(Request {
            sequence,
            kind,
            tenant,
            arrival_ns,
            client: request.client,
            runaway: request.runaway,
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

    /// All running requests.
    pub(super) fn running_all_mut(&mut self) -> impl Iterator<Item = &mut Running> {
        self.slots
            .iter_mut()
            .filter_map(|(_, request)| match &mut request.stage {
                Stage::Running(running) => Some(running),
                Stage::Waiting(_) => None,
            })
    }

    /// All waiting requests that are not held back, by arrival.
    pub(super) fn not_held(&self) -> Vec<RequestId> {
        let all = self.slots.iter();
        let waits = all.filter_map(|(slot, request)| match &request.stage {
            Stage::Waiting(waiting) => waiting.held_until_ns.is_none().then_some(RequestId {
                sequence: request.sequence,
                slot,
            }),
            Stage::Running(_) => None,
        });
        let mut ids: Vec<RequestId> = waits.collect();
        ids.sort_unstable();
        ids
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
