//! A simulation: servers, users and policies, and the arrivals of some replications.
//!
//! A replication puts one stream of arrivals through all policies at once. These are common random
//! numbers: differences between policies are not differences of luck. If starvation stretch is
//! wanted, it also goes through processor sharing. Replications differ in their random numbers, run
//! on all cores, and are added up in order, so results do not depend on the number of cores.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use shortline_sched::dispatch::{Dispatcher, Rule};
use shortline_sched::{Needs, PathView, Policy, Urgency};

use crate::arrivals::Job;
use crate::engine::{Capacity, Class, Patience};
use crate::fluid::QUANTUM_BYTES;
use crate::replication::Replication;
use crate::results::{PolicyResult, Tally};
use crate::users::{self, Greedy, UserGroup};
use crate::{Backend, ClientClass, Observer, Phases, SimError};

/// Users who give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impatience {
    /// How long a user waits for a response.
    pub after: Duration,
    /// How often the user asks again before giving up for good.
    pub retries: u32,
}

/// Servers with a queue each ([`shortline_sched::dispatch`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dispatch {
    /// How a server is chosen.
    pub rule: Rule,
    /// The tightness of guardrails, 1 or more, and the load for which they are meant; `None` without them.
    pub guardrails: Option<(f64, f64)>,
}

/// The settings of a simulation.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The policies to compare, at least one.
    pub policies: Vec<Policy>,
    /// What waiting adds to all policies. With it `fair` and `las` are not fluid: their jobs are
    /// served in turns, one at a time.
    pub urgency: Urgency,
    /// The rate of each server, in bits per second.
    pub rate_bps: u64,
    /// How many servers there are; a job is on at most one.
    pub servers: NonZeroU32,
    /// How a job gets to one of several servers at its arrival, if each has a queue of its own.
    pub dispatch: Option<Dispatch>,
    /// A backend behind the gate instead of the servers' usual way of working. The number of
    /// servers and their speed stay.
    pub backend: Option<Backend>,
    /// Classes of clients; none if clients take all that a server gives.
    pub clients: Vec<ClientClass>,
    /// Who asks; empty if each job is of a client of its own. Only `shares` uses it.
    pub users: Vec<UserGroup>,
    /// A client that never has enough, beside the users; its jobs are not counted.
    pub greedy: Option<Greedy>,
    /// What a client may get in a row under `shares` before it stands back, in bytes; 0 for never.
    pub burst_bytes: u64,
    /// The time from a job's arrival until its service can begin.
    pub start_delay: Duration,
    /// The length of a turn where jobs are served in turns (`bands`, `quickfix`), in bytes.
    pub quantum_bytes: u64,
    /// Work of each job beside its bytes.
    pub setup: Duration,
    /// Size estimates are size * exp(sigma Z), Z standard normal; 0 for exact ones.
    pub estimate_sigma: f64,
    /// Users' patience; `None` for endless.
    pub impatience: Option<Impatience>,
    /// The first jobs, which are not counted.
    pub warmup_jobs: u64,
    /// So many jobs are counted after that. More arrive until the last of them has ended (at most a
    /// tenth more), so that it is not alone in the end. `None` for all arrivals.
    pub jobs: Option<u64>,
    /// Whether starvation stretch is wanted.
    pub stretch: bool,
    /// The most jobs in a system at once.
    pub jobs_in_system_max: usize,
    /// Confidence of the intervals, such as 0.99.
    pub confidence: f64,
    /// Seed of clients and estimates, and of arrivals made from it.
    pub seed: u64,
    /// The phases of the load, in seconds, if they are known; then ends of overloads are watched.
    pub overloads: Option<Phases>,
}

impl Simulation {
    /// Exact sizes, endless patience, no warm-up, one server: `policies` on a link.
    pub fn new(policies: Vec<Policy>, rate_bps: u64) -> Self {
        Self {
            policies,
            urgency: Urgency::None,
            quantum_bytes: QUANTUM_BYTES as u64,
            rate_bps,
            servers: NonZeroU32::MIN,
            dispatch: None,
            backend: None,
            clients: Vec::new(),
            users: Vec::new(),
            greedy: None,
            burst_bytes: 0,
            start_delay: Duration::ZERO,
            setup: Duration::ZERO,
            estimate_sigma: 0.0,
            impatience: None,
            warmup_jobs: 0,
            jobs: None,
            stretch: false,
            jobs_in_system_max: 100_000_000,
            confidence: 0.99,
            seed: 1,
            overloads: None,
        }
    }

    /// Runs `replications` of them, with each one's jobs from `arrivals`, and returns one result
    /// per policy, in the order of the policies.
    ///
    /// # Errors
    /// [`SimError`] for settings and arrivals that cannot be simulated; of several replications,
    /// the first one's.
    pub fn run<I>(
        &self,
        replications: NonZeroU32,
        arrivals: impl Fn(u32) -> Result<I, SimError> + Sync,
    ) -> Result<Vec<PolicyResult>, SimError>
    where
        I: Iterator<Item = Result<Job, SimError>>,
    {
        let observed = self.run_observed(replications, arrivals, |_| ());
        observed.map(|(results, _)| results)
    }

    /// The same with an observer of each replication, which are returned in that order.
    ///
    /// # Errors
    /// As [`Simulation::run`]; [`SimError::Cancelled`] if an observer says so.
    pub fn run_observed<I, O: Observer>(
        &self,
        replications: NonZeroU32,
        arrivals: impl Fn(u32) -> Result<I, SimError> + Sync,
        observer: impl Fn(u32) -> O + Sync,
    ) -> Result<(Vec<PolicyResult>, Vec<O>), SimError>
    where
        I: Iterator<Item = Result<Job, SimError>>,
    {
        self.check()?;
        let one = |index| Replication::new(self, index, observer(index))?.run(arrivals(index)?);
        let mut sums: Option<Vec<Tally>> = None;
        let mut observers = Vec::new();
        for ran in on_all_cores(replications, one) {
            let (tallies, observer) = ran?;
            observers.push(observer);
            match &mut sums {
                None => sums = Some(tallies),
                Some(sums) => sums
                    .iter_mut()
                    .zip(&tallies)
                    .for_each(|(sum, tally)| sum.merge(tally)),
            }
        }
        let results = |(&policy, tally): (&Policy, &Tally)| {
            tally
                .result(policy, self.confidence)
                .ok_or(SimError::NothingCounted {
                    warmup_jobs: self.warmup_jobs,
                })
        };
        let sums = sums.ok_or(SimError::NoArrivals)?;
        let results: Result<_, SimError> = self.policies.iter().zip(&sums).map(results).collect();
        Ok((results?, observers))
    }

    fn check(&self) -> Result<(), SimError> {
        let refuse = |what, value, want| Err(SimError::Range { what, value, want });
        if !(self.estimate_sigma >= 0.0 && self.estimate_sigma <= 20.0) {
            return refuse("estimates' sigma", self.estimate_sigma, "0 to 20");
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return refuse("confidence", self.confidence, "above 0 and below 1");
        }
        users::check(&self.users)?;
        if self.quantum_bytes == 0 {
            return refuse("quantum", 0.0, "above 0 bytes");
        }
        if self.clients.is_empty()
            && let Some(policy) = self.policies.iter().find(|p| p.needs() == Needs::Path)
        {
            return Err(SimError::NoClients {
                policy: policy.to_string(),
            });
        }
        if let Some(backend) = self.backend {
            for &policy in &self.policies {
                backend.check(policy)?;
            }
            if !self.clients.is_empty() {
                return Err(SimError::GateClients);
            }
        }
        let servers = self.servers.get();
        if servers > 1 && self.policies.contains(&Policy::Fsp) {
            return Err(SimError::FspServers { servers });
        }
        let is_plain = self.clients.is_empty() && self.urgency == Urgency::None;
        self.check_dispatch(is_plain)?;
        if let Some(impatience) = self.impatience
            && impatience.after.is_zero()
        {
            return refuse("patience", 0.0, "above 0 seconds");
        }
        Ok(())
    }

    /// Servers with a queue each do one job at a time, whole.
    fn check_dispatch(&self, is_plain: bool) -> Result<(), SimError> {
        let Some(dispatch) = self.dispatch else {
            return Ok(());
        };
        if let Some((tightness, _)) = dispatch.guardrails
            && !(1.0..=1000.0).contains(&tightness)
        {
            return Err(SimError::Range {
                what: "guardrails",
                value: tightness,
                want: "1 to 1000",
            });
        }
        let is_in_turns = |policy: &Policy| {
            matches!(
                policy,
                Policy::Fair
                    | Policy::Las
                    | Policy::Bands(_)
                    | Policy::QuickFix { .. }
                    | Policy::Gittins
                    | Policy::Shares
            )
        };
        let is_alone = self.backend.is_none() && self.greedy.is_none();
        let stays = self.impatience.is_none();
        match is_plain && is_alone && stays && !self.policies.iter().any(is_in_turns) {
            true => Ok(()),
            false => Err(SimError::Dispatch),
        }
    }

    /// The servers and clients as the engine sees them.
    pub(crate) fn capacity(&self) -> Capacity {
        let class = |client: &ClientClass| {
            let cap = (client.rate.bps() as f64 / self.rate_bps as f64).min(1.0);
            let rtt_ns = client.rtt.duration().as_nanos() as u64;
            Class {
                cap,
                // In nanoseconds of a server's work instead of bytes.
                path: Some(PathView {
                    rtt_ns,
                    cwnd_bytes: (cap * rtt_ns as f64) as u64,
                    rate_bps_past: Some((cap * 8e9) as u64),
                }),
            }
        };
        let mut capacity = Capacity {
            servers: f64::from(self.servers.get()),
            ..Capacity::one()
        };
        capacity.dispatcher = self.dispatch.map(|dispatch| {
            let servers = self.servers.try_into().unwrap_or(NonZeroUsize::MIN);
            let dispatcher = Dispatcher::new(dispatch.rule, servers);
            match dispatch.guardrails {
                None => dispatcher,
                Some((tightness, load)) => dispatcher.with_guardrails(tightness, load),
            }
        });
        if !self.clients.is_empty() {
            capacity.classes = self.clients.iter().map(class).collect();
        }
        capacity
    }

    pub(crate) fn patience(&self) -> Option<Patience> {
        self.impatience.map(|impatience| Patience {
            after_ns: impatience.after.as_nanos() as f64,
            retries: impatience.retries,
        })
    }
}

/// The results of `run` for 0 to `count`, in that order, computed on all cores.
fn on_all_cores<T: Send>(count: NonZeroU32, run: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let next = AtomicU32::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count.get() {
                return done;
            }
            done.push((index, run(index)));
        }
    };
    let mut all: Vec<(u32, T)> = std::thread::scope(|scope| {
        let threads = cores.min(count.get() as usize);
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, Vec<(u32, T)>>| {
            handle
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        handles.into_iter().flat_map(join).collect()
    });
    all.sort_by_key(|&(index, _)| index);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests;
