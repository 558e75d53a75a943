//! One link as a fluid server: exact sojourn times of given arrivals under a policy.
//!
//! A job's work is the time that the link needs for its bytes ([`crate::intake`]). The server
//! does one nanosecond of work per nanosecond, preempting at no cost ([`crate::engine`]).

use shortline_sched::{Policy, SchedulerConfig};

use crate::SimError;
use crate::engine::{Capacity, Servers, Work};
use crate::intake::Intake;

/// A request as the link sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it arrives, in nanoseconds.
    pub at_ns: u64,
    /// What its response costs on the link, in bytes ([`crate::wire`]).
    pub bytes: u64,
}

/// A turn of policies that serve in turns, in bytes: three segments, as on a link of 100 Mbit/s.
pub(crate) const QUANTUM_BYTES: f64 = 4344.0;

/// How long each arrival is in the system, in nanoseconds, in the order of `arrivals`,
/// on a link of `rate_bps` under `policy`.
///
/// # Errors
/// [`SimError`] for invalid or unordered arrivals, a rate of 0, and more work than 64-bit time
/// holds.
pub fn fluid(arrivals: &[Arrival], rate_bps: u64, policy: Policy) -> Result<Vec<u64>, SimError> {
    if arrivals.is_empty() {
        return Err(SimError::NoArrivals);
    }
    let mut link = FluidLink::new(rate_bps, policy, 0, arrivals.len())?;
    let mut sojourns_ns = vec![0; arrivals.len()];
    let mut ended = |index: usize, sojourn_ns| sojourns_ns[index] = sojourn_ns;
    for (index, arrival) in arrivals.iter().enumerate() {
        link.arrive(*arrival, index, &mut ended)?;
    }
    link.drain(&mut ended);
    Ok(sojourns_ns)
}

/// The same for arrivals that come one after the other, in memory for those in the system. `T` is what the caller knows a
/// job by.
pub struct FluidLink<T> {
    intake: Intake,
    servers: Servers,
    inside: Inside<T>,
}

impl<T> FluidLink<T> {
    /// An idle link with at most `jobs_max` jobs at once. Under `shares` a client may get `burst_bytes` in a row before it
    /// stands back.
    ///
    /// # Errors
    /// A rate of 0.
    pub fn new(
        rate_bps: u64,
        policy: Policy,
        burst_bytes: u64,
        jobs_max: usize,
    ) -> Result<Self, SimError> {
        let ns_per_byte = 8e9 / rate_bps as f64;
        let config = SchedulerConfig {
            burst: (burst_bytes as f64 * ns_per_byte) as u64,
            ..SchedulerConfig::new(policy.scaled(ns_per_byte), jobs_max)
        };
        let turn_ns = QUANTUM_BYTES * ns_per_byte;
        Ok(Self {
            intake: Intake::new(rate_bps)?,
            servers: Servers::new(config, turn_ns, &Capacity::one()),
            inside: Inside::new(jobs_max),
        })
    }

    /// The same under `fair` as a link has it: round robin, a turn of `turn_bytes` each. What is shorter than a turn waits for
    /// as many others as what is a turn long. Departure: an arrival ends the present turn.
    ///
    /// # Errors
    /// A rate of 0.
    pub fn round_robin(rate_bps: u64, turn_bytes: u64, jobs_max: usize) -> Result<Self, SimError> {
        let config = SchedulerConfig::new(Policy::Fair, jobs_max);
        let turn_ns = turn_bytes.max(1) as f64 * 8e9 / rate_bps as f64;
        Ok(Self {
            intake: Intake::new(rate_bps)?,
            servers: Servers::in_turns(config, turn_ns, &Capacity::one()),
            inside: Inside::new(jobs_max),
        })
    }

    /// The next arrival. Before it, `ended` gets each job that ends until then, and how long it was in the system, in
    /// nanoseconds.
    ///
    /// # Errors
    /// [`SimError`] if it is before the one before, if there are too many jobs, or too much work.
    pub fn arrive(
        &mut self,
        arrival: Arrival,
        job: T,
        ended: &mut impl FnMut(T, u64),
    ) -> Result<(), SimError> {
        let work_ns = self.intake.work_ns(arrival.at_ns, arrival.bytes as f64)?;
        self.run_until(arrival.at_ns as f64, ended);
        let slot = self.inside.enter(arrival.at_ns, job)?;
        self.servers.submit(&Work {
            client: None,
            slot,
            class: 0,
            work_ns: work_ns as f64,
            estimate_ns: work_ns,
        });
        Ok(())
    }

    /// No more arrive: `ended` gets the rest.
    pub fn drain(&mut self, ended: &mut impl FnMut(T, u64)) {
        self.run_until(f64::INFINITY, ended);
    }

    fn run_until(&mut self, until_ns: f64, ended: &mut impl FnMut(T, u64)) {
        while let Some(slot) = self.servers.run_until(until_ns) {
            self.inside.leave(slot, self.servers.now_ns(), ended);
        }
    }
}

/// The jobs in a system, by slot.
pub(crate) struct Inside<T> {
    jobs_max: usize,
    jobs: Vec<Option<(u64, T)>>,
    free: Vec<u32>,
    entered: u64,
}

impl<T> Inside<T> {
    pub(crate) fn new(jobs_max: usize) -> Self {
        Self {
            jobs_max,
            jobs: Vec::new(),
            free: Vec::new(),
            entered: 0,
        }
    }

    /// How many have come.
    pub(crate) fn entered(&self) -> u64 {
        self.entered
    }

    /// The slot of a job that comes now.
    pub(crate) fn enter(&mut self, at_ns: u64, job: T) -> Result<u32, SimError> {
        self.entered += 1;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.jobs.len() == self.jobs_max => {
                return Err(SimError::TooManyJobs {
                    number: self.entered,
                    jobs_max: self.jobs_max,
                });
            }
            None => {
                self.jobs.push(None);
                (self.jobs.len() - 1) as u32
            }
        };
        self.jobs[slot as usize] = Some((at_ns, job));
        Ok(slot)
    }

    /// A job ends: `ended` gets it, and how long it was in the system.
    pub(crate) fn leave(&mut self, slot: u32, now_ns: f64, ended: &mut impl FnMut(T, u64)) {
        // Rounded before the difference, because departures are whole nanoseconds, as arrivals are.
        let end_ns = now_ns.round() as u64;
        if let Some((at_ns, job)) = self.jobs[slot as usize].take() {
            self.free.push(slot);
            ended(job, end_ns.saturating_sub(at_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    /// At this rate a byte takes a nanosecond.
    const BYTE_PER_NS: u64 = 8_000_000_000;

    fn arrivals(jobs: &[(u64, u64)]) -> Vec<Arrival> {
        jobs.iter()
            .map(|&(at_ns, bytes)| Arrival { at_ns, bytes })
            .collect()
    }

    /// The end of each job; jobs are given as (arrival, size).
    fn ends_ns(jobs: &[(u64, u64)], policy: Policy) -> Vec<u64> {
        let sojourns_ns = fluid(&arrivals(jobs), BYTE_PER_NS, policy).unwrap();
        jobs.iter()
            .zip(sojourns_ns)
            .map(|((at_ns, _), sojourn_ns)| at_ns + sojourn_ns)
            .collect()
    }

    #[test]
    fn srpt_ends_a_known_schedule_as_worked_out_by_hand() {
        let jobs = [(0, 15), (0, 10), (10, 10), (20, 10)];
        assert_eq!(ends_ns(&jobs, Policy::Srpt), [45, 10, 20, 30]);
    }

    #[test]
    fn each_policy_orders_one_example_in_its_way() {
        let jobs = [(0, 10), (1, 2), (2, 8), (2, 9)];
        assert_eq!(ends_ns(&jobs, Policy::Fifo), [10, 12, 20, 29]);
        assert_eq!(ends_ns(&jobs, Policy::Sjf), [10, 12, 20, 29]);
        assert_eq!(ends_ns(&jobs, Policy::Psjf), [29, 3, 11, 20]);
        assert_eq!(ends_ns(&[(0, 10), (3, 8)], Policy::Psjf), [18, 11]);
        // A job that arrives just as another ends does not overtake it.
        assert_eq!(ends_ns(&[(0, 10), (10, 8)], Policy::Psjf), [10, 18]);
        assert_eq!(ends_ns(&[(0, 10), (3, 8)], Policy::Srpt), [10, 18]);
        assert_eq!(ends_ns(&[(0, 20), (10, 2)], Policy::Fair), [22, 14]);
    }

    #[test]
    fn round_robin_serves_turn_by_turn() {
        let mut link = FluidLink::round_robin(BYTE_PER_NS, 10, 9).unwrap();
        let mut ends_ns = Vec::new();
        let mut ended = |end_ns: u64, sojourn_ns: u64| ends_ns.push(end_ns + sojourn_ns);
        for (at_ns, bytes) in [(0, 30), (5, 2), (6, 20)] {
            let arrival = Arrival { at_ns, bytes };
            link.arrive(arrival, at_ns, &mut ended).unwrap();
        }
        link.drain(&mut ended);
        // To 5 the first, to 6 the second, to 16 the first, to 26 the third, to 27 the second, to 37 the first, to 47 the third.
        assert_eq!(ends_ns, [27, 47, 52]);
    }

    #[test]
    fn what_cannot_be_simulated_is_refused_with_its_place() {
        let refused = |jobs: &[(u64, u64)], rate_bps, policy| {
            fluid(&arrivals(jobs), rate_bps, policy).unwrap_err()
        };
        assert_eq!(refused(&[], 1, Policy::Srpt), SimError::NoArrivals);
        assert_eq!(refused(&[(0, 1)], 0, Policy::Srpt), SimError::ZeroRate);
        assert_eq!(
            refused(&[(0, 1), (9, 1), (8, 1)], 1, Policy::Fair),
            SimError::Unsorted {
                number: 3,
                at_ns: 8,
                previous_ns: 9
            }
        );
        assert_eq!(
            refused(&[(0, 1), (0, u64::MAX)], 1, Policy::Fifo),
            SimError::TooMuchWork { number: 2 }
        );
    }

    fn jobs() -> impl Strategy<Value = Vec<(u64, u64)>> {
        prop::collection::vec((0..2_000u64, 1..300u64), 1..60).prop_map(|mut jobs| {
            jobs.sort_by_key(|&(at_ns, _)| at_ns);
            jobs
        })
    }

    proptest! {
        /// Schrage 1968. A time of processor sharing is rounded by half a nanosecond at most.
        #[test]
        fn srpt_has_the_smallest_mean_sojourn(jobs in jobs()) {
            let total_ns = |policy| ends_ns(&jobs, policy).iter().sum::<u64>();
            let optimum_ns = total_ns(Policy::Srpt);
            for policy in Policy::ALL {
                prop_assert!(optimum_ns <= total_ns(policy) + jobs.len() as u64, "{policy}");
            }
        }

        /// All jobs end, none takes less than its size, and the last ends when a server that never
        /// idles with work at hand is done.
        #[test]
        fn no_job_is_lost_and_work_is_conserved(jobs in jobs()) {
            let mut drained_ns = 0;
            for &(at_ns, size) in &jobs {
                drained_ns = drained_ns.max(at_ns) + size;
            }
            for policy in Policy::ALL {
                let ends_ns = ends_ns(&jobs, policy);
                prop_assert_eq!(ends_ns.iter().max(), Some(&drained_ns), "{}", policy);
                for (&(at_ns, size), end_ns) in jobs.iter().zip(ends_ns) {
                    prop_assert!(end_ns >= at_ns + size, "{policy}");
                }
            }
        }

        #[test]
        fn fifo_ends_in_the_order_of_arrival(jobs in jobs()) {
            prop_assert!(ends_ns(&jobs, Policy::Fifo).is_sorted());
        }

        /// Time has no scale: a link half as fast with arrivals twice as far apart takes
        /// twice as long.
        #[test]
        fn scales_with_the_rate(jobs in jobs()) {
            let slower: Vec<_> = jobs.iter().map(|&(at_ns, size)| (2 * at_ns, size)).collect();
            for policy in [Policy::Fifo, Policy::Sjf, Policy::Psjf, Policy::Srpt] {
                let sojourns_ns = fluid(&arrivals(&jobs), BYTE_PER_NS, policy).unwrap();
                let doubled: Vec<_> = sojourns_ns.iter().map(|sojourn_ns| 2 * sojourn_ns).collect();
                prop_assert_eq!(fluid(&arrivals(&slower), BYTE_PER_NS / 2, policy).unwrap(), doubled);
            }
        }
    }
}
