//! The account of one response: how long it waited, how long it was sent, what became of it.
//! Kept while it is sent, counted and logged when it ends, however it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, Version, header};
use parking_lot::Mutex;
use serde::Serialize;
use shortline_link::clock::now_ns;
use shortline_sched::Client;

use crate::clients::Asks;
use crate::connection::Connection;
use crate::log::{AccessLog, AccessRecord};

/// Upper bounds of the response time histogram, in seconds; the last bucket has none.
pub const RESPONSE_SECONDS: [f64; 9] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
const STATUS_CLASSES: usize = 5;

/// Counters of one worker's responses since the start. Two processors that count in one line of
/// their caches take it from each other with every response: so each worker has its own, apart.
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
    /// Complete responses by that time: bounds as [`RESPONSE_SECONDS`], not cumulative.
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

/// Where the accounts of all responses go.
pub struct Ledger {
    by_worker: Box<[Counters]>,
    access_log: Mutex<Option<Arc<dyn AccessLog>>>,
    /// Whether there is an access log: without one no response asks for its lock.
    logging: AtomicBool,
}

impl Ledger {
    /// Accounts of so many workers.
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

    /// Responses are logged to `access_log` from now on.
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

    fn access_log(&self) -> Option<Arc<dyn AccessLog>> {
        if !self.logging.load(Ordering::Acquire) {
            return None;
        }
        self.access_log.lock().clone()
    }
}

/// The part of a request that only the log wants.
struct RequestText {
    method: String,
    target: String,
    version: &'static str,
    referer: Option<String>,
    user_agent: Option<String>,
    time: SystemTime,
}

/// One response; see the module's text.
pub struct Account {
    connection: Arc<Connection>,
    asks: Asks,
    access_log: Option<Box<(Arc<dyn AccessLog>, RequestText)>>,
    status: u16,
    begun_ns: u64,
    granted_ns: Option<u64>,
    body_bytes: u64,
    complete: bool,
}

/// What a request said, as far as accounts go.
pub struct RequestFacts<'a> {
    /// The request's method.
    pub method: &'a Method,
    /// Its target as it came.
    pub target: &'a str,
    /// Its version.
    pub version: Version,
    /// Its header fields.
    pub headers: &'a HeaderMap,
}

impl Account {
    /// A request on `connection` is complete; its response begins.
    pub fn open(connection: &Arc<Connection>, facts: &RequestFacts<'_>) -> Self {
        connection.watch.response_begins();
        let access_log = connection.server.ledger.access_log();
        Self {
            connection: Arc::clone(connection),
            asks: connection.asks(facts.headers),
            access_log: access_log.map(|log| Box::new((log, RequestText::of(facts)))),
            status: 0,
            begun_ns: now_ns(),
            granted_ns: None,
            body_bytes: 0,
            complete: false,
        }
    }

    /// The connection that carries the response.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Whoever asks, as the order sees it.
    pub fn client(&self) -> Client {
        self.connection.settings.clients.client(self.asks)
    }

    /// When the request was complete, on the link's clock.
    pub fn begun_ns(&self) -> u64 {
        self.begun_ns
    }

    /// The response's status is decided.
    pub fn set_status(&mut self, status: u16) {
        self.status = status;
    }

    /// The first grant, or a later one.
    pub fn granted(&mut self) {
        self.granted_ns.get_or_insert_with(now_ns);
    }

    /// Body bytes went to the connection; `complete` with the last ones.
    pub fn handed_over(&mut self, body_bytes: u32, complete: bool) {
        self.body_bytes += u64::from(body_bytes);
        self.complete = complete;
    }

    fn count(&self, wait_ns: u64, response_ns: u64) {
        let counters = &self.connection.server.ledger.by_worker[self.connection.worker];
        let class = usize::from(self.status / 100).clamp(1, STATUS_CLASSES) - 1;
        counters.by_status_class[class].fetch_add(1, Ordering::Relaxed);
        counters
            .body_bytes
            .fetch_add(self.body_bytes, Ordering::Relaxed);
        if !self.complete {
            counters.incomplete.fetch_add(1, Ordering::Relaxed);
            return;
        }
        counters.wait_ns.fetch_add(wait_ns, Ordering::Relaxed);
        counters
            .response_ns
            .fetch_add(response_ns, Ordering::Relaxed);
        let seconds = response_ns as f64 / 1e9;
        let bucket = RESPONSE_SECONDS.iter().position(|bound| seconds <= *bound);
        counters.by_response_time[bucket.unwrap_or(RESPONSE_SECONDS.len())]
            .fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.connection.watch.response_ends();
        let ended_ns = now_ns();
        let granted_ns = self.granted_ns.unwrap_or(ended_ns);
        let wait_ns = granted_ns.saturating_sub(self.begun_ns);
        self.count(wait_ns, ended_ns.saturating_sub(self.begun_ns));
        let Some(logged) = self.access_log.take() else {
            return;
        };
        let (log, text) = *logged;
        log.log(AccessRecord {
            peer: self.asks.address,
            method: text.method,
            target: text.target,
            version: text.version,
            status: self.status,
            body_bytes: self.body_bytes,
            referer: text.referer,
            user_agent: text.user_agent,
            wait: Duration::from_nanos(wait_ns),
            send: Duration::from_nanos(ended_ns.saturating_sub(granted_ns)),
            time: text.time,
            complete: self.complete,
        });
    }
}

impl RequestText {
    fn of(facts: &RequestFacts<'_>) -> Self {
        let field = |name| {
            let value = facts.headers.get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            method: facts.method.to_string(),
            target: facts.target.to_owned(),
            version: match facts.version {
                Version::HTTP_10 => "HTTP/1.0",
                Version::HTTP_2 => "HTTP/2.0",
                _ => "HTTP/1.1",
            },
            referer: field(header::REFERER),
            user_agent: field(header::USER_AGENT),
            time: SystemTime::now(),
        }
    }
}
