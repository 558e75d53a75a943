//! A plant behind the gate, always overloaded: processor sharing at the rate of its curve.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use shortline_sched::admission::{
    Admission, AdmissionConfig, Capacity, CapacityState, OpenUp, OpeningView, Order, Outcome,
    RequestId, TypeId,
};
use shortline_sched::units::Span;

use crate::plant::Plant;

/// The most requests inside at once, because a runaway capacity would eat the memory.
const INSIDE_MAX: usize = 3000;

pub struct Server {
    plant: Plant,
    gate: Admission,
    types: Vec<TypeId>,
    now_s: f64,
    /// How much service each request inside has had since the beginning, in seconds.
    attained_s: f64,
    /// The requests inside by the attained service at which they end, in nanoseconds.
    inside: BinaryHeap<Reverse<(u64, RequestId)>>,
    /// Of each by slot: the mean work of its type.
    inside_s: f64,
    kinds: std::collections::HashMap<RequestId, usize>,
    waiting: Option<RequestId>,
    work_done: f64,
    rng: ChaCha8Rng,
}

/// A fixed capacity and the work done per second at it.
pub struct Best {
    pub work_rate: f64,
    pub capacity_s: f64,
}

impl Server {
    pub fn new(plant: &Plant, capacity: Capacity, seed: u64) -> Self {
        Self::that_opens_up(plant, capacity, OpenUp::default(), seed)
    }

    /// The same with a limit that may be raised.
    pub fn that_opens_up(plant: &Plant, capacity: Capacity, open_up: OpenUp, seed: u64) -> Self {
        let mut gate = Admission::new(AdmissionConfig {
            order: Order::Fifo,
            capacity,
            open_up,
            stall_ns: None,
            ..AdmissionConfig::default()
        });
        let names = (0..plant.shares.len()).map(|index| index.to_string());
        let types = names.map(|name| gate.type_of(&name)).collect();
        Self {
            plant: plant.clone(),
            gate,
            types,
            now_s: 0.0,
            attained_s: 0.0,
            inside: BinaryHeap::new(),
            inside_s: 0.0,
            kinds: std::collections::HashMap::new(),
            waiting: None,
            work_done: 0.0,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    pub fn set_plant(&mut self, plant: &Plant) {
        self.plant = plant.clone();
    }

    /// How the capacity comes about.
    pub fn capacity_state(&self) -> CapacityState {
        self.gate.view().capacity_state
    }

    /// The limit in use, in seconds.
    pub fn capacity_s(&self) -> f64 {
        let capacity_ns = self.gate.view().capacity_ns;
        capacity_ns.map_or(f64::INFINITY, |ns| ns as f64 / 1e9)
    }

    /// How far the limit was raised.
    pub fn opening(&self) -> OpeningView {
        self.gate.view().opening.expect("it may open up")
    }

    /// Seconds of service so far.
    pub fn work_done(&self) -> f64 {
        self.work_done
    }

    pub fn run(&mut self, until_s: f64) {
        loop {
            self.fill();
            let Some(&Reverse((end_ns, id))) = self.inside.peek() else {
                return;
            };
            let work_rate = self.plant.work_rate(self.inside.len(), self.inside_s);
            let each_rate = work_rate / self.inside.len() as f64;
            let left_s = (end_ns as f64 / 1e9 - self.attained_s).max(0.0) / each_rate;
            let span_s = left_s.min(until_s - self.now_s);
            self.now_s += span_s;
            self.attained_s += span_s * each_rate;
            self.work_done += span_s * work_rate;
            if self.now_s >= until_s {
                return;
            }
            self.inside.pop();
            let kind = self.kinds.remove(&id).expect("it is inside");
            self.inside_s -= self.plant.service_s[kind];
            self.gate.finish(self.now_ns(), id, Outcome::Completed);
        }
    }

    /// Some request always waits.
    fn fill(&mut self) {
        let now_ns = self.now_ns();
        loop {
            if self.waiting.is_none() {
                let kind = self.plant.draw_type(&mut self.rng);
                let id = self
                    .gate
                    .arrive(now_ns, self.types[kind])
                    .expect("one waits");
                self.kinds.insert(id, kind);
                self.waiting = Some(id);
            }
            if self.inside.len() >= INSIDE_MAX {
                return;
            }
            let Some(id) = self.gate.admit_next(now_ns) else {
                return;
            };
            self.waiting = None;
            let kind = self.kinds[&id];
            let work_s = self.plant.draw_work(kind, &mut self.rng);
            self.inside_s += self.plant.service_s[kind];
            let end_ns = ((self.attained_s + work_s) * 1e9) as u64;
            self.inside.push(Reverse((end_ns, id)));
        }
    }

    fn now_ns(&self) -> u64 {
        (self.now_s * 1e9) as u64
    }
}

/// The best fixed capacity by rising search, its estimates exact for one request alone.
pub fn best_fixed(plant: &Plant) -> Best {
    best_fixed_within(plant, 2.0, 20.0)
}

/// The same by trials of so many seconds, after so many to warm up.
pub fn best_fixed_within(plant: &Plant, warm_up_s: f64, seconds: f64) -> Best {
    let mut best = Best {
        work_rate: 0.0,
        capacity_s: 0.0,
    };
    let mut capacity_s = plant.mean_s() * 0.8;
    let mut worse = 0;
    while worse < 10 && capacity_s < 20_000.0 * plant.mean_s() {
        let mut server = Server::new(plant, fixed(capacity_s), 1);
        server.run(warm_up_s);
        let before = server.work_done();
        server.run(warm_up_s + seconds);
        let work_rate = (server.work_done() - before) / seconds;
        worse += 1;
        if work_rate > best.work_rate {
            best = Best {
                work_rate,
                capacity_s,
            };
            worse = 0;
        }
        capacity_s *= 1.15;
    }
    best
}

pub fn fixed(capacity_s: f64) -> Capacity {
    let span = Span::from_duration(std::time::Duration::from_secs_f64(capacity_s));
    Capacity::fixed(span).expect("above 0")
}
