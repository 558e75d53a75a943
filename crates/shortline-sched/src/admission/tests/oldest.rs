//! The theorem of [`crate::admission::oldest`], in virtual time: with known and new types, one at a time and
//! several, at loads below the capacity and lasting ones of twice the capacity and more.

use std::collections::HashMap;

use super::*;

const SIZES: [u64; 6] = [1, 3, 10, 40, 150, 600];

/// The record of a request, in nanoseconds of load.
#[derive(Clone, Debug, Default)]
struct Fate {
    /// The requests that waited or ran when it arrived.
    before: Vec<RequestId>,
    /// The work admitted until it arrived, and until it was admitted.
    admitted_ns: (u64, u64),
    /// Its estimate when it was admitted, and its cost.
    estimate_ns: u64,
    cost_ns: u64,
}

struct World {
    gate: Admission,
    waiting: Vec<RequestId>,
    /// The running requests, with their ends.
    running: Vec<(u64, RequestId)>,
    sizes: HashMap<RequestId, u64>,
    fates: HashMap<RequestId, Fate>,
    admitted_ns: u64,
}

impl World {
    fn new(capacity: &str, share: &str) -> Self {
        let mut gate = Admission::new(AdmissionConfig {
            capacity: capacity.parse().unwrap(),
            oldest_share: share.parse().unwrap(),
            stall_ns: None,
            ..AdmissionConfig::default()
        });
        let known = |service_ns: &u64| KeptEstimate {
            name: service_ns.to_string(),
            service_ns: *service_ns,
            requests: 8,
            spread: None,
        };
        gate.restore(&Kept {
            capacity_ns: None,
            estimates: SIZES.iter().map(known).collect(),
        });
        Self {
            gate,
            waiting: Vec::new(),
            running: Vec::new(),
            sizes: HashMap::new(),
            fates: HashMap::new(),
            admitted_ns: 0,
        }
    }

    fn arrive(&mut self, now_ns: u64, name: &str, size: u64) {
        let kind = self.gate.type_of(name);
        let id = self.gate.arrive(now_ns, kind).unwrap();
        let fate = Fate {
            before: self.inside().collect(),
            admitted_ns: (self.admitted_ns, 0),
            estimate_ns: 0,
            cost_ns: 0,
        };
        self.fates.insert(id, fate);
        self.sizes.insert(id, size);
        self.waiting.push(id);
        self.admit(now_ns);
    }

    fn admit(&mut self, now_ns: u64) {
        while let Some(id) = self.gate.admit_next(now_ns) {
            let fate = self.fates.get_mut(&id).unwrap();
            fate.estimate_ns = self.gate.requests.running(id).unwrap().estimate_ns;
            fate.cost_ns = fate.estimate_ns.max(self.sizes[&id]);
            fate.admitted_ns.1 = self.admitted_ns;
            self.admitted_ns += fate.estimate_ns;
            self.waiting.retain(|&other| other != id);
            self.running.push((now_ns + self.sizes[&id], id));
        }
    }

    fn inside(&self) -> impl Iterator<Item = RequestId> {
        let running = self.running.iter().map(|&(_, id)| id);
        self.waiting.iter().copied().chain(running)
    }

    /// Ends all requests that end until `until_ns`.
    fn run_until(&mut self, until_ns: u64) {
        while let Some(&(end_ns, id)) = self.running.iter().min()
            && end_ns <= until_ns
        {
            self.running.retain(|&(_, other)| other != id);
            self.gate.finish(end_ns, id, Outcome::Completed);
            self.admit(end_ns);
        }
    }
}

/// The largest excess over the theorem's bound, over all requests.
fn excess_ns(world: &World, share: f64, capacity_ns: u64) -> f64 {
    let estimates_ns = world.fates.values().map(|fate| fate.estimate_ns);
    let largest_ns = estimates_ns.max().unwrap_or(0);
    let beyond_ns = largest_ns.saturating_sub(capacity_ns);
    let excess = world.fates.values().map(|fate| {
        let before_ns: u64 = fate.before.iter().map(|id| world.fates[id].cost_ns).sum();
        let work_ns = (before_ns + fate.cost_ns + beyond_ns) as f64;
        let passed_ns = (fate.admitted_ns.1 - fate.admitted_ns.0) as f64;
        passed_ns - (work_ns / share + largest_ns as f64)
    });
    excess.fold(f64::NEG_INFINITY, f64::max)
}

proptest! {
    #[test]
    fn nobody_waits_for_more_than_the_work_before_it_over_the_share(
        jobs in prop::collection::vec((0..4u64, 0..SIZES.len(), 0..20u32), 1..400),
        pace in prop_oneof![Just(1), Just(8), Just(40), Just(200)],
        (share, value) in prop_oneof![Just(("10%", 0.1)), Just(("5%", 0.05)), Just(("50%", 0.5))],
        (capacity, capacity_ns) in prop_oneof![Just(("1ns", 1)), Just(("50ns", 50)), Just(("1us", 1000))],
    ) {
        let mut world = World::new(capacity, share);
        let mut now_ns = 0;
        for (gap, size, novelty) in jobs {
            now_ns += gap * pace;
            world.run_until(now_ns);
            // One in twenty is of an unseen type.
            let name = if novelty == 0 { format!("new {now_ns}") } else { SIZES[size].to_string() };
            world.arrive(now_ns, &name, SIZES[size]);
        }
        world.run_until(u64::MAX);
        prop_assert!(world.waiting.is_empty());
        let excess_ns = excess_ns(&world, value, capacity_ns);
        prop_assert!(excess_ns <= 1e-6, "{excess_ns} ns more than allowed");
    }
}

#[test]
fn without_the_share_the_longest_wait_for_all_that_is_shorter() {
    let passed = |share| {
        let mut world = World::new("1ns", share);
        for _ in 0..2 {
            world.arrive(0, "600", 600);
        }
        // One ends when the next arrives.
        for at_ns in (0..27_000).step_by(3) {
            world.run_until(at_ns);
            world.arrive(at_ns, "3", 3);
        }
        world.run_until(u64::MAX);
        excess_ns(&world, 0.1, 1)
    };
    assert!(passed("0") > 0.0);
    assert!(passed("10%") <= 0.0);
}
