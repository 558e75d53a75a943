//! The bounded table of tenants, and their order.

use std::collections::HashMap;

use super::super::arrival::Refusal;
use super::super::charge::Charge;
use super::super::config::AdmissionConfig;
use super::super::queue::Queue;
use super::super::requests::Next;
use super::super::sorted::Sorted;
use super::super::types::{Types, beginning};
use super::TenantLimits;
use super::tenant::{Beginning, Tenant, TenantView};

/// The name of the first tenant, which has all requests without another.
pub const DEFAULT_TENANT: &str = "default";

/// The most tenants in the table, beside the first one and those named in the configuration.
const UNNAMED_MAX: usize = 1000;

/// A tenant unused for this long is forgotten when a new one comes, in nanoseconds.
const FORGOTTEN_AFTER_NS: u64 = 600_000_000_000;

/// Names a tenant in the table. The id of a forgotten tenant names the first one, so look up the tenant by
/// name for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TenantId {
    index: u32,
    /// Distinguishes the tenant from others that had its place.
    generation: u32,
}

impl Default for TenantId {
    /// The first one.
    fn default() -> Self {
        Self {
            index: 0,
            generation: 0,
        }
    }
}

/// All tenants, and those that wait in order.
#[derive(Debug)]
pub(in crate::admission) struct Tenants {
    all: Vec<Tenant>,
    by_name: HashMap<String, usize>,
    beginning: Beginning,
    /// The limits of tenants that the configuration does not name.
    others: TenantLimits,
    /// The tenants with waiting requests, by tag.
    waiting_by_tag: Sorted<(u128, usize)>,
    waiting: usize,
    virtual_time: u128,
    level_max: u128,
}

impl Tenants {
    pub(in crate::admission) fn new(config: &AdmissionConfig) -> Self {
        let beginning = Beginning::of(config);
        Self {
            all: vec![Tenant::new(DEFAULT_TENANT, beginning)],
            by_name: HashMap::from([(DEFAULT_TENANT.to_owned(), 0)]),
            beginning,
            others: TenantLimits::default(),
            waiting_by_tag: Sorted::default(),
            waiting: 0,
            virtual_time: 0,
            level_max: 0,
        }
    }

    /// Gives tenants, none of which has a queued request, queues of another order.
    pub(in crate::admission) fn order_anew(&mut self, config: &AdmissionConfig) {
        self.beginning = Beginning::of(config);
        for tenant in &mut self.all {
            tenant.begin_anew(self.beginning);
        }
    }

    pub(super) fn enter(&mut self, name: &str, now_ns: u64) -> TenantId {
        let name = beginning(name);
        let index = match self.by_name.get(name) {
            Some(&index) => index,
            None => self.add(name, now_ns).unwrap_or(0),
        };
        let tenant = &mut self.all[index];
        tenant.used_ns = now_ns;
        TenantId {
            index: index as u32,
            generation: tenant.generation,
        }
    }

    pub(super) fn set_limits<'a>(
        &mut self,
        named: impl IntoIterator<Item = (&'a str, TenantLimits)>,
        others: TenantLimits,
        now_ns: u64,
    ) {
        self.others = others;
        for index in 0..self.all.len() {
            self.set_limits_of(index, others, false);
        }
        for (name, limits) in named {
            let name = beginning(name);
            let known = self.by_name.get(name).copied();
            let index = known.unwrap_or_else(|| self.push(name, now_ns));
            self.set_limits_of(index, limits, true);
        }
    }

    fn set_limits_of(&mut self, index: usize, limits: TenantLimits, is_named: bool) {
        self.change(index, |tenant| {
            tenant.limits = limits;
            tenant.is_named = is_named;
        });
    }

    /// Whether there is more than one tenant.
    pub(in crate::admission) fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// The place of a tenant, or that of the first one if it was forgotten.
    pub(in crate::admission) fn index(&self, tenant: TenantId) -> usize {
        let index = tenant.index as usize;
        let known = self.all.get(index);
        match known {
            Some(known) if known.generation == tenant.generation => index,
            _ => 0,
        }
    }

    pub(in crate::admission) fn get(&self, index: usize) -> &Tenant {
        &self.all[index]
    }

    pub(in crate::admission) fn get_mut(&mut self, index: usize) -> &mut Tenant {
        &mut self.all[index]
    }

    pub(super) fn connect(&mut self, index: usize, now_ns: u64) -> Result<(), Refusal> {
        let tenant = &mut self.all[index];
        tenant.used_ns = now_ns;
        if let Some(limit) = tenant.limits.connections_max
            && tenant.connections >= limit.get()
        {
            tenant.connections_refused += 1;
            let limit = limit.get();
            return Err(Refusal::TenantConnections { limit });
        }
        tenant.connections += 1;
        Ok(())
    }

    pub(super) fn disconnect(&mut self, index: usize, now_ns: u64) {
        let tenant = &mut self.all[index];
        tenant.used_ns = now_ns;
        tenant.connections = tenant.connections.saturating_sub(1);
    }

    /// The reason why no further request of a tenant may wait; `None` if it may.
    pub(in crate::admission) fn refusal(&self, index: usize, queue_max: usize) -> Option<Refusal> {
        let tenant = &self.all[index];
        if let Some(limit) = tenant.limits.waiting_max
            && tenant.waiting >= limit
        {
            return Some(Refusal::TenantWaiting { limit });
        }
        let free = queue_max.saturating_sub(self.waiting);
        if self.are_several() && tenant.waiting >= free {
            let waiting = tenant.waiting;
            return Some(Refusal::TenantShare { waiting, free });
        }
        None
    }

    /// The part of the work that a tenant gets if all waiting tenants go on waiting.
    pub(in crate::admission) fn part(&self, index: usize) -> f64 {
        let weight = |index: usize| f64::from(self.all[index].limits.weight.get());
        let others = self.waiting_by_tag.iter().filter(|entry| entry.1 != index);
        let sum: f64 = others.map(|&(_, other)| weight(other)).sum();
        weight(index) / (weight(index) + sum)
    }

    /// The number of waiting requests.
    pub(in crate::admission) fn waiting(&self) -> usize {
        self.waiting
    }

    /// A request of a tenant begins to wait.
    pub(in crate::admission) fn wait(&mut self, index: usize) {
        if self.waiting == 0 {
            self.virtual_time = self.virtual_time.max(self.level_max);
        }
        self.waiting += 1;
        self.all[index].waiting += 1;
        if self.all[index].waiting == 1 {
            let joins_at = self.joins_at();
            let tenant = &mut self.all[index];
            tenant.raise(joins_at);
            self.waiting_by_tag.insert((tenant.tag(), index));
        }
    }

    /// A request of a tenant no longer waits.
    pub(in crate::admission) fn stop_waiting(&mut self, index: usize) {
        self.waiting -= 1;
        let tenant = &mut self.all[index];
        tenant.waiting -= 1;
        if tenant.waiting == 0 {
            tenant.is_passed_over = false;
            self.waiting_by_tag.remove((tenant.tag(), index));
        }
    }

    /// Whether a tenant would be next if a request of it began to wait now.
    pub(in crate::admission) fn would_be_next(&self, index: usize) -> bool {
        let tenant = &self.all[index];
        let tag = if tenant.waiting > 0 {
            tenant.tag()
        } else {
            tenant.tag().max(self.joins_at())
        };
        let first = self.waiting_by_tag.first();
        first.is_none_or(|first| (tag, index) <= first)
    }

    /// The least served waiting tenant, with its tag, of those behind `after`.
    pub(super) fn least_served(&self, after: Option<(u128, usize)>) -> Option<(u128, usize)> {
        match after {
            Some(after) => self.waiting_by_tag.after(after),
            None => self.waiting_by_tag.first(),
        }
    }

    /// Whether one more request may run of any of the waiting tenants.
    pub(in crate::admission) fn any_waiting_has_place(&self) -> bool {
        let mut next = self.least_served(None);
        while let Some((tag, tenant)) = next {
            if self.all[tenant].has_place() {
                return true;
            }
            next = self.least_served(Some((tag, tenant)));
        }
        false
    }

    /// A tenant is at a limit of its own.
    pub(super) fn pass_over(&mut self, index: usize) {
        self.all[index].is_passed_over = true;
    }

    /// A tenant is within its limits. Returns whether it had been passed over. Then it joins again, possibly
    /// behind others.
    pub(super) fn readmit(&mut self, index: usize) -> bool {
        let joins_at = self.joins_at();
        if !std::mem::take(&mut self.all[index].is_passed_over) {
            return false;
        }
        self.change(index, |tenant| tenant.raise(joins_at));
        true
    }

    /// A request of a tenant starts. Charges the advance.
    pub(in crate::admission) fn start(
        &mut self,
        index: usize,
        next: Next,
        waited_ns: u64,
    ) -> Charge {
        let Next {
            estimate_ns: advance_ns,
            is_unqueued,
            ..
        } = next;
        // A request that skips the queue does not advance the virtual time.
        if !is_unqueued {
            self.virtual_time = self.virtual_time.max(self.all[index].tag());
        }
        self.change(index, |tenant| {
            tenant.advances_ns = tenant.advances_ns.saturating_add(advance_ns);
        });
        let tenant = &mut self.all[index];
        tenant.running += 1;
        tenant.admitted += 1;
        tenant.unqueued += u64::from(is_unqueued);
        tenant.waited_ns_sum = tenant.waited_ns_sum.saturating_add(waited_ns);
        Charge {
            tenant: index,
            advance_ns,
            used_ns: 0,
            charged_ns: 0,
            raises: tenant.raises,
        }
    }

    /// Replaces the advance of a request by the work it has used so far.
    pub(super) fn settle(&mut self, charge: &mut Charge, used_ns: u64) {
        let index = charge.tenant;
        let advance_ns = std::mem::take(&mut charge.advance_ns);
        let owed_ns = if charge.raises == self.all[index].raises {
            used_ns
        } else {
            used_ns.max(advance_ns)
        };
        let more_ns = owed_ns.saturating_sub(charge.charged_ns);
        let served_ns = used_ns.saturating_sub(charge.used_ns);
        charge.charged_ns += more_ns;
        charge.used_ns += served_ns;
        self.change(index, |tenant| {
            tenant.advances_ns -= advance_ns;
            tenant.level += tenant.part_of_tag(more_ns);
            tenant.served_ns = tenant.served_ns.saturating_add(served_ns);
        });
        self.level_max = self.level_max.max(self.all[index].level);
    }

    /// A request of a tenant has ended, and its charge is settled.
    pub(in crate::admission) fn end(&mut self, index: usize, now_ns: u64) {
        let tenant = &mut self.all[index];
        tenant.running -= 1;
        tenant.used_ns = now_ns;
    }

    /// Adds to a tenant's active requests and load.
    pub(in crate::admission) fn put_on(&mut self, index: usize, active: usize, load_ns: u64) {
        self.all[index].active += active;
        self.all[index].load_ns += load_ns;
    }

    pub(in crate::admission) fn take_off(&mut self, index: usize, load_ns: u64) {
        self.all[index].active -= 1;
        self.all[index].load_ns -= load_ns;
    }

    /// Ranks a type again in the queue of each waiting tenant.
    pub(in crate::admission) fn rank_anew(&mut self, types: &Types, kind: usize) {
        for &(_, index) in self.waiting_by_tag.iter() {
            self.all[index].queue.rank_anew(types, kind);
        }
    }

    pub(in crate::admission) fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.all.iter().map(|tenant| &tenant.queue)
    }

    pub(in crate::admission) fn views(&self) -> impl Iterator<Item = TenantView> {
        self.all.iter().map(Tenant::view)
    }

    /// The least tag of a tenant that begins to wait. It is not behind the waiting tenants, whose tags may have
    /// fallen below the virtual time.
    fn joins_at(&self) -> u128 {
        let mut competing = self.waiting_by_tag.iter();
        let first = competing.find(|entry| !self.all[entry.1].is_passed_over);
        first.map_or(self.virtual_time, |&(tag, _)| tag.min(self.virtual_time))
    }

    /// Applies a change to a tenant that may change its tag, and updates its place among the waiting ones.
    fn change(&mut self, index: usize, change: impl FnOnce(&mut Tenant)) {
        let tenant = &mut self.all[index];
        let before = tenant.tag();
        change(tenant);
        if tenant.waiting > 0 && tenant.tag() != before {
            let after = tenant.tag();
            self.waiting_by_tag.replace((before, index), (after, index));
        }
    }

    /// Finds a place for a new name.
    fn add(&mut self, name: &str, now_ns: u64) -> Option<usize> {
        let unnamed = self.all.iter().filter(|tenant| !tenant.is_named).count();
        // Whoever is not behind this tag would join there, too, and owes nothing.
        let joins_at = match self.waiting {
            0 => self.virtual_time.max(self.level_max),
            _ => self.joins_at(),
        };
        let is_old = |tenant: &Tenant| now_ns - tenant.used_ns.min(now_ns) >= FORGOTTEN_AFTER_NS;
        let idle = (1..self.all.len()).filter(|&index| {
            let tenant = &self.all[index];
            tenant.is_idle() && (is_old(tenant) || tenant.tag() <= joins_at)
        });
        let oldest = idle.min_by_key(|&index| self.all[index].used_ns);
        match oldest {
            Some(index) if unnamed > UNNAMED_MAX || is_old(&self.all[index]) => {
                Some(self.replace(index, name, now_ns))
            }
            _ if unnamed > UNNAMED_MAX => None,
            _ => Some(self.push(name, now_ns)),
        }
    }

    fn push(&mut self, name: &str, now_ns: u64) -> usize {
        let index = self.all.len();
        self.by_name.insert(name.to_owned(), index);
        self.all.push(Tenant {
            limits: self.others,
            used_ns: now_ns,
            ..Tenant::new(name, self.beginning)
        });
        index
    }

    fn replace(&mut self, index: usize, name: &str, now_ns: u64) -> usize {
        let generation = self.all[index].generation.wrapping_add(1);
        let new = Tenant {
            generation,
            limits: self.others,
            used_ns: now_ns,
            ..Tenant::new(name, self.beginning)
        };
        let forgotten = std::mem::replace(&mut self.all[index], new);
        self.by_name.remove(&forgotten.name);
        self.by_name.insert(name.to_owned(), index);
        index
    }
}
