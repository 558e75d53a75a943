//! The ledger: the totals of all responses, by worker, and the access logs.
//!
//! Response times are counted in all, by the size of the response, and by site. Of sites only the first [`SITES_MAX`] have a
//! row of their own, in the order in which they were configured since the start; all others share one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde::Serialize;
use shortline_link::SIZE_CLASSES;

use crate::comparison::{Comparison, size_class};
use crate::log::{AccessLog, AccessLogs};

/// Upper bounds of the response time histogram, in seconds. The last bucket has none.
pub const RESPONSE_SECONDS: [f64; 9] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
const STATUS_CLASSES: usize = 5;
/// Sites that have a row of their own.
pub const SITES_MAX: usize = 64;
/// What the row of all other sites is called, and that of requests that no site answers.
const OTHER_SITES: &str = "(other)";
const SIZES: usize = SIZE_CLASSES.len();

/// Response times of complete responses, since the start.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ResponseTimes {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub seconds: f64,
    /// By response time. The bounds are [`RESPONSE_SECONDS`]; not cumulative.
    pub buckets: [u64; RESPONSE_SECONDS.len() + 1],
}

/// The same of some of them.
#[derive(Clone, Debug, Serialize)]
pub struct NamedTimes {
    /// Which.
    pub name: String,
    /// Their times.
    pub times: ResponseTimes,
}

impl ResponseTimes {
    /// Counts one.
    pub fn count(&mut self, response_ns: u64) {
        self.count += 1;
        self.seconds += response_ns as f64 / 1e9;
        self.buckets[bucket(response_ns)] += 1;
    }

    fn add(&mut self, times: &Times) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.seconds += load(&times.response_ns) as f64 / 1e9;
        for (sum, counter) in self.buckets.iter_mut().zip(&times.buckets) {
            let responses = load(counter);
            *sum += responses;
            self.count += responses;
        }
    }
}

/// Counters of response times.
#[derive(Default)]
struct Times {
    response_ns: AtomicU64,
    buckets: [AtomicU64; RESPONSE_SECONDS.len() + 1],
}

impl Times {
    fn count(&self, response_ns: u64, bucket: usize) {
        self.response_ns.fetch_add(response_ns, Ordering::Relaxed);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
    }
}

fn bucket(response_ns: u64) -> usize {
    let seconds = response_ns as f64 / 1e9;
    let bucket = RESPONSE_SECONDS.iter().position(|bound| seconds <= *bound);
    bucket.unwrap_or(RESPONSE_SECONDS.len())
}

/// The row of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteRow(usize);

impl SiteRow {
    /// That of a request that no site answers.
    pub const OTHER: Self = Self(SITES_MAX);
}

/// What is counted of a response that has ended.
pub struct Ended {
    /// The worker that sent it.
    pub worker: usize,
    /// The row of its site.
    pub row: SiteRow,
    /// Its status.
    pub status: u16,
    /// Its body bytes.
    pub body_bytes: u64,
    /// If it is complete: how long it waited for its first grant, and how long it took in all.
    pub times_ns: Option<(u64, u64)>,
}

/// Counters of one worker's responses since the start. Two processors that write to one cache line
/// take it from each other with every response. So each worker has its own line.
#[derive(Default)]
#[repr(align(128))]
struct Counters {
    by_status_class: [AtomicU64; STATUS_CLASSES],
    incomplete: AtomicU64,
    body_bytes: AtomicU64,
    wait_ns: AtomicU64,
    /// By size; in all is their sum.
    by_size: [Times; SIZES],
    by_site: Box<[Times]>,
}

impl Counters {
    fn new() -> Self {
        Self {
            by_site: (0..=SITES_MAX).map(|_| Times::default()).collect(),
            ..Self::default()
        }
    }
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
    /// The times from the complete request to the last byte handed over, of complete responses.
    pub times: ResponseTimes,
    /// The same by size, in the order of [`SIZE_CLASSES`].
    pub by_size: [ResponseTimes; SIZES],
    /// The same by site.
    pub by_site: Vec<NamedTimes>,
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
        for (by_size, times) in sum.by_size.iter_mut().zip(&self.by_size) {
            by_size.add(times);
            sum.times.add(times);
        }
        for (site, times) in sum.by_site.iter_mut().zip(&self.by_site) {
            site.times.add(times);
        }
    }
}

/// The ledger; see the module's text.
pub struct Ledger {
    by_worker: Box<[Counters]>,
    /// The sites that have a row.
    sites: Mutex<Vec<String>>,
    comparison: OnceLock<Arc<Comparison>>,
    access_logs: Mutex<Arc<AccessLogs>>,
    /// Requests at a time of sites that have a limit for that, by label.
    requests: Mutex<HashMap<String, Arc<AtomicUsize>>>,
    /// Whether there is an access log. If not, no response takes its lock.
    logging: AtomicBool,
}

impl Ledger {
    /// A ledger for this many workers.
    pub fn new(workers: usize, access_logs: impl Into<AccessLogs>) -> Self {
        let access_logs = access_logs.into();
        Self {
            by_worker: (0..workers).map(|_| Counters::new()).collect(),
            sites: Mutex::default(),
            comparison: OnceLock::new(),
            requests: Mutex::default(),
            logging: (!access_logs.is_empty()).into(),
            access_logs: Mutex::new(Arc::new(access_logs)),
        }
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.by_worker.len()
    }

    /// Logs responses to `access_logs` from now on.
    pub fn set_access_logs(&self, access_logs: AccessLogs) {
        let mut place = self.access_logs.lock();
        self.logging
            .store(!access_logs.is_empty(), Ordering::Release);
        *place = Arc::new(access_logs);
    }

    /// Where the requests at a time of the site that is called so are counted. A reload does not begin anew.
    pub fn requests(&self, site: &str) -> Arc<AtomicUsize> {
        let mut requests = self.requests.lock();
        // Those that no settings have any more.
        requests.retain(|_, count| Arc::strong_count(count) > 1);
        Arc::clone(requests.entry(site.to_owned()).or_default())
    }

    /// Compares the responses with fair sharing from now on.
    pub fn compare(&self, comparison: Arc<Comparison>) {
        self.comparison.get_or_init(|| comparison);
    }

    /// The comparison with fair sharing, if there is one.
    pub fn comparison(&self) -> Option<&Arc<Comparison>> {
        self.comparison.get()
    }

    /// The row of the site that is called so. The rows that a site has once had it keeps.
    pub fn row(&self, site: &str) -> SiteRow {
        let mut sites = self.sites.lock();
        if let Some(row) = sites.iter().position(|known| known == site) {
            return SiteRow(row);
        }
        if sites.len() == SITES_MAX {
            return SiteRow::OTHER;
        }
        sites.push(site.to_owned());
        SiteRow(sites.len() - 1)
    }

    /// The counts of all workers now.
    pub fn snapshot(&self) -> ResponseCounts {
        let named = |name: &str| NamedTimes {
            name: name.to_owned(),
            times: ResponseTimes::default(),
        };
        let mut rows: Vec<NamedTimes> = self.sites.lock().iter().map(|site| named(site)).collect();
        let sites = rows.len();
        rows.resize_with(SITES_MAX + 1, || named(OTHER_SITES));
        let mut sum = ResponseCounts {
            by_site: rows,
            ..ResponseCounts::default()
        };
        for counters in &self.by_worker {
            counters.add_to(&mut sum);
        }
        // Rows that nobody has have counted nothing.
        sum.by_site.drain(sites..SITES_MAX);
        sum
    }

    /// Counts a response that has ended.
    pub fn count(&self, ended: &Ended) {
        let counters = &self.by_worker[ended.worker];
        let class = usize::from(ended.status / 100).clamp(1, STATUS_CLASSES) - 1;
        counters.by_status_class[class].fetch_add(1, Ordering::Relaxed);
        let body_bytes = ended.body_bytes;
        counters.body_bytes.fetch_add(body_bytes, Ordering::Relaxed);
        let Some((wait_ns, response_ns)) = ended.times_ns else {
            counters.incomplete.fetch_add(1, Ordering::Relaxed);
            return;
        };
        counters.wait_ns.fetch_add(wait_ns, Ordering::Relaxed);
        let bucket = bucket(response_ns);
        counters.by_size[size_class(body_bytes)].count(response_ns, bucket);
        counters.by_site[ended.row.0].count(response_ns, bucket);
    }

    /// The access log of a site, by its label, if there is one.
    pub fn access_log(&self, site: impl FnOnce() -> Option<String>) -> Option<Arc<dyn AccessLog>> {
        if !self.logging.load(Ordering::Acquire) {
            return None;
        }
        let logs = Arc::clone(&self.access_logs.lock());
        logs.of(site).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_beyond_the_limit_share_a_row() {
        let ledger = Ledger::new(2, None);
        let count = |row| {
            ledger.count(&Ended {
                worker: 1,
                row,
                status: 200,
                body_bytes: 2_000,
                times_ns: Some((1_000, 2_000_000)),
            });
        };
        for site in 0..SITES_MAX + 2 {
            count(ledger.row(&format!("{site}.example")));
        }
        count(ledger.row("0.example"));
        let counts = ledger.snapshot();
        assert_eq!(counts.by_site.len(), SITES_MAX + 1);
        assert_eq!(counts.by_site[0].times.count, 2);
        assert_eq!(counts.by_site[1].times.count, 1);
        let other = &counts.by_site[SITES_MAX];
        assert_eq!((other.name.as_str(), other.times.count), (OTHER_SITES, 2));
        let all = SITES_MAX as u64 + 3;
        assert_eq!(counts.times.count, all);
        assert_eq!(counts.by_size[1].buckets[1], all);
    }

    #[test]
    fn only_rows_that_somebody_has_are_told() {
        let ledger = Ledger::new(1, None);
        ledger.row("a.example");
        let names: Vec<_> = ledger
            .snapshot()
            .by_site
            .into_iter()
            .map(|site| site.name)
            .collect();
        assert_eq!(names, ["a.example", OTHER_SITES]);
    }
}
