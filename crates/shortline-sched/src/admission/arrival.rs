//! Arrivals: whether a request may start or wait, and where it waits.

use super::{Admission, ClientId, Order, RequestId, Runaway, TenantId, TypeId};

const MS: u64 = 1_000_000;

/// Why a request is not admitted. Its text is sent to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The queue is full.
    #[error("the queue of the gate is full: {limit} requests wait, the most allowed; try later")]
    QueueFull {
        /// The most that may wait.
        limit: usize,
    },
    /// Its expected wait is too long.
    #[error(
        "the gate would admit the request in {} ms only, more than {} ms; try later",
        wait_ns_expected / MS,
        limit_ns / MS
    )]
    Shed {
        /// Its expected wait, in nanoseconds.
        wait_ns_expected: u64,
        /// The longest expected wait allowed, in nanoseconds.
        limit_ns: u64,
    },
    /// Its tenant has as many waiting requests as it may have.
    #[error(
        "{limit} requests of this tenant wait already, the most allowed (waiting-max of the tenant); try later"
    )]
    TenantWaiting {
        /// The most of the tenant that may wait.
        limit: usize,
    },
    /// The places left in the queue are for other tenants.
    #[error(
        "{waiting} requests of this tenant wait already, and the {free} places left in the queue of the gate \
         are for others; try later"
    )]
    TenantShare {
        /// How many of the tenant wait.
        waiting: usize,
        /// The places left in the queue.
        free: usize,
    },
    /// Its tenant has as many connections as it may have.
    #[error(
        "this tenant has {limit} connections, the most allowed (connections-max of the tenant)"
    )]
    TenantConnections {
        /// The most connections of the tenant.
        limit: usize,
    },
    /// It waited as long as it may. The driver decides this.
    #[error("the gate did not admit the request within {} ms; try later", wait_ns / MS)]
    WaitedTooLong {
        /// How long it waited, in nanoseconds.
        wait_ns: u64,
    },
}

/// An arriving request.
#[derive(Clone, Copy, Debug)]
pub struct NewRequest {
    /// Its type.
    pub request_type: TypeId,
    /// Its client, if known. The client may have a debt.
    pub client: Option<ClientId>,
    /// The tenant that is charged for it.
    pub tenant: TenantId,
    /// Whether it skips the queue. At most [`super::AdmissionConfig::unqueued_max`] such requests run at once.
    pub never_waits: bool,
    /// What is done if it runs away. `None`: what [`super::AdmissionConfig::runaway`] says.
    pub runaway: Option<Runaway>,
}

impl NewRequest {
    /// A request of the first tenant without a known client.
    pub fn new(request_type: TypeId) -> Self {
        Self {
            request_type,
            client: None,
            tenant: TenantId::default(),
            never_waits: false,
            runaway: None,
        }
    }
}

impl Admission {
    /// Takes in a request. It waits until [`Self::admit_next`] returns it, which may be at once.
    ///
    /// # Errors
    /// [`Refusal`] if it would have to wait and may not.
    pub fn arrive(&mut self, now_ns: u64, request_type: TypeId) -> Result<RequestId, Refusal> {
        self.arrive_as(now_ns, request_type, None)
    }

    /// The same for a request of a client. The client may have a debt.
    ///
    /// # Errors
    /// [`Refusal`] if it would have to wait and may not.
    pub fn arrive_as(
        &mut self,
        now_ns: u64,
        request_type: TypeId,
        client: Option<ClientId>,
    ) -> Result<RequestId, Refusal> {
        let request = NewRequest {
            client,
            ..NewRequest::new(request_type)
        };
        self.take_in(now_ns, request)
    }

    /// The same for a request with a client, a tenant and a flag.
    ///
    /// # Errors
    /// [`Refusal`] if it would have to wait and may not.
    pub fn take_in(&mut self, now_ns: u64, request: NewRequest) -> Result<RequestId, Refusal> {
        let now_ns = self.tell_time(now_ns);
        let kind = self.types.index(request.request_type);
        let tenant = self.tenants.index(request.tenant);
        self.refresh(kind);
        self.offer(kind);
        let skips_queue = request.never_waits && self.may_skip_queue(tenant);
        if !skips_queue && !self.starts_at_once(kind, tenant) {
            self.may_wait(kind, tenant)?;
        }
        if self.waiting() == 0 {
            self.progress_ns = now_ns;
        }
        let id = self.requests.add(kind, tenant, now_ns, request);
        self.tenants.wait(tenant);
        if skips_queue {
            self.types.get_mut(kind).waiting += 1;
            self.unqueued.push_back(id);
        } else if !self.hold(id) {
            self.queue_up(id);
        }
        Ok(id)
    }

    /// Whether a tenant's request that never waits may skip the queue now.
    fn may_skip_queue(&self, tenant: usize) -> bool {
        let unqueued = self.unqueued.len() + self.unqueued_running;
        unqueued < self.unqueued_max && self.has_place() && self.tenants.get(tenant).has_place()
    }

    /// Whether a new request of a type would start at once, before all waiters.
    fn starts_at_once(&self, kind: usize, tenant: usize) -> bool {
        let first = match self.order {
            Order::Sjf | Order::Gittins => self.is_shorter_than_all(kind, tenant),
            Order::Fifo | Order::SjfAging(_) | Order::Boost => {
                self.tenants.get(tenant).waiting == 0
            }
        };
        let load_ns = self.control.adds_ns(self.types.load_ns(kind));
        self.has_place()
            && self.is_within_limits(tenant, load_ns)
            && (self.dry_run || first && self.tenants.would_be_next(tenant) && self.fits(load_ns))
    }

    /// Whether a new request of a type would be next of its tenant.
    fn is_shorter_than_all(&self, kind: usize, tenant: usize) -> bool {
        let of_tenant = self.tenants.get(tenant);
        let oldest = of_tenant.queue.oldest();
        let is_oldest_due = oldest.is_some_and(|(_, kind)| self.is_due(tenant, kind));
        let is_one_tried = of_tenant.newcomers.may_try() && of_tenant.queue.newcomer().is_some();
        !is_oldest_due && !is_one_tried && of_tenant.queue.is_shorter(&self.types, kind)
    }

    /// Whether a request that does not start at once may wait.
    fn may_wait(&mut self, kind: usize, tenant: usize) -> Result<(), Refusal> {
        let refusal = if self.waiting() >= self.queue_max {
            self.totals.refused_full += 1;
            Refusal::QueueFull {
                limit: self.queue_max,
            }
        } else if let Some(refusal) = self.tenants.refusal(tenant, self.queue_max) {
            self.totals.refused_full += 1;
            refusal
        } else if let Some(limit_ns) = self.shed_wait_ns
            && let wait_ns_expected = self.wait_ns_expected(kind, tenant)
            && wait_ns_expected > limit_ns
        {
            self.totals.refused_shed += 1;
            Refusal::Shed {
                wait_ns_expected,
                limit_ns,
            }
        } else {
            return Ok(());
        };
        self.types.get_mut(kind).counts.refused += 1;
        self.tenants.get_mut(tenant).refused += 1;
        Err(refusal)
    }

    /// The expected service of all that runs and waits, under the present load, in nanoseconds.
    pub fn left_ns(&self) -> u64 {
        let running_ns = self.moment().load_ns as u64;
        let queues = self.tenants.queues();
        let waiting_ns = queues.map(|queue| queue.work_ns(&self.types));
        waiting_ns.fold(running_ns, u64::saturating_add)
    }

    /// How long a new request of a type would wait if no other arrived: until its tenant's work before it
    /// is done.
    fn wait_ns_expected(&self, kind: usize, tenant: usize) -> u64 {
        let queue = &self.tenants.get(tenant).queue;
        let ahead_ns = queue.ahead_ns(&self.types, self.order, kind);
        (ahead_ns as f64 / (self.rate.mean().max(1.0) * self.tenants.part(tenant))) as u64
    }
}
