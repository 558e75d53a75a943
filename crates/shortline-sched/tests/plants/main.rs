//! `auto` capacity against models of a backend, in virtual time.
//!
//! Hundreds of backends, each drawn from a seed. Throughput rises to a knee and then stays, falls
//! gently, falls off a cliff, follows Gunther's universal scalability law, or falls with the work
//! inside instead of the number of requests. There are one to fourteen types over orders of
//! magnitude; service times within a type are exact to exponential-like. Each backend is overloaded
//! all the time. After 90 s it becomes half as fast, after 180 s the mix changes. The work done
//! from 30 s after the start and after each change is compared with that of the best fixed
//! capacity, found by search.

mod aged;
mod backend;
mod calibrated;
mod gentle;
mod opening;
mod orders;
mod plant;
mod server;
mod starving;
mod surges;
mod tenants;

use plant::Plant;
use server::Server;
use shortline_sched::admission::Capacity;

const SETTLED_S: f64 = 30.0;
const PHASE_S: f64 = 90.0;

/// Work done by `auto` over that of the best fixed capacity, in the phases of a plant.
fn shares(seed: u64) -> [f64; 3] {
    let plants = Plant::phases(seed);
    let mut auto = Server::new(&plants[0], Capacity::Auto, seed);
    let mut end_s = 0.0;
    plants.map(|plant| {
        auto.set_plant(&plant);
        auto.run(end_s + SETTLED_S);
        let before = auto.work_done();
        end_s += PHASE_S;
        auto.run(end_s);
        let done = (auto.work_done() - before) / (PHASE_S - SETTLED_S);
        done / server::best_fixed(&plant).work_rate
    })
}

fn check(seeds: std::ops::Range<u64>) {
    let mut rows: Vec<(u64, [f64; 3])> = Vec::new();
    for seed in seeds {
        let shares = shares(seed);
        if shares.iter().any(|&share| share < 0.9) {
            println!("seed {seed}: {shares:.3?} {:?}", Plant::phases(seed)[0]);
        }
        rows.push((seed, shares));
    }
    for (phase, name) in ["start", "half the speed", "another mix"]
        .iter()
        .enumerate()
    {
        let mut column: Vec<f64> = rows.iter().map(|(_, shares)| shares[phase]).collect();
        column.sort_by(f64::total_cmp);
        let at = |share: f64| column[((column.len() - 1) as f64 * share) as usize];
        let enough = column.iter().filter(|&&share| share >= 0.95).count();
        let enough = enough as f64 / column.len() as f64;
        println!(
            "{name}: worst {:.3}, p5 {:.3}, p10 {:.3}, median {:.3}; {:.1} % reach 0.95",
            at(0.0),
            at(0.05),
            at(0.1),
            at(0.5),
            100.0 * enough,
        );
        assert!(at(0.5) >= 0.98, "{name}: median {}", at(0.5));
        assert!(enough >= 0.85, "{name}: {enough} reach 0.95");
        assert!(at(0.05) >= 0.85, "{name}: p5 {}", at(0.05));
    }
}

#[test]
fn auto_does_what_the_best_fixed_capacity_does() {
    check(1..9);
}

/// Some minutes.
#[test]
#[ignore = "hundreds of backends: `make test-long`"]
fn auto_does_what_the_best_fixed_capacity_does_on_hundreds_of_backends() {
    check(1..301);
}
