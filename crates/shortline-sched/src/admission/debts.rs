//! What a client owes that used more than it was admitted for, and how it pays.
//!
//! A unit of work is admitted for what its type takes. A client that makes a long transaction of it
//! keeps its permit nevertheless: what was admitted may hold locks and is never queued again. So the
//! client pays afterwards. A unit that used more than [`GRACE`] times its estimate leaves a debt,
//! and one that used less than its estimate pays some back, or leaves a credit for later, of up to [`CREDIT`] times its estimate:
//!
//! ```text
//! used  = service in nanoseconds without its pauses and its longest statement
//! debt += used - 2 * estimate
//! debt -= estimate - service            (not below -16 * estimate)
//! ```
//!
//! The longest statement is excused ([`Admission::excuse`]), for it may have waited for a lock that
//! somebody else held, and how long one statement takes is for its type to learn. So only what goes on
//! and on leaves a debt, and the session of a pool that met a lock does not.
//!
//! A debt is repaid, too, at the rate of a fair share: what a client gets that has always something
//! to do,
//!
//! ```text
//! share' = active / (active + waiting), at least 1/16        (1 while nobody waits)
//! ```
//!
//! A request of a client in debt does not wait in its type's list. It goes when its rank, the debt
//! that is left and its own estimate, is below the estimate of whoever would be next, or when nobody
//! else waits; under FIFO, in the latter case only. Once the debt is repaid it waits like any other
//! from then on.
//!
//! So a client whose units use `k` estimates gets, where all others wait all the time, at most
//! `k / (k - 2)` times their work and never more than three times, whatever it calls its units (as
//! long as its fair share is not below 1/16 of a place). An honest one whose service times vary owes
//! nothing in the long run, for most of its units save more than the few long ones cost. This is what
//! credit is for: the session of a pool does not choose what it carries, and without credit and
//! excuse short requests behind an unlucky long one took two to nine times as long in the tests' model.
//! And what anybody owes holds no request back for longer than
//! [`super::AdmissionConfig::debt_wait_ns_max`], nor is more than an hour of it remembered.
//!
//! How fast a debt is repaid does not depend on the tenant, and before whom a request is held back is a
//! matter within its tenant: between tenants debts decide nothing ([`super::tenants`]).
//!
//! What a client owes outlives it: whoever comes next under the same account (the same database user)
//! takes it over, so that nothing is gained by connecting anew. There is no paper behind this; it is
//! the virtual time of fair queueing (Demers, Keshav and Shenker 1989), for what exceeds estimates only.

use std::collections::{BTreeSet, HashMap};

use slab::Slab;

use super::aging::Expected;
use super::config::Order;
use super::requests::{ClientId, RequestId, Stage};
use super::{Admission, aging::Moment};
use crate::estimate::SERVICE_NS_MAX;

/// A unit may use so many times its estimate and leaves no debt.
const GRACE: u64 = 2;

/// Credit is at most so many times the estimate of the unit that leaves it.
const CREDIT: u64 = 16;

/// The least fair share is one of so many parts of a place.
const SHARE_PARTS: usize = 16;

/// Accounts without a client that are remembered at most; of more the least debt is forgotten.
const ACCOUNTS_MAX: usize = 1000;

#[derive(Debug)]
struct Client {
    sequence: u64,
    account: u64,
    balance: Balance,
}

/// What somebody owes, or has saved.
#[derive(Clone, Copy, Debug, Default)]
struct Balance {
    /// When all is repaid, in time of the fair share.
    due_ns: u64,
    credit_ns: u64,
}

/// What a unit has used, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    pub(super) service_ns: u64,
    /// So much of it leaves no debt.
    pub(super) excused_ns: u64,
    pub(super) expected_ns: u64,
}

/// All debts, and the requests that wait for one to be repaid.
#[derive(Debug, Default)]
pub(super) struct Debts {
    /// What a client got so far that had always something to do.
    share_ns: u64,
    clients: Slab<Client>,
    sequence_next: u64,
    /// What clients left behind, by account.
    left: HashMap<u64, Balance>,
    /// The requests of clients in debt: whose debt is repaid first, and by arrival.
    held: BTreeSet<(u64, RequestId)>,
    by_arrival: BTreeSet<RequestId>,
}

impl Debts {
    /// For so long so many were served and so many waited.
    pub(super) fn pass(&mut self, active: usize, waiting: usize, span_ns: u64) {
        let inside = active + waiting;
        let share_ns = if waiting == 0 {
            span_ns
        } else {
            let places = (active * SHARE_PARTS).max(inside);
            (span_ns as f64 * places as f64 / (inside * SHARE_PARTS) as f64) as u64
        };
        self.share_ns = self.share_ns.saturating_add(share_ns);
    }

    fn enter(&mut self, account: u64) -> ClientId {
        let sequence = self.sequence_next;
        self.sequence_next += 1;
        let balance = self.left.remove(&account).unwrap_or_default();
        let slot = self.clients.insert(Client {
            sequence,
            account,
            balance,
        });
        ClientId { slot, sequence }
    }

    fn leave(&mut self, id: ClientId) {
        if self.get_mut(id).is_none() {
            return;
        }
        let Client {
            account, balance, ..
        } = self.clients.remove(id.slot);
        let share_ns = self.share_ns;
        let left = self.left.entry(account).or_default();
        // Debts add up; credit does not, or many could save for one.
        let credit_ns = left.credit_ns.max(balance.credit_ns);
        left.credit_ns = 0;
        left.lend(balance.owed_ns(share_ns), share_ns);
        left.save(credit_ns, credit_ns, share_ns);
        if left.is_even(share_ns) {
            self.left.remove(&account);
        }
        if self.left.len() > ACCOUNTS_MAX {
            self.forget();
        }
    }

    /// Makes room among the accounts without a client.
    fn forget(&mut self) {
        let share_ns = self.share_ns;
        self.left.retain(|_, balance| balance.owed_ns(share_ns) > 0);
        let least = self.left.iter().min_by_key(|(_, balance)| balance.due_ns);
        if let Some((&account, _)) = least
            && self.left.len() > ACCOUNTS_MAX
        {
            self.left.remove(&account);
        }
    }

    /// What a client owes now.
    fn owed_ns(&self, id: ClientId) -> u64 {
        let client = self.clients.get(id.slot);
        client
            .filter(|client| client.sequence == id.sequence)
            .map_or(0, |client| client.balance.owed_ns(self.share_ns))
    }

    /// A unit of a client has ended.
    pub(super) fn charge(&mut self, id: Option<ClientId>, used: Used) {
        let share_ns = self.share_ns;
        let Some(client) = id.and_then(|id| self.get_mut(id)) else {
            return;
        };
        let Used {
            service_ns,
            excused_ns,
            expected_ns,
        } = used;
        let used_ns = service_ns.saturating_sub(excused_ns);
        let over_ns = used_ns.saturating_sub(expected_ns.saturating_mul(GRACE));
        let under_ns = expected_ns.saturating_sub(service_ns);
        client.balance.lend(over_ns, share_ns);
        let credit_ns_max = expected_ns.saturating_mul(CREDIT);
        client.balance.save(under_ns, credit_ns_max, share_ns);
    }

    fn get_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        let client = self.clients.get_mut(id.slot)?;
        (client.sequence == id.sequence).then_some(client)
    }

    /// The first whose client's debt is repaid, or that came before `arrived_before`.
    fn repaid(&self, is_late: impl Fn(RequestId) -> bool) -> Option<RequestId> {
        let first = self
            .held
            .first()
            .filter(|(due_ns, _)| *due_ns <= self.share_ns);
        let oldest = self.by_arrival.first().copied().filter(|&id| is_late(id));
        first.map(|&(_, id)| id).or(oldest)
    }
}

impl Balance {
    fn owed_ns(&self, share_ns: u64) -> u64 {
        self.due_ns.saturating_sub(share_ns)
    }

    fn is_even(&self, share_ns: u64) -> bool {
        self.credit_ns == 0 && self.owed_ns(share_ns) == 0
    }

    /// So much more is owed, which credit pays first; no more than an hour of it counts.
    fn lend(&mut self, more_ns: u64, share_ns: u64) {
        let saved_ns = self.credit_ns.min(more_ns);
        self.credit_ns -= saved_ns;
        let owed_ns = self.owed_ns(share_ns).saturating_add(more_ns - saved_ns);
        self.due_ns = share_ns.saturating_add(owed_ns.min(SERVICE_NS_MAX));
    }

    /// So much is paid back; the rest is credit, as long as that is not more than `credit_ns_max`.
    fn save(&mut self, ns: u64, credit_ns_max: u64, share_ns: u64) {
        let paid_ns = self.owed_ns(share_ns).min(ns);
        self.due_ns -= paid_ns;
        let credit_ns = self.credit_ns.saturating_add(ns - paid_ns);
        self.credit_ns = self.credit_ns.max(credit_ns.min(credit_ns_max));
    }
}

impl Admission {
    /// So much of the service of a request that runs leaves no debt. Told before its end, of its
    /// longest statement.
    pub fn excuse(&mut self, id: RequestId, excused_ns: u64) {
        if let Some(running) = self.requests.running_mut(id) {
            running.excused_ns = excused_ns;
        }
    }

    /// A client comes, whose requests are told by [`Self::arrive_as`]. What clients of the same account
    /// owed who have left is its own from now on.
    pub fn enter(&mut self, account: u64) -> ClientId {
        self.debts.enter(account)
    }

    /// A client has left.
    pub fn leave(&mut self, client: ClientId) {
        self.debts.leave(client);
    }

    /// Puts a request that came aside if its client is in debt; false if it is not.
    pub(super) fn hold(&mut self, id: RequestId) -> bool {
        let Some(request) = self.requests.get_mut(id) else {
            return false;
        };
        let (kind, tenant) = (request.kind, request.tenant);
        let owed_ns = request
            .client
            .map_or(0, |client| self.debts.owed_ns(client));
        let Stage::Waiting(waiting) = &mut request.stage else {
            return false;
        };
        if owed_ns == 0 {
            return false;
        }
        let due_ns = self.debts.share_ns.saturating_add(owed_ns);
        waiting.held_until_ns = Some(due_ns);
        self.debts.held.insert((due_ns, id));
        self.debts.by_arrival.insert(id);
        self.tenants.get_mut(tenant).held.insert((due_ns, id));
        self.types.get_mut(kind).waiting += 1;
        true
    }

    /// Takes a request from those put aside; false if it is not among them.
    pub(super) fn unhold(&mut self, id: RequestId) -> bool {
        let Some(waiting) = self.requests.waiting_mut(id) else {
            return false;
        };
        let Some(due_ns) = waiting.held_until_ns.take() else {
            return false;
        };
        self.debts.held.remove(&(due_ns, id));
        self.debts.by_arrival.remove(&id);
        if let Some(request) = self.requests.get(id) {
            self.types.get_mut(request.kind).waiting -= 1;
            let tenant = self.tenants.get_mut(request.tenant);
            tenant.held.remove(&(due_ns, id));
        }
        true
    }

    /// Lets those wait like any other whose clients' debts are repaid, or that waited for that for
    /// long.
    pub(super) fn release_held(&mut self) {
        loop {
            let late = |id| {
                let request = self.requests.get(id);
                let arrival_ns = request.map_or(0, |request| request.arrival_ns);
                self.now_ns.saturating_sub(arrival_ns) >= self.debt_wait_ns_max
            };
            let Some(id) = self.debts.repaid(late) else {
                return;
            };
            self.unhold(id);
            self.queue_up(id);
        }
    }

    /// Puts a request behind all others of its type.
    pub(super) fn queue_up(&mut self, id: RequestId) {
        let Some(request) = self.requests.get(id) else {
            return;
        };
        let (kind, tenant) = (request.kind, request.tenant);
        let expected = Expected {
            service_ns: self.types.service_ns(kind),
            capacity_ns: self.moment().capacity_ns as u64,
        };
        let queue = &mut self.tenants.get_mut(tenant).queue;
        queue.push(&mut self.requests, &mut self.types, id, expected);
    }

    /// The request of a tenant that is next: the queue's, unless one of a client in debt ranks before it.
    pub(super) fn first(&mut self, tenant: usize, moment: Moment) -> Option<RequestId> {
        let tenant = self.tenants.get_mut(tenant);
        let queued = tenant.queue.first(&self.requests, &self.types, moment);
        let Some(&(due_ns, held)) = tenant.held.first() else {
            return queued;
        };
        let Some(queued) = queued else {
            return Some(held);
        };
        let service_ns = |id| {
            let kind = self.requests.get(id).map_or(0, |request| request.kind);
            self.types.service_ns(kind)
        };
        let rank_ns = due_ns
            .saturating_sub(self.debts.share_ns)
            .saturating_add(service_ns(held));
        let passes = self.order != Order::Fifo && rank_ns < service_ns(queued);
        Some(if passes { held } else { queued })
    }
}
