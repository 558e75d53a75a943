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
//! Ties under PS go by arrival. Virtual ends lie on whole 1/1024 ns, as if each job were
//! larger or smaller by half of that at most, and reach 200 days of PS without an idle
//! moment; beyond, the order is that of arrival.

use super::Needs;
use crate::heap::IndexedHeap;
use crate::job::Job;
use crate::processor_sharing::{Instant64, VirtualTime};

pub(super) const NEEDS: Needs = Needs::Rate;

/// Fraction bits of virtual time that ranks leave out.
const UNRANKED_BITS: u32 = 54;

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
        let rank = rank(self.time.leaves_at(job.service_ns_expected));
        let place = self.take_place();
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
        while let Some(((rank, _), _)) = self.ending.first()
            && self
                .time
                .come_to(ends(rank), self.ending.len(), self.now_ns)
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
            self.places_used += 1;
            self.places_used - 1
        })
    }
}

/// The virtual time that a rank stands for.
fn ends(rank: u64) -> Instant64 {
    Instant64::from(rank) << UNRANKED_BITS
}

/// The rank of a virtual time: rounded, so that jobs which end together under PS are even.
fn rank(ends: Instant64) -> u64 {
    let rounded = ends.saturating_add(1 << (UNRANKED_BITS - 1)) >> UNRANKED_BITS;
    u64::try_from(rounded).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
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
