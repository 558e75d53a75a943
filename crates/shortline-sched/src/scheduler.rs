//! The scheduler: which of the jobs is next.
//!
//! A job is in one of two states. It is *waiting* when it is in the index and can be taken. It is
//! *out* when it is in service, or when its driver suspended it because it cannot be served now
//! (its connection takes no bytes). Every operation costs O(log waiting) and, once the tables have
//! grown, allocates nothing.
//!
//! The index is a heap by rank and, with aging, a second one by deadline ([`crate::Aging`]). Both
//! hold the same jobs. Ties in either go in the order of submission.

use crate::heap::IndexedHeap;
use crate::job::{Job, JobId, JobSpec};
use crate::path::PathView;
use crate::policy::{Policy, Ranking};
use crate::shares::Shares;
use crate::urgency::{Aging, IN_ORDER, Urgency};

/// How a scheduler decides and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SchedulerConfig {
    /// The order in which jobs are served.
    pub policy: Policy,
    /// How waiting jobs become more urgent.
    pub urgency: Urgency,
    /// The most jobs held at once, waiting or not. At most `u32::MAX` count.
    pub jobs_max: usize,
    /// With `shares`: the work that a client of weight one may ask for in a row before it stands
    /// back, so that clients that ask for less go first. With 0 no client stands back. Other policies
    /// ignore it.
    pub burst: u64,
}

impl SchedulerConfig {
    /// The policy alone.
    pub fn new(policy: Policy, jobs_max: usize) -> Self {
        Self {
            policy,
            urgency: Urgency::None,
            jobs_max,
            burst: 0,
        }
    }
}

/// The scheduler is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("queue full: {jobs_max} jobs, the most allowed (jobs_max)")]
pub struct QueueFull {
    /// The limit that was reached.
    pub jobs_max: usize,
}

/// Jobs in the order of a policy.
#[derive(Clone, Debug)]
pub struct Scheduler {
    ranking: Ranking,
    aging: Option<Aging>,
    jobs_max: usize,
    slots: Vec<Slot>,
    slot_free_first: Option<u32>,
    jobs_held: usize,
    /// The number that the next submission gets.
    sequence_next: u64,
    /// The turn that the next job to enter the index draws.
    turn_next: u64,
    index: Index,
    by_deadline: IndexedHeap<Key>,
    /// Work that must be done in the order of ranks before an overdue job may pass others again.
    in_order_due: u64,
}

/// Rank or deadline, then the order of submission.
type Key = (u64, u64);

/// The jobs that wait, in order.
#[derive(Clone, Debug)]
enum Index {
    /// By rank alone.
    ByRank(IndexedHeap<Key>),
    /// By shares among clients.
    ByClient(Box<Shares>),
}

#[derive(Clone, Debug)]
struct Slot {
    generation: u32,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Held(Job),
    Free { next: Option<u32> },
}

impl Scheduler {
    /// An empty scheduler.
    pub fn new(config: SchedulerConfig) -> Self {
        let jobs_max = config.jobs_max.min(u32::MAX as usize);
        Self {
            ranking: Ranking::new(config.policy, config.urgency.growing(), jobs_max),
            aging: config.urgency.aging(),
            jobs_max,
            slots: Vec::new(),
            slot_free_first: None,
            jobs_held: 0,
            sequence_next: 0,
            turn_next: 0,
            index: Index::new(config.policy, jobs_max, config.burst),
            by_deadline: IndexedHeap::new(),
            in_order_due: 0,
        }
    }

    /// Adds a job, waiting.
    ///
    /// # Errors
    /// [`QueueFull`] if `jobs_max` jobs are held already.
    pub fn submit(&mut self, spec: JobSpec) -> Result<JobId, QueueFull> {
        if self.jobs_held >= self.jobs_max {
            return Err(QueueFull {
                jobs_max: self.jobs_max,
            });
        }
        let job = Job {
            arrival_ns: spec.arrival_ns,
            work_total: spec.work,
            work_estimate: spec.work_estimate.unwrap_or(spec.work),
            work_done: 0,
            deadline_ns: self
                .aging
                .map(|aging| aging.deadline_ns(spec.arrival_ns, spec.service_ns_expected)),
            started: false,
            passes: false,
            service_ns_expected: spec.service_ns_expected,
            sequence: self.sequence_next,
            turn: 0,
        };
        self.sequence_next += 1;
        let alone = self.jobs_held == 0;
        let id = self.store(job);
        self.ranking.submit(id.slot, &job, &spec, alone);
        if let Index::ByClient(shares) = &mut self.index {
            shares.submit(
                id.slot,
                spec.client,
                self.ranking.rank(id.slot, &job),
                job.sequence,
            );
        }
        self.resume(id);
        Ok(id)
    }

    /// The job that is next at `now_ns`: the overdue job with the earliest deadline, if the overdue
    /// jobs' part of the work allows it; else the job of the smallest rank. `None` if no job waits.
    pub fn peek(&self, now_ns: u64) -> Option<JobId> {
        let slot = self.overdue(now_ns).or_else(|| self.index.first())?;
        Some(JobId {
            slot,
            generation: self.slots[slot as usize].generation,
        })
    }

    /// The next time after `now_ns` at which [`Self::peek`] may answer otherwise without a call in
    /// between: a waiting job's deadline. `None` if time alone changes nothing.
    pub fn next_change_ns(&self, now_ns: u64) -> Option<u64> {
        let ((deadline_ns, _), _) = self.by_deadline.first()?;
        (deadline_ns > now_ns).then_some(deadline_ns)
    }

    /// Whether the order depends on what each client got.
    pub fn counts_clients(&self) -> bool {
        matches!(self.index, Index::ByClient(_))
    }

    /// The present cutoffs between the bands, rising, in units of work, for `bands` and `quickfix`;
    /// learnt ones included. `None` for policies without bands.
    pub fn cutoffs(&self) -> Option<&[u64]> {
        self.ranking.cutoffs()
    }

    /// How long a job's response takes by the estimate of `swift`, `fcf`, `srrt` or `stert`, in
    /// nanoseconds. It covers what remains, with `stert` also the time until `now_ns`. `None` for
    /// other policies and for a job that is gone.
    pub fn response_ns(&self, id: JobId, now_ns: u64) -> Option<u64> {
        self.ranking.response_ns(id.slot, self.job(id)?, now_ns)
    }

    /// Takes the job that is next at `now_ns` into service. It no longer waits.
    pub fn take(&mut self, now_ns: u64) -> Option<JobId> {
        let id = self.peek(now_ns)?;
        let passes = self.overdue(now_ns).is_some();
        self.ranking.advance_to(now_ns);
        self.leave_index(id.slot);
        if let Some(job) = self.job_mut(id) {
            job.started = true;
            job.passes = passes;
        }
        Some(id)
    }

    /// Counts work done for a job. A waiting job moves to its new place.
    pub fn record(&mut self, id: JobId, work_done: u64) {
        let Some(job) = self.job_mut(id) else {
            return;
        };
        job.work_done = job.work_done.saturating_add(work_done);
        self.in_order_due = match job.passes {
            true => self
                .in_order_due
                .saturating_add(work_done.saturating_mul(IN_ORDER)),
            false => self.in_order_due.saturating_sub(work_done),
        };
        self.serve(id, work_done);
    }

    /// Sets a new total of a job's work, and the time it is expected to take alone, for a driver
    /// that learns them only as the work is done. A waiting job moves to its new place; with aging
    /// its deadline is that of the new total. `fsp` keeps the first one.
    pub fn revise(&mut self, id: JobId, work_total: u64, service_ns_expected: u64) {
        let aging = self.aging;
        let Some(job) = self.job_mut(id) else {
            return;
        };
        job.work_total = work_total;
        job.work_estimate = work_total;
        job.service_ns_expected = service_ns_expected;
        job.deadline_ns = aging.map(|aging| aging.deadline_ns(job.arrival_ns, service_ns_expected));
        self.by_deadline.remove(id.slot);
        self.serve(id, 0);
    }

    /// Updates the path to a job's client. A waiting job moves to its new place. Policies that do
    /// not need paths ignore it.
    pub fn update_path(&mut self, id: JobId, path: PathView) {
        if self.job(id).is_none() {
            return;
        }
        self.ranking.update_path(id.slot, path);
        if self.index.contains(id.slot) {
            self.enter_index(id);
        }
    }

    /// Lets a job wait again, with the rank it has now. Does nothing to a job that waits already.
    pub fn resume(&mut self, id: JobId) {
        if self.index.contains(id.slot) {
            return;
        }
        let turn = self.turn_next;
        let Some(job) = self.job_mut(id) else {
            return;
        };
        job.turn = turn;
        self.turn_next += 1;
        self.enter_index(id);
    }

    /// Passes a job over until it resumes, because it cannot be served now. With `shares` its
    /// client is owed nothing meanwhile.
    pub fn suspend(&mut self, id: JobId) {
        if self.job(id).is_none() {
            return;
        }
        self.leave_index(id.slot);
        if let Index::ByClient(shares) = &mut self.index {
            shares.block(id.slot);
        }
    }

    /// Removes a job, whatever its state, and returns it as it stood; `None` if it was
    /// removed before.
    pub fn remove(&mut self, id: JobId) -> Option<Job> {
        let job = *self.job(id)?;
        self.leave_index(id.slot);
        self.ranking.remove(id.slot, &job);
        if let Index::ByClient(shares) = &mut self.index {
            shares.remove(id.slot);
        }
        self.slots[id.slot as usize] = Slot {
            generation: id.generation.wrapping_add(1),
            content: Content::Free {
                next: self.slot_free_first,
            },
        };
        self.slot_free_first = Some(id.slot);
        self.jobs_held -= 1;
        Some(job)
    }

    /// Forgets what clients got before, for a driver without jobs for long enough. Does nothing while
    /// a job is held.
    pub fn rest(&mut self) {
        if let Index::ByClient(shares) = &mut self.index {
            shares.rest();
        }
    }

    /// A job as it stands; `None` once it was removed.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        let slot = self.slots.get(id.slot as usize)?;
        match &slot.content {
            Content::Held(job) if slot.generation == id.generation => Some(job),
            _ => None,
        }
    }

    /// Whether a job is held and can be taken.
    pub fn is_waiting(&self, id: JobId) -> bool {
        self.job(id).is_some() && self.index.contains(id.slot)
    }

    /// How many jobs are held, waiting or not.
    pub fn len(&self) -> usize {
        self.jobs_held
    }

    /// Whether no job is held.
    pub fn is_empty(&self) -> bool {
        self.jobs_held == 0
    }

    /// How many jobs can be taken.
    pub fn waiting(&self) -> usize {
        self.index.len()
    }

    /// All jobs held, in no particular order.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, &Job)> {
        (0u32..).zip(&self.slots).filter_map(|(slot, held)| {
            let Content::Held(job) = &held.content else {
                return None;
            };
            let id = JobId {
                slot,
                generation: held.generation,
            };
            Some((id, job))
        })
    }

    /// The overdue job that passes the others now.
    fn overdue(&self, now_ns: u64) -> Option<u32> {
        let ((deadline_ns, _), slot) = self.by_deadline.first()?;
        (deadline_ns <= now_ns && self.in_order_due == 0).then_some(slot)
    }

    fn store(&mut self, job: Job) -> JobId {
        self.jobs_held += 1;
        let content = Content::Held(job);
        let Some(slot) = self.slot_free_first else {
            let slot = self.slots.len() as u32;
            self.slots.push(Slot {
                generation: 0,
                content,
            });
            return JobId {
                slot,
                generation: 0,
            };
        };
        let place = &mut self.slots[slot as usize];
        if let Content::Free { next } = place.content {
            self.slot_free_first = next;
        }
        place.content = content;
        JobId {
            slot,
            generation: place.generation,
        }
    }

    fn job_mut(&mut self, id: JobId) -> Option<&mut Job> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        match &mut slot.content {
            Content::Held(job) if slot.generation == id.generation => Some(job),
            _ => None,
        }
    }

    /// Puts a job in the index, or in its new place there.
    fn enter_index(&mut self, id: JobId) {
        let Some(&job) = self.job(id) else {
            return;
        };
        match &mut self.index {
            Index::ByRank(heap) => {
                let rank = self.ranking.rank(id.slot, &job);
                heap.insert(id.slot, (rank, job.sequence));
            }
            Index::ByClient(shares) => shares.wait(id.slot),
        }
        if let Some(deadline_ns) = job.deadline_ns
            && !self.by_deadline.contains(id.slot)
        {
            self.by_deadline
                .insert(id.slot, (deadline_ns, job.sequence));
        }
    }

    /// Work was done for a job, or what is left of it is known better. A waiting job moves to its
    /// new place.
    fn serve(&mut self, id: JobId, work_done: u64) {
        if let Index::ByClient(shares) = &mut self.index
            && let Content::Held(job) = &self.slots[id.slot as usize].content
        {
            shares.serve(id.slot, work_done, self.ranking.rank(id.slot, job));
        }
        // A new deadline also needs the index updated.
        if self.index.contains(id.slot) {
            self.enter_index(id);
        }
    }

    fn leave_index(&mut self, slot: u32) {
        match &mut self.index {
            Index::ByRank(heap) => {
                heap.remove(slot);
            }
            Index::ByClient(shares) => shares.take(slot),
        }
        self.by_deadline.remove(slot);
    }
}

impl Index {
    fn new(policy: Policy, jobs_max: usize, burst: u64) -> Self {
        match policy {
            Policy::Shares => Self::ByClient(Box::new(Shares::new(jobs_max, burst))),
            _ => Self::ByRank(IndexedHeap::new()),
        }
    }

    fn first(&self) -> Option<u32> {
        match self {
            Self::ByRank(heap) => heap.first().map(|(_, slot)| slot),
            Self::ByClient(shares) => shares.first(),
        }
    }

    fn contains(&self, slot: u32) -> bool {
        match self {
            Self::ByRank(heap) => heap.contains(slot),
            Self::ByClient(shares) => shares.contains(slot),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::ByRank(heap) => heap.len(),
            Self::ByClient(shares) => shares.len(),
        }
    }
}
