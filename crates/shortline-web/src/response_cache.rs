//! Responses of backends that are kept for other requests (RFC 9111, a shared cache).
//!
//! | module | |
//! |---|---|
//! | `asked` | which requests may be answered from here, and under which name |
//! | `terms` | which responses may be kept, and for how long |
//! | `store` | what is kept, within a size |
//! | `flights` | one fetch for many who wait |
//! | `recording` | a response that is kept while it is sent |
//!
//! No client may see what is meant for another. So these are stricter than the RFC:
//!
//! - A request with `Authorization` is neither answered from here nor kept. One with a cookie is only where the response says `public`
//!   or `s-maxage`, or `Vary: Cookie`; so is one that another server has let in (`forward-auth`).
//! - A response with `Set-Cookie` is never kept, and none whose freshness is only guessed.
//! - Responses with `Vary` are told apart by all values of the fields, byte by byte.
//! - A name has the scheme, the host, the target as sent and as rules have changed it.
//!
//! What a client says in `Cache-Control` does not count, except `no-store`, or anybody could send all requests to the backend.
//!
//! Who holds the bytes: the body is in memory, in one piece for all who get it at once; each response is a job of the link. While it is
//! recorded, the pieces are those of the relay's buffer.

mod asked;
mod flights;
mod recording;
mod store;
mod terms;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use serde::Serialize;

pub use asked::{LetIn, Sought};
pub use flights::{Flight, Turn};
pub use recording::{Recorder, Recording};
pub use store::Stored;

use flights::Flights;
use store::{Known, Store};
use terms::Terms;

/// How much is kept and for how long, with sound defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseCacheOptions {
    /// Bytes of all responses together. Default 64 MiB.
    pub bytes_max: u64,
    /// Bytes of one response's body. Default 1 MiB.
    pub response_bytes_max: usize,
    /// How long a response is fresh that says nothing about it. Default: it is not kept.
    pub default_time: Duration,
    /// How long a stale one is given while it is fetched anew, if it says nothing about it. Default: not.
    pub stale_while_revalidate: Duration,
    /// How long a stale one is given when the backend fails, if it says nothing about it. Default: not.
    pub stale_if_error: Duration,
    /// How long a request waits for another's fetch. Default 5 s.
    pub wait_time_max: Duration,
}

impl Default for ResponseCacheOptions {
    fn default() -> Self {
        Self {
            bytes_max: 64 << 20,
            response_bytes_max: 1 << 20,
            default_time: Duration::ZERO,
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            wait_time_max: Duration::from_secs(5),
        }
    }
}

/// The cache of a route.
pub struct ResponseCache {
    /// Its options.
    pub options: ResponseCacheOptions,
    store: Store,
    flights: Arc<Flights>,
    /// Bytes of responses that are being recorded.
    recording_bytes: AtomicUsize,
    counts: Counts,
}

/// What became of requests.
#[derive(Debug, Default)]
struct Counts {
    hits: AtomicU64,
    stale: AtomicU64,
    misses: AtomicU64,
    passed: AtomicU64,
    hit_bytes: AtomicU64,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered from here, fresh.
    Hit,
    /// Answered from here, stale.
    Stale,
    /// The backend was asked.
    Miss,
    /// Nothing here could be for it.
    Passed,
}

/// A cache at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct ResponseCacheSnapshot {
    /// Responses that are kept.
    pub responses: usize,
    /// Their bytes, with what is kept of each besides the body.
    pub bytes: u64,
    /// Requests answered from here, fresh.
    pub hits_total: u64,
    /// Requests answered from here, stale.
    pub stale_total: u64,
    /// Requests for which the backend was asked.
    pub misses_total: u64,
    /// Requests that nothing here could be for.
    pub passed_total: u64,
    /// Bytes of bodies sent from here.
    pub hit_bytes_total: u64,
}

/// What is known of a request.
pub enum Found {
    /// This response answers it.
    Fresh(Arc<Stored>),
    /// This would, if it were not stale.
    Stale(Arc<Stored>),
    /// Nothing is kept.
    Nothing,
    /// The last response to the like could not be kept, so nobody need wait for another.
    NotKept,
}

impl ResponseCache {
    /// An empty cache.
    pub fn new(options: ResponseCacheOptions) -> Arc<Self> {
        Arc::new(Self {
            store: Store::new(options.bytes_max),
            flights: Arc::default(),
            recording_bytes: AtomicUsize::new(0),
            counts: Counts::default(),
            options,
        })
    }

    /// What is known of a request.
    pub fn find(&self, asked: &Sought, now: SystemTime) -> Found {
        let names = match self.store.known(asked.name()) {
            Some(Known::Varies(names)) => names,
            Some(Known::NotKept(until)) if now < until => return Found::NotKept,
            Some(Known::NotKept(_)) | None => return Found::Nothing,
        };
        let stored = self.store.get(&asked.variant(&names));
        match stored.filter(|stored| !asked.is_personal() || stored.terms.is_for_cookies(&names)) {
            None => Found::Nothing,
            Some(stored) if stored.terms.is_fresh(now) => Found::Fresh(stored),
            Some(stored) => Found::Stale(stored),
        }
    }

    /// Whether this request fetches the response for all who want it now.
    pub fn turn(&self, asked: &Sought) -> Turn {
        self.flights.turn(asked.name())
    }

    /// Keeps a response in place of an older one.
    pub fn keep(&self, asked: &Sought, names: Arc<[http::HeaderName]>, stored: Stored) {
        let variant = asked.variant(&names);
        self.store.put(asked.name(), names, variant, stored);
    }

    /// Keeps a response that its backend has confirmed. `None`: it may not be kept any more.
    pub fn renew(
        &self,
        asked: &Sought,
        stored: &Stored,
        confirmed: &http::HeaderMap,
        now: SystemTime,
    ) -> Option<Arc<Stored>> {
        let (status, headers) = stored.renewed(confirmed);
        let (terms, names) = Terms::of(status, &headers, &self.options, now)?;
        let renewed = Stored {
            status,
            headers,
            body: stored.body.clone(),
            terms,
        };
        self.keep(asked, names, renewed.clone());
        Some(Arc::new(renewed))
    }

    /// Forgets the responses of a URL, or of all that begin so. Returns how many that were.
    pub fn purge(&self, url: &str, with_all_below: bool) -> usize {
        self.store.purge(url, with_all_below)
    }

    /// Counts a request, and the body that it got from here.
    pub fn count(&self, outcome: Outcome, body_bytes: u64) {
        let counts = &self.counts;
        let counter = match outcome {
            Outcome::Hit => &counts.hits,
            Outcome::Stale => &counts.stale,
            Outcome::Miss => &counts.misses,
            Outcome::Passed => &counts.passed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        counts.hit_bytes.fetch_add(body_bytes, Ordering::Relaxed);
    }

    /// Its state now.
    pub fn snapshot(&self) -> ResponseCacheSnapshot {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (responses, bytes) = self.store.size();
        ResponseCacheSnapshot {
            responses,
            bytes,
            hits_total: load(&self.counts.hits),
            stale_total: load(&self.counts.stale),
            misses_total: load(&self.counts.misses),
            passed_total: load(&self.counts.passed),
            hit_bytes_total: load(&self.counts.hit_bytes),
        }
    }
}
