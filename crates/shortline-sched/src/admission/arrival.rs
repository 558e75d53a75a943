//! A request comes in: whether it may start or wait, and where it waits.

use super::{Admission, ClientId, Order, RequestId, TypeId};

const MS: u64 = 1_000_000;

/// Why a request is not admitted. Its text is what the client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// As many wait as may.
    #[error("the queue of the gate is full: {limit} requests wait, the most allowed; try later")]
    QueueFull {
        /// The most that may wait.
        limit: usize,
    },
    /// It would probably wait for too long.
    #[error(
        "the gate would admit the request in {} ms only, more than {} ms; try later",
        wait_ns_expected / MS,
        limit_ns / MS
    )]
    Shed {
        /// How long it would probably wait, in nanoseconds.
        wait_ns_expected: u64,
        /// The longest that is let in, in nanoseconds.
        limit_ns: u64,
    },
    /// It waited for as long as it may, as whoever holds the waiting requests finds.
    #[error("the gate did not admit the request within {} ms; try later", wait_ns / MS)]
    WaitedTooLong {
        /// How long it waited, in nanoseconds.
        wait_ns: u64,
    },
}

impl Admission {
    /// A request comes in and waits; [`Self::admit_next`] says whether for longer than now.
    ///
    /// # Errors
    /// [`Refusal`] if it would have to wait and may not.
    pub fn arrive(&mut self, now_ns: u64, request_type: TypeId) -> Result<RequestId, Refusal> {
        self.arrive_as(now_ns, request_type, None)
    }

    /// The same for a client, who may owe something.
    ///
    /// # Errors
    /// [`Refusal`] if it would have to wait and may not.
    pub fn arrive_as(
        &mut self,
        now_ns: u64,
        request_type: TypeId,
        client: Option<ClientId>,
    ) -> Result<RequestId, Refusal> {
        let now_ns = self.tell_time(now_ns);
        let kind = self.types.index(request_type);
        self.refresh(kind);
        self.offer(kind);
        if !self.starts_at_once(kind) {
            self.may_wait(kind)?;
        }
        if self.waiting() == 0 {
            self.progress_ns = now_ns;
        }
        let id = self.requests.add(kind, now_ns, client);
        if !self.hold(id) {
            self.queue_up(id);
        }
        Ok(id)
    }

    /// Whether a new request of a type would surely start before all that wait.
    fn starts_at_once(&self, kind: usize) -> bool {
        let first = match self.order {
            Order::Sjf | Order::Gittins => self.is_shorter_than_all(kind),
            Order::Fifo | Order::SjfAging(_) | Order::Boost => self.waiting() == 0,
        };
        self.has_place() && (self.dry_run || first && self.fits(self.types.load_ns(kind)))
    }

    /// Whether a new request of a type would be next.
    fn is_shorter_than_all(&self, kind: usize) -> bool {
        let is_oldest_due = self
            .queue
            .oldest()
            .is_some_and(|(_, kind)| self.is_due(kind));
        let is_one_tried = self.newcomers.may_try() && self.queue.newcomer().is_some();
        !is_oldest_due && !is_one_tried && self.queue.is_shorter(&self.types, kind)
    }

    /// Whether a request that does not start at once may wait.
    fn may_wait(&mut self, kind: usize) -> Result<(), Refusal> {
        let refusal = if self.waiting() >= self.queue_max {
            self.totals.refused_full += 1;
            Refusal::QueueFull {
                limit: self.queue_max,
            }
        } else if let Some(limit_ns) = self.shed_wait_ns
            && let wait_ns_expected = self.wait_ns_expected(kind)
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
        Err(refusal)
    }

    /// How long a new request of a type would wait if nobody else came: until the work before it
    /// is done.
    fn wait_ns_expected(&self, kind: usize) -> u64 {
        let ahead_ns = self.queue.ahead_ns(&self.types, self.order, kind);
        (ahead_ns as f64 / self.rate.mean().max(1.0)) as u64
    }
}
