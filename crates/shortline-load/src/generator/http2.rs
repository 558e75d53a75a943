//! HTTP/2: the streams of all requests share a fixed number of connections, as a browser's do. Each
//! goes to the connection with the fewest.
//!
//! A connection takes no more streams than the server allows on it. When all are full, one more is
//! opened, so that in an open loop no request waits in the client. With K requests per connection,
//! a connection that has had K streams takes no more and ends with its last. Windows are those of a
//! common browser: 6 MiB a stream, 15 MiB a connection.

use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytes::Bytes;
use h2::client::{self, SendRequest};
use http::header::{ACCEPT_ENCODING, HeaderValue};
use http::{Request, StatusCode, Version};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::connect::Connector;
use super::exchange::{Broken, Observed, is_connection_lost};
use crate::record::Failure;

const STREAM_WINDOW_BYTES: u32 = 6 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 15 << 20;
/// Streams on a connection whose server has not yet said how many it allows (RFC 9113, 6.5.2
/// recommends at least 100).
const STREAMS_ASSUMED: usize = 100;

/// The connections to a server.
pub(super) struct Http2 {
    connector: Arc<Connector>,
    /// Scheme and authority.
    origin: String,
    accept_encoding: Option<HeaderValue>,
    connections: NonZeroUsize,
    uses_max: u32,
    open: Mutex<Vec<Arc<Connection>>>,
}

#[derive(Default)]
struct Connection {
    sender: OnceCell<SendRequest<Bytes>>,
    streams: AtomicU32,
    /// Streams it ever had; counted under the list's lock.
    uses: AtomicU32,
    closed: Arc<AtomicBool>,
}

/// A stream's place on a connection.
struct Place(Arc<Connection>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Http2 {
    pub(super) fn new(
        connector: Arc<Connector>,
        origin: String,
        accept_encoding: Option<HeaderValue>,
        connections: NonZeroUsize,
        uses_max: Option<NonZeroU32>,
    ) -> Self {
        Self {
            connector,
            origin,
            accept_encoding,
            connections,
            uses_max: uses_max.map_or(u32::MAX, NonZeroU32::get),
            open: Mutex::default(),
        }
    }

    /// The source address of its connections, if there is one.
    pub(super) fn source(&self) -> Option<IpAddr> {
        self.connector.source()
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
        let sender = match self.sender(&place.0).await {
            Ok(sender) => sender,
            Err(failure) => {
                self.forget(&place.0);
                return Err(failure.into());
            }
        };
        seen.connected();
        let result = self.exchange(sender, path, seen).await;
        if matches!(result, Err(Broken::Stale)) {
            self.forget(&place.0);
        }
        Ok(seen.judge(result?, bytes_expected)?)
    }

    /// A place on the connection with the fewest streams, or on one that is yet to be opened.
    fn place(&self) -> Place {
        let mut open = self.open.lock();
        open.retain(|connection| !connection.closed.load(Ordering::Relaxed));
        let emptiest = open
            .iter()
            .filter(|connection| connection.has_room())
            .min_by_key(|connection| connection.streams.load(Ordering::Relaxed));
        let connection = match emptiest {
            Some(connection) if open.len() >= self.connections.get() => Arc::clone(connection),
            _ => {
                let new = Arc::new(Connection::default());
                open.push(Arc::clone(&new));
                new
            }
        };
        connection.streams.fetch_add(1, Ordering::Relaxed);
        if connection.uses.fetch_add(1, Ordering::Relaxed) + 1 >= self.uses_max {
            open.retain(|other| !Arc::ptr_eq(other, &connection));
        }
        Place(connection)
    }

    fn forget(&self, connection: &Arc<Connection>) {
        self.open
            .lock()
            .retain(|other| !Arc::ptr_eq(other, connection));
    }

    /// The connection's sender. The first caller opens it; the others wait for that.
    async fn sender(&self, connection: &Connection) -> Result<SendRequest<Bytes>, Failure> {
        let sender = connection.sender.get_or_try_init(|| async {
            let wire = self.connector.connect().await?;
            let (sender, driver) = client::Builder::new()
                .initial_window_size(STREAM_WINDOW_BYTES)
                .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                .enable_push(false)
                .handshake(wire)
                .await
                .map_err(|_| Failure::Connect)?;
            let closed = Arc::clone(&connection.closed);
            tokio::spawn(async move {
                // Each stream sees an error itself.
                let _ = driver.await;
                closed.store(true, Ordering::Relaxed);
            });
            Ok(sender)
        });
        sender.await.cloned()
    }

    async fn exchange(
        &self,
        sender: SendRequest<Bytes>,
        path: &str,
        seen: &mut Observed,
    ) -> Result<StatusCode, Broken> {
        let mut sender = sender.ready().await.map_err(before_head)?;
        let (response, _) = sender
            .send_request(self.request(path), true)
            .map_err(before_head)?;
        let response = response.await.map_err(before_head)?;
        seen.head_arrived();
        let status = response.status();
        let mut body = response.into_body();
        while let Some(data) = body.data().await {
            let bytes = data.map_err(|_| Failure::Reset)?.len();
            seen.received += bytes as u64;
            // Fails only on a stream that has ended, which the next read shows.
            let _ = body.flow_control().release_capacity(bytes);
        }
        Ok(status)
    }

    fn request(&self, path: &str) -> Request<()> {
        let uri = format!("{}{path}", self.origin);
        let mut request = Request::new(());
        *request.uri_mut() = uri
            .parse()
            .expect("invariant: a trace's paths are request targets");
        *request.version_mut() = Version::HTTP_2;
        if let Some(codings) = &self.accept_encoding {
            request
                .headers_mut()
                .insert(ACCEPT_ENCODING, codings.clone());
        }
        request
    }
}

impl Connection {
    fn has_room(&self) -> bool {
        let allowed = self
            .sender
            .get()
            .map_or(STREAMS_ASSUMED, SendRequest::current_max_send_streams);
        (self.streams.load(Ordering::Relaxed) as usize) < allowed
    }
}

/// Whether the server has not begun to answer because the connection ended, or because it refused
/// the stream, which promises the same; else it failed in another way.
fn before_head(error: h2::Error) -> Broken {
    let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
    if refused || error.is_go_away() || error.is_io() || is_connection_lost(&error) {
        Broken::Stale
    } else if error.is_reset() {
        Broken::Failed(Failure::Reset)
    } else {
        Broken::Failed(Failure::Protocol)
    }
}
