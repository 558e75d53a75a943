//! `fair`: processor sharing, exactly, over K servers and clients of different speeds.
//!
//! Each of the n jobs present is served at w, or at its client's cap if that is less, where
//! the water level w gives out the whole capacity (max-min fairness):
//!
//! ```text
//! sum over jobs of min(cap, w) = min(K, sum of caps)
//! ```
//!
//! All jobs of a class of clients have the same speed. So a class has a virtual time V, the service
//! that each of its jobs has had, and a job of work x that arrives at V ends at V + x (Demers,
//! Keshav, Shenker 1989; [`shortline_sched::ProcessorSharing`] is the same for one class and
//! server). An event costs O(classes + log n). V starts at 0 whenever its class is empty, which
//! keeps `f64` precise.

use std::collections::BTreeMap;

use super::{Capacity, ROUNDING_NS, Work, put};

pub(crate) struct Sharing {
    servers: f64,
    now_ns: f64,
    /// By ascending cap.
    classes: Vec<Class>,
    /// The index in `classes` of each of the capacity's classes.
    places: Vec<usize>,
    jobs: usize,
    submitted: u64,
    /// When the job of each slot came: it is served from then on.
    started_ns: Vec<f64>,
    /// Where the job of each slot is, for jobs that leave early.
    keys: Vec<(usize, Key)>,
}

/// The virtual time at which a job ends, as the bits of a float above 0, whose order is that
/// of the float; then the order of submission.
type Key = (u64, u64);

struct Class {
    cap: f64,
    speed: f64,
    virtual_ns: f64,
    ending: BTreeMap<Key, u32>,
}

impl Sharing {
    pub(super) fn new(capacity: &Capacity) -> Self {
        let mut order: Vec<usize> = (0..capacity.classes.len()).collect();
        order.sort_by(|&a, &b| capacity.classes[a].cap.total_cmp(&capacity.classes[b].cap));
        let mut places = vec![0; order.len()];
        for (place, &class) in order.iter().enumerate() {
            places[class] = place;
        }
        let class = |&index: &usize| Class {
            cap: capacity.classes[index].cap,
            speed: 0.0,
            virtual_ns: 0.0,
            ending: BTreeMap::new(),
        };
        Self {
            servers: capacity.servers,
            now_ns: 0.0,
            classes: order.iter().map(class).collect(),
            places,
            jobs: 0,
            submitted: 0,
            started_ns: Vec::new(),
            keys: Vec::new(),
        }
    }

    pub(super) fn now_ns(&self) -> f64 {
        self.now_ns
    }

    /// When the job of a slot was first served.
    pub(super) fn started_ns(&self, slot: u32) -> f64 {
        self.started_ns[slot as usize]
    }

    pub(super) fn submit(&mut self, job: &Work) {
        put(&mut self.started_ns, job.slot as usize, self.now_ns);
        let place = self.places[job.class];
        let class = &mut self.classes[place];
        if class.ending.is_empty() {
            class.virtual_ns = 0.0;
        }
        let key = ((class.virtual_ns + job.work_ns).to_bits(), self.submitted);
        class.ending.insert(key, job.slot);
        put(&mut self.keys, job.slot as usize, (place, key));
        self.submitted += 1;
        self.jobs += 1;
        self.set_speeds();
    }

    pub(super) fn cancel(&mut self, slot: u32) {
        let (place, key) = self.keys[slot as usize];
        if self.classes[place].ending.remove(&key).is_some() {
            self.jobs -= 1;
            self.set_speeds();
        }
    }

    pub(super) fn run_until(&mut self, until_ns: f64) -> Option<u32> {
        let (place, end_ns) = self.end_next();
        if end_ns > until_ns + ROUNDING_NS {
            self.serve(until_ns);
            return None;
        }
        self.serve(end_ns.min(until_ns));
        let class = &mut self.classes[place];
        let ((end_bits, _), slot) = class.ending.pop_first()?;
        // What rounding left of it must not remain for the others.
        class.virtual_ns = f64::from_bits(end_bits);
        self.jobs -= 1;
        self.set_speeds();
        Some(slot)
    }

    /// The class whose first job ends next, and when.
    fn end_next(&self) -> (usize, f64) {
        let mut next = (0, f64::INFINITY);
        for (place, class) in self.classes.iter().enumerate() {
            let Some((&(end_bits, _), _)) = class.ending.first_key_value() else {
                continue;
            };
            let left_ns = (f64::from_bits(end_bits) - class.virtual_ns).max(0.0);
            let end_ns = self.now_ns + left_ns / class.speed;
            if end_ns < next.1 {
                next = (place, end_ns);
            }
        }
        next
    }

    fn serve(&mut self, until_ns: f64) {
        let elapsed_ns = until_ns - self.now_ns;
        for class in &mut self.classes {
            class.virtual_ns += class.speed * elapsed_ns;
        }
        self.now_ns = until_ns;
    }

    /// Finds the water level. The slowest clients get their cap as long as it is below an equal
    /// part of what is left.
    fn set_speeds(&mut self) {
        let mut left = self.servers;
        let mut jobs_left = self.jobs as f64;
        for class in &mut self.classes {
            let jobs = class.ending.len() as f64;
            class.speed = class.cap.min(left / jobs_left.max(1.0));
            left -= class.speed * jobs;
            jobs_left -= jobs;
        }
    }
}
