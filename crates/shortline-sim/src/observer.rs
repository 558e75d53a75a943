//! Who watches a replication: gets its jobs one by one, and may end it.
//!
//! Results are sums in memory of a fixed size; a caller who wants each job keeps what it likes of
//! what it is shown here.

/// Watches one replication, in the thread that runs it. `()` watches nothing.
pub trait Observer: Send {
    /// A job that is counted has left the systems of all policies. Jobs come in the order in which
    /// they do that.
    fn job(&mut self, job: &JobEnd<'_>);

    /// Whether the run is to be given up ([`crate::SimError::Cancelled`]); asked every few thousand
    /// jobs.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// A job that is counted and has left all systems.
#[derive(Clone, Copy, Debug)]
pub struct JobEnd<'a> {
    /// Its place in the order of arrival, from 0 for the first that is counted.
    pub number: u64,
    /// When it arrived, in nanoseconds.
    pub at_ns: u64,
    /// Its size in bytes on the link.
    pub bytes: f64,
    /// How long it would have taken alone, in nanoseconds.
    pub alone_ns: f64,
    /// When it was first served under each policy, in nanoseconds, in its user's last attempt; not a number if it
    /// never was. Where jobs share, that is when it could be served.
    pub starts_ns: &'a [f64],
    /// How long it was in the system under each policy, in nanoseconds; below 0 if its user gave up.
    pub sojourns_ns: &'a [f64],
}

impl Observer for () {
    fn job(&mut self, _job: &JobEnd<'_>) {}
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::num::NonZeroU32;

    use shortline_sched::Policy;

    use super::*;
    use crate::arrivals::Job;
    use crate::{SimError, Simulation};

    /// Keeps what a test wants to know of each job.
    struct Keeps(Vec<(u64, Vec<f64>, Vec<f64>)>);

    impl Observer for Keeps {
        fn job(&mut self, job: &JobEnd<'_>) {
            self.0
                .push((job.number, job.starts_ns.to_vec(), job.sojourns_ns.to_vec()));
        }
    }

    struct Cancels;

    impl Observer for Cancels {
        fn job(&mut self, _job: &JobEnd<'_>) {}

        fn is_cancelled(&self) -> bool {
            true
        }
    }

    /// A byte takes a nanosecond; stretch runs processor sharing beside the policies.
    fn simulation(policies: &[Policy]) -> Simulation {
        Simulation {
            stretch: true,
            ..Simulation::new(policies.to_vec(), 8_000_000_000)
        }
    }

    /// So many jobs of 10 bytes, all at once.
    fn at_once(
        count: u64,
    ) -> impl Fn(u32) -> Result<std::vec::IntoIter<Result<Job, SimError>>, SimError> {
        move |_| {
            let job = |_| {
                Ok(Job {
                    at_ns: 0,
                    bytes: 10.0,
                })
            };
            Ok((0..count).map(job).collect::<Vec<_>>().into_iter())
        }
    }

    #[test]
    fn each_counted_job_is_shown_once_with_its_times_under_each_policy() {
        let simulation = Simulation {
            warmup_jobs: 1,
            ..simulation(&[Policy::Fifo, Policy::Fair])
        };
        let two = NonZeroU32::new(2).unwrap();
        let (results, kept) = simulation
            .run_observed(two, at_once(3), |_| Keeps(Vec::new()))
            .unwrap();
        assert_eq!(kept.len(), 2);
        for Keeps(mut jobs) in kept {
            jobs.sort_by_key(|(number, ..)| *number);
            // The first is the warm-up.
            let second = (0, vec![10.0, 0.0], vec![20.0, 30.0]);
            assert_eq!(jobs, [second, (1, vec![20.0, 0.0], vec![30.0, 30.0])]);
        }
        assert_eq!(results[0].sojourn_mean, 25e-9);
        assert_eq!(
            simulation.run(two, at_once(3)).unwrap()[0].sojourn_mean,
            25e-9
        );
    }

    #[test]
    fn a_run_ends_soon_after_its_observer_has_had_enough() {
        let run = |count| {
            let one = NonZeroU32::MIN;
            simulation(&[Policy::Srpt]).run_observed(one, at_once(count), |_| Cancels)
        };
        // All arrive before the first can end, so this is while the queue drains.
        assert_eq!(run(100_000).err(), Some(SimError::Cancelled));
        // Too few to be asked.
        assert!(run(10).is_ok());
    }
}
