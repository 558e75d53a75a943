//! Who waits: a list for each type in order of arrival, and the types in the order of the
//! policy.
//!
//! To [`Scheduler`] a type with waiters is a job: it arrived when its first waiter did and is
//! as large as the type's estimate.

use super::config::Order;
use super::requests::{RequestId, Requests, Stage};
use super::types::Types;
use crate::{JobSpec, Policy, Scheduler, SchedulerConfig};

#[derive(Debug)]
pub(super) struct Queue {
    types: Scheduler,
    /// The type of each job of `types`, by its index.
    kinds: Vec<usize>,
    waiting: usize,
}

impl Queue {
    pub(super) fn new(order: Order, types_max: usize) -> Self {
        let policy = match order {
            Order::Fifo => Policy::Fifo,
            Order::Sjf => Policy::Sjf,
        };
        Self {
            types: Scheduler::new(SchedulerConfig::new(policy, types_max.saturating_add(1))),
            kinds: Vec::new(),
            waiting: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// The request that is next.
    pub(super) fn first(&self, types: &Types) -> Option<RequestId> {
        let job = self.types.peek(0)?;
        let (first, _) = types.get(self.kinds[job.index()]).ends?;
        Some(first)
    }

    /// Adds a request behind all others of its type.
    pub(super) fn push(&mut self, requests: &mut Requests, types: &mut Types, id: RequestId) {
        let Some(kind) = requests.get(id).map(|request| request.kind) else {
            return;
        };
        let ends = types.get(kind).ends;
        link(requests, ends.map(|(_, last)| last), Some(id));
        let entry = types.get_mut(kind);
        entry.ends = Some((ends.map_or(id, |(first, _)| first), id));
        entry.waiting += 1;
        self.waiting += 1;
        if ends.is_none() {
            self.rank_anew(requests, types, kind);
        }
    }

    /// Takes a waiting request out, wherever it is.
    pub(super) fn remove(&mut self, requests: &mut Requests, types: &mut Types, id: RequestId) {
        let Some(request) = requests.get(id) else {
            return;
        };
        let (kind, Stage::Waiting { before, after }) = (request.kind, request.stage) else {
            return;
        };
        link(requests, before, after);
        let entry = types.get_mut(kind);
        entry.waiting -= 1;
        self.waiting -= 1;
        let (first, last) = entry.ends.unwrap_or((id, id));
        let first = if first == id { after } else { Some(first) };
        let last = if last == id { before } else { Some(last) };
        entry.ends = first.zip(last);
        if before.is_none() {
            self.rank_anew(requests, types, kind);
        }
    }

    /// Puts a type where it belongs, after its estimate or its first waiter has changed.
    pub(super) fn rank_anew(&mut self, requests: &Requests, types: &mut Types, kind: usize) {
        let entry = types.get_mut(kind);
        if let Some(job) = entry.place.take() {
            self.types.remove(job);
        }
        let first = entry.ends.and_then(|(first, _)| requests.get(first));
        let Some(first) = first else {
            return;
        };
        let spec = JobSpec {
            // Counts arrivals, so that two of one instant keep their order.
            arrival_ns: first.sequence,
            work: entry.estimate_ns(),
            ..JobSpec::default()
        };
        // There is room for every type.
        let Ok(job) = self.types.submit(spec) else {
            return;
        };
        entry.place = Some(job);
        if self.kinds.len() <= job.index() {
            self.kinds.resize(job.index() + 1, 0);
        }
        self.kinds[job.index()] = kind;
    }
}

/// Makes two waiters of a type neighbours; `None` is the end of the list.
fn link(requests: &mut Requests, front: Option<RequestId>, back: Option<RequestId>) {
    if let Some(request) = front.and_then(|id| requests.get_mut(id))
        && let Stage::Waiting { after, .. } = &mut request.stage
    {
        *after = back;
    }
    if let Some(request) = back.and_then(|id| requests.get_mut(id))
        && let Stage::Waiting { before, .. } = &mut request.stage
    {
        *before = front;
    }
}
