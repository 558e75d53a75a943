//! A backend behind the gate, for arrivals that come one after the other and whose types have names: a database's own
//! statements. The order and the estimates are the gate's own code ([`shortline_sched::admission`]), the backend is that of
//! [`crate::Backend`] without thrashing.

use shortline_sched::admission::AdmissionConfig;

use crate::admission::Gated;
use crate::engine::Work;
use crate::fluid::Inside;
use crate::{Backend, SimError};

/// What arrives.
#[derive(Clone, Copy, Debug)]
pub struct NamedArrival<'a> {
    /// When, in nanoseconds.
    pub at_ns: u64,
    /// How long one processor needs for it, in nanoseconds.
    pub work_ns: u64,
    /// The name of its type.
    pub kind: &'a str,
}

/// `T` is what the caller knows a job by.
pub struct GatedBackend<T> {
    gated: Gated,
    inside: Inside<T>,
    arrived_ns: u64,
}

impl<T> GatedBackend<T> {
    /// An idle backend that works on so many jobs at once, behind a gate. At most as many jobs as may wait are inside.
    pub fn new(admission: AdmissionConfig, processors: f64) -> Self {
        let backend = Backend {
            capacity: admission.capacity,
            thrash: None,
        };
        Self {
            inside: Inside::new(admission.queue_max),
            gated: Gated::with(admission, backend, processors),
            arrived_ns: 0,
        }
    }

    /// The next arrival. Before it, `ended` gets each job that ends until then, and how long it was in the system, in
    /// nanoseconds.
    ///
    /// # Errors
    /// [`SimError`] if it is before the one before, or if there are too many jobs.
    pub fn arrive(
        &mut self,
        asked: NamedArrival<'_>,
        job: T,
        ended: &mut impl FnMut(T, u64),
    ) -> Result<(), SimError> {
        if asked.at_ns < self.arrived_ns {
            return Err(SimError::Unsorted {
                number: self.inside.entered() + 1,
                at_ns: asked.at_ns,
                previous_ns: self.arrived_ns,
            });
        }
        self.arrived_ns = asked.at_ns;
        self.run_until(asked.at_ns as f64, ended);
        let slot = self.inside.enter(asked.at_ns, job)?;
        let work_ns = asked.work_ns.max(1);
        let work = Work {
            slot,
            class: 0,
            client: None,
            work_ns: work_ns as f64,
            estimate_ns: work_ns,
        };
        self.gated.submit_as(&work, asked.kind);
        Ok(())
    }

    /// No more arrive: `ended` gets the rest.
    pub fn drain(&mut self, ended: &mut impl FnMut(T, u64)) {
        self.run_until(f64::INFINITY, ended);
    }

    fn run_until(&mut self, until_ns: f64, ended: &mut impl FnMut(T, u64)) {
        while let Some(slot) = self.gated.run_until(until_ns) {
            self.inside.leave(slot, self.gated.now_ns(), ended);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::num::NonZeroUsize;

    use proptest::prelude::*;
    use shortline_sched::admission::{Capacity, OldestShare, Order};

    use super::*;

    fn sojourns_ns(admission: AdmissionConfig, processors: f64, jobs: &[(u64, u64)]) -> Vec<u64> {
        let mut backend = GatedBackend::new(admission, processors);
        let mut sojourns_ns = vec![0; jobs.len()];
        let mut ended = |index: usize, sojourn_ns| sojourns_ns[index] = sojourn_ns;
        for (index, (at_ns, work_ns)) in jobs.iter().enumerate() {
            let kind = if *work_ns > 100 { "long" } else { "short" };
            let asked = NamedArrival {
                at_ns: *at_ns,
                work_ns: *work_ns,
                kind,
            };
            backend.arrive(asked, index, &mut ended).unwrap();
        }
        backend.drain(&mut ended);
        sojourns_ns
    }

    fn one_at_a_time(order: Order) -> AdmissionConfig {
        AdmissionConfig {
            order,
            oldest_share: OldestShare::NONE,
            running_max: NonZeroUsize::new(1),
            stall_ns: None,
            ..AdmissionConfig::default()
        }
    }

    #[test]
    fn the_shortest_known_type_goes_first() {
        // One of each teaches the gate; then a long one runs while two wait.
        let jobs = [
            (0, 1_000),
            (2_000, 10),
            (3_000, 1_000),
            (3_001, 1_000),
            (3_002, 10),
        ];
        let sjf = sojourns_ns(one_at_a_time(Order::Sjf), 1.0, &jobs);
        assert_eq!(sjf, [1_000, 10, 1_000, 2_009, 1_008]);
        let fifo = sojourns_ns(one_at_a_time(Order::Fifo), 1.0, &jobs);
        assert_eq!(fifo, [1_000, 10, 1_000, 1_999, 2_008]);
    }

    #[test]
    fn without_a_limit_it_is_processor_sharing() {
        let off = AdmissionConfig {
            capacity: Capacity::Off,
            ..one_at_a_time(Order::Fifo)
        };
        let off = AdmissionConfig {
            running_max: None,
            ..off
        };
        assert_eq!(
            sojourns_ns(off, 1.0, &[(0, 100), (0, 100), (50, 20)]),
            [220, 220, 60]
        );
    }

    proptest! {
        #[test]
        fn no_job_is_lost_and_none_takes_less_than_its_work(
            jobs in prop::collection::vec((0..500u64, 1..300u64), 1..60), places in 1..4usize
        ) {
            let mut jobs = jobs;
            jobs.sort_unstable();
            for order in [Order::Fifo, Order::Sjf] {
                let admission = AdmissionConfig {
                    running_max: NonZeroUsize::new(places),
                    ..one_at_a_time(order)
                };
                let sojourns_ns = sojourns_ns(admission, places as f64, &jobs);
                for ((_, work_ns), sojourn_ns) in jobs.iter().zip(&sojourns_ns) {
                    prop_assert!(*sojourn_ns + 1 >= *work_ns);
                }
            }
        }
    }
}
