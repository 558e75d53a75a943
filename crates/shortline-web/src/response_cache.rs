//! Responses of backends that are kept for other requests (RFC 9111, a shared cache).
//!
//! | module | |
//! |---|---|
//! | `asked` | which requests may be answered from here, and under which name |
//! | `terms` | which responses may be kept, and for how long |
//! | `store` | what is kept in memory, within a size |
//! | `folder` | what is kept on the disk, if it is: all, within a size; memory has what is small and wanted |
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
//! Who holds the bytes: the body is in memory, in one piece for all who get it at once, or in a file of the folder, read as a static
//! file is; each response is a job of the link. While it is recorded, the pieces are those of the relay's buffer.

mod asked;
mod flights;
pub mod folder;
mod recording;
mod store;
mod terms;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use http::header::HeaderName;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use shortline_base::world::run_blocking;

pub use asked::{LetIn, Sought};
pub use flights::{Flight, Turn};
pub use recording::{Recorder, Recording};
pub use store::Stored;

use flights::Flights;
use folder::entry::{BodyMark, Head};
use folder::{Folder, FolderOptions, FolderSnapshot, Id, Kept, Loaded};
use store::{Body, Known, Store};
use terms::Terms;

/// How much is kept and for how long, with sound defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseCacheOptions {
    /// Bytes of all responses together. Default 64 MiB.
    pub bytes_max: u64,
    /// Bytes of one response's body in memory. Default 1 MiB.
    pub response_bytes_max: usize,
    /// How long a response is fresh that says nothing about it. Default: it is not kept.
    pub default_time: Duration,
    /// How long a stale one is given while it is fetched anew, if it says nothing about it. Default: not.
    pub stale_while_revalidate: Duration,
    /// How long a stale one is given when the backend fails, if it says nothing about it. Default: not.
    pub stale_if_error: Duration,
    /// How long a request waits for another's fetch. Default 5 s.
    pub wait_time_max: Duration,
    /// Where all are kept, in memory or not. Default: nowhere.
    pub folder: Option<FolderOptions>,
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
            folder: None,
        }
    }
}

/// The cache of a route.
pub struct ResponseCache {
    /// Its options.
    pub options: ResponseCacheOptions,
    store: Store,
    folder: Option<Folder>,
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
    /// The folder, if there is one.
    pub folder: Option<FolderSnapshot>,
}

/// What is known of a request.
pub enum Found {
    /// This response answers it.
    Fresh(Arc<Stored>),
    /// This would, if it were not stale.
    Stale(Arc<Stored>),
    /// One is in the folder: [`ResponseCache::load`].
    Unread(Unread),
    /// Nothing is kept.
    Nothing,
    /// The last response to the like could not be kept, so nobody need wait for another.
    NotKept,
}

/// A response in the folder.
pub struct Unread {
    variant: String,
    names: Arc<[HeaderName]>,
    id: Id,
}

/// How much later than now a response may have come, as clocks are set back at times.
const FUTURE_MAX: Duration = Duration::from_secs(60);

impl ResponseCache {
    /// An empty cache.
    pub fn new(options: ResponseCacheOptions) -> Arc<Self> {
        Arc::new(Self {
            store: Store::new(options.bytes_max),
            folder: options.folder.clone().map(Folder::new),
            flights: Arc::default(),
            recording_bytes: AtomicUsize::new(0),
            counts: Counts::default(),
            options,
        })
    }

    /// Begins to use its folder, or does so again.
    pub fn start(&self) {
        self.folder.iter().for_each(Folder::start);
    }

    /// Leaves its folder to another cache. What is known to be there is still read.
    pub fn rest(&self) {
        self.folder.iter().for_each(Folder::rest);
    }

    /// What is known of a request.
    pub fn find(&self, asked: &Sought, now: SystemTime) -> Found {
        let in_folder = || self.folder.as_ref()?.varies(asked.name());
        let names = match self.store.known(asked.name()) {
            Some(Known::Varies(names)) => Some(names),
            Some(Known::NotKept(until)) if now < until => return Found::NotKept,
            Some(Known::NotKept(_)) | None => in_folder(),
        };
        let Some(names) = names else {
            return Found::Nothing;
        };
        let variant = asked.variant(&names);
        let kept = self
            .folder
            .as_ref()
            .and_then(|folder| folder.find(&variant, now));
        let stored = match (self.store.get(&variant), kept) {
            (Some(stored), _) | (None, Some(Kept::Open(stored))) => stored,
            (None, Some(Kept::Closed(id))) => return Found::Unread(Unread { variant, names, id }),
            (None, None) => return Found::Nothing,
        };
        judged(stored, asked, &names, now)
    }

    /// Reads a response of the folder. Others who want it meanwhile wait for that.
    pub async fn load(self: &Arc<Self>, asked: &Sought, unread: Unread, now: SystemTime) -> Found {
        let names = Arc::clone(&unread.names);
        // No name of a request begins so.
        match self.flights.turn(&format!("\n{}", unread.variant)) {
            Turn::Waits(mut landing) => {
                let _ = landing.changed().await;
                match self.find(asked, now) {
                    Found::Unread(_) => Found::Nothing,
                    found => found,
                }
            }
            Turn::Fetches(flight) => {
                let cache = Arc::clone(self);
                let reading = run_blocking(move || {
                    let read = cache.read(&unread, now);
                    drop(flight);
                    read
                });
                let read = reading.await.ok().flatten();
                read.map_or(Found::Nothing, |stored| judged(stored, asked, &names, now))
            }
        }
    }

    /// Reads a response of the folder, on a thread that may block.
    fn read(&self, Unread { variant, names, id }: &Unread, now: SystemTime) -> Option<Arc<Stored>> {
        let folder = self.folder.as_ref()?;
        let read = folder.read(*id, variant, self.options.response_bytes_max as u64)?;
        let Some(stored) = self.as_kept(read, names, now).map(Arc::new) else {
            folder.drop_if(*id, variant);
            return None;
        };
        let held = Arc::clone(&stored);
        match stored.body {
            Body::File(_) => folder.hold(*id, variant, held),
            Body::Memory(_) => {
                folder.if_still(*id, variant, || self.store.add(variant.clone(), held));
            }
        }
        Some(stored)
    }

    /// A response as it was kept. `None`: by what is configured now it would not be, or its time cannot be right.
    fn as_kept(
        &self,
        Loaded { head, body }: Loaded,
        names: &Arc<[HeaderName]>,
        now: SystemTime,
    ) -> Option<Stored> {
        let (terms, varies) = Terms::of(head.status, &head.headers, &self.options, head.received)?;
        let is_sound = varies == *names && head.received <= now + FUTURE_MAX;
        is_sound.then_some(Stored {
            status: head.status,
            headers: head.headers,
            body,
            terms,
        })
    }

    /// Whether this request fetches the response for all who want it now.
    pub fn turn(&self, asked: &Sought) -> Turn {
        self.flights.turn(asked.name())
    }

    /// How often something was purged. What a backend was asked for before that is not kept.
    pub fn purges(&self) -> u64 {
        self.store.purges()
    }

    /// Keeps a response in memory, in place of an older one here and there, if nothing was purged since the backend was asked.
    pub fn keep(&self, asked: &Sought, names: Arc<[HeaderName]>, stored: Arc<Stored>, purges: u64) {
        let variant = asked.variant(&names);
        self.folder
            .iter()
            .for_each(|folder| folder.forget(&variant));
        self.store.put(asked.name(), names, variant, stored, purges);
    }

    /// A response comes to the folder alone, in place of an older one.
    fn leave(&self, asked: &Sought, names: Arc<[HeaderName]>) {
        let variant = asked.variant(&names);
        self.folder
            .iter()
            .for_each(|folder| folder.forget(&variant));
        self.store.leave(asked.name(), names, &variant);
    }

    /// What the folder has of a response besides its body, which is not known yet.
    fn head(
        &self,
        asked: &Sought,
        names: &Arc<[HeaderName]>,
        (status, headers): (StatusCode, &HeaderMap),
        terms: &Terms,
    ) -> Head {
        Head {
            name: asked.name().to_owned(),
            variant: asked.variant(names),
            varies: Arc::clone(names),
            status,
            headers: headers.clone(),
            received: terms.received(),
            body: BodyMark::default(),
        }
    }

    /// Keeps a response that its backend has confirmed. `None`: it may not be kept any more.
    pub fn renew(
        &self,
        asked: &Sought,
        stored: &Stored,
        confirmed: &HeaderMap,
        now: SystemTime,
        purges: u64,
    ) -> Option<Arc<Stored>> {
        let (status, headers) = stored.renewed(confirmed);
        let (terms, names) = Terms::of(status, &headers, &self.options, now)?;
        let head = self.head(asked, &names, (status, &headers), &terms);
        let renewed = Arc::new(Stored {
            status,
            headers,
            body: stored.body.clone(),
            terms,
        });
        let variant = head.variant.clone();
        let is_open = match &renewed.body {
            Body::Memory(_) => None,
            Body::File(_) => Some(Arc::clone(&renewed)),
        };
        if self.purges() != purges {
            return Some(renewed);
        }
        match is_open {
            None => self
                .store
                .put(asked.name(), names, variant, Arc::clone(&renewed), purges),
            Some(_) => self.store.leave(asked.name(), names, &variant),
        }
        self.folder
            .iter()
            .for_each(|folder| folder.renew(head.clone(), is_open.clone()));
        Some(renewed)
    }

    /// Forgets the responses of a URL, or of all that begin so. Returns how many that were.
    pub fn purge(&self, url: &str, with_all_below: bool) -> usize {
        let is_meant = |key: &str| {
            let known = key.split('\n').next().unwrap_or_default();
            known == url || with_all_below && known.starts_with(url)
        };
        // The folder first: nothing that is read there comes to memory afterwards.
        let in_folder = self.folder.as_ref().map(|folder| folder.purge(is_meant));
        let mut purged = self.store.purge(is_meant);
        purged.extend(in_folder.unwrap_or_default());
        purged.len()
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

    /// Fetches under way, and bytes of responses that are being recorded.
    pub fn under_way(&self) -> (usize, usize) {
        let recording_bytes = self.recording_bytes.load(Ordering::Relaxed);
        (self.flights.under_way(), recording_bytes)
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
            folder: self.folder.as_ref().map(Folder::snapshot),
        }
    }
}

/// Whether a response that is kept answers a request now.
fn judged(stored: Arc<Stored>, asked: &Sought, names: &[HeaderName], now: SystemTime) -> Found {
    if asked.is_personal() && !stored.terms.is_for_cookies(names) {
        return Found::Nothing;
    }
    match stored.terms.is_fresh(now) {
        true => Found::Fresh(stored),
        false => Found::Stale(stored),
    }
}
