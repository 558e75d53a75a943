//! One stream of arrivals through all policies at once.
//!
//! Every system is advanced to the time of an arrival before it enters. A job is kept until it has
//! left all systems, then counted for each. So memory is for jobs in the systems, however many
//! arrive.

use rand_chacha::ChaCha8Rng;
use shortline_sched::{Policy, SchedulerConfig, Urgency};

use crate::arrivals::Job;
use crate::engine::{Capacity, End, Servers, System, SystemConfig, Work};
use crate::intake::Intake;
use crate::observer::{JobEnd, Observer};
use crate::random::{Stream, generator, normal, unit};
use crate::results::{Done, INTERVALS_MAX, Recovery, Tally, TimeLine};
use crate::users::{Greedy, Users, greedy_client};
use crate::{SimError, Simulation};

/// The first length of intervals over time, in nanoseconds; they double as time goes on.
const INTERVAL_NS: f64 = 1e6;
/// At most a tenth more jobs arrive than are counted, and at most so many.
const EXTRA_JOBS: u64 = 1000;
/// How many jobs leave a system between two questions whether the run is cancelled.
const ENDS_BETWEEN_QUESTIONS: u64 = 4096;

pub(crate) struct Replication<'a, O> {
    simulation: &'a Simulation,
    observer: O,
    /// How many times a job has left a system.
    ends: u64,
    cancelled: bool,
    intake: Intake,
    capacity: Capacity,
    /// One for each policy, then processor sharing if it is wanted beside them.
    systems: Vec<System>,
    /// Which of the systems is processor sharing, if stretch is wanted.
    reference: Option<usize>,
    present: Vec<Present>,
    /// Sojourn times of the jobs present, in nanoseconds, by slot and system; below 0 for jobs
    /// given up.
    sojourns_ns: Vec<f64>,
    /// When they were first served, likewise.
    starts_ns: Vec<f64>,
    slots_free: Vec<u32>,
    /// Jobs that are to be counted and are still present.
    counted_present: u64,
    tallies: Vec<Tally>,
    clients: Clients,
    users: Users,
    estimate_rng: ChaCha8Rng,
    overloads_ended: u64,
}

/// A job that has not left all systems.
#[derive(Clone, Copy)]
struct Present {
    /// Its place in the order of arrival, from 0.
    number: u64,
    at_ns: u64,
    bytes: f64,
    alone_ns: f64,
    /// Its user's group.
    group: usize,
    /// How many systems it has not left.
    systems_left: usize,
}

impl<'a, O: Observer> Replication<'a, O> {
    pub(crate) fn new(
        simulation: &'a Simulation,
        index: u32,
        observer: O,
    ) -> Result<Self, SimError> {
        let capacity = simulation.capacity();
        let mut policies = simulation.policies.clone();
        let fair = policies.iter().position(|policy| *policy == Policy::Fair);
        let fluid_fair = fair.filter(|_| simulation.urgency == Urgency::None);
        let reference = simulation
            .stretch
            .then(|| fluid_fair.unwrap_or(policies.len()));
        let beside = reference == Some(policies.len());
        let config = SystemConfig {
            start_delay_ns: simulation.start_delay.as_nanos() as f64,
            patience: simulation.patience(),
        };
        if beside {
            policies.push(Policy::Fair);
        }
        let ns_per_byte = 8e9 / simulation.rate_bps as f64;
        let system = |(place, &policy): (usize, &Policy)| {
            let scheduling = SchedulerConfig {
                policy: policy.scaled(ns_per_byte),
                urgency: if reference == Some(place) {
                    Urgency::None
                } else {
                    simulation.urgency
                },
                jobs_max: simulation.jobs_in_system_max,
                burst: (simulation.burst_bytes as f64 * ns_per_byte) as u64,
            };
            let turn_ns = simulation.quantum_bytes as f64 * ns_per_byte;
            // Processor sharing beside the policies has one queue.
            let dispatcher = capacity
                .dispatcher
                .clone()
                .filter(|_| reference != Some(place));
            let servers = match (simulation.backend, dispatcher) {
                (Some(backend), _) => Servers::behind_gate(backend, scheduling, &capacity),
                (None, Some(chooses)) => Servers::dispatched(scheduling, chooses, &capacity),
                (None, None) => Servers::new(scheduling, turn_ns, &capacity),
            };
            let recovery = simulation
                .overloads
                .map_or_else(Recovery::default, |phases| Recovery::new(phases.low_load()));
            System::new(
                config,
                servers,
                TimeLine::new(INTERVAL_NS, INTERVALS_MAX),
                recovery,
            )
        };
        Ok(Self {
            simulation,
            observer,
            ends: 0,
            cancelled: false,
            intake: Intake::new(simulation.rate_bps)?,
            systems: policies.iter().enumerate().map(system).collect(),
            capacity,
            reference,
            present: Vec::new(),
            sojourns_ns: Vec::new(),
            starts_ns: Vec::new(),
            slots_free: Vec::new(),
            counted_present: 0,
            tallies: vec![
                Tally::new(INTERVAL_NS, simulation.users.len());
                simulation.policies.len()
            ],
            clients: Clients::new(simulation, index),
            users: Users::new(&simulation.users, simulation.seed, index),
            estimate_rng: generator(simulation.seed, index, Stream::Estimates),
            overloads_ended: 0,
        })
    }

    /// Puts all arrivals through and adds up what counts, by policy.
    pub(crate) fn run(
        mut self,
        arrivals: impl Iterator<Item = Result<Job, SimError>>,
    ) -> Result<(Vec<Tally>, O), SimError> {
        if let Some(greedy) = self.simulation.greedy {
            self.start(greedy)?;
        }
        for job in arrivals {
            if self.is_enough() {
                break;
            }
            self.arrive(job?)?;
            if self.cancelled {
                return Err(SimError::Cancelled);
            }
        }
        if self.intake.arrived() == 0 {
            return Err(SimError::NoArrivals);
        }
        for system in &mut self.systems {
            system.stop_greedy();
        }
        while self.systems.iter().any(|system| system.jobs() > 0) {
            self.run_until(f64::INFINITY);
            if self.cancelled {
                return Err(SimError::Cancelled);
            }
        }
        for (tally, system) in self.tallies.iter_mut().zip(self.systems) {
            tally.set_system(system.aborts, system.number, system.recovery);
        }
        Ok((self.tallies, self.observer))
    }

    /// Whether more arrivals would not change what is counted, or hardly.
    fn is_enough(&self) -> bool {
        let Some(jobs) = self.simulation.jobs else {
            return false;
        };
        let arrived = self.intake.arrived();
        let counted_end = self.simulation.warmup_jobs.saturating_add(jobs);
        let extra_max = (jobs / 10).saturating_add(EXTRA_JOBS);
        arrived >= counted_end && (self.counted_present == 0 || arrived - counted_end >= extra_max)
    }

    fn arrive(&mut self, job: Job) -> Result<(), SimError> {
        let number = self.intake.arrived();
        let bytes_ns = self.intake.work_ns(job.at_ns, job.bytes)?;
        let setup_ns = self.simulation.setup.as_nanos() as u64;
        let work_ns = bytes_ns.saturating_add(setup_ns);
        self.end_overloads(job.at_ns as f64);
        self.run_until(job.at_ns as f64);
        let class = self.clients.draw();
        let (group, client) = self.users.draw();
        let start_delay_ns = self.simulation.start_delay.as_nanos() as f64;
        let slot = self.slot(Present {
            number,
            at_ns: job.at_ns,
            bytes: job.bytes,
            alone_ns: start_delay_ns + work_ns as f64 / self.capacity.classes[class].cap,
            group,
            systems_left: self.systems.len(),
        })?;
        let work = Work {
            slot,
            class,
            client,
            work_ns: work_ns as f64,
            estimate_ns: self.estimate_ns(work_ns),
        };
        self.counted_present += u64::from(self.is_counted(number));
        for system in &mut self.systems {
            system.arrive(&work);
        }
        Ok(())
    }

    /// A client that never has enough asks for the first time. Its jobs have the first slots.
    fn start(&mut self, greedy: Greedy) -> Result<(), SimError> {
        let bytes = greedy.size.bytes() as f64;
        let work_ns = Intake::new(self.simulation.rate_bps)?.work_ns(0, bytes)?;
        for _ in 0..greedy.at_once.get() {
            let slot = self.slot(Present {
                number: 0,
                at_ns: 0,
                bytes,
                alone_ns: 0.0,
                group: 0,
                systems_left: 0,
            })?;
            let work = Work {
                slot,
                class: 0,
                client: Some(greedy_client()),
                work_ns: work_ns as f64,
                estimate_ns: work_ns,
            };
            for system in &mut self.systems {
                system.ask_for_ever(&work);
            }
        }
        Ok(())
    }

    /// Advances all systems to a time, and counts the jobs that leave on the way.
    fn run_until(&mut self, until_ns: f64) {
        for place in 0..self.systems.len() {
            while !self.cancelled
                && (until_ns.is_finite() || self.systems[place].jobs() > 0)
                && let Some(end) = self.systems[place].run_until(until_ns)
            {
                self.leave(place, end);
            }
        }
    }

    /// Reports to the systems the overloads that end before `until_ns`.
    fn end_overloads(&mut self, until_ns: f64) {
        let Some(phases) = self.simulation.overloads else {
            return;
        };
        loop {
            let end_ns = (self.overloads_ended + 1) as f64 * phases.period() * 1e9;
            if end_ns >= until_ns {
                return;
            }
            self.overloads_ended += 1;
            self.run_until(end_ns);
            for system in &mut self.systems {
                let jobs = system.jobs();
                system.recovery.overload_ends(end_ns, jobs);
            }
        }
    }

    fn leave(&mut self, place: usize, end: End) {
        self.ends += 1;
        if self.ends.is_multiple_of(ENDS_BETWEEN_QUESTIONS) {
            self.cancelled = self.observer.is_cancelled();
        }
        let slot = end.slot as usize;
        let stride = self.systems.len();
        let present = &mut self.present[slot];
        let sojourn_ns = (end.at_ns - present.at_ns as f64).max(f64::MIN_POSITIVE);
        self.sojourns_ns[slot * stride + place] = if end.failed { -sojourn_ns } else { sojourn_ns };
        self.starts_ns[slot * stride + place] = end.started_ns;
        present.systems_left -= 1;
        if present.systems_left == 0 {
            let present = *present;
            self.slots_free.push(end.slot);
            if self.is_counted(present.number) {
                self.counted_present -= 1;
                self.count(slot, &present);
            }
        }
    }

    fn count(&mut self, slot: usize, present: &Present) {
        let stride = self.systems.len();
        let sojourns_ns = &self.sojourns_ns[slot * stride..][..stride];
        let number = present.number - self.simulation.warmup_jobs;
        self.observer.job(&JobEnd {
            number,
            at_ns: present.at_ns,
            bytes: present.bytes,
            alone_ns: present.alone_ns,
            starts_ns: &self.starts_ns[slot * stride..][..self.tallies.len()],
            sojourns_ns: &sojourns_ns[..self.tallies.len()],
        });
        let reference_ns = self.reference.map(|place| sojourns_ns[place].abs());
        for (tally, &sojourn_ns) in self.tallies.iter_mut().zip(sojourns_ns) {
            tally.add(&Done {
                number,
                group: present.group,
                at_ns: present.at_ns,
                bytes: present.bytes,
                alone_ns: present.alone_ns,
                sojourn_ns: sojourn_ns.abs(),
                failed: sojourn_ns < 0.0,
                stretch: reference_ns.map(|reference_ns| sojourn_ns.abs() / reference_ns),
            });
        }
    }

    fn is_counted(&self, number: u64) -> bool {
        let counted = number.checked_sub(self.simulation.warmup_jobs);
        counted.is_some_and(|number| self.simulation.jobs.is_none_or(|jobs| number < jobs))
    }

    /// A place for a job, a free one if there is any.
    fn slot(&mut self, present: Present) -> Result<u32, SimError> {
        if let Some(slot) = self.slots_free.pop() {
            self.present[slot as usize] = present;
            return Ok(slot);
        }
        let jobs_max = self.simulation.jobs_in_system_max.min(u32::MAX as usize);
        if self.present.len() >= jobs_max {
            return Err(SimError::TooManyJobs {
                number: self.intake.arrived(),
                jobs_max,
            });
        }
        let slot = self.present.len() as u32;
        self.present.push(present);
        let places = self.present.len() * self.systems.len();
        self.sojourns_ns.resize(places, 0.0);
        self.starts_ns.resize(places, 0.0);
        Ok(slot)
    }

    /// The work that policies are told.
    fn estimate_ns(&mut self, work_ns: u64) -> u64 {
        if self.simulation.estimate_sigma == 0.0 {
            return work_ns;
        }
        let factor = libm::exp(self.simulation.estimate_sigma * normal(&mut self.estimate_rng));
        // A float converts with saturation; sums of estimates must not reach the maximum.
        ((work_ns as f64 * factor).round() as u64).clamp(1, u64::MAX / 4)
    }
}

/// The class of clients that a job belongs to.
struct Clients {
    /// Sums of shares up to and with each class, the last being 1.
    shares_until: Vec<f64>,
    rng: ChaCha8Rng,
}

impl Clients {
    fn new(simulation: &Simulation, replication: u32) -> Self {
        let total: f64 = simulation.clients.iter().map(|class| class.share).sum();
        let mut sum = 0.0;
        let until = |class: &crate::ClientClass| {
            sum += class.share;
            sum / total
        };
        Self {
            shares_until: simulation.clients.iter().map(until).collect(),
            rng: generator(simulation.seed, replication, Stream::Clients),
        }
    }

    fn draw(&mut self) -> usize {
        if self.shares_until.len() < 2 {
            return 0;
        }
        let share = unit(&mut self.rng);
        let class = self.shares_until.partition_point(|until| *until < share);
        class.min(self.shares_until.len() - 1)
    }
}
