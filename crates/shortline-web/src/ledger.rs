//! The ledger: the totals of all responses, by worker, and the access log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use serde::Serialize;

use crate::log::AccessLog;

/// Upper bounds of the response time histogram, in seconds. The last bucket has none.
pub const RESPONSE_SECONDS: [f64; 9] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
const STATUS_CLASSES: usize = 5;

/// Counters of one worker's responses since the start. Two processors that write to one cache line
/// take it from each other with every response. So each worker has its own line.
#[derive(Default)]
#[repr(align(128))]
struct Counters {
    by_status_class: [AtomicU64; STATUS_CLASSES],
    incomplete: AtomicU64,
    body_bytes: AtomicU64,
    wait_ns: AtomicU64,
    response_ns: AtomicU64,
    by_response_time: [AtomicU64; RESPONSE_SECONDS.len() + 1],
}

/// The counters at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ResponseCounts {
    /// Responses by the first digit of their status, 1 to 5.
    pub by_status_class: [u64; STATUS_CLASSES],
    /// Responses that ended before their last byte was handed over.
    pub incomplete_total: u64,
    /// Body bytes handed over.
    pub body_bytes_total: u64,
    /// Sum of the times from the complete request to the first grant.
    pub wait_seconds_total: f64,
    /// Sum of the times from the complete request to the last byte handed over.
    pub response_seconds_total: f64,
    /// Complete responses by response time. The bounds are [`RESPONSE_SECONDS`]; not cumulative.
    pub by_response_time: Vec<u64>,
}

impl Counters {
    fn add_to(&self, sum: &mut ResponseCounts) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let seconds = |counter: &AtomicU64| load(counter) as f64 / 1e9;
        for (sum, counter) in sum.by_status_class.iter_mut().zip(&self.by_status_class) {
            *sum += load(counter);
        }
        sum.incomplete_total += load(&self.incomplete);
        sum.body_bytes_total += load(&self.body_bytes);
        sum.wait_seconds_total += seconds(&self.wait_ns);
        sum.response_seconds_total += seconds(&self.response_ns);
        sum.by_response_time.resize(self.by_response_time.len(), 0);
        for (sum, counter) in sum.by_response_time.iter_mut().zip(&self.by_response_time) {
            *sum += load(counter);
        }
    }
}

/// The ledger; see the module's text.
pub struct Ledger {
    by_worker: Box<[Counters]>,
    access_log: Mutex<Option<Arc<dyn AccessLog>>>,
    /// Whether there is an access log. If not, no response takes its lock.
    logging: AtomicBool,
}

impl Ledger {
    /// A ledger for this many workers.
    pub fn new(workers: usize, access_log: Option<Arc<dyn AccessLog>>) -> Self {
        Self {
            by_worker: (0..workers).map(|_| Counters::default()).collect(),
            logging: access_log.is_some().into(),
            access_log: Mutex::new(access_log),
        }
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.by_worker.len()
    }

    /// Logs responses to `access_log` from now on.
    pub fn set_access_log(&self, access_log: Option<Arc<dyn AccessLog>>) {
        let mut place = self.access_log.lock();
        self.logging.store(access_log.is_some(), Ordering::Release);
        *place = access_log;
    }

    /// The counts of all workers now.
    pub fn snapshot(&self) -> ResponseCounts {
        let mut sum = ResponseCounts::default();
        for counters in &self.by_worker {
            counters.add_to(&mut sum);
        }
        sum
    }

    /// Counts a response of a worker that has ended. `times_ns`, if it is complete: how long it
    /// waited for its first grant, and how long it took in all.
    pub fn count(&self, worker: usize, status: u16, body_bytes: u64, times_ns: Option<(u64, u64)>) {
        let counters = &self.by_worker[worker];
        let class = usize::from(status / 100).clamp(1, STATUS_CLASSES) - 1;
        counters.by_status_class[class].fetch_add(1, Ordering::Relaxed);
        counters.body_bytes.fetch_add(body_bytes, Ordering::Relaxed);
        let Some((wait_ns, response_ns)) = times_ns else {
            counters.incomplete.fetch_add(1, Ordering::Relaxed);
            return;
        };
        counters.wait_ns.fetch_add(wait_ns, Ordering::Relaxed);
        counters
            .response_ns
            .fetch_add(response_ns, Ordering::Relaxed);
        let seconds = response_ns as f64 / 1e9;
        let bucket = RESPONSE_SECONDS.iter().position(|bound| seconds <= *bound);
        counters.by_response_time[bucket.unwrap_or(RESPONSE_SECONDS.len())]
            .fetch_add(1, Ordering::Relaxed);
    }

    /// The access log, if there is one.
    pub fn access_log(&self) -> Option<Arc<dyn AccessLog>> {
        if !self.logging.load(Ordering::Acquire) {
            return None;
        }
        self.access_log.lock().clone()
    }
}
