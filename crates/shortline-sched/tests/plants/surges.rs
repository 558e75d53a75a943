//! Surges before a backend of four processors whose longest requests take a hundred times as long as most, as a web
//! application's do: what a gate that begins without any knowledge does in the first minutes. In an open loop, all
//! requests drained, beside a fixed number at once in the order of arrival (a proxy's queue behind `maxconn`), which
//! is told the best number.

use std::num::NonZeroUsize;

use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_sched::admission::{Admission, AdmissionConfig, Capacity, Order};

use crate::backend::{Backend, Job};
use crate::plant::Throughput;

const SERVERS: f64 = 4.0;
/// More inside than this cost a little each.
const BEST: usize = 16;
const PLANT: Throughput = Throughput::Knee {
    servers: SERVERS,
    knee: BEST as f64,
    fall: 0.002,
};
/// Means of types, in seconds alone, and shares of the requests.
const MEANS_S: [f64; 4] = [0.004, 0.012, 0.040, 0.400];
const SHARES: [f64; 4] = [60.0, 30.0, 8.0, 2.0];
/// This long 1.3 of the capacity comes, and then 0.6.
const SURGE_S: f64 = 15.0;
const UNTIL_S: f64 = 300.0;
/// All are drained by then.
const END_S: f64 = 600.0;

/// Seconds of response, over all requests and over those of the longest type.
struct Means {
    all_s: f64,
    longest_s: f64,
}

fn jobs(seed: u64) -> Vec<(f64, Job)> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let kinds = WeightedIndex::new(SHARES).expect("shares above 0");
    let work = MEANS_S.iter().zip(SHARES).map(|(mean, part)| mean * part);
    let mean_s = work.sum::<f64>() / SHARES.iter().sum::<f64>();
    let (mut now_s, mut jobs) = (0.0, Vec::new());
    let exponential = move |rng: &mut ChaCha8Rng| -(1.0 - rng.random::<f64>()).ln();
    loop {
        let load = if now_s % (2.0 * SURGE_S) < SURGE_S {
            1.3
        } else {
            0.6
        };
        now_s += exponential(&mut rng) * mean_s / (load * SERVERS);
        if now_s > UNTIL_S {
            return jobs;
        }
        let kind = kinds.sample(&mut rng);
        let job = Job {
            name: kind.to_string(),
            work_s: exponential(&mut rng) * MEANS_S[kind],
            client: 0,
        };
        jobs.push((now_s, job));
    }
}

fn means(gate: Admission, jobs: &[(f64, Job)]) -> Means {
    let mut backend = Backend::new(gate, PLANT);
    for (at_s, job) in jobs {
        backend.send(*at_s, job.clone());
    }
    let (mut all, mut longest) = (Vec::new(), Vec::new());
    while let Some(ended) = backend.next_end(END_S) {
        let took_s = ended.end_s - ended.arrival_s;
        all.push(took_s);
        if ended.job.name == "3" {
            longest.push(took_s);
        }
    }
    assert_eq!(all.len(), jobs.len(), "all are done");
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    Means {
        all_s: mean(&all),
        longest_s: mean(&longest),
    }
}

fn auto() -> Admission {
    Admission::new(AdmissionConfig {
        order: Order::Sjf,
        capacity: Capacity::Auto,
        ..AdmissionConfig::default()
    })
}

fn fixed_number() -> Admission {
    let mut gate = Admission::new(AdmissionConfig {
        order: Order::Fifo,
        capacity: Capacity::Off,
        ..AdmissionConfig::default()
    });
    gate.set_running_max(NonZeroUsize::new(BEST));
    gate
}

#[test]
fn auto_from_a_cold_start_beats_the_best_fixed_number_in_the_order_of_arrival() {
    let mut shares = Vec::new();
    for seed in 1..7 {
        let jobs = jobs(seed);
        let (ours, theirs) = (means(auto(), &jobs), means(fixed_number(), &jobs));
        println!(
            "seed {seed}: mean {:.3} s for {:.3} s, longest type {:.2} s for {:.2} s",
            ours.all_s, theirs.all_s, ours.longest_s, theirs.longest_s
        );
        shares.push(ours.all_s / theirs.all_s);
    }
    shares.sort_by(f64::total_cmp);
    let median = f64::midpoint(shares[2], shares[3]);
    assert!(
        median <= 0.25,
        "a quarter of its mean was to be reached: {shares:.3?}"
    );
    assert!(shares[5] <= 0.5, "{shares:.3?}");
}
