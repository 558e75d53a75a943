//! `auto` before a backend that does a little more the more is inside, as a database on a noisy host does: to look
//! below must not cost more than there is to be found.
//!
//! Eleven types, the longest of which takes thirty to a hundred and fifty times as long as most and has half of the work,
//! each exponential-like. The work done per second rises to 1 / contention
//! (Gunther's law without coherence). The speed wanders by a tenth from second to second, as neighbours on one host make
//! it. The work done is compared with what was possible at each moment, with two hundred inside.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_sched::admission::Capacity;

use crate::plant::{Plant, Throughput};
use crate::server::Server;

const SETTLED_S: u32 = 20;
const END_S: u32 = 120;
const MANY: f64 = 200.0;

fn plant(contention: f64) -> Plant {
    let service_ms = [1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 5.0, 6.0, 10.0, 15.0, 150.0];
    let percent = [16.0, 16.0, 15.0, 12.0, 10.0, 10.0, 8.0, 5.0, 3.0, 2.0, 3.0];
    Plant {
        throughput: Throughput::Scalability {
            contention,
            coherence: 0.0,
        },
        speed: 1.0,
        service_s: service_ms.map(|ms| ms / 1e3).to_vec(),
        shares: percent.map(|share| share / 100.0).to_vec(),
        variation: 1.0,
    }
}

/// The work done over what was possible.
fn share(seed: u64, contention: f64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut plant = plant(contention);
    let mut server = Server::new(&plant, Capacity::Auto, seed);
    let (mut speed, mut before, mut possible) = (0.0f64, 0.0, 0.0);
    for second in 0..END_S {
        speed = 0.7 * speed + rng.random_range(-0.12..0.12);
        plant.speed = speed.exp();
        server.set_plant(&plant);
        if second == SETTLED_S {
            (before, possible) = (server.work_done(), 0.0);
        }
        server.run(f64::from(second + 1));
        possible += plant.speed * plant.throughput.at(MANY, 0.0);
    }
    (server.work_done() - before) / possible
}

#[test]
fn a_look_below_costs_little_where_more_inside_does_a_little_more() {
    for contention in [0.3, 0.45, 0.6] {
        let mut shares: Vec<f64> = (1..13).map(|seed| share(seed, contention)).collect();
        shares.sort_by(f64::total_cmp);
        println!("contention {contention}: {shares:.3?}");
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!(mean >= 0.94, "{contention}: mean {mean}, {shares:.3?}");
        assert!(shares[0] >= 0.8, "{contention}: {shares:.3?}");
    }
}
