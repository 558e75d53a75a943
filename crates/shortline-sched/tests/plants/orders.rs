//! Which order: each one over hundreds of backends, beside FIFO for the very same requests.
//!
//! A backend and its types are drawn from a seed ([`Plant`]); its capacity is the best fixed one, so that
//! only the order differs. The load is that share of the work which it then does. Requests come at random
//! at that load, then none, and all are served. Per backend and order: the mean time of all requests, the
//! 99th percentile of all, the mean of the longest type, each over FIFO's, and how many of the longest type
//! had ended when the last request came.
//!
//! **What no order can do.** Where the backend is always at work, the sum over the types of load times wait
//! is the same in every order that does not know more than types (Kleinrock's conservation law, 1965). So if
//! the longest type has a share `q` of the load and waits 1.1 times as long as in FIFO, the others wait
//! `(1 - 1.1 q) / (1 - q)` times as long in the mean over their load: a quarter of that needs `q = 0.88`.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_sched::admission::{Admission, AdmissionConfig, OldestShare, Order};

use crate::backend::{Backend, Job};
use crate::plant::Plant;
use crate::server::{Best, best_fixed_within, fixed};

/// So many requests come at half the load before any counts, so that types are known.
const WARM_UP: usize = 500;
const REQUESTS: usize = 6000;
/// The longest type must have so many of them.
const LONGEST_MIN: f64 = 20.0;
/// Requests in a phase of an alternating load.
const PHASE: usize = 1500;

/// Name, order, share of the oldest.
const ORDERS: [(&str, Order, &str); 6] = [
    ("fifo", Order::Fifo, "0"),
    ("sjf", Order::Sjf, "0"),
    ("sjf, 10% oldest", Order::Sjf, "10%"),
    ("gittins", Order::Gittins, "0"),
    ("gittins, 10% oldest", Order::Gittins, "10%"),
    ("boost", Order::Boost, "0"),
];

/// The load of the nth request.
#[derive(Clone, Copy)]
enum Load {
    Steady(f64),
    Alternating(f64, f64),
}

impl Load {
    fn at(self, count: usize) -> f64 {
        match self {
            Load::Steady(load) => load,
            Load::Alternating(high, low) if (count / PHASE).is_multiple_of(2) => high.max(low),
            Load::Alternating(high, low) => high.min(low),
        }
    }
}

/// What one order came to.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    mean_s: f64,
    p99_s: f64,
    longest_s: f64,
    longest_in_time: f64,
}

/// The type that takes longest of those with enough requests.
fn longest(plant: &Plant) -> Option<usize> {
    let enough =
        (0..plant.shares.len()).filter(|&kind| plant.shares[kind] * REQUESTS as f64 >= LONGEST_MIN);
    enough.max_by(|&one, &other| plant.service_s[one].total_cmp(&plant.service_s[other]))
}

fn run(
    plant: &Plant,
    best: &Best,
    load: Load,
    (order, oldest_share): (Order, OldestShare),
    seed: u64,
) -> Outcome {
    let gate = Admission::new(AdmissionConfig {
        order,
        oldest_share,
        capacity: fixed(best.capacity_s),
        queue_max: 10 * REQUESTS,
        ..AdmissionConfig::default()
    });
    let mut backend = Backend::new(gate, plant.throughput);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut at_s = 0.0;
    for count in 0..WARM_UP + REQUESTS {
        let load = count
            .checked_sub(WARM_UP)
            .map_or(0.5, |count| load.at(count));
        at_s -=
            (1.0 - rng.random_range(0.0..1.0f64)).ln() * plant.mean_s() / (best.work_rate * load);
        let kind = plant.draw_type(&mut rng);
        let job = Job {
            name: kind.to_string(),
            work_s: plant.draw_work(kind, &mut rng),
            client: usize::from(count >= WARM_UP) * (kind + 1),
        };
        backend.send(at_s, job);
    }
    let longest = longest(plant).expect("it has one") + 1;
    let (mut sojourns_s, mut of_longest_s, mut in_time) = (Vec::new(), 0.0, 0.0);
    let mut count_longest = 0.0;
    while let Some(ended) = backend.next_end(1e9) {
        let sojourn_s = ended.end_s - ended.arrival_s;
        if ended.job.client > 0 {
            sojourns_s.push(sojourn_s);
        }
        if ended.job.client == longest {
            of_longest_s += sojourn_s;
            count_longest += 1.0;
            in_time += f64::from(ended.end_s <= at_s);
        }
    }
    assert_eq!(sojourns_s.len(), REQUESTS, "every request ends");
    sojourns_s.sort_by(f64::total_cmp);
    Outcome {
        mean_s: sojourns_s.iter().sum::<f64>() / REQUESTS as f64,
        p99_s: sojourns_s[REQUESTS * 99 / 100],
        longest_s: of_longest_s / count_longest,
        longest_in_time: in_time / count_longest,
    }
}

/// A backend and the capacity at which it does most; `None` if its types say nothing of orders.
fn drawn(seed: u64) -> Option<(Plant, Best)> {
    let [plant, _, _] = Plant::phases(seed);
    longest(&plant).filter(|_| plant.shares.len() > 1)?;
    // Some thousand requests for each trial.
    let request_s = plant.mean_s();
    let best = best_fixed_within(&plant, 100.0 * request_s, 1000.0 * request_s);
    Some((plant, best))
}

/// Of each order, over all backends: what it came to over FIFO.
fn compare(backends: &[(u64, Plant, Best)], load: Load) -> Vec<Vec<[f64; 4]>> {
    let mut rows = vec![Vec::new(); ORDERS.len()];
    for (seed, plant, best) in backends {
        let mut fifo = None;
        for (row, (_, order, share)) in rows.iter_mut().zip(ORDERS) {
            let order = (order, share.parse().expect("a share"));
            let found = run(plant, best, load, order, *seed);
            let fifo = fifo.get_or_insert(found);
            row.push([
                found.mean_s / fifo.mean_s,
                found.p99_s / fifo.p99_s,
                found.longest_s / fifo.longest_s,
                found.longest_in_time,
            ]);
        }
    }
    rows
}

fn backends(seeds: std::ops::Range<u64>) -> Vec<(u64, Plant, Best)> {
    let with_seed = |seed| drawn(seed).map(|(plant, best)| (seed, plant, best));
    seeds.filter_map(with_seed).collect()
}

/// The value that a share of all do not exceed.
fn quantile(rows: &[[f64; 4]], column: usize, share: f64) -> f64 {
    let mut values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

fn print(name: &str, rows: &[Vec<[f64; 4]>]) {
    println!(
        "load {name}, {} backends: median (nine of ten) over FIFO",
        rows[0].len()
    );
    println!(
        "order                | mean        | p99 of all  | longest type | of the longest ended in time: median, least tenth, least"
    );
    for (row, (name, _, _)) in rows.iter().zip(ORDERS) {
        let pair = |column| {
            format!(
                "{:.2} ({:.2})",
                quantile(row, column, 0.5),
                quantile(row, column, 0.9)
            )
        };
        let ended =
            [0.5, 0.1, 0.0].map(|share| format!("{:.0} %", 100.0 * quantile(row, 3, share)));
        println!(
            "{name:20} | {} | {} | {} | {}",
            pair(0),
            pair(1),
            pair(2),
            ended.join(", ")
        );
    }
}

#[test]
fn no_default_leaves_the_longest_without_service() {
    let rows = compare(&backends(1..9), Load::Steady(2.0));
    print("2.0", &rows);
    // The default.
    assert_eq!(ORDERS[2].1, AdmissionConfig::default().order);
    assert_eq!(
        ORDERS[2].2,
        AdmissionConfig::default().oldest_share.to_string()
    );
    let least = quantile(&rows[2], 3, 0.0);
    assert!(least > 0.02, "{least}");
    // On these seven the mean is 0.78 of FIFO's; over the 279 of the table it is 0.64.
    let mean = quantile(&rows[2], 0, 0.5);
    assert!(mean < 0.8, "{mean}");
    assert!(quantile(&rows[2], 0, 0.9) < 1.0);
}

/// Prints what each order does on hundreds of backends; whatever the default, each type is served.
fn table(loads: impl IntoIterator<Item = (String, Load)>) {
    let backends = backends(1..301);
    for (name, load) in loads {
        let rows = compare(&backends, load);
        print(&name, &rows);
        assert!(quantile(&rows[2], 3, 0.1) > 0.0, "some of the longest end");
    }
}

/// Figures of docs/gate.md. Some minutes.
#[test]
#[ignore = "a table: `make test-long`"]
fn what_each_order_does_on_hundreds_of_backends() {
    table([0.9, 1.3, 2.0, 3.0].map(|load| (load.to_string(), Load::Steady(load))));
}

/// Likewise.
#[test]
#[ignore = "a table: `make test-long`"]
fn what_each_order_does_where_the_load_alternates() {
    table([(
        "1.3 and 0.6 in turns".to_owned(),
        Load::Alternating(1.3, 0.6),
    )]);
}
