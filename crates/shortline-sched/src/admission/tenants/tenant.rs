//! One tenant: its waiting requests, and the service it has had.

use std::collections::BTreeSet;

use serde::Serialize;

use super::super::config::{AdmissionConfig, Order};
use super::super::newcomers::Newcomers;
use super::super::oldest::{Oldest, OldestShare};
use super::super::queue::Queue;
use super::super::requests::RequestId;
use super::TenantLimits;

/// The parts of a nanosecond in tags, so that the remainder of a division by a weight does not matter.
const TAG_PARTS: u128 = 1 << 16;

/// What can be seen of a tenant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TenantView {
    /// Its name.
    pub name: String,
    /// Its weight: its share of the work while others wait, too.
    pub weight: u16,
    /// Open connections of its clients, as far as the driver counts them.
    pub connections: usize,
    /// Requests of it that wait.
    pub waiting: usize,
    /// Requests of it that were admitted and have not ended.
    pub running: usize,
    /// Running requests that are not paused.
    pub active: usize,
    /// What the active requests add to the load, in nanoseconds.
    pub load_ns: u64,
    /// What the backend has spent on it, in nanoseconds of load.
    pub served_ns: u64,
    /// How many of its requests were admitted.
    pub admitted: u64,
    /// How many of those skipped the queue.
    pub unqueued: u64,
    /// How many of its requests were refused, for its limits or the gate's.
    pub refused: u64,
    /// How many of its connections were refused.
    pub connections_refused: u64,
    /// The sum of the waits of its admitted requests, in nanoseconds.
    pub waited_ns_sum: u64,
}

/// A tenant: its waiting requests, and the service it has had.
#[derive(Debug)]
pub(in crate::admission) struct Tenant {
    pub(in crate::admission) name: String,
    pub(super) generation: u32,
    pub(in crate::admission) limits: TenantLimits,
    /// Whether the configuration names it. Then it is never forgotten.
    pub(super) is_named: bool,
    pub(in crate::admission) queue: Queue,
    /// Its requests held back for their clients' debts, by the time at which the debt is repaid.
    pub(in crate::admission) held: BTreeSet<(u64, RequestId)>,
    pub(in crate::admission) oldest: Oldest,
    pub(in crate::admission) newcomers: Newcomers,
    pub(super) level: u128,
    pub(super) advances_ns: u64,
    pub(super) raises: u64,
    /// Whether it was passed over for a limit of its own.
    pub(super) is_passed_over: bool,
    pub(in crate::admission) waiting: usize,
    pub(super) running: usize,
    pub(super) active: usize,
    pub(super) load_ns: u64,
    pub(super) connections: usize,
    pub(super) served_ns: u64,
    pub(super) admitted: u64,
    pub(super) unqueued: u64,
    pub(in crate::admission) refused: u64,
    pub(super) connections_refused: u64,
    pub(super) waited_ns_sum: u64,
    /// When it was last used.
    pub(super) used_ns: u64,
}

/// The settings of a new tenant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beginning {
    pub(super) order: Order,
    pub(super) types_max: usize,
    pub(super) oldest_share: OldestShare,
}

impl Beginning {
    pub(super) fn of(config: &AdmissionConfig) -> Self {
        Self {
            order: config.order,
            types_max: config.types_max,
            oldest_share: config.oldest_share,
        }
    }
}

impl Tenant {
    /// Another order, while none of its requests is queued.
    pub(super) fn begin_anew(&mut self, beginning: Beginning) {
        self.queue = Queue::new(beginning.order, beginning.types_max);
        self.oldest = Oldest::new(beginning.oldest_share);
    }

    pub(super) fn new(name: &str, beginning: Beginning) -> Self {
        Self {
            name: name.to_owned(),
            generation: 0,
            limits: TenantLimits::default(),
            is_named: false,
            queue: Queue::new(beginning.order, beginning.types_max),
            held: BTreeSet::new(),
            oldest: Oldest::new(beginning.oldest_share),
            newcomers: Newcomers::default(),
            level: 0,
            advances_ns: 0,
            raises: 0,
            is_passed_over: false,
            waiting: 0,
            running: 0,
            active: 0,
            load_ns: 0,
            connections: 0,
            served_ns: 0,
            admitted: 0,
            unqueued: 0,
            refused: 0,
            connections_refused: 0,
            waited_ns_sum: 0,
            used_ns: 0,
        }
    }

    /// Its service so far over its weight, advances included.
    pub(super) fn tag(&self) -> u128 {
        self.level + self.part_of_tag(self.advances_ns)
    }

    pub(super) fn part_of_tag(&self, work_ns: u64) -> u128 {
        let weight = u128::from(self.limits.weight.get());
        u128::from(work_ns) * TAG_PARTS / weight
    }

    /// Raises its tag to at least this.
    pub(super) fn raise(&mut self, least: u128) {
        let missing = least.saturating_sub(self.tag());
        if missing > 0 {
            self.level += missing;
            self.raises += 1;
        }
    }

    /// Whether one more of its requests may run.
    pub(in crate::admission) fn has_place(&self) -> bool {
        let max = self.limits.running_max;
        max.is_none_or(|max| self.running < max.get())
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.is_named && self.waiting == 0 && self.running == 0 && self.connections == 0
    }

    pub(super) fn view(&self) -> TenantView {
        TenantView {
            name: self.name.clone(),
            weight: self.limits.weight.get(),
            connections: self.connections,
            waiting: self.waiting,
            running: self.running,
            active: self.active,
            load_ns: self.load_ns,
            served_ns: self.served_ns,
            admitted: self.admitted,
            unqueued: self.unqueued,
            refused: self.refused,
            connections_refused: self.connections_refused,
            waited_ns_sum: self.waited_ns_sum,
        }
    }
}
