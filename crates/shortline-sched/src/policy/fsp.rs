//! `fsp`: fair sojourn protocol. Jobs go in the order in which processor sharing would end them.
//!
//! Source: Friedman and Henderson, SIGMETRICS 2003, cited by papers 000 and 004 2.1.2. The job that
//! processor sharing (PS) would end first gets the whole server. So no job ends later than under
//! PS: by then all work that PS has done for this job and those before it has been done.
//!
//! A twin server under PS runs beside the real one, in virtual time ([`crate::processor_sharing`]).
//! A job's place in the twin's order is fixed at its arrival, and no later arrival changes it. So
//! the order costs nothing to keep, and the time matters only when a job arrives. The twin does a
//! second of expected service per second, so `fsp` needs drivers that know how fast they serve. A
//! job that leaves before its end (its client has gone) leaves the twin, too. A job that the real
//! server has ended stays until the twin has ended it. The twin holds as many jobs as the scheduler
//! may. If one more arrives, the twin's first to end leaves it early.
//!
//! Ties under PS go by arrival. Virtual time is held to 2^-64 ns, so equal ends can differ by
//! rounding. Until the server is idle, each arrival adds less than 2^-64 ns to the twin's error for
//! each job present. So a job that ends within 2^-24 ns of one that the twin holds takes that one's
//! rank. Ties stay ties as long as the jobs present, summed over the arrivals without an idle
//! moment, are below 2^40 (a thousand jobs at each of a thousand million arrivals). Ranks are
//! virtual ends to the nearest 1/1024 ns, so closer ends may count as a tie. They reach 200 days of
//! PS without an idle moment; beyond that, the order is that of arrival.

use std::collections::BTreeMap;

use super::Needs;
use crate::job::Job;
use crate::processor_sharing::{Instant64, VirtualTime};

pub(super) const NEEDS: Needs = Needs::Rate;

/// Fraction bits of virtual time that ranks leave out.
const UNRANKED_BITS: u32 = 54;

/// Virtual ends within 2^-24 ns of each other differ only by rounding.
const TOGETHER: Instant64 = 1 << 40;

/// The server under processor sharing.
#[derive(Clone, Debug)]
pub(crate) struct Twin {
    /// The latest time that the driver gave.
    now_ns: u64,
    /// The time that the twin has reached; it follows only when it must.
    ran_ns: u64,
    time: VirtualTime,
    /// The ranks of the jobs held, by their ends.
    ending: BTreeMap<End, u64>,
    jobs_max: usize,
    /// What each of the scheduler's slots holds.
    tickets: Vec<Ticket>,
}

/// The virtual time at which a job ends, then its place in the order of submission.
type End = (Instant64, u64);

/// What a job was given at its arrival.
#[derive(Clone, Copy, Debug, Default)]
struct Ticket {
    end: End,
    rank: u64,
}

impl Twin {
    pub(crate) fn new(jobs_max: usize) -> Self {
        Self {
            now_ns: 0,
            ran_ns: 0,
            time: VirtualTime::default(),
            ending: BTreeMap::new(),
            jobs_max: jobs_max.max(1),
            tickets: Vec::new(),
        }
    }

    /// A job arrives, and its rank is fixed. If no other job is held, virtual time may start anew.
    pub(crate) fn submit(&mut self, slot: u32, job: &Job, alone: bool) {
        self.advance_to(job.arrival_ns);
        self.run();
        if alone && self.ending.is_empty() {
            self.time.restart();
        }
        if self.ending.len() >= self.jobs_max {
            self.ending.pop_first();
        }
        let ends = self.time.leaves_at(job.service_ns_expected);
        let ticket = Ticket {
            end: (ends, job.sequence),
            rank: self
                .rank_together(ends)
                .unwrap_or_else(|| nearest_rank(ends)),
        };
        self.ending.insert(ticket.end, ticket.rank);
        let slot = slot as usize;
        if self.tickets.len() <= slot {
            self.tickets.resize(slot + 1, Ticket::default());
        }
        self.tickets[slot] = ticket;
    }

    /// Notes that time has reached `now_ns`.
    pub(crate) fn advance_to(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// A job goes away before its end. The twin may have ended it already.
    pub(crate) fn abandon(&mut self, slot: u32) {
        self.run();
        self.ending.remove(&self.tickets[slot as usize].end);
    }

    /// The rank: the virtual time at which processor sharing ends the job.
    pub(crate) fn rank(&self, slot: u32) -> u64 {
        self.tickets[slot as usize].rank
    }

    fn run(&mut self) {
        if self.ran_ns == self.now_ns {
            return;
        }
        self.ran_ns = self.now_ns;
        while let Some((&(ends, _), _)) = self.ending.first_key_value()
            && self.time.come_to(ends, self.ending.len(), self.now_ns)
        {
            self.ending.pop_first();
        }
        self.time.advance(self.ending.len(), self.now_ns);
    }

    /// The rank of the nearest job whose virtual end ties with this one.
    fn rank_together(&self, ends: Instant64) -> Option<u64> {
        let before = self.ending.range(..=(ends, u64::MAX)).next_back();
        let after = self.ending.range((ends, u64::MAX)..).next();
        before
            .into_iter()
            .chain(after)
            .map(|(&(other, _), &rank)| (other.abs_diff(ends), rank))
            .filter(|&(apart, _)| apart <= TOGETHER)
            .min()
            .map(|(_, rank)| rank)
    }
}

/// A virtual time as a rank.
fn nearest_rank(ends: Instant64) -> u64 {
    let rounded = ends.saturating_add(1 << (UNRANKED_BITS - 1)) >> UNRANKED_BITS;
    u64::try_from(rounded).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNIT: u64 = 1 << (64 - UNRANKED_BITS);

    fn submit(twin: &mut Twin, slot: u32, arrival_ns: u64, service_ns: u64) {
        let job = Job {
            sequence: u64::from(slot),
            ..Job::arrived(arrival_ns, service_ns)
        };
        twin.submit(slot, &job, false);
    }

    #[test]
    fn ranks_are_the_virtual_ends_of_the_known_schedule() {
        let mut twin = Twin::new(10);
        let jobs = [(0, 15), (0, 10), (10, 10), (20, 10)];
        for (slot, (arrival_ns, service_ns)) in (0..).zip(jobs) {
            submit(&mut twin, slot, arrival_ns, service_ns);
        }
        // Two share until 10, three until 20: virtual time is 5 and 8 1/3 then.
        let ranks = [0, 1, 2].map(|slot| twin.rank(slot));
        assert_eq!(ranks, [15 * UNIT, 10 * UNIT, 15 * UNIT]);
        assert_eq!(twin.rank(3), 18 * UNIT + UNIT / 3);
    }

    #[test]
    fn one_that_goes_away_leaves_the_twin_at_the_time_told() {
        let mut twin = Twin::new(10);
        submit(&mut twin, 0, 0, 100);
        submit(&mut twin, 1, 0, 100);
        twin.advance_to(20);
        twin.abandon(0);
        // Two shared for 20, then one is alone for 30.
        submit(&mut twin, 2, 50, 1);
        assert_eq!(twin.rank(2), 41 * UNIT);
    }

    #[test]
    fn one_that_has_ended_under_sharing_does_not_leave_again() {
        let mut twin = Twin::new(10);
        submit(&mut twin, 0, 0, 5);
        submit(&mut twin, 1, 10, 50);
        twin.abandon(0);
        submit(&mut twin, 2, 20, 50);
        submit(&mut twin, 3, 40, 50);
        // The second alone for 10, then two for 20.
        assert_eq!(twin.rank(3), (5 + 10 + 10 + 50) * UNIT);
    }

    #[test]
    fn virtual_time_starts_anew_when_nobody_is_there() {
        let mut twin = Twin::new(10);
        submit(&mut twin, 0, 0, 5);
        let alone = Job {
            sequence: 1,
            ..Job::arrived(100, 7)
        };
        twin.submit(0, &alone, true);
        assert_eq!(twin.rank(0), 7 * UNIT);
    }

    #[test]
    fn holds_no_more_jobs_than_it_may() {
        let mut twin = Twin::new(3);
        for slot in 0..100 {
            submit(&mut twin, slot, 0, 1_000_000);
        }
        assert_eq!(twin.ending.len(), 3);
    }

    /// The ranks of jobs given as (arrival, service).
    fn ranks(jobs: &[(u64, u64)]) -> Vec<u64> {
        let mut twin = Twin::new(jobs.len());
        for (slot, &(arrival_ns, service_ns)) in (0..).zip(jobs) {
            submit(&mut twin, slot, arrival_ns, service_ns);
        }
        (0..jobs.len() as u32).map(|slot| twin.rank(slot)).collect()
    }

    #[test]
    fn jobs_that_end_together_after_times_divided_by_three_have_one_rank() {
        // The third and the last end at 9 and at 9.5; their ranks were one apart, in the first
        // case so that the later one went first.
        let at_9 = [(1, 4), (3, 1), (3, 7), (5, 1), (6, 1), (10, 4), (12, 4)];
        let found = ranks(&at_9);
        assert_eq!(found[2], 9 * UNIT);
        assert_eq!(found[6], 9 * UNIT);
        let at_9_and_a_half = [(0, 5), (3, 2), (4, 6), (5, 1), (6, 1), (11, 4)];
        let found = ranks(&at_9_and_a_half);
        assert_eq!(found[2], 9 * UNIT + UNIT / 2);
        assert_eq!(found[5], 9 * UNIT + UNIT / 2);
    }

    /// A fraction in lowest terms.
    type Fraction = (i128, i128);

    fn reduced(above: i128, below: i128) -> Fraction {
        let (mut a, mut b) = (above, below);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        (above / a.abs().max(1), below / a.abs().max(1))
    }

    fn sum(a: Fraction, b: Fraction) -> Fraction {
        reduced(a.0 * b.1 + b.0 * a.1, a.1 * b.1)
    }

    fn is_before(a: Fraction, b: Fraction) -> bool {
        a.0 * b.1 < b.0 * a.1
    }

    /// The virtual ends of jobs given as (arrival, work) in the order of arrival, in exact fractions.
    fn exact_ends(jobs: &[(u64, u64)]) -> Vec<Fraction> {
        let (mut now, mut virtual_now): (Fraction, Fraction) = ((0, 1), (0, 1));
        let mut ends: Vec<Fraction> = Vec::new();
        for &(arrival, work) in jobs {
            let arrival = (i128::from(arrival), 1);
            loop {
                let sharing = ends.iter().filter(|end| is_before(virtual_now, **end));
                let first = sharing
                    .clone()
                    .copied()
                    .reduce(|a, b| if is_before(b, a) { b } else { a });
                let count = sharing.count() as i128;
                let Some(first) = first else { break };
                let each = sum(first, (-virtual_now.0, virtual_now.1));
                let at = sum(now, (each.0 * count, each.1));
                if is_before(arrival, at) {
                    let passed = sum(arrival, (-now.0, now.1));
                    virtual_now = sum(virtual_now, reduced(passed.0, passed.1 * count));
                    break;
                }
                (now, virtual_now) = (at, first);
            }
            now = arrival;
            ends.push(sum(virtual_now, (i128::from(work), 1)));
        }
        ends
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        /// Ranks are in the order of the ends under sharing, and even where these are.
        #[test]
        fn ties_of_jobs_that_share_in_thirds_and_other_parts_are_kept(
            jobs in prop::collection::vec((0..24u64, 1..7u64), 4..17)
        ) {
            let mut jobs = jobs;
            jobs.sort_by_key(|job| job.0);
            let mut twin = Twin::new(100);
            for (slot, &(arrival_ns, service_ns)) in (0..).zip(&jobs) {
                submit(&mut twin, slot, arrival_ns, service_ns);
            }
            let ends = exact_ends(&jobs);
            for one in 0..jobs.len() {
                for other in 0..jobs.len() {
                    let ranks = (twin.rank(one as u32), twin.rank(other as u32));
                    if ends[one] == ends[other] {
                        prop_assert_eq!(ranks.0, ranks.1, "{:?}", &jobs);
                    } else if is_before(ends[one], ends[other]) {
                        prop_assert!(ranks.0 <= ranks.1, "{:?}", &jobs);
                    }
                }
            }
        }
    }
}
