//! Processor sharing, exactly: all jobs present are served at once, each at 1/n.
//!
//! The formula is the virtual time of fair queueing (Demers, Keshav, Shenker 1989). With n jobs
//! present, virtual time V advances by dt/n; a job of work w that arrives at V leaves at V + w. So
//! jobs leave in the order of their V + w, which no later arrival changes, and an event costs O(log
//! n), however many jobs share.
//!
//! `fsp` runs its twin on this virtual time. The tests of this crate and of the simulator hold
//! shared servers against [`ProcessorSharing`] itself.
//!
//! Times are held to 2^-64 ns in 128 bits. Only the division by n at an arrival rounds, by less
//! than 2^-64 ns for each of the n. No departure adds error: what is wrong about one job's work
//! goes to those who stay, in equal parts. So no virtual time is further off than 2^-64 ns times
//! the jobs present, summed over the arrivals since the server was last idle. Times of departure
//! are rounded to the nearest nanosecond.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A server that shares itself equally among its jobs.
#[derive(Clone, Debug, Default)]
pub struct ProcessorSharing {
    time: VirtualTime,
    /// Jobs by the virtual time at which they leave; ties in the order of arrival.
    leaving: BinaryHeap<Reverse<(Instant64, u64, usize)>>,
    arrivals: u64,
}

/// A job that has had all its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When it left, in nanoseconds.
    pub at_ns: u64,
    /// The name it was submitted by.
    pub job: usize,
}

/// Nanoseconds in units of 2^-64.
pub(crate) type Instant64 = u128;

const FRACTION_BITS: u32 = 64;

impl ProcessorSharing {
    /// An idle server at time 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next job to leave, if it leaves by `until_ns`. `None` means that time has advanced to
    /// `until_ns`. Call it until it returns `None` before each arrival.
    pub fn depart_until(&mut self, until_ns: u64) -> Option<Departure> {
        let sharing = self.leaving.len();
        if let Some(&Reverse((leaves, _, _))) = self.leaving.peek()
            && self.time.come_to(leaves, sharing, until_ns)
        {
            let Reverse((_, _, job)) = self.leaving.pop()?;
            let at_ns = nearest_ns(self.time.now);
            return Some(Departure { at_ns, job });
        }
        self.time.advance(sharing, until_ns);
        None
    }

    /// Adds a job of `work_ns` at the present time. `job` is handed back when it leaves.
    pub fn submit(&mut self, job: usize, work_ns: u64) {
        let leaves = self.time.leaves_at(work_ns);
        self.leaving.push(Reverse((leaves, self.arrivals, job)));
        self.arrivals += 1;
    }

    /// How many jobs are present.
    pub fn len(&self) -> usize {
        self.leaving.len()
    }

    /// Whether no job is present.
    pub fn is_empty(&self) -> bool {
        self.leaving.is_empty()
    }
}

/// Real and virtual time, side by side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VirtualTime {
    /// How far real time has advanced.
    now: Instant64,
    /// How much service a job that was always present has had.
    virtual_now: Instant64,
}

impl VirtualTime {
    /// The virtual time at which a job of `work_ns` that arrives now leaves.
    pub(crate) fn leaves_at(&self, work_ns: u64) -> Instant64 {
        self.virtual_now.saturating_add(fixed(work_ns))
    }

    /// Advances to where virtual time is `leaves`, with `sharing` jobs present, if that is by
    /// `until_ns`. Returns whether it did.
    pub(crate) fn come_to(&mut self, leaves: Instant64, sharing: usize, until_ns: u64) -> bool {
        let service_each = leaves.saturating_sub(self.virtual_now);
        let wait = service_each.saturating_mul(sharing as u128);
        let at = self.now.saturating_add(wait);
        if at > fixed(until_ns) {
            return false;
        }
        self.now = at;
        self.virtual_now = leaves;
        true
    }

    /// Advances to `until_ns`; no job leaves before.
    pub(crate) fn advance(&mut self, sharing: usize, until_ns: u64) {
        let elapsed = fixed(until_ns).saturating_sub(self.now);
        if let Some(service_each) = elapsed.checked_div(sharing as u128) {
            self.virtual_now += service_each;
        }
        self.now += elapsed;
    }

    /// Starts virtual time anew, with no job present.
    pub(crate) fn restart(&mut self) {
        self.virtual_now = 0;
    }
}

fn fixed(nanoseconds: u64) -> Instant64 {
    u128::from(nanoseconds) << FRACTION_BITS
}

fn nearest_ns(at: Instant64) -> u64 {
    let half = 1 << (FRACTION_BITS - 1);
    (at.saturating_add(half) >> FRACTION_BITS) as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    /// Times of departure, by job, of jobs given as (arrival, work).
    fn departures(jobs: &[(u64, u64)]) -> Vec<u64> {
        let mut server = ProcessorSharing::new();
        let mut left = vec![None; jobs.len()];
        for (job, &(arrival_ns, work_ns)) in jobs.iter().enumerate() {
            while let Some(departure) = server.depart_until(arrival_ns) {
                left[departure.job] = Some(departure.at_ns);
            }
            server.submit(job, work_ns);
        }
        while let Some(departure) = server.depart_until(u64::MAX) {
            left[departure.job] = Some(departure.at_ns);
        }
        left.into_iter().map(Option::unwrap).collect()
    }

    #[test]
    fn two_equal_jobs_share_to_the_end() {
        assert_eq!(departures(&[(0, 10), (0, 10)]), [20, 20]);
    }

    #[test]
    fn a_small_job_slows_a_large_one_by_its_own_size() {
        // From 10 to 14 both are served at half speed; then the large one is alone.
        assert_eq!(departures(&[(0, 20), (10, 2)]), [22, 14]);
    }

    #[test]
    fn an_idle_server_waits() {
        assert_eq!(departures(&[(5, 1), (100, 3)]), [6, 103]);
    }

    #[test]
    fn thirds_do_not_drift() {
        // Three jobs share; a fourth arrives at a time that three does not divide.
        assert_eq!(
            departures(&[(0, 10), (0, 10), (0, 10), (10, 0)]),
            [30, 30, 30, 10]
        );
    }

    proptest! {
        /// Compared with a server that hands out slices of a thousandth of a nanosecond.
        #[test]
        fn agrees_with_small_slices(
            jobs in prop::collection::vec((0..100u64, 1..20u64), 1..12)
        ) {
            let mut jobs = jobs;
            jobs.sort();
            let exact = departures(&jobs);
            for (exact_ns, sliced_ns) in exact.iter().zip(sliced(&jobs)) {
                prop_assert!((*exact_ns as f64 - sliced_ns).abs() < 0.6, "{exact_ns} {sliced_ns}");
            }
        }

        /// The server is never idle while there is work: the last departure of each busy
        /// period is when a single queue would have emptied.
        #[test]
        fn conserves_work(jobs in prop::collection::vec((0..1000u64, 1..50u64), 1..50)) {
            let mut jobs = jobs;
            jobs.sort();
            let mut drained_ns = 0;
            for &(arrival_ns, work_ns) in &jobs {
                drained_ns = drained_ns.max(arrival_ns) + work_ns;
            }
            prop_assert_eq!(departures(&jobs).into_iter().max(), Some(drained_ns));
        }
    }

    fn sliced(jobs: &[(u64, u64)]) -> Vec<f64> {
        const SLICE: f64 = 1e-3;
        let mut remaining: Vec<f64> = jobs.iter().map(|&(_, work_ns)| work_ns as f64).collect();
        let mut left = vec![None; jobs.len()];
        let mut now = 0.0;
        while left.contains(&None) {
            let present: Vec<usize> = (0..jobs.len())
                .filter(|&job| jobs[job].0 as f64 <= now && left[job].is_none())
                .collect();
            now += SLICE;
            for &job in &present {
                remaining[job] -= SLICE / present.len() as f64;
                if remaining[job] <= 1e-9 {
                    left[job] = Some(now);
                }
            }
        }
        left.into_iter().map(Option::unwrap).collect()
    }
}
