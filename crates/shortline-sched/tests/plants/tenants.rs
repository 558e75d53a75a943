//! Ten tenants behind one gate, one of which sends twenty times its share: what the others notice.
//!
//! Open arrivals (Poisson) of each honest tenant. *Alone* is the same nine without the tenth. *Flooded* is with
//! it, sending two whole backends' worth. Service times are of three types, and vary by half within one. The
//! backend shares itself among what is inside, and the capacity is fixed at about what keeps it busy.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_sched::admission::{Admission, AdmissionConfig, Capacity};

use crate::backend::{Backend, Job};
use crate::plant::Throughput;

const SERVERS: f64 = 8.0;
const HONEST: usize = 9;
const FLOOD: usize = 9;
/// Of each type: its mean service in seconds.
const SERVICE_S: [f64; 3] = [0.005, 0.01, 0.02];
const SHARES: [f64; 3] = [0.4, 0.4, 0.2];
const WARM_UP_S: f64 = 10.0;
const END_S: f64 = 60.0;
const CAPACITY: &str = "110ms";

/// The response times of honest tenants, in seconds, sorted.
struct Sample(Vec<f64>);

impl Sample {
    fn at(&self, share: f64) -> f64 {
        self.0[((self.0.len() - 1) as f64 * share) as usize]
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }
}

/// Loads are parts of the backend; the flood is a multiple of a tenth of it.
fn run(seed: u64, are_told_apart: bool, load_each: f64, flood: f64) -> Sample {
    let gate = Admission::new(AdmissionConfig {
        capacity: CAPACITY.parse::<Capacity>().expect("a capacity"),
        ..AdmissionConfig::default()
    });
    let throughput = Throughput::Flat { servers: SERVERS };
    let mut backend = Backend::new(gate, throughput);
    backend.tells_tenants_apart = are_told_apart;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mean_s: f64 = SERVICE_S
        .iter()
        .zip(SHARES)
        .map(|(service_s, share)| service_s * share)
        .sum();
    for tenant in 0..=HONEST {
        let load = if tenant == FLOOD {
            flood * 0.1
        } else {
            load_each
        };
        if load > 0.0 {
            send(&mut backend, &mut rng, tenant, load * SERVERS / mean_s);
        }
    }
    let mut seen = Vec::new();
    while let Some(ended) = backend.next_end(END_S) {
        if ended.job.client != FLOOD && ended.arrival_s >= WARM_UP_S {
            seen.push(ended.end_s - ended.arrival_s);
        }
    }
    seen.sort_by(f64::total_cmp);
    Sample(seen)
}

/// All requests of a tenant.
fn send(backend: &mut Backend, rng: &mut ChaCha8Rng, tenant: usize, rate: f64) {
    let mut at_s = 0.0;
    while at_s < END_S {
        at_s += exponential(rng) / rate;
        let drawn: f64 = rng.random_range(0.0..1.0);
        let kind = if drawn < SHARES[0] {
            0
        } else if drawn < SHARES[0] + SHARES[1] {
            1
        } else {
            2
        };
        let job = Job {
            name: format!("type {kind}"),
            work_s: SERVICE_S[kind] * rng.random_range(0.5..1.5),
            client: tenant,
        };
        backend.send(at_s, job);
    }
}

fn exponential(rng: &mut ChaCha8Rng) -> f64 {
    -(1.0 - rng.random_range(0.0..1.0f64)).ln()
}

fn compare(seeds: std::ops::Range<u64>, load_each: f64) -> f64 {
    let mut worst: f64 = 0.0;
    for seed in seeds {
        let alone = run(seed, true, load_each, 0.0);
        let one = run(seed, false, load_each, 20.0);
        let fair = run(seed, true, load_each, 20.0);
        let [p50, p99] = [0.5, 0.99].map(|share| [&alone, &one, &fair].map(|seen| seen.at(share)));
        let mean = [&alone, &one, &fair].map(Sample::mean);
        println!(
            "{load_each} each, seed {seed}: alone, one tenant, ten: mean {:.1?} ms, median {:.1?} ms, p99 {:.1?} ms; p99 over \
             alone {:.2} and {:.2}; ended {} {} {}",
            mean.map(|s| s * 1e3),
            p50.map(|s| s * 1e3),
            p99.map(|s| s * 1e3),
            p99[1] / p99[0],
            p99[2] / p99[0],
            alone.0.len(),
            one.0.len(),
            fair.0.len(),
        );
        worst = worst.max(p99[2] / p99[0]);
    }
    worst
}

/// Without tenants it is two to three hundred times. What is left of it: the backend is full all the time, so
/// that each request shares it with more others than alone, and waits until one of them ends.
#[test]
fn nine_tenants_are_kept_from_one_that_sends_twenty_times_its_share() {
    assert!(compare(1..3, 0.05) <= 1.5);
    assert!(compare(1..3, 0.08) <= 3.0);
}
