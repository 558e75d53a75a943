//! One link as a fluid server: exact sojourn times of given arrivals under a policy.
//!
//! A job's work is the time that the link needs for its bytes,
//!
//! ```text
//! service = 8e9 * bytes / rate    [ns, to the nearest, at least 1]
//! ```
//!
//! and the server does one nanosecond of work per nanosecond, preempting at no cost. An
//! arrival is the only event after which another job may come first (a job that is being
//! served only gains on the others under `srpt`, and keeps its rank under `fifo`, `sjf`
//! and `psjf`), so the [`Scheduler`] is asked once per arrival and once per departure and
//! the result is exact. `fair` is processor sharing, whose limit no quantum reaches; it
//! is computed by virtual time ([`ProcessorSharing`]). `las` also shares the server,
//! among all jobs of least service; it has no exact simulation here.

use std::collections::HashMap;

use shortline_sched::{JobId, JobSpec, Policy, ProcessorSharing, Scheduler, SchedulerConfig};

/// A request as the link sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it arrives, in nanoseconds.
    pub at_ns: u64,
    /// What its response costs on the link, in bytes ([`crate::wire`]).
    pub bytes: u64,
}

/// Arrivals that cannot be simulated. Arrivals count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// There is nothing to simulate.
    #[error("no arrivals: at least one is needed")]
    NoArrivals,
    /// The link would never end a job.
    #[error("rate 0: must be above 0 bits per second")]
    ZeroRate,
    /// Arrivals are not in the order of time.
    #[error("arrival {number} at {at_ns} ns: must not be before the previous, at {previous_ns} ns")]
    Unsorted {
        /// Which arrival.
        number: usize,
        /// When it arrives.
        at_ns: u64,
        /// When the one before it arrives.
        previous_ns: u64,
    },
    /// The last job would end after the end of 64-bit time.
    #[error("arrival {number}: all work until then takes more than 584 years at this rate")]
    TooMuchWork {
        /// The arrival with which it becomes too much.
        number: usize,
    },
    /// The policy has no exact fluid simulation.
    #[error("policy `{0}`: not simulated yet; use fair, fifo, sjf, psjf or srpt")]
    PolicyUnsupported(Policy),
}

/// How long each arrival is in the system, in nanoseconds, in the order of `arrivals`,
/// on a link of `rate_bps` under `policy`.
///
/// # Errors
/// [`SimError`] for arrivals that are none or not in order, a rate of 0, more work than
/// 64-bit time holds, and for the policy `las`.
pub fn fluid(arrivals: &[Arrival], rate_bps: u64, policy: Policy) -> Result<Vec<u64>, SimError> {
    let services_ns = services(arrivals, rate_bps)?;
    match policy {
        Policy::Fair => Ok(share(arrivals, &services_ns)),
        Policy::Fifo | Policy::Sjf | Policy::Psjf | Policy::Srpt => {
            Ok(Server::new(arrivals, &services_ns, policy).run())
        }
        Policy::Las => Err(SimError::PolicyUnsupported(policy)),
    }
}

/// How long the link needs for so many bytes, in nanoseconds: to the nearest, at least 1;
/// `u64::MAX` if it is more than that or the rate is 0.
pub fn service_ns(bytes: u64, rate_bps: u64) -> u64 {
    let scaled = u128::from(bytes) * 8_000_000_000 + u128::from(rate_bps / 2);
    scaled
        .checked_div(u128::from(rate_bps))
        .and_then(|service_ns| u64::try_from(service_ns).ok())
        .unwrap_or(u64::MAX)
        .max(1)
}

/// The service time of each arrival, once it is sure that all can be simulated.
fn services(arrivals: &[Arrival], rate_bps: u64) -> Result<Vec<u64>, SimError> {
    if arrivals.is_empty() {
        return Err(SimError::NoArrivals);
    }
    if rate_bps == 0 {
        return Err(SimError::ZeroRate);
    }
    let mut previous_ns = 0;
    let mut drained_ns = 0u64;
    let mut services_ns = Vec::with_capacity(arrivals.len());
    for (number, &Arrival { at_ns, bytes }) in (1..).zip(arrivals) {
        if at_ns < previous_ns {
            return Err(SimError::Unsorted {
                number,
                at_ns,
                previous_ns,
            });
        }
        previous_ns = at_ns;
        let service_ns = service_ns(bytes, rate_bps);
        drained_ns = drained_ns
            .max(at_ns)
            .checked_add(service_ns)
            .ok_or(SimError::TooMuchWork { number })?;
        services_ns.push(service_ns);
    }
    Ok(services_ns)
}

/// Sojourn times under processor sharing.
fn share(arrivals: &[Arrival], services_ns: &[u64]) -> Vec<u64> {
    let mut server = ProcessorSharing::new();
    let mut sojourns_ns = vec![0; arrivals.len()];
    let mut depart_until = |server: &mut ProcessorSharing, until_ns| {
        while let Some(departure) = server.depart_until(until_ns) {
            sojourns_ns[departure.job] = departure.at_ns - arrivals[departure.job].at_ns;
        }
    };
    for (job, (arrival, &service_ns)) in arrivals.iter().zip(services_ns).enumerate() {
        depart_until(&mut server, arrival.at_ns);
        server.submit(job, service_ns);
    }
    depart_until(&mut server, u64::MAX);
    sojourns_ns
}

/// A server that does the scheduler's next job until it ends or another one arrives.
struct Server<'a> {
    arrivals: &'a [Arrival],
    services_ns: &'a [u64],
    scheduler: Scheduler,
    now_ns: u64,
    /// How many have arrived.
    arrived: usize,
    /// Which arrival each job present is.
    present: HashMap<JobId, usize>,
    sojourns_ns: Vec<u64>,
}

impl<'a> Server<'a> {
    fn new(arrivals: &'a [Arrival], services_ns: &'a [u64], policy: Policy) -> Self {
        Self {
            arrivals,
            services_ns,
            scheduler: Scheduler::new(SchedulerConfig {
                policy,
                aging: None,
                jobs_max: arrivals.len(),
            }),
            now_ns: 0,
            arrived: 0,
            present: HashMap::new(),
            sojourns_ns: vec![0; arrivals.len()],
        }
    }

    fn run(mut self) -> Vec<u64> {
        loop {
            self.admit();
            match self.scheduler.take(self.now_ns) {
                Some(id) => self.serve(id),
                None => match self.arrival_next_ns() {
                    Some(at_ns) => self.now_ns = at_ns,
                    None => return self.sojourns_ns,
                },
            }
        }
    }

    fn arrival_next_ns(&self) -> Option<u64> {
        Some(self.arrivals.get(self.arrived)?.at_ns)
    }

    /// Lets in all that have arrived by now.
    fn admit(&mut self) {
        while let Some(at_ns) = self.arrival_next_ns()
            && at_ns <= self.now_ns
        {
            let service_ns = self.services_ns[self.arrived];
            let id = self.scheduler.submit(JobSpec {
                arrival_ns: at_ns,
                work: service_ns,
                service_ns_expected: service_ns,
            });
            let id = id.expect("invariant: the scheduler has room for all arrivals");
            self.present.insert(id, self.arrived);
            self.arrived += 1;
        }
    }

    /// Does a job until it ends, or until the next arrival if that is earlier.
    fn serve(&mut self, id: JobId) {
        let remaining_ns = self.scheduler.job(id).map_or(0, |job| job.remaining());
        let end_ns = self.now_ns + remaining_ns;
        match self.arrival_next_ns() {
            Some(at_ns) if at_ns < end_ns => {
                self.scheduler.record(id, at_ns - self.now_ns);
                self.scheduler.resume(id);
                self.now_ns = at_ns;
            }
            _ => {
                self.scheduler.remove(id);
                self.now_ns = end_ns;
                if let Some(arrival) = self.present.remove(&id) {
                    self.sojourns_ns[arrival] = end_ns - self.arrivals[arrival].at_ns;
                }
            }
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
    const SIMULATED: [Policy; 5] = [
        Policy::Fair,
        Policy::Fifo,
        Policy::Sjf,
        Policy::Psjf,
        Policy::Srpt,
    ];

    fn arrivals(jobs: &[(u64, u64)]) -> Vec<Arrival> {
        jobs.iter()
            .map(|&(at_ns, bytes)| Arrival { at_ns, bytes })
            .collect()
    }

    /// When each job ends, jobs given as (arrival, size).
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
        // One that arrives just as another ends does not come before it.
        assert_eq!(ends_ns(&[(0, 10), (10, 8)], Policy::Psjf), [10, 18]);
        assert_eq!(ends_ns(&[(0, 10), (3, 8)], Policy::Srpt), [10, 18]);
        assert_eq!(ends_ns(&[(0, 20), (10, 2)], Policy::Fair), [22, 14]);
    }

    #[test]
    fn service_is_the_time_on_the_link_to_the_nearest_nanosecond() {
        assert_eq!(service_ns(1250, 10_000_000), 1_000_000);
        assert_eq!(service_ns(2, 3 * BYTE_PER_NS), 1);
        assert_eq!(service_ns(5, 3 * BYTE_PER_NS), 2);
        assert_eq!(service_ns(0, 10_000_000), 1);
        assert_eq!(service_ns(u64::MAX, 1), u64::MAX);
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
        assert_eq!(
            refused(&[(0, 1)], 1, Policy::Las),
            SimError::PolicyUnsupported(Policy::Las)
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
            for policy in SIMULATED {
                prop_assert!(optimum_ns <= total_ns(policy) + jobs.len() as u64, "{policy}");
            }
        }

        /// All end, none before its size, and the last when a server that never idles with
        /// work at hand is done.
        #[test]
        fn no_job_is_lost_and_work_is_conserved(jobs in jobs()) {
            let mut drained_ns = 0;
            for &(at_ns, size) in &jobs {
                drained_ns = drained_ns.max(at_ns) + size;
            }
            for policy in SIMULATED {
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
