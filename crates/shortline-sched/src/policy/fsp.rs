//! `fsp`: fair sojourn protocol, in the order in which processor sharing would end the jobs.
//!
//! Source: Friedman and Henderson, SIGMETRICS 2003, cited by papers 000 and 004 2.1.2. The
//! job that processor sharing (PS) would end first gets the whole server, so no job ends
//! later than under PS: by then all work that PS has done for this job and those before it
//! has been done.
//!
//! A twin server under PS runs beside the real one, in virtual time
//! ([`crate::processor_sharing`]): a job's place in its order is fixed at its arrival, and no
//! later arrival changes it. So the order costs nothing to keep, and time is looked at only
//! when a job arrives. The twin serves a second of expected service a second: `fsp` needs
//! drivers that know how fast they serve. A job that leaves before its end (its client has
//! gone) leaves the twin, too; one that the real server has ended stays until the twin has
//! ended it. The twin holds as many jobs as the scheduler may; one more, and its first to end
//! leaves it early.
//!
//! Ties under PS go by arrival. Each division of time among jobs loses less than 2^-64 ns, so that
//! jobs which end together may be told so much apart. Ranks are therefore ends in whole 1/1024 ns,
//! while the twin itself goes by the ends as they are: what it rounded would be there at the next
//! arrival, and add up. Where one rank becomes the next is no half, third or other such
//! part of a nanosecond ([`BOUNDARY`]), so that no end is just there. Ranks reach 200 days of PS without an idle
//! moment; beyond, the order is that of arrival.

use super::Needs;
use crate::heap::IndexedHeap;
use crate::job::Job;
use crate::processor_sharing::{Instant64, VirtualTime};

pub(super) const NEEDS: Needs = Needs::Rate;

/// Fraction bits of virtual time that ranks leave out.
const UNRANKED_BITS: u32 = 54;

/// Added to an end before its last bits are left out. Ends are sums of n-th parts of nanoseconds; this is
/// half a rank and a 2^-14th of one, which no sum of n-th parts comes to with n below 2^24 jobs.
const BOUNDARY: Instant64 = (1 << (UNRANKED_BITS - 1)) + (1 << (UNRANKED_BITS - 14));

/// The server under processor sharing.
#[derive(Clone, Debug)]
pub(crate) struct Twin {
    /// The latest time told.
    now_ns: u64,
    /// The time that the twin has come to; it follows only when it must.
    ran_ns: u64,
    time: VirtualTime,
    /// Places by the rank of their job; ties in the order of submission.
    ending: IndexedHeap<(u64, u64)>,
    /// Of each place: the virtual time at which its job ends.
    ends: Vec<Instant64>,
    /// Places below this number have been used.
    places_used: u32,
    places_free: Vec<u32>,
    places_max: usize,
    /// Of each of the scheduler's slots: the rank of its job, and its place.
    tickets: Vec<Ticket>,
}

/// What a job was given at its arrival.
#[derive(Clone, Copy, Debug, Default)]
struct Ticket {
    rank: u64,
    place: u32,
}

impl Twin {
    pub(crate) fn new(jobs_max: usize) -> Self {
        Self {
            now_ns: 0,
            ran_ns: 0,
            time: VirtualTime::default(),
            ending: IndexedHeap::new(),
            ends: Vec::new(),
            places_used: 0,
            places_free: Vec::new(),
            places_max: jobs_max.max(1),
            tickets: Vec::new(),
        }
    }

    /// A job arrives: its rank is fixed. With nobody else held, virtual time may start anew.
    pub(crate) fn submit(&mut self, slot: u32, job: &Job, alone: bool) {
        self.tell_time(job.arrival_ns);
        self.run();
        if alone && self.ending.len() == 0 {
            self.time.restart();
        }
        if self.ending.len() >= self.places_max {
            self.end_first();
        }
        let ends = self.time.leaves_at(job.service_ns_expected);
        let rank = rank(ends);
        let place = self.take_place();
        self.ends[place as usize] = ends;
        self.ending.insert(place, (rank, job.sequence));
        let slot = slot as usize;
        if self.tickets.len() <= slot {
            self.tickets.resize(slot + 1, Ticket::default());
        }
        self.tickets[slot] = Ticket { rank, place };
    }

    /// Time has come to `now_ns`.
    pub(crate) fn tell_time(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// A job goes away before its end.
    pub(crate) fn abandon(&mut self, slot: u32, job: &Job) {
        self.run();
        let Ticket { rank, place } = self.tickets[slot as usize];
        // One that the twin has ended may have left its place to another.
        if self.ending.key(place) == Some((rank, job.sequence)) {
            self.ending.remove(place);
            self.places_free.push(place);
        }
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
        while let Some((_, place)) = self.ending.first()
            && self
                .time
                .come_to(self.ends[place as usize], self.ending.len(), self.now_ns)
        {
            self.end_first();
        }
        self.time.advance(self.ending.len(), self.now_ns);
    }

    fn end_first(&mut self) {
        if let Some((_, place)) = self.ending.first() {
            self.ending.remove(place);
            self.places_free.push(place);
        }
    }

    fn take_place(&mut self) -> u32 {
        self.places_free.pop().unwrap_or_else(|| {
            self.ends.push(0);
            self.places_used += 1;
            self.places_used - 1
        })
    }
}

/// The rank of a virtual time: rounded, so that jobs which end together under PS are even.
fn rank(ends: Instant64) -> u64 {
    let rounded = ends.saturating_add(BOUNDARY) >> UNRANKED_BITS;
    u64::try_from(rounded).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNIT: u64 = 1 << (64 - UNRANKED_BITS);

    fn submit(twin: &mut Twin, slot: u32, arrival_ns: u64, service_ns: u64) -> Job {
        let job = Job {
            sequence: u64::from(slot),
            ..Job::arrived(arrival_ns, service_ns)
        };
        twin.submit(slot, &job, false);
        job
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
        let job = submit(&mut twin, 0, 0, 100);
        submit(&mut twin, 1, 0, 100);
        twin.tell_time(20);
        twin.abandon(0, &job);
        // Two shared for 20, then one is alone for 30.
        submit(&mut twin, 2, 50, 1);
        assert_eq!(twin.rank(2), 41 * UNIT);
    }

    #[test]
    fn one_that_has_ended_under_sharing_does_not_leave_again() {
        let mut twin = Twin::new(10);
        let ended = submit(&mut twin, 0, 0, 5);
        submit(&mut twin, 1, 10, 50);
        twin.abandon(0, &ended);
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

    #[test]
    fn holds_no_more_jobs_than_it_may() {
        let mut twin = Twin::new(3);
        for slot in 0..100 {
            submit(&mut twin, slot, 0, 1_000_000);
        }
        assert_eq!(twin.ending.len(), 3);
        assert_eq!(twin.places_used, 3);
    }
}
