//! A tenant's waiting requests: a list for each type in order of arrival, and the types in the order
//! of the policy.
//!
//! To [`Scheduler`] a type with waiters is a job. It arrived with its first waiter, and its size is the
//! type's estimate. With aging, [`Bounds`] decides. The types are also kept in the order of their first
//! waiters, and those to be tried in a second such set.

use super::aging::{Bounds, Expected, Moment};
use super::config::{Order, types_held};
use super::requests::{RequestId, Requests};
use super::sorted::Sorted;
use super::types::Types;
use crate::policy::boost::boosted;
use crate::{JobId, JobSpec, Policy, Scheduler, SchedulerConfig};

#[derive(Debug)]
pub(super) struct Queue {
    types: Scheduler,
    /// The type of each job of `types`, by its index.
    kinds: Vec<usize>,
    /// The list of each type, up to the last type that has waited.
    lines: Vec<Line>,
    /// The first waiter of each type, by arrival.
    heads: Sorted<(RequestId, usize)>,
    /// The entries of `heads` whose type is to be tried.
    newcomers: Sorted<(RequestId, usize)>,
    order: Order,
    bounds: Option<Bounds>,
    waiting: usize,
}

/// The waiters of a type.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// The first and the last waiter.
    ends: Option<(RequestId, RequestId)>,
    /// Its place in the order of types; `None` if none waits.
    place: Option<JobId>,
    /// What the type was last ranked by.
    ranked: Option<Ranked>,
    /// When the first waiter arrived.
    head_arrival_ns: u64,
    waiting: u64,
}

/// What a type is ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ranked {
    /// Its first waiter.
    head: RequestId,
    arrival: u64,
    rank_ns: u64,
    is_to_be_tried: bool,
}

impl Queue {
    pub(super) fn new(order: Order, types_max: usize) -> Self {
        let (policy, aging) = match order {
            // A boost only moves arrivals.
            Order::Fifo | Order::Boost => (Policy::Fifo, None),
            Order::Sjf | Order::Gittins => (Policy::Sjf, None),
            Order::SjfAging(aging) => (Policy::Sjf, Some(aging)),
        };
        Self {
            types: Scheduler::new(SchedulerConfig::new(policy, types_held(types_max).get())),
            kinds: Vec::new(),
            lines: Vec::new(),
            heads: Sorted::default(),
            newcomers: Sorted::default(),
            order,
            bounds: aging.map(Bounds::new),
            waiting: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// The request that has waited longest, and its type.
    pub(super) fn oldest(&self) -> Option<(RequestId, usize)> {
        self.heads.first()
    }

    /// The request that has waited longest of the types to be tried, and its type.
    pub(super) fn newcomer(&self) -> Option<(RequestId, usize)> {
        self.newcomers.first()
    }

    /// The request that is next by the policy.
    pub(super) fn first(
        &mut self,
        requests: &Requests,
        types: &Types,
        moment: Moment,
    ) -> Option<RequestId> {
        let job = self.types.peek(moment.now_ns)?;
        let kind = self.kinds[job.index()];
        let (first, _) = self.lines[kind].ends?;
        let Some(bounds) = &mut self.bounds else {
            return Some(first);
        };
        let deadline_ns = requests.waiting(first)?.deadline_ns;
        Some(bounds.first(moment, (deadline_ns, first), types.service_ns(kind)))
    }

    /// Whether a type is shorter than all types with waiters.
    pub(super) fn is_shorter(&self, types: &Types, kind: usize) -> bool {
        let own_ns = types.get(kind).rank_ns();
        let first = self.types.peek(0);
        first.is_none_or(|job| own_ns < types.get(self.kinds[job.index()]).rank_ns())
    }

    /// Adds a request behind all others of its type.
    pub(super) fn push(
        &mut self,
        requests: &mut Requests,
        types: &mut Types,
        id: RequestId,
        expected: Expected,
    ) {
        let Some(request) = requests.get(id) else {
            return;
        };
        let (kind, arrival_ns) = (request.kind, request.arrival_ns);
        if let Some(bounds) = &mut self.bounds
            && let Some(waiting) = requests.waiting_mut(id)
        {
            waiting.deadline_ns = bounds.insert(id, arrival_ns, expected);
        }
        if self.lines.len() <= kind {
            self.lines.resize(kind + 1, Line::default());
        }
        let line = &mut self.lines[kind];
        let ends = line.ends;
        link(requests, ends.map(|(_, last)| last), Some(id));
        line.ends = Some((ends.map_or(id, |(first, _)| first), id));
        line.waiting += 1;
        types.get_mut(kind).waiting += 1;
        self.waiting += 1;
        if ends.is_none() {
            line.head_arrival_ns = arrival_ns;
            self.rank_anew(types, kind);
        }
    }

    /// Removes a waiting request.
    pub(super) fn remove(&mut self, requests: &mut Requests, types: &mut Types, id: RequestId) {
        let (Some(request), Some(&waiting)) = (requests.get(id), requests.waiting(id)) else {
            return;
        };
        let kind = request.kind;
        if let Some(bounds) = &mut self.bounds {
            bounds.remove((waiting.deadline_ns, id));
        }
        link(requests, waiting.before, waiting.after);
        let head_arrival_ns = waiting
            .after
            .and_then(|after| requests.get(after))
            .map(|request| request.arrival_ns);
        types.get_mut(kind).waiting -= 1;
        let line = &mut self.lines[kind];
        line.waiting -= 1;
        self.waiting -= 1;
        let (first, last) = line.ends.unwrap_or((id, id));
        let first = if first == id {
            waiting.after
        } else {
            Some(first)
        };
        let last = if last == id {
            waiting.before
        } else {
            Some(last)
        };
        line.ends = first.zip(last);
        if waiting.before.is_none() {
            line.head_arrival_ns = head_arrival_ns.unwrap_or(0);
            self.rank_anew(types, kind);
        }
    }

    /// Ranks a type again, after its estimate or its first waiter has changed.
    pub(super) fn rank_anew(&mut self, types: &Types, kind: usize) {
        let Some(line) = self.lines.get_mut(kind) else {
            return;
        };
        let entry = types.get(kind);
        let ranked = line.ends.map(|(head, _)| Ranked {
            head,
            arrival: match self.order {
                Order::Boost => boosted(line.head_arrival_ns, entry.boost_ns as f64),
                // The sequence keeps the order of two arrivals at the same time.
                _ => head.sequence,
            },
            rank_ns: entry.rank_ns(),
            is_to_be_tried: entry.is_to_be_tried(),
        });
        if ranked == line.ranked {
            return;
        }
        if let Some(job) = line.place.take() {
            self.types.remove(job);
        }
        let last = std::mem::replace(&mut line.ranked, ranked);
        let head_of = |ranked: Option<Ranked>| ranked.map(|ranked| ranked.head);
        change(&mut self.heads, head_of(last), head_of(ranked), kind);
        let tried = |ranked: Option<Ranked>| ranked.filter(|is| is.is_to_be_tried);
        let (last, now) = (head_of(tried(last)), head_of(tried(ranked)));
        change(&mut self.newcomers, last, now, kind);
        let Some(ranked) = ranked else {
            return;
        };
        let spec = JobSpec {
            arrival_ns: ranked.arrival,
            work: ranked.rank_ns,
            ..JobSpec::default()
        };
        // There is room for every type.
        let Ok(job) = self.types.submit(spec) else {
            return;
        };
        line.place = Some(job);
        if self.kinds.len() <= job.index() {
            self.kinds.resize(job.index() + 1, 0);
        }
        self.kinds[job.index()] = kind;
    }

    /// The expected service of all that wait, in nanoseconds.
    pub(super) fn work_ns(&self, types: &Types) -> u64 {
        let kinds = self.types.jobs().map(|(job, _)| self.kinds[job.index()]);
        let works = kinds.map(|kind| {
            let waiting = self.lines[kind].waiting;
            types.service_ns(kind).saturating_mul(waiting)
        });
        works.fold(0, u64::saturating_add)
    }

    /// The expected service of all waiters that go before a new request of a type, in nanoseconds.
    /// Deadlines are ignored.
    pub(super) fn ahead_ns(&self, types: &Types, order: Order, kind: usize) -> u64 {
        let own_ns = types.get(kind).rank_ns();
        self.types
            .jobs()
            .map(|(job, _)| self.kinds[job.index()])
            .filter(|&other| {
                matches!(order, Order::Fifo | Order::Boost) || types.get(other).rank_ns() <= own_ns
            })
            .map(|other| {
                let waiting = self.lines[other].waiting;
                types.service_ns(other).saturating_mul(waiting)
            })
            .fold(0, u64::saturating_add)
    }
}

/// Replaces a type's first waiter in a list. `None`: it has none there.
fn change(
    list: &mut Sorted<(RequestId, usize)>,
    last: Option<RequestId>,
    now: Option<RequestId>,
    kind: usize,
) {
    match (last, now) {
        (last, now) if last == now => {}
        (Some(last), Some(now)) => list.replace((last, kind), (now, kind)),
        (Some(last), None) => list.remove((last, kind)),
        (None, Some(now)) => list.insert((now, kind)),
        (None, None) => {}
    }
}

/// Makes two waiters of a type neighbours; `None` is the end of the list.
fn link(requests: &mut Requests, front: Option<RequestId>, back: Option<RequestId>) {
    if let Some(waiting) = front.and_then(|id| requests.waiting_mut(id)) {
        waiting.after = back;
    }
    if let Some(waiting) = back.and_then(|id| requests.waiting_mut(id)) {
        waiting.before = front;
    }
}
