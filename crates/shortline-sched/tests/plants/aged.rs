//! `auto` after an hour of anything: within half a minute it orders as a fresh one does.
//!
//! The hour is random phases: nobody at all, a few clients that think, dozens of threads of short
//! requests, long ones, bursts, and one request of each type after the other, as a test suite has
//! them. Then a hundred clients come that never think. The work done and the number inside, from 30
//! s to 60 s after that, are compared with those of a gate that was started just then.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_sched::admission::{Admission, AdmissionConfig, Capacity, CapacityState};

use crate::backend::{Backend, Job};
use crate::plant::Throughput;

const HOUR_S: f64 = 3600.0;
const SETTLED_S: f64 = 30.0;
const MEASURED_S: f64 = 30.0;
const OVERLOAD_CLIENTS: usize = 100;

/// Name, service time alone in seconds, share of the overload.
const TYPES: [(&str, f64, f64); 4] = [
    ("read", 0.01, 0.6),
    ("write", 0.02, 0.3),
    ("search", 0.04, 0.1),
    ("report", 0.4, 0.0),
];

/// Backends that do less with too much inside, and one that does not.
const CURVES: [Throughput; 4] = [
    Throughput::Knee {
        servers: 4.0,
        knee: 8.0,
        fall: 0.05,
    },
    Throughput::Cliff {
        servers: 4.0,
        edge: 14.0,
        left: 0.3,
    },
    Throughput::Scalability {
        contention: 0.05,
        coherence: 0.01,
    },
    Throughput::Flat { servers: 4.0 },
];

/// A phase.
#[derive(Clone, Copy, Debug)]
struct Phase {
    clients: usize,
    /// The types they choose from.
    types: (usize, usize),
    think_s: f64,
    seconds: f64,
}

impl Phase {
    fn drawn(rng: &mut ChaCha8Rng) -> Self {
        let (clients, types, think_s) = match rng.random_range(0..7) {
            0 => (0, (0, 1), 0.0),
            1 => (3, (0, 3), 0.05),
            2 => (16, (0, 1), 0.0),
            3 => (64, (0, 2), 0.0),
            4 => (rng.random_range(2..40), (3, 4), 0.0),
            // Bursts: all think for equally long.
            5 => (200, (0, 2), 5.0),
            _ => (1, (0, 4), 0.0),
        };
        Self {
            clients,
            types,
            think_s,
            seconds: rng.random_range(5.0..60.0),
        }
    }
}

struct Bed {
    backend: Backend,
    rng: ChaCha8Rng,
}

impl Bed {
    fn new(curve: Throughput, seed: u64) -> Self {
        let gate = Admission::new(AdmissionConfig {
            capacity: Capacity::Auto,
            ..AdmissionConfig::default()
        });
        Self {
            backend: Backend::new(gate, curve),
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// Runs a phase; its clients go away at its end. `draw` gives each request its type.
    fn run(&mut self, phase: Phase, draw: impl Fn(&mut ChaCha8Rng) -> usize) {
        let begin_s = self.backend.now_s();
        // Clients of this phase; only their requests are followed by others.
        let first = 1 + begin_s as usize * 1000;
        for client in first..first + phase.clients {
            let job = self.job(client, &draw);
            self.backend.send(begin_s, job);
        }
        self.go_on(first, begin_s + phase.seconds, phase.think_s, &draw);
        self.backend.forget_coming();
    }

    /// Clients from `first` on send another request when one has ended.
    fn go_on(
        &mut self,
        first: usize,
        until_s: f64,
        think_s: f64,
        draw: impl Fn(&mut ChaCha8Rng) -> usize,
    ) {
        while let Some(ended) = self.backend.next_end(until_s) {
            if ended.job.client >= first {
                let job = self.job(ended.job.client, &draw);
                self.backend.send(ended.end_s + think_s, job);
            }
        }
    }

    fn job(&mut self, client: usize, draw: impl Fn(&mut ChaCha8Rng) -> usize) -> Job {
        let (name, mean_s, _) = TYPES[draw(&mut self.rng)];
        Job {
            name: name.to_owned(),
            work_s: mean_s * self.rng.random_range(0.5..1.5),
            client,
        }
    }

    /// An hour of anything.
    fn age(&mut self) {
        let end_s = self.backend.now_s() + HOUR_S;
        while self.backend.now_s() < end_s {
            let phase = Phase::drawn(&mut self.rng);
            let (from, to) = phase.types;
            self.run(phase, |rng| rng.random_range(from..to));
        }
    }

    /// An overload; work done per second and the mean number inside once it should have settled.
    fn overload(&mut self) -> (f64, f64) {
        let draw = |rng: &mut ChaCha8Rng| {
            let mut left = rng.random_range(0.0..1.0);
            let drawn = TYPES.iter().position(|(_, _, share)| {
                left -= share;
                left < 0.0
            });
            drawn.unwrap_or(0)
        };
        let begin_s = self.backend.now_s();
        let first = 1 + begin_s as usize * 1000;
        for client in first..first + OVERLOAD_CLIENTS {
            let job = self.job(client, draw);
            self.backend.send(begin_s, job);
        }
        self.go_on(first, begin_s + SETTLED_S, 0.0, draw);
        let before = self.backend.done();
        self.go_on(first, begin_s + SETTLED_S + MEASURED_S, 0.0, draw);
        let after = self.backend.done();
        let per_s = |after: f64, before: f64| (after - before) / MEASURED_S;
        (per_s(after.0, before.0), per_s(after.1, before.1))
    }
}

fn check(seeds: std::ops::Range<u64>) {
    let mut ratios: Vec<f64> = Vec::new();
    for seed in seeds {
        let curve = CURVES[seed as usize % CURVES.len()];
        let mut aged = Bed::new(curve, seed);
        aged.age();
        let then = aged.backend.view().capacity_ns;
        let (work, inside) = aged.overload();
        let (fresh_work, fresh_inside) = Bed::new(curve, seed).overload();
        let CapacityState::Auto(view) = aged.backend.view().capacity_state else {
            panic!("it is auto");
        };
        println!(
            "seed {seed}: work {work:.2} (fresh {fresh_work:.2}), inside {inside:.1} ({fresh_inside:.1}), \
             capacity after the hour {then:?}, {:?}",
            view.reason
        );
        assert!(
            inside < 0.5 * OVERLOAD_CLIENTS as f64,
            "seed {seed}: {inside} inside"
        );
        ratios.push(work / fresh_work);
    }
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    println!("in the mean {mean:.3} of what a fresh one does");
    let like_fresh = ratios.iter().filter(|&&ratio| ratio >= 0.95).count();
    assert!(mean >= 0.95, "{mean}");
    assert!(
        like_fresh * 100 >= ratios.len() * 85,
        "{like_fresh}: {ratios:?}"
    );
}

#[test]
fn after_an_hour_of_anything_it_gates_as_a_fresh_one() {
    check(1..9);
}

/// Some minutes.
#[test]
#[ignore = "many hours of virtual time: `make test-long`"]
fn after_many_hours_of_anything_it_gates_as_a_fresh_one() {
    check(5..45);
}
