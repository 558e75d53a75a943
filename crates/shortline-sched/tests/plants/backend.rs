//! A backend behind the gate, with requests that come as a test says: clients in a closed loop,
//! bursts, arrivals at a rate. It shares the processor at the rate of a curve, in virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use shortline_sched::admission::{Admission, AdmissionView, NewRequest, Outcome, RequestId};

use crate::plant::Throughput;

/// A request that comes.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its type.
    pub name: String,
    /// Its service time alone, in seconds.
    pub work_s: f64,
    /// Who sent it.
    pub client: usize,
}

/// A request that has ended. Times are in seconds.
#[derive(Clone, Debug)]
pub struct Ended {
    pub job: Job,
    pub arrival_s: f64,
    pub start_s: f64,
    pub end_s: f64,
}

pub struct Backend {
    pub gate: Admission,
    /// Each client is a tenant.
    pub tells_tenants_apart: bool,
    throughput: Throughput,
    now_s: f64,
    /// How much service each request inside has had since the beginning, in seconds.
    attained_s: f64,
    /// The requests inside by the attained service at which they end, in nanoseconds.
    inside: BinaryHeap<Reverse<(u64, RequestId)>>,
    inside_s: f64,
    /// Which requests come when, in nanoseconds.
    coming: BinaryHeap<Reverse<(u64, u64)>>,
    jobs: HashMap<u64, Job>,
    sequence: u64,
    here: HashMap<RequestId, (Job, f64, f64)>,
    /// Seconds of service so far.
    work_done: f64,
    /// The number inside over time, in seconds.
    inside_sum: f64,
}

impl Backend {
    pub fn new(gate: Admission, throughput: Throughput) -> Self {
        Self {
            gate,
            tells_tenants_apart: false,
            throughput,
            now_s: 0.0,
            attained_s: 0.0,
            inside: BinaryHeap::new(),
            inside_s: 0.0,
            coming: BinaryHeap::new(),
            jobs: HashMap::new(),
            sequence: 0,
            here: HashMap::new(),
            work_done: 0.0,
            inside_sum: 0.0,
        }
    }

    pub fn now_s(&self) -> f64 {
        self.now_s
    }

    pub fn view(&self) -> AdmissionView {
        self.gate.view()
    }

    /// Seconds of service so far, and the number inside summed over the seconds so far.
    pub fn done(&self) -> (f64, f64) {
        (self.work_done, self.inside_sum)
    }

    /// Drops all requests that have not come yet.
    pub fn forget_coming(&mut self) {
        self.coming.clear();
        self.jobs.clear();
    }

    /// A request comes at some time.
    pub fn send(&mut self, at_s: f64, job: Job) {
        let at_ns = (at_s.max(self.now_s) * 1e9) as u64;
        self.coming.push(Reverse((at_ns, self.sequence)));
        self.jobs.insert(self.sequence, job);
        self.sequence += 1;
    }

    /// The next request that ends until `until_s`; `None` once that time has come.
    pub fn next_end(&mut self, until_s: f64) -> Option<Ended> {
        loop {
            self.admit();
            let come_s = self
                .coming
                .peek()
                .map(|&Reverse((at_ns, _))| at_ns as f64 / 1e9);
            let change_s = self.gate.next_change_ns().map(|ns| ns as f64 / 1e9);
            let next_s = [come_s, change_s, Some(until_s)].into_iter().flatten();
            let next_s = next_s.fold(f64::INFINITY, f64::min).max(self.now_s);
            let work_rate = self
                .throughput
                .at(self.inside.len() as f64, self.inside_s)
                .max(1e-9);
            if let Some(&Reverse((end_ns, id))) = self.inside.peek() {
                let each_rate = work_rate / self.inside.len() as f64;
                let left_s = (end_ns as f64 / 1e9 - self.attained_s).max(0.0) / each_rate;
                if self.now_s + left_s <= next_s {
                    self.pass(left_s, work_rate);
                    return Some(self.end(id));
                }
            }
            self.pass(next_s - self.now_s, work_rate);
            self.now_s = next_s;
            if come_s.is_none_or(|come_s| come_s > next_s) && next_s >= until_s {
                return None;
            }
            self.arrive();
        }
    }

    fn pass(&mut self, span_s: f64, work_rate: f64) {
        self.now_s += span_s;
        let inside = self.inside.len() as f64;
        self.inside_sum += inside * span_s;
        if inside > 0.0 {
            self.work_done += work_rate * span_s;
            self.attained_s += span_s * work_rate / inside;
        }
    }

    fn end(&mut self, id: RequestId) -> Ended {
        self.inside.pop();
        let (job, arrival_s, start_s) = self.here.remove(&id).expect("it is here");
        self.inside_s -= job.work_s;
        self.gate.finish(self.now_ns(), id, Outcome::Completed);
        self.admit();
        Ended {
            job,
            arrival_s,
            start_s,
            end_s: self.now_s,
        }
    }

    /// Admits all requests that have come until now.
    fn arrive(&mut self) {
        let now_ns = self.now_ns();
        while let Some(&Reverse((at_ns, sequence))) = self.coming.peek()
            && at_ns <= now_ns
        {
            self.coming.pop();
            let job = self.jobs.remove(&sequence).expect("it comes");
            let kind = self.gate.type_of(&job.name);
            let mut request = NewRequest::new(kind);
            if self.tells_tenants_apart {
                request.tenant = self.gate.tenant_of(&job.client.to_string());
            }
            // Whoever floods the queue is refused.
            if let Ok(id) = self.gate.take_in(now_ns, request) {
                self.here.insert(id, (job, self.now_s, self.now_s));
            }
            self.admit();
        }
    }

    fn admit(&mut self) {
        while let Some(id) = self.gate.admit_next(self.now_ns()) {
            let (job, _, start_s) = self.here.get_mut(&id).expect("it is here");
            *start_s = self.now_s;
            self.inside_s += job.work_s;
            let end_ns = ((self.attained_s + job.work_s) * 1e9) as u64;
            self.inside.push(Reverse((end_ns, id)));
        }
    }

    fn now_ns(&self) -> u64 {
        (self.now_s * 1e9).round() as u64
    }
}
