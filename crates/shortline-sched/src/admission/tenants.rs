//! Tenants: parties that share the backend. Each gets its part of it, however much the others ask for.
//!
//! The tenant that is least served for its weight goes first. Which of its requests goes is decided as if it
//! were alone (rank, the oldest's share, trials, debts). With one tenant, the default, this module decides
//! nothing.
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
//! The smallest tag goes first. The virtual time is the largest tag that was admitted, so a tenant that asked
//! for nothing has no credit. While none waits, the virtual time is also at least the largest level. Nothing
//! was refused then, so no tenant owes for what it took. (In the paper the virtual time becomes the largest
//! finish tag when a busy period ends. Here the work that still runs is left out, because it is served while
//! others wait.) Work is counted as in the load: service over the slowdown, without pauses and waits for
//! locks. So a transaction that a client only keeps open costs its tenant nothing.
//!
//! Departures from the paper: costs are not known at admission. The estimate is an advance, later replaced by
//! what was spent. So a tag falls below the virtual time if estimates were too long. A tenant that begins to
//! wait therefore joins the least served of those that wait, not behind them. An advance is not given back if
//! the tenant's tag was raised after it was paid, because the tag would then be below the value at which
//! others joined. Several requests are served at once, as in SFQ(D) (Jin, Chase and Kaur, SIGMETRICS 2004,
//! 3.2).
//!
//! **Theorem.** Let two tenants `f` and `g` wait all the time from `t1` to `t2`, and not for limits of their
//! own. Let `c` be the most that one request of a tenant is charged (its estimate, or what it takes), `w` the
//! weight, and `D` the most of its requests that run at once. Let `B = D_f c_f / w_f + D_g c_g / w_g`, and let
//! `M` be the largest `D c / w` of all tenants. Then what they are served in that time differs by
//!
//! ```text
//! | W_f / w_f - W_g / w_g |  <=  3 B + M
//! ```
//!
//! *Proof.* When `f` is admitted, its tag is at most that of `g`. Until `f` is admitted again, its tag rises
//! by at most the charges of its `D_f` running requests, `c_f / w_f` each. That of `g` falls by at most `D_g`
//! advances given back. So `f` is never ahead by more than `B` after it was admitted. At `t1` neither is ahead
//! of the virtual time by more than its running requests are charged. Neither is behind it by more than its
//! advances given back, or those of the tenant that it joined: `B + M` between them. So the difference of the
//! tags changes by at most `2 B + M`. What was served differs from the change of a tag times `w` by the
//! advances and charges of the requests that run at `t1` or at `t2`: by `B` for both tenants. With exact
//! estimates and one request at a time, the bound is the paper's `c_f / w_f + c_g / w_g` (Theorem 1).
//! `tests/tenants.rs` checks both.
//!
//! So a waiting tenant does not starve: between two of its turns every other tenant is served a bounded amount.
//!
//! **Limits.** A tenant at a limit of its own is passed over. Once it is below the limit, it joins as if it
//! began to wait. A tenant may have as many places in the queue as are still free (dynamic thresholds:
//! Choudhury and Hahne, ToN 1998). So a tenant that floods the queue leaves half of it to others.
//!
//! The table is bounded. A tenant without connections and requests is forgotten ten minutes after its last
//! use. It is forgotten sooner if there is no room for a new one, and it owes nothing: its tag is not above that at
//! which a new tenant would join now. Names for which there is no room share the first tenant.

mod limits;
mod table;
mod tenant;

use super::Admission;
use super::requests::{Next, RequestId};

pub use limits::{CapacityPart, CapacityPartError, TenantLimits, Weight, WeightError};
pub(super) use table::Tenants;
pub use table::{DEFAULT_TENANT, TenantId};
pub use tenant::TenantView;

impl Admission {
    /// The tenant of this name, entered into the table if it is new. A full table forgets an unused tenant. If
    /// there is none, new names share the first tenant.
    pub fn tenant_of(&mut self, name: &str) -> TenantId {
        self.tenants.enter(name, self.now_ns)
    }

    /// The name of a tenant.
    pub fn tenant_name(&self, tenant: TenantId) -> &str {
        &self.tenants.get(self.tenants.index(tenant)).name
    }

    /// Sets the limits of tenants, by name. All other tenants get the limits `others`.
    pub fn set_tenants<'a>(
        &mut self,
        named: impl IntoIterator<Item = (&'a str, TenantLimits)>,
        others: TenantLimits,
    ) {
        self.tenants.set_limits(named, others, self.now_ns);
    }

    /// Counts a connection of a tenant's client.
    ///
    /// # Errors
    /// [`Refusal`](super::Refusal) if the tenant has as many connections as it may have.
    pub fn connect(&mut self, tenant: TenantId) -> Result<(), super::Refusal> {
        let index = self.tenants.index(tenant);
        self.tenants.connect(index, self.now_ns)
    }

    /// Ends a connection of a tenant's client.
    pub fn disconnect(&mut self, tenant: TenantId) {
        let index = self.tenants.index(tenant);
        self.tenants.disconnect(index, self.now_ns);
    }

    /// The next waiting request. It is one that skips the queue, or belongs to the least served tenant within
    /// its own limits.
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

    /// Whether a request that adds `load_ns` keeps the limits of its tenant.
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

    /// Charges tenants for running requests that have used more than their advances.
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

    /// Replaces the advance of a running request by the work it has used.
    pub(super) fn settle(&mut self, id: RequestId) {
        let (now_ns, slowdown) = (self.now_ns, self.types.slowdown());
        if let Some(running) = self.requests.running_mut(id) {
            let used_ns = (running.service_ns(now_ns) as f64 / slowdown) as u64;
            self.tenants.settle(&mut running.charge, used_ns);
        }
    }
}
