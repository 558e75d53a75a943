//! Servers with a queue each: an arriving job goes to one of them and stays there ([`shortline_sched::dispatch`]).
//!
//! Each is [`Ranked`] with one server, and has a clock of its own, which is at most the system's. A server that has work
//! works, so what is left of it is known from when it would be idle.

use shortline_sched::SchedulerConfig;
use shortline_sched::dispatch::{Dispatcher, Queued};

use super::ranked::Ranked;
use super::{Capacity, Work, put};

pub(crate) struct Dispatched {
    servers: Vec<Server>,
    dispatcher: Dispatcher,
    /// The server of each job, by slot.
    places: Vec<usize>,
    now_ns: f64,
}

struct Server {
    queue: Ranked,
    jobs: usize,
    /// When all its work would be done.
    idle_from_ns: f64,
}

impl Dispatched {
    /// Idle servers under `config`.
    pub(super) fn new(
        config: SchedulerConfig,
        dispatcher: Dispatcher,
        capacity: &Capacity,
    ) -> Self {
        let alone = Capacity {
            servers: 1.0,
            dispatcher: None,
            ..capacity.clone()
        };
        let server = |_| Server {
            queue: Ranked::new(config, f64::INFINITY, &alone),
            jobs: 0,
            idle_from_ns: 0.0,
        };
        Self {
            servers: (0..capacity.servers as usize).map(server).collect(),
            dispatcher,
            places: Vec::new(),
            now_ns: 0.0,
        }
    }

    pub(super) fn now_ns(&self) -> f64 {
        self.now_ns
    }

    /// When the job of a slot was first served; not a number if it never was.
    pub(super) fn started_ns(&self, slot: u32) -> f64 {
        let server = &self.servers[self.places[slot as usize]];
        server.queue.started_ns(slot)
    }

    pub(super) fn submit(&mut self, job: &Work) {
        let now_ns = self.now_ns;
        let queued = |server: &Server| Queued {
            jobs: server.jobs,
            work: (server.idle_from_ns - now_ns).max(0.0),
        };
        let queues: Vec<Queued> = self.servers.iter().map(queued).collect();
        let place = self.dispatcher.dispatch(job.estimate_ns as f64, &queues);
        let server = &mut self.servers[place];
        let ended = server.queue.run_until(now_ns);
        debug_assert!(ended.is_none(), "what ended before was told before");
        server.queue.submit(job);
        server.jobs += 1;
        server.idle_from_ns = server.idle_from_ns.max(now_ns) + job.work_ns;
        put(&mut self.places, job.slot as usize, place);
    }

    pub(super) fn run_until(&mut self, until_ns: f64) -> Option<u32> {
        loop {
            let nexts = self.servers.iter_mut().enumerate();
            let nexts = nexts.map(|(place, server)| (server.queue.next_ns(until_ns), place));
            let (next_ns, place) = nexts.min_by(|a, b| a.0.total_cmp(&b.0))?;
            if next_ns > until_ns || next_ns.is_infinite() {
                self.now_ns = until_ns;
                return None;
            }
            self.now_ns = next_ns.max(self.now_ns);
            let server = &mut self.servers[place];
            if let Some(slot) = server.queue.run_until(next_ns) {
                server.jobs -= 1;
                return Some(slot);
            }
        }
    }

    pub(super) fn cancel(&mut self, slot: u32) {
        let server = &mut self.servers[self.places[slot as usize]];
        server.queue.cancel(slot);
        server.jobs -= 1;
    }
}
