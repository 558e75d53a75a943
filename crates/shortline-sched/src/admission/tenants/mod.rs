//! Tenants: whoever shares the backend with others and is to get its part of it, however much it asks for.
//!
//! Between tenants the one goes first that is least served for its weight; which of its requests goes is
//! decided as if it were alone (rank, the oldest's share, trials, debts). With one tenant, which is what
//! nobody has asked to change, nothing here decides anything.
//!
//! **Order.** Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996, 2) over the work that the
//! backend really spends. Each tenant has a *tag*, its service so far over its weight:
//!
//! ```text
//! tag = level + advances / weight
//! admitted:   virtual time = max(virtual time, tag),  advances += estimate
//! ended, paused, or used more than its advance:
//!             advances -= estimate,  level += what was spent / weight
//! begins to wait:  tag = max(tag, min(virtual time, least tag of those that wait))
//! ```
//!
//! The smallest tag goes first. The virtual time is the largest tag that was admitted, so that one who asked for
//! nothing has no credit for it. While nobody waits, the virtual time is also as far as the largest
//! level: nothing was refused to anybody, so nobody owes for what it took. (In the paper the virtual
//! time becomes the largest finish tag when a busy period ends; the work that still runs is left out here,
//! for it is served while others wait.) Work is counted as in the load: service over the slowdown, without
//! pauses and waits for locks. So what a client keeps open costs its tenant nothing, whatever it is called
//! and into how many pieces it is cut.
//!
//! It departs from the paper in that costs are not known when a request is admitted. The estimate is an
//! advance: it is replaced by what was spent. So tags fall below the virtual time where estimates were too long,
//! and whoever begins to wait joins the least served of those that wait, not behind them. An advance is not
//! given back if the tenant's tag was raised to the virtual time after it was paid, for the tag would
//! then be below what others joined at. Several requests are served at once, as in SFQ(D) (Jin, Chase and Kaur, SIGMETRICS 2004, 3.2).
//!
//! **Theorem.** Let two tenants `f` and `g` wait, and not for limits of their own, all the time from `t1` to
//! `t2`. Let `c` be the most that one request of a tenant is charged (its estimate, or what it takes), `w`
//! the weight, and `D` the most of its requests that run at once. With `B = D_f c_f / w_f + D_g c_g / w_g`
//! and `M`, the largest `D c / w` of all tenants, what they are served in that time differs by
//!
//! ```text
//! | W_f / w_f - W_g / w_g |  <=  3 B + M
//! ```
//!
//! *Proof.* When `f` is admitted, its tag is at most that of `g`. Until it is admitted again its tag
//! rises by what its `D_f` running requests are charged at most, `c_f / w_f` each, and that of `g` falls by
//! no more than `D_g` advances given back. So `f` is never ahead by more than `B` after it was
//! admitted. At `t1` neither is ahead of the virtual time by more than its running requests are charged. Neither
//! is behind it by more than its advances given back, or by those of the tenant that it joined: `B + M`
//! between them. So the tags' difference changes by `2 B + M` at most. What was served differs from the change
//! of a tag times `w` by the advances and charges of what runs at `t1` or at `t2`: by `B` for both tenants. With
//! exact estimates and one request at a time it is the paper's `c_f / w_f + c_g / w_g` (Theorem 1); `tests/tenants.rs` holds both.
//!
//! So a tenant that waits is served: between two of its turns every other one is served a bounded amount.
//!
//! **Limits.** A tenant at a limit of its own is passed over, and joins again at the virtual time when it is
//! below it. Of the queue a tenant has as many places as are still free (dynamic thresholds: Choudhury and
//! Hahne, ToN 1998), so that one that floods it leaves half of it to others.
//!
//! The table is bounded. A tenant without connections and requests is forgotten ten minutes after it was heard
//! of last, or sooner if there is no room for a new one and it owes nothing, so that nothing is lost. Names for
//! which there is no room share the first tenant.

mod limits;
mod table;
mod tenant;

use super::Admission;
use super::next::Next;
use super::requests::RequestId;

pub use limits::{CapacityPart, CapacityPartError, TenantLimits, Weight, WeightError};
pub(super) use table::Tenants;
pub use table::{DEFAULT_TENANT, TenantId};
pub use tenant::TenantView;

/// What the tenant of a running request has been charged for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge {
    pub(super) tenant: usize,
    /// Paid in advance and not replaced yet, in nanoseconds of load.
    advance_ns: u64,
    /// What it has used of the backend, as far as that was looked at.
    used_ns: u64,
    /// What was charged for that: more, where an advance is not given back.
    charged_ns: u64,
    /// How often the tenant's tag had been raised when the advance was paid.
    raises: u64,
}

impl Admission {
    /// The tenant of that name, entered into the table if it is new. A table that is full forgets one that is
    /// not used and owes nothing; while there is none, new names share the first tenant.
    pub fn tenant_of(&mut self, name: &str) -> TenantId {
        self.tenants.enter(name, self.now_ns)
    }

    /// The name of a tenant.
    pub fn tenant_name(&self, tenant: TenantId) -> &str {
        &self.tenants.get(self.tenants.index(tenant)).name
    }

    /// The limits of tenants from now on, by name, and of those that have no name here.
    pub fn set_tenants<'a>(
        &mut self,
        named: impl IntoIterator<Item = (&'a str, TenantLimits)>,
        others: TenantLimits,
    ) {
        self.tenants.set_limits(named, others, self.now_ns);
    }

    /// A client of a tenant connects.
    ///
    /// # Errors
    /// [`Refusal`](super::Refusal) if the tenant has as many connections as it may.
    pub fn connect(&mut self, tenant: TenantId) -> Result<(), super::Refusal> {
        let index = self.tenants.index(tenant);
        self.tenants.connect(index, self.now_ns)
    }

    /// It has left.
    pub fn disconnect(&mut self, tenant: TenantId) {
        let index = self.tenants.index(tenant);
        self.tenants.disconnect(index, self.now_ns);
    }

    /// Who is next of those that wait: of the tenant that is least served and within its own limits.
    pub(super) fn next(&mut self) -> Option<Next> {
        if let Some(&id) = self.unqueued.front() {
            return self.next_unqueued(id);
        }
        let mut passed = None;
        while let Some((place, tenant)) = self.tenants.least_served(passed) {
            let next = self.next_of(tenant)?;
            if !self.is_within_limits(tenant, next.load_ns) {
                self.tenants.pass_over(tenant);
                passed = Some((place, tenant));
            } else if self.tenants.readmit(tenant) {
                passed = None;
            } else {
                return Some(next);
            }
        }
        None
    }

    /// Whether a request that adds so much keeps the limits of its tenant.
    pub(super) fn is_within_limits(&self, tenant: usize, load_ns: u64) -> bool {
        let tenant = self.tenants.get(tenant);
        if !tenant.has_place() {
            return false;
        }
        let (Some(part), Some(capacity_ns)) = (tenant.limits.capacity_max, self.control.limit_ns())
        else {
            return true;
        };
        tenant.active == 0
            || tenant.load_ns.saturating_add(load_ns) <= part.of_ns(capacity_ns)
            || self.dry_run
            || self.stalled_since(self.now_ns)
    }

    /// Charges tenants for what runs beyond its advance.
    pub(super) fn charge_running(&mut self) {
        if !self.tenants.are_several() {
            return;
        }
        let (now_ns, slowdown) = (self.now_ns, self.types.slowdown());
        for running in self.requests.running_all_mut() {
            let used_ns = (running.service_ns(now_ns) as f64 / slowdown) as u64;
            if used_ns > running.charge.advance_ns.max(running.charge.used_ns) {
                self.tenants.settle(&mut running.charge, used_ns);
            }
        }
    }

    /// Replaces the advance of a running request by what it has used.
    pub(super) fn settle(&mut self, id: RequestId) {
        let (now_ns, slowdown) = (self.now_ns, self.types.slowdown());
        if let Some(running) = self.requests.running_mut(id) {
            let used_ns = (running.service_ns(now_ns) as f64 / slowdown) as u64;
            self.tenants.settle(&mut running.charge, used_ns);
        }
    }
}
