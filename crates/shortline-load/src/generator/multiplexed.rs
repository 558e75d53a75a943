//! HTTP/2 and HTTP/3: the streams of all requests share a fixed number of connections, as a browser's do. Each
//! goes to the connection with the fewest.
//!
//! A connection takes no more streams than the server allows on it. When all are full, one more is
//! opened, so that in an open loop no request waits in the client. With K requests per connection,
//! a connection that has had K streams takes no more and ends with its last. Windows are those of a
//! common browser: 6 MiB a stream, 15 MiB a connection.

use std::future::Future;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use http::header::{ACCEPT_ENCODING, HeaderValue};
use http::{Request, StatusCode};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::exchange::{Broken, Observed};
use crate::record::Failure;

pub(super) const STREAM_WINDOW_BYTES: u32 = 6 << 20;
pub(super) const CONNECTION_WINDOW_BYTES: u32 = 15 << 20;
/// Streams on a connection whose server has not yet said how many it allows (RFC 9113, 6.5.2
/// recommends at least 100, and so does RFC 9114, 6.1).
pub(super) const STREAMS_ASSUMED: usize = 100;

/// A version of HTTP that has streams.
pub(super) trait Speaks: Send + Sync + 'static {
    /// What sends requests on an open connection.
    type Sender: Clone + Send + Sync;

    /// Opens a connection. Sets `closed` once it has ended.
    fn open(
        &self,
        closed: Arc<AtomicBool>,
    ) -> impl Future<Output = Result<Self::Sender, Failure>> + Send;

    /// How many streams the server allows.
    fn streams_max(sender: &Self::Sender) -> usize;

    /// Fetches to the last byte.
    fn exchange(
        &self,
        sender: Self::Sender,
        request: Request<()>,
        seen: &mut Observed,
    ) -> impl Future<Output = Result<StatusCode, Broken>> + Send;
}

/// How connections are used, and what all requests have in common.
pub(super) struct Sharing {
    /// Scheme and authority.
    pub(super) origin: String,
    pub(super) accept_encoding: Option<HeaderValue>,
    /// How many there are.
    pub(super) connections: NonZeroUsize,
    /// The most requests of one.
    pub(super) uses_max: Option<NonZeroU32>,
}

/// The connections to a server.
pub(super) struct Multiplexed<S: Speaks> {
    speaks: S,
    sharing: Sharing,
    open: Mutex<Vec<Arc<Connection<S::Sender>>>>,
}

struct Connection<T> {
    sender: OnceCell<T>,
    streams: AtomicU32,
    /// Streams it ever had; counted under the list's lock.
    uses: AtomicU32,
    closed: Arc<AtomicBool>,
}

/// A stream's place on a connection.
struct Place<T>(Arc<Connection<T>>);

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S: Speaks> Multiplexed<S> {
    pub(super) fn new(speaks: S, sharing: Sharing) -> Self {
        Self {
            speaks,
            sharing,
            open: Mutex::new(Vec::new()),
        }
    }

    /// Fetches `path` to its last byte.
    pub(super) async fn fetch(
        &self,
        path: &str,
        bytes_expected: u64,
        seen: &mut Observed,
    ) -> Result<(), Failure> {
        match self.fetch_once(path, bytes_expected, seen).await {
            Err(Broken::Stale) => seen.begin_try(),
            Err(Broken::Failed(failure)) => return Err(failure),
            Ok(()) => return Ok(()),
        }
        match self.fetch_once(path, bytes_expected, seen).await {
            Err(Broken::Stale) => Err(Failure::Reset),
            Err(Broken::Failed(failure)) => Err(failure),
            Ok(()) => Ok(()),
        }
    }

    async fn fetch_once(
        &self,
        path: &str,
        bytes_expected: u64,
        seen: &mut Observed,
    ) -> Result<(), Broken> {
        let place = self.place();
        // The first caller opens it; the others wait for that.
        let opening = || self.speaks.open(Arc::clone(&place.0.closed));
        let sender = match place.0.sender.get_or_try_init(opening).await {
            Ok(sender) => sender.clone(),
            Err(failure) => {
                self.forget(&place.0);
                return Err(failure.into());
            }
        };
        seen.connected();
        let result = self.speaks.exchange(sender, self.request(path), seen).await;
        if matches!(result, Err(Broken::Stale)) {
            self.forget(&place.0);
        }
        Ok(seen.judge(result?, bytes_expected)?)
    }

    /// A place on the connection with the fewest streams, or on one that is yet to be opened.
    fn place(&self) -> Place<S::Sender> {
        let mut open = self.open.lock();
        open.retain(|connection| !connection.closed.load(Ordering::Relaxed));
        let emptiest = open
            .iter()
            .filter(|connection| Self::has_room(connection))
            .min_by_key(|connection| connection.streams.load(Ordering::Relaxed));
        let connection = match emptiest {
            Some(connection) if open.len() >= self.sharing.connections.get() => {
                Arc::clone(connection)
            }
            _ => {
                let new = Arc::new(Connection {
                    sender: OnceCell::new(),
                    streams: AtomicU32::new(0),
                    uses: AtomicU32::new(0),
                    closed: Arc::default(),
                });
                open.push(Arc::clone(&new));
                new
            }
        };
        connection.streams.fetch_add(1, Ordering::Relaxed);
        let uses = connection.uses.fetch_add(1, Ordering::Relaxed) + 1;
        if self.sharing.uses_max.is_some_and(|most| uses >= most.get()) {
            open.retain(|other| !Arc::ptr_eq(other, &connection));
        }
        Place(connection)
    }

    fn has_room(connection: &Connection<S::Sender>) -> bool {
        let sender = connection.sender.get();
        let allowed = sender.map_or(STREAMS_ASSUMED, S::streams_max);
        (connection.streams.load(Ordering::Relaxed) as usize) < allowed
    }

    fn forget(&self, connection: &Arc<Connection<S::Sender>>) {
        self.open
            .lock()
            .retain(|other| !Arc::ptr_eq(other, connection));
    }

    fn request(&self, path: &str) -> Request<()> {
        let uri = format!("{}{path}", self.sharing.origin);
        let mut request = Request::new(());
        *request.uri_mut() = uri
            .parse()
            .expect("invariant: a trace's paths are request targets");
        if let Some(codings) = &self.sharing.accept_encoding {
            request
                .headers_mut()
                .insert(ACCEPT_ENCODING, codings.clone());
        }
        request
    }
}
