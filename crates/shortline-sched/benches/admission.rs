//! What admission costs with 10,000 requests waiting.
//!
//! One operation ends a running request, which teaches its type's estimate, and admits the requests
//! that may start because of it. Then as many new ones come in as were admitted. So it is what a
//! request costs the gate in all. There are 200 types, 32 running requests of about one size, and
//! deadlines (aging) such that most are not overdue.
//!
//! [`criterion`] gives the time of one, with an interval, and says how it differs from the run before.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_sched::Aging;
use shortline_sched::Estimator;
use shortline_sched::admission::{
    Admission, AdmissionConfig, Capacity, Order, Outcome, RequestId, TypeId,
};

const WAITING: usize = 10_000;
const TYPES: usize = 200;
const STEP_NS: u64 = 1_000_000;

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = admission
}
criterion_main!(benches);

fn admission(criterion: &mut Criterion) {
    let aging = |factor| Order::SjfAging(Aging::new(factor).expect("invariant: above 0"));
    let fixed: Capacity = "1s".parse().expect("invariant: a capacity");
    let mean = Estimator::MovingAverage;
    let mut group = criterion.benchmark_group("finish, admit, arrive");
    for (name, order, capacity, estimator) in [
        ("fifo", Order::Fifo, fixed, mean),
        ("sjf", Order::Sjf, fixed, mean),
        (
            "sjf, median of means",
            Order::Sjf,
            fixed,
            Estimator::MedianOfMeans,
        ),
        ("sjf, aging 3, overdue", aging(3.0), fixed, mean),
        ("sjf, aging 1000", aging(1000.0), fixed, mean),
        ("sjf, auto", Order::Sjf, Capacity::Auto, mean),
        ("sjf, aging 1000, auto", aging(1000.0), Capacity::Auto, mean),
    ] {
        let mut bench = Bench::filled(AdmissionConfig {
            order,
            capacity,
            estimator,
            queue_max: WAITING + 1,
            ..AdmissionConfig::default()
        });
        group.bench_function(name, |bencher| bencher.iter(|| bench.operate()));
    }
}

struct Bench {
    gate: Admission,
    types: Vec<TypeId>,
    running: VecDeque<RequestId>,
    random: ChaCha8Rng,
    now_ns: u64,
}

impl Bench {
    fn filled(config: AdmissionConfig) -> Self {
        let mut gate = Admission::new(config);
        let names = (0..TYPES).map(|index| format!("type {index}"));
        let types = names.map(|name| gate.type_of(&name)).collect();
        let mut bench = Self {
            gate,
            types,
            running: VecDeque::new(),
            random: ChaCha8Rng::seed_from_u64(1),
            now_ns: 0,
        };
        while bench.gate.waiting() < WAITING {
            let kind = bench.random.random_range(0..TYPES);
            bench.arrive(kind);
        }
        bench.admit(0);
        bench
    }

    fn operate(&mut self) {
        let kind = self.random.random_range(0..TYPES);
        self.now_ns += STEP_NS;
        if let Some(id) = self.running.pop_front() {
            self.gate.finish(self.now_ns, id, Outcome::Completed);
        }
        self.admit(kind);
    }

    fn admit(&mut self, kind: usize) {
        while let Some(id) = self.gate.admit_next(self.now_ns) {
            self.running.push_back(black_box(id));
            self.arrive((kind + self.running.len()) % TYPES);
        }
    }

    fn arrive(&mut self, kind: usize) {
        let arrived = self.gate.arrive(self.now_ns, self.types[kind]);
        arrived.expect("invariant: there is room");
    }
}
