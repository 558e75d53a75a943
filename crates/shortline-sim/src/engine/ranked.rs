//! Servers that do the jobs of smallest rank: every policy but processor sharing and least
//! attained service.
//!
//! The order is [`Scheduler`]'s. The first job in it gets all it can use, then the second, until
//! the capacity is given out. While no job arrives or leaves, a job in service keeps its place
//! before those that wait. So nothing is asked in between, with two exceptions: where the scheduler
//! says that time alone will change its answer, and, for policies that serve in turns (`bands` and
//! `quickfix` inside a band), after each quantum, as on the link.
//!
//! Departure: where jobs are served at different speeds (slow clients), the last one served with
//! what is left over can overtake another's rank between two events. The speeds change only at the
//! next event.

use shortline_sched::{JobId, JobSpec, Scheduler, SchedulerConfig};

use super::{Capacity, Class, NOTHING, Work, put};

pub(crate) struct Ranked {
    scheduler: Scheduler,
    servers: f64,
    classes: Vec<Class>,
    turn_ns: f64,
    now_ns: f64,
    /// Who is served, and at which speed.
    served: Vec<Served>,
    /// Whether the served jobs must be chosen anew.
    stale: bool,
    /// When the scheduler will answer differently without an event; infinite for never.
    change_ns: f64,
    /// By [`JobId::index`].
    jobs: Vec<Present>,
    /// The scheduler's name of each slot's job, for jobs that leave early.
    ids: Vec<Option<JobId>>,
    /// When each slot's job was first served; not a number before.
    started_ns: Vec<f64>,
}

#[derive(Clone, Copy)]
struct Served {
    id: JobId,
    speed: f64,
}

#[derive(Clone, Copy)]
struct Present {
    slot: u32,
    cap: f64,
    work_ns: f64,
    remaining_ns: f64,
    /// Work that was reported to the scheduler.
    recorded_ns: u64,
}

impl Ranked {
    /// Servers under `config`; turns last for `turn_ns` of work, infinite without turns.
    pub(super) fn new(config: SchedulerConfig, turn_ns: f64, capacity: &Capacity) -> Self {
        Self {
            scheduler: Scheduler::new(config),
            servers: capacity.servers,
            classes: capacity.classes.clone(),
            turn_ns,
            now_ns: 0.0,
            served: Vec::new(),
            stale: false,
            change_ns: f64::INFINITY,
            jobs: Vec::new(),
            ids: Vec::new(),
            started_ns: Vec::new(),
        }
    }

    pub(super) fn now_ns(&self) -> f64 {
        self.now_ns
    }

    /// When the job of a slot was first served; not a number if it never was.
    pub(super) fn started_ns(&self, slot: u32) -> f64 {
        self.started_ns[slot as usize]
    }

    pub(super) fn submit(&mut self, job: &Work) {
        // `shares` places a new job by the work done until now.
        if self.scheduler.counts_clients() {
            for place in 0..self.served.len() {
                self.record(self.served[place].id);
            }
        }
        let class = &self.classes[job.class];
        let id = self.scheduler.submit(JobSpec {
            arrival_ns: self.now_ns as u64,
            work: job.work_ns as u64,
            work_estimate: Some(job.estimate_ns),
            service_ns_expected: job.estimate_ns,
            path: class.path,
            client: job.client,
        });
        let id = id.expect("invariant: the driver lets in no more jobs than jobs_max");
        let present = Present {
            slot: job.slot,
            cap: class.cap,
            work_ns: job.work_ns,
            remaining_ns: job.work_ns,
            recorded_ns: 0,
        };
        put(&mut self.jobs, id.index(), present);
        put(&mut self.ids, job.slot as usize, Some(id));
        put(&mut self.started_ns, job.slot as usize, f64::NAN);
        self.stale = true;
    }

    pub(super) fn cancel(&mut self, slot: u32) {
        if let Some(id) = self.ids[slot as usize].take() {
            self.remove(id);
        }
    }

    pub(super) fn run_until(&mut self, until_ns: f64) -> Option<u32> {
        loop {
            // A job that arrives at this instant takes part in the choice, which is for the time
            // that follows.
            if self.stale && until_ns > self.now_ns {
                self.choose();
            }
            let (end_ns, first) = self.end_next();
            if end_ns <= until_ns && end_ns <= self.change_ns {
                self.serve(end_ns);
                return first.map(|id| self.finish(id));
            }
            if self.change_ns >= until_ns {
                self.serve(until_ns);
                return None;
            }
            self.serve(self.change_ns);
            self.stale = true;
        }
    }

    /// When something happens next, if that is not after `until_ns` and no job comes before.
    pub(super) fn next_ns(&mut self, until_ns: f64) -> f64 {
        if self.stale && until_ns > self.now_ns {
            self.choose();
        }
        self.end_next().0.min(self.change_ns)
    }

    /// Chooses the jobs served from now on.
    fn choose(&mut self) {
        self.stale = false;
        for Served { id, .. } in std::mem::take(&mut self.served) {
            self.record(id);
            self.scheduler.resume(id);
        }
        let mut left = self.servers;
        while left > NOTHING
            && let Some(id) = self.scheduler.take(self.now_ns as u64)
        {
            let job = &self.jobs[id.index()];
            let started_ns = &mut self.started_ns[job.slot as usize];
            if started_ns.is_nan() {
                *started_ns = self.now_ns;
            }
            let speed = job.cap.min(left);
            left -= speed;
            self.served.push(Served { id, speed });
        }
        self.change_ns = self.change_next();
    }

    /// When the scheduler must be asked again without an event.
    fn change_next(&self) -> f64 {
        if self.scheduler.waiting() == 0 {
            return f64::INFINITY;
        }
        let change_ns = self
            .scheduler
            .next_change_ns(self.now_ns as u64)
            .map_or(f64::INFINITY, |at_ns| at_ns as f64);
        change_ns.min(self.now_ns + self.turn_ns)
    }

    /// Reports the work done for a job to the scheduler, in whole nanoseconds.
    fn record(&mut self, id: JobId) {
        let job = &mut self.jobs[id.index()];
        let done_ns = (job.work_ns - job.remaining_ns) as u64;
        if done_ns > job.recorded_ns {
            self.scheduler.record(id, done_ns - job.recorded_ns);
            job.recorded_ns = done_ns;
        }
    }

    /// When the first of the served jobs ends, and which one.
    fn end_next(&self) -> (f64, Option<JobId>) {
        let mut first = (f64::INFINITY, None);
        for &Served { id, speed } in &self.served {
            let end_ns = self.now_ns + self.jobs[id.index()].remaining_ns / speed;
            if end_ns < first.0 {
                first = (end_ns, Some(id));
            }
        }
        first
    }

    fn serve(&mut self, until_ns: f64) {
        let elapsed_ns = until_ns - self.now_ns;
        for &Served { id, speed } in &self.served {
            let remaining_ns = &mut self.jobs[id.index()].remaining_ns;
            *remaining_ns = (*remaining_ns - speed * elapsed_ns).max(0.0);
        }
        self.now_ns = until_ns;
    }

    fn finish(&mut self, id: JobId) -> u32 {
        let job = &mut self.jobs[id.index()];
        job.remaining_ns = 0.0;
        let slot = job.slot;
        self.ids[slot as usize] = None;
        // The scheduler must know whether a job ended or left.
        self.record(id);
        self.remove(id);
        slot
    }

    fn remove(&mut self, id: JobId) {
        self.scheduler.remove(id);
        self.served.retain(|served| served.id != id);
        self.stale = true;
    }
}
