//! Debts: a client whose request used more than its estimate pays for it afterwards.
//!
//! A unit of work is admitted by its type's estimate. If the client makes it a long transaction, it still
//! keeps its permit, because it may hold locks, and an admitted unit is never queued again. So the client pays
//! afterwards. A unit that used more than [`GRACE`] times its estimate leaves a debt. One that used less than
//! its estimate repays some, or leaves a credit of up to [`CREDIT`] times its estimate:
//!
//! ```text
//! used  = service in nanoseconds without its pauses and its longest statement
//! debt += used - 2 * estimate
//! debt -= estimate - service            (not below -16 * estimate)
//! ```
//!
//! The longest statement is excused ([`Admission::excuse`]). It may have waited for a lock that another
//! client held, and the type's estimate learns how long one statement takes. So only many statements leave a
//! debt. A pool's session that met a lock leaves none.
//!
//! A debt is also repaid over time, at the rate of a fair share. That is the service of a client that always
//! has work:
//!
//! ```text
//! share' = active / (active + waiting), at least 1/16        (1 while none waits)
//! ```
//!
//! A request of a client in debt does not wait in its type's list. Its rank is the remaining debt plus its own
//! estimate. It goes when the rank is below the estimate of the next queued request, or when no other request
//! of its tenant is queued. Under FIFO only the latter applies. Once the debt is repaid, it waits like any
//! other request.
//!
//! So a client whose units use `k` estimates gets at most `k / (k - 2)` times the work of the others, and
//! never more than three times, whatever the type of its units. This holds while all others always wait, and
//! its fair share is not below 1/16 of a place. An honest client whose service times vary owes nothing in the
//! long run, because most of its units save more than the few long ones cost. The credit is for these: a
//! pool's session does not choose its requests. Without credit and excuse, short requests behind an unlucky
//! long one took two to nine times as long in the tests' model. A debt holds no request back for longer than
//! [`super::AdmissionConfig::debt_wait_ns_max`], and at most an hour of it is remembered.
//!
//! The rate of repayment does not depend on the tenant. A request is held back only behind others of its own
//! tenant, so debts decide nothing between tenants ([`super::tenants`]).
//!
//! A debt outlives its client. The next client of the same account (the same database user) takes it over, so
//! a new connection gains nothing. No paper describes this. It is the virtual time of fair queueing (Demers,
//! Keshav and Shenker 1989), only for what exceeds estimates.

use std::collections::{BTreeSet, HashMap};

use slab::Slab;

use super::aging::Expected;
use super::config::Order;
use super::requests::{ClientId, RequestId, Stage};
use super::{Admission, aging::Moment};
use crate::estimate::SERVICE_NS_MAX;

/// A unit that uses up to this many times its estimate leaves no debt.
const GRACE: u64 = 2;

/// The most credit, as a multiple of the estimate of the unit that leaves it.
const CREDIT: u64 = 16;

/// The least fair share is one over this of a place.
const SHARE_PARTS: usize = 16;

/// The most accounts remembered without a client. Beyond that, accounts without debt are forgotten, then the
/// one with the least debt.
const ACCOUNTS_MAX: usize = 1000;

#[derive(Debug)]
struct Client {
    sequence: u64,
    account: u64,
    balance: Balance,
}

/// A client's debt or credit.
#[derive(Clone, Copy, Debug, Default)]
struct Balance {
    /// When the debt is repaid, in time of the fair share.
    due_ns: u64,
    credit_ns: u64,
}

/// The service of a unit, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    pub(super) service_ns: u64,
    /// The part of the service that leaves no debt.
    pub(super) excused_ns: u64,
    pub(super) expected_ns: u64,
}

/// All debts, and the requests that wait for one to be repaid.
#[derive(Debug, Default)]
pub(super) struct Debts {
    /// The service so far of a client that always had work: the time of the fair share.
    share_ns: u64,
    clients: Slab<Client>,
    sequence_next: u64,
    /// The balances of clients that have left, by account.
    left: HashMap<u64, Balance>,
    /// The requests held back, by the time at which their client's debt is repaid.
    held: BTreeSet<(u64, RequestId)>,
    /// The same requests by arrival.
    by_arrival: BTreeSet<RequestId>,
}

impl Debts {
    /// For `span_ns`, `active` requests were served and `waiting` waited.
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
        // Debts add up. Credit does not, or many clients could save for one.
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

    /// A client's debt now, in nanoseconds.
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

    /// A held request whose client's debt is repaid, or else the oldest one if `is_late`.
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

    /// Adds to the debt. Credit pays first. At most an hour of debt counts.
    fn lend(&mut self, more_ns: u64, share_ns: u64) {
        let saved_ns = self.credit_ns.min(more_ns);
        self.credit_ns -= saved_ns;
        let owed_ns = self.owed_ns(share_ns).saturating_add(more_ns - saved_ns);
        self.due_ns = share_ns.saturating_add(owed_ns.min(SERVICE_NS_MAX));
    }

    /// Repays `ns` of the debt. The rest becomes credit, up to `credit_ns_max`.
    fn save(&mut self, ns: u64, credit_ns_max: u64, share_ns: u64) {
        let paid_ns = self.owed_ns(share_ns).min(ns);
        self.due_ns -= paid_ns;
        let credit_ns = self.credit_ns.saturating_add(ns - paid_ns);
        self.credit_ns = self.credit_ns.max(credit_ns.min(credit_ns_max));
    }
}

impl Admission {
    /// Sets how much service of a running request leaves no debt, in nanoseconds. The driver sets it to the
    /// longest statement before the request ends.
    pub fn excuse(&mut self, id: RequestId, excused_ns: u64) {
        if let Some(running) = self.requests.running_mut(id) {
            running.excused_ns = excused_ns;
        }
    }

    /// Adds a client. Its requests arrive by [`Self::arrive_as`]. It takes over the debt that earlier clients
    /// of its account left.
    pub fn enter(&mut self, account: u64) -> ClientId {
        self.debts.enter(account)
    }

    /// Removes a client.
    pub fn leave(&mut self, client: ClientId) {
        self.debts.leave(client);
    }

    /// Holds an arriving request back if its client is in debt. Returns whether it does.
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

    /// Removes a request from those held back. Returns false if it is not among them.
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

    /// Queues the held requests whose clients' debts are repaid, or that were held back for too long.
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

    /// The next request of a tenant: the first of its queue, unless a held request ranks before it.
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
