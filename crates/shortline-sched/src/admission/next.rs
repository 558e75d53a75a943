//! The next request of a tenant, and why it is next: by the policy, because it has waited longest, or because
//! its type is new.

use super::requests::{Next, Running, Turn};
use super::{Admission, RequestId};

/// A request that has waited longest counts as at most one over this of the capacity, so that others run
/// beside it.
const OLDEST_PART: u64 = 2;
/// The same limit for a trial.
const TRIAL_PART: u64 = 4;

impl Admission {
    /// The next of a tenant's queued requests.
    pub(super) fn next_of(&mut self, tenant: usize) -> Option<Next> {
        let first = self.first(tenant, self.moment())?;
        let of_tenant = self.tenants.get(tenant);
        let oldest = of_tenant.queue.oldest();
        let due = oldest.filter(|&(id, kind)| {
            self.order.has_oldest_share() && id != first && self.is_due(tenant, kind)
        });
        let newcomer = of_tenant.queue.newcomer();
        let trial = newcomer.filter(|&(id, _)| {
            self.order.tries_newcomers() && id != first && of_tenant.newcomers.may_try()
        });
        let (id, turn) = match (due, trial) {
            (Some((id, _)), _) => (id, Turn::Oldest),
            (None, Some((id, _))) => (id, Turn::Newcomer),
            (None, None) => (first, Turn::Policy),
        };
        let kind = self.requests.get(id)?.kind;
        self.refresh(kind);
        let estimate_ns = self.types.load_ns(kind);
        let capacity_ns = self.control.limit_ns().unwrap_or(u64::MAX);
        let most_ns = match turn {
            Turn::Policy => u64::MAX,
            Turn::Oldest => capacity_ns / OLDEST_PART,
            Turn::Newcomer => self.types.mean_load_ns().min(capacity_ns / TRIAL_PART),
        };
        Some(Next {
            id,
            kind,
            turn,
            estimate_ns,
            load_ns: self.control.adds_ns(estimate_ns).min(most_ns.max(1)),
            is_unqueued: false,
        })
    }

    /// The same for a request that skips the queue.
    pub(super) fn next_unqueued(&mut self, id: RequestId) -> Option<Next> {
        let kind = self.requests.get(id)?.kind;
        self.refresh(kind);
        let estimate_ns = self.types.load_ns(kind);
        Some(Next {
            id,
            kind,
            turn: Turn::Policy,
            estimate_ns,
            load_ns: self.control.adds_ns(estimate_ns),
            is_unqueued: true,
        })
    }

    /// Whether a request may start now. One that goes out of order needs only some free capacity. To wait
    /// until it fits would empty the backend.
    pub(super) fn may_start(&self, next: Next) -> bool {
        next.is_unqueued
            || self.fits(match next.turn {
                Turn::Policy => next.load_ns,
                Turn::Oldest | Turn::Newcomer => 1,
            })
    }

    /// Updates a tenant's accounts for requests that go out of order, when a request starts. The request has
    /// left the queue.
    pub(super) fn account_start(&mut self, tenant: usize, next: Next, was_oldest: bool) {
        let tenant = self.tenants.get_mut(tenant);
        if tenant.queue.len() == 0 {
            tenant.oldest.clear();
            tenant.newcomers.forgive();
        }
        match next.turn {
            Turn::Oldest => tenant.oldest.spend(next.estimate_ns),
            Turn::Policy | Turn::Newcomer if was_oldest => {}
            Turn::Policy | Turn::Newcomer => tenant.oldest.earn(next.estimate_ns),
        }
        match next.turn {
            Turn::Newcomer => tenant.newcomers.start(next.estimate_ns),
            Turn::Policy | Turn::Oldest => tenant.newcomers.repay(next.estimate_ns),
        }
    }

    /// Updates a tenant's accounts for requests that go out of order, when a request ends after `service_ns`.
    pub(super) fn account_end(&mut self, tenant: usize, running: &Running, service_ns: u64) {
        let taken_ns = (service_ns as f64 / self.types.slowdown()) as u64;
        let estimate_ns = running.estimate_ns;
        let tenant = self.tenants.get_mut(tenant);
        match running.turn {
            Turn::Policy => {}
            Turn::Oldest => tenant.oldest.spend(taken_ns.saturating_sub(estimate_ns)),
            Turn::Newcomer => tenant.newcomers.end(estimate_ns, taken_ns),
        }
    }

    /// Whether a tenant's credit covers its oldest waiter, which is of the type `kind`.
    pub(super) fn is_due(&self, tenant: usize, kind: usize) -> bool {
        let load_ns = self.types.load_ns(kind);
        let oldest = &self.tenants.get(tenant).oldest;
        oldest.covers(load_ns, self.control.limit_ns())
    }
}
