//! The twin: when the same jobs would have ended under fair sharing among clients, for the same arrivals and rate.
//!
//! Clients share the rate by their weights, and a client's jobs share what it has equally. Each level has the virtual time of
//! fair queueing (Demers, Keshav, Shenker 1989), as [`ProcessorSharing`](crate::ProcessorSharing) has one. With the rate R, the
//! weights W of all clients that have jobs, and n jobs of a client with weight w:
//!
//! ```text
//! dV = R / W dt         what each client has had, per unit of its weight
//! dv = w / n dV         what each job of the client has had
//! a job of b bytes that comes at v ends at v + b
//! ```
//!
//! So the next job to end is the next of the client whose V at that is the least. An event costs O(log n).
//!
//! The driver says what the rate is, which may change, and of a job whose size is not known beforehand, when it ends. A job
//! that has gone (its client left) takes nothing from then on. V is 0 whenever nobody is there, which keeps `f64` precise.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::job::Client;

/// The bits of a float that is not negative: their order is that of the float.
type Order = u64;

/// Fair sharing of the same jobs; see the module's text.
#[derive(Clone, Debug)]
pub struct Twin {
    jobs_max: usize,
    now_ns: u64,
    /// What is left of the nanosecond that ends now: a job ended within it, and nobody has had the rest yet.
    left_ns: f64,
    /// What each client has had per unit of its weight.
    level: f64,
    weights: f64,
    clients: HashMap<u128, Sharer>,
    /// When each client's next job ends, by `level`.
    next: BTreeSet<(Order, u128)>,
    jobs: HashMap<u64, Place>,
    arrivals: u64,
}

/// A client that has jobs.
#[derive(Clone, Debug)]
struct Sharer {
    weight: f64,
    /// What each of its jobs has had, when the level was `at_level`.
    served: f64,
    at_level: f64,
    /// Its jobs of known size, by what they will have had at their end.
    ending: BTreeMap<(Order, u64), u64>,
    /// Its jobs of unknown size.
    endless: usize,
    /// Where it stands in `next`.
    next: Option<Order>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    client: u128,
    /// `None` if its size is not known.
    key: Option<(Order, u64)>,
}

/// A job that has had all its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairEnd {
    /// Its name.
    pub job: u64,
    /// When.
    pub at_ns: u64,
}

impl Twin {
    /// Without jobs, of which at most `jobs_max` are let in at a time.
    pub fn new(jobs_max: usize) -> Self {
        Self {
            jobs_max,
            now_ns: 0,
            left_ns: 0.0,
            level: 0.0,
            weights: 0.0,
            clients: HashMap::new(),
            next: BTreeSet::new(),
            jobs: HashMap::new(),
            arrivals: 0,
        }
    }

    /// Comes to `until_ns` at this rate. The next job to end, if one does by then; `None`: it has come there. To be called
    /// until it says so.
    pub fn end_until(&mut self, until_ns: u64, bytes_per_s: f64) -> Option<FairEnd> {
        let until_ns = until_ns.max(self.now_ns);
        let rate = bytes_per_s / 1e9;
        if let Some(&(order, client)) = self.next.first() {
            let level = f64::from_bits(order).max(self.level);
            // Without a rate 0 / 0 is no number, and `max` takes the other: a job that has had all ends now.
            let exact_ns = ((level - self.level) * self.weights / rate).max(0.0) - self.left_ns;
            let after_ns = exact_ns.max(0.0).ceil();
            if after_ns <= (until_ns - self.now_ns) as f64 {
                self.now_ns += after_ns as u64;
                self.left_ns = after_ns - exact_ns;
                self.level = level;
                return self.end_next(client);
            }
        }
        if self.weights > 0.0 {
            self.level += ((until_ns - self.now_ns) as f64 + self.left_ns) * rate / self.weights;
        }
        (self.now_ns, self.left_ns) = (until_ns, 0.0);
        None
    }

    /// A job comes now. `bytes` is `None` if only its end tells them. Returns whether it is let in.
    pub fn arrive(&mut self, job: u64, client: Client, bytes: Option<u64>) -> bool {
        if self.jobs.len() >= self.jobs_max || self.jobs.contains_key(&job) {
            return false;
        }
        let level = self.level;
        let sharer = self.clients.entry(client.name).or_insert_with(|| {
            let weight = f64::from(client.weight.get());
            self.weights += weight;
            Sharer::new(weight, level)
        });
        sharer.come_to(level);
        let key = bytes.map(|bytes| (order(sharer.served + bytes as f64), self.arrivals));
        self.arrivals += 1;
        match key {
            Some(key) => drop(sharer.ending.insert(key, job)),
            None => sharer.endless += 1,
        }
        let place = Place {
            client: client.name,
            key,
        };
        self.jobs.insert(job, place);
        self.place(client.name);
        true
    }

    /// A job goes now, if it is still there.
    pub fn leave(&mut self, job: u64) -> bool {
        let Some(Place { client, key }) = self.jobs.remove(&job) else {
            return false;
        };
        if let Some(sharer) = self.clients.get_mut(&client) {
            sharer.come_to(self.level);
            match key {
                Some(key) => drop(sharer.ending.remove(&key)),
                None => sharer.endless -= 1,
            }
        }
        self.place(client);
        true
    }

    /// Forgets all jobs.
    pub fn clear(&mut self) {
        *self = Self {
            now_ns: self.now_ns,
            ..Self::new(self.jobs_max)
        };
    }

    /// How many jobs there are.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn end_next(&mut self, client: u128) -> Option<FairEnd> {
        let sharer = self.clients.get_mut(&client)?;
        sharer.come_to(self.level);
        let ((served, _), job) = sharer.ending.pop_first()?;
        // What rounding leaves of it is nothing.
        sharer.served = sharer.served.max(f64::from_bits(served));
        self.jobs.remove(&job);
        self.place(client);
        Some(FairEnd {
            job,
            at_ns: self.now_ns,
        })
    }

    /// Puts a client where its next job says, or out if it has none.
    fn place(&mut self, client: u128) {
        let Some(sharer) = self.clients.get_mut(&client) else {
            return;
        };
        if let Some(order) = sharer.next.take() {
            self.next.remove(&(order, client));
        }
        if sharer.jobs() == 0 {
            self.weights -= sharer.weight;
            self.clients.remove(&client);
            if self.clients.is_empty() {
                (self.level, self.weights) = (0.0, 0.0);
            }
            return;
        }
        if let Some(level) = sharer.ends_at() {
            sharer.next = Some(order(level));
            self.next.insert((order(level), client));
        }
    }
}

impl Sharer {
    fn new(weight: f64, level: f64) -> Self {
        Self {
            weight,
            served: 0.0,
            at_level: level,
            ending: BTreeMap::new(),
            endless: 0,
            next: None,
        }
    }

    fn jobs(&self) -> usize {
        self.ending.len() + self.endless
    }

    fn come_to(&mut self, level: f64) {
        if self.jobs() > 0 {
            self.served += (level - self.at_level) * self.weight / self.jobs() as f64;
        }
        self.at_level = level;
    }

    /// The level at which its next job ends, if no other comes or goes.
    fn ends_at(&self) -> Option<f64> {
        let ((served, _), _) = self.ending.first_key_value()?;
        let left = (f64::from_bits(*served) - self.served).max(0.0);
        Some(self.at_level + left * self.jobs() as f64 / self.weight)
    }
}

/// # Panics
/// Never: a level is not negative.
fn order(level: f64) -> Order {
    level.max(0.0).to_bits()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::*;
    use crate::ProcessorSharing;

    /// A byte each nanosecond.
    const RATE: f64 = 1e9;

    fn client(name: u128, weight: u32) -> Client {
        Client {
            name,
            weight: NonZeroU32::new(weight).unwrap(),
        }
    }

    /// When each of these jobs, (arrival, client, weight, bytes), ends.
    fn ends(jobs: &[(u64, u128, u32, u64)]) -> Vec<u64> {
        let mut twin = Twin::new(1000);
        let mut ends = vec![0; jobs.len()];
        for (job, (arrival_ns, name, weight, bytes)) in jobs.iter().enumerate() {
            while let Some(end) = twin.end_until(*arrival_ns, RATE) {
                ends[end.job as usize] = end.at_ns;
            }
            assert!(twin.arrive(job as u64, client(*name, *weight), Some(*bytes)));
        }
        while let Some(end) = twin.end_until(1 << 40, RATE) {
            ends[end.job as usize] = end.at_ns;
        }
        assert!(twin.is_empty());
        ends
    }

    #[test]
    fn clients_share_and_not_their_jobs() {
        // The second client has half, however many jobs the first has.
        assert_eq!(
            ends(&[(0, 1, 1, 100), (0, 1, 1, 100), (0, 2, 1, 100)]),
            [300, 300, 200]
        );
        // By weight: a quarter and three quarters.
        assert_eq!(ends(&[(0, 1, 1, 100), (0, 2, 3, 90)]), [190, 120]);
        // A job that comes later.
        assert_eq!(ends(&[(0, 1, 1, 20), (10, 2, 1, 2)]), [22, 14]);
    }

    #[test]
    fn who_leaves_takes_nothing_from_then_on() {
        let mut twin = Twin::new(10);
        assert!(twin.arrive(1, client(1, 1), Some(100)));
        assert!(twin.arrive(2, client(2, 1), None));
        assert_eq!(twin.end_until(100, RATE), None);
        assert!(twin.leave(2));
        assert!(!twin.leave(2));
        assert_eq!(
            twin.end_until(1000, RATE),
            Some(FairEnd { job: 1, at_ns: 150 })
        );
        assert_eq!(twin.end_until(1000, RATE), None);
    }

    #[test]
    fn the_rate_may_change_and_be_nothing() {
        let mut twin = Twin::new(10);
        assert!(twin.arrive(1, client(1, 1), Some(100)));
        assert_eq!(twin.end_until(50, RATE), None);
        assert_eq!(twin.end_until(1000, 0.0), None);
        assert_eq!(twin.end_until(2000, RATE / 2.0).unwrap().at_ns, 1100);
    }

    #[test]
    fn no_more_jobs_are_let_in_than_may_be() {
        let mut twin = Twin::new(1);
        assert!(twin.arrive(1, client(1, 1), None));
        assert!(!twin.arrive(2, client(1, 1), None));
        assert_eq!(twin.len(), 1);
        twin.clear();
        assert!(twin.is_empty() && twin.arrive(2, client(1, 1), Some(1)));
    }

    proptest! {
        /// With a job for each client it is processor sharing.
        #[test]
        fn one_job_a_client_is_processor_sharing(
            mut jobs in prop::collection::vec((0..100_000u64, 1..5_000u64), 1..60)
        ) {
            jobs.sort_unstable();
            let named = jobs.iter().enumerate();
            let named: Vec<_> = named.map(|(at, (arrival, bytes))| (*arrival, at as u128, 1, *bytes)).collect();
            let mut exact = vec![0; jobs.len()];
            let mut server = ProcessorSharing::new();
            for (job, (arrival_ns, bytes)) in jobs.iter().enumerate() {
                while let Some(left) = server.depart_until(*arrival_ns) {
                    exact[left.job] = left.at_ns;
                }
                server.submit(job, *bytes);
            }
            while let Some(left) = server.depart_until(u64::MAX) {
                exact[left.job] = left.at_ns;
            }
            // Both tell whole nanoseconds, and count what is left of one to whoever is still there.
            for (ours, exact) in ends(&named).iter().zip(exact) {
                prop_assert!(ours.abs_diff(exact) <= 1, "{ours} {exact}");
            }
        }

        /// Whatever comes and goes, nothing is lost, and the work of whoever stays is done in time.
        #[test]
        fn work_is_conserved(
            jobs in prop::collection::vec((0..500u64, 0..4u128, 1..4u32, 1..3_000u64), 1..60)
        ) {
            let mut at_ns = 0;
            let jobs: Vec<_> = jobs.into_iter().map(|(gap, name, weight, bytes)| {
                at_ns += gap;
                (at_ns, name, weight, bytes)
            }).collect();
            let last = *ends(&jobs).iter().max().unwrap();
            let mut empty = 0;
            for (arrival_ns, _, _, bytes) in &jobs {
                empty = empty.max(*arrival_ns) + bytes;
            }
            prop_assert!(last.abs_diff(empty) <= 1, "{last} {empty}");
        }
    }
}
