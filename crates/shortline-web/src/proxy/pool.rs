//! One backend: the connections to it, kept alive between requests, and whether it seems to be up.
//!
//! A request needs a place ([`Places`]), of which there are `connections_max`.
//!
//! In HTTP/1.1 it uses an idle connection, or opens one if there is none. An idle connection is
//! offered first to the worker that used it last, so that its task wakes on the same thread. The
//! place is free again when the connection is idle or closed. So no more connections are open than
//! there are places, idle and upgraded ones included.
//!
//! In HTTP/2 it is a stream of a connection with room for one. If there is none, one request at a
//! time opens another connection, and the others wait for it. The place is free again when the
//! response has ended.

mod lease;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde::Serialize;
use shortline_base::clock::now_ns;
use shortline_base::world::{self, Stream};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::address::UpstreamAddress;
use super::error::ProxyError;
use super::fastcgi::Complaints;
use super::http2;
use super::options::{HttpVersion, UpstreamOptions};
use super::places::{Place, Places};
use super::tls::{Connector, Offer};
pub use lease::Lease;

/// A backend at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct BackendSnapshot {
    /// Where it is.
    pub address: String,
    /// Whether it seems to be up.
    pub up: bool,
    /// Requests under way.
    pub outstanding: usize,
    /// Open connections.
    pub connections_open: usize,
    /// How many of them have no request.
    pub connections_idle: usize,
    /// Connections opened since the start.
    pub connections_total: u64,
    /// Requests sent to it, retries included.
    pub requests_total: u64,
    /// How many of them it failed.
    pub failures_total: u64,
}

/// A backend; see the module's text.
pub struct Backend {
    address: UpstreamAddress,
    /// Set if the address asks for TLS.
    tls: Option<Connector>,
    options: Arc<UpstreamOptions>,
    complaints: Arc<Complaints>,
    idle: Mutex<Vec<Idle>>,
    /// The connections of HTTP/2.
    shared: Mutex<Vec<Arc<http2::Connection>>>,
    /// Who may open another one of those.
    opening: tokio::sync::Mutex<()>,
    /// Whether it has chosen HTTP/1.1 where both were offered.
    prefers_http1: AtomicBool,
    places: Arc<Places>,
    outstanding: AtomicUsize,
    failures_in_a_row: AtomicU32,
    down_until_ns: AtomicU64,
    probe_failed: AtomicBool,
    connections_total: AtomicU64,
    requests_total: AtomicU64,
    failures_total: AtomicU64,
}

/// How likely a backend is to answer, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Works as far as is known.
    Up,
    /// Its last requests failed. It is asked only if no other backend is left.
    Doubtful,
    /// Its health check fails. It is not asked.
    Down,
}

struct Idle {
    lease: Lease,
    since_ns: u64,
}

/// A request under way at a backend, as long as this is held.
pub struct Outstanding(Arc<Backend>);

impl Backend {
    /// The backend at `address`.
    pub fn new(
        address: UpstreamAddress,
        tls: Option<Connector>,
        options: &Arc<UpstreamOptions>,
    ) -> Arc<Self> {
        let complaints = Complaints::new(address.to_string());
        Arc::new(Self {
            address,
            tls,
            options: Arc::clone(options),
            complaints: Arc::new(complaints),
            idle: Mutex::default(),
            shared: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            prefers_http1: AtomicBool::new(false),
            places: Places::new(options.connections_max),
            outstanding: AtomicUsize::new(0),
            failures_in_a_row: AtomicU32::new(0),
            down_until_ns: AtomicU64::new(0),
            probe_failed: AtomicBool::new(false),
            connections_total: AtomicU64::new(0),
            requests_total: AtomicU64::new(0),
            failures_total: AtomicU64::new(0),
        })
    }

    /// A connection for a request of `client`: one that is open, or a new one. An `upgrade` needs
    /// HTTP/1.1, if the backend speaks it.
    ///
    /// # Errors
    /// As [`Backend::connect`], and [`ProxyError::Busy`].
    pub async fn connection(
        &self,
        worker: usize,
        client: u128,
        upgrade: bool,
    ) -> Result<Lease, ProxyError> {
        let place = self.place(client).await?;
        let offer = self.offer(upgrade);
        if offer == Offer::Http1 || self.prefers_http1.load(Ordering::Relaxed) {
            return match self.idle_connection(worker) {
                Some(lease) => Ok(lease.with_place(place)),
                None => self
                    .connect(worker, Some(place), offer)
                    .await
                    .map(|lease| self.noted(lease)),
            };
        }
        self.stream(worker, place, offer).await
    }

    /// A stream of HTTP/2 on a connection with room for one, or on a new one.
    async fn stream(&self, worker: usize, place: Place, offer: Offer) -> Result<Lease, ProxyError> {
        if let Some(stream) = self.shared_stream() {
            return Ok(Lease::http2(stream, worker, true, Some(place)));
        }
        let turn = timeout(self.options.connect_time_max, self.opening.lock()).await;
        let _turn = turn.map_err(|_elapsed| self.unreachable(io::ErrorKind::TimedOut.into()))?;
        if let Some(stream) = self.shared_stream() {
            return Ok(Lease::http2(stream, worker, true, Some(place)));
        }
        let lease = self.connect(worker, Some(place), offer).await?;
        if !lease.is_http2() {
            self.prefers_http1.store(true, Ordering::Relaxed);
        }
        Ok(self.noted(lease))
    }

    /// Offers a new connection to other requests, if it is HTTP/2.
    fn noted(&self, lease: Lease) -> Lease {
        if let Some(connection) = lease.http2_connection() {
            self.prefers_http1.store(false, Ordering::Relaxed);
            self.shared.lock().push(Arc::clone(connection));
        }
        lease
    }

    fn shared_stream(&self) -> Option<http2::Stream> {
        let mut shared = self.shared.lock();
        shared.retain(|connection| connection.is_open());
        // The first with room, so that the last ones become idle and are closed.
        shared.iter().find_map(http2::Connection::place)
    }

    /// A connection in place of `lease`, which was found closed.
    ///
    /// # Errors
    /// [`ProxyError::Connect`], [`ProxyError::Broken`]
    pub async fn reconnect(&self, lease: Lease) -> Result<Lease, ProxyError> {
        let worker = lease.worker();
        match (lease.is_http2(), lease.take_place()) {
            (true, Some(place)) => {
                let lease = self.stream(worker, place, self.offer(false)).await?;
                Ok(lease.into_new())
            }
            (_, place) => self.connect(worker, place, self.offer(true)).await,
        }
    }

    /// The versions of HTTP to ask for.
    fn offer(&self, upgrade: bool) -> Offer {
        match (&self.address, self.options.http) {
            (UpstreamAddress::FastCgiTcp { .. } | UpstreamAddress::FastCgiUnix(_), _) => {
                Offer::Http1
            }
            (UpstreamAddress::H2c { .. }, _) | (_, HttpVersion::Two) => Offer::Http2,
            (_, HttpVersion::One) => Offer::Http1,
            (UpstreamAddress::Tls { .. }, HttpVersion::Auto) if !upgrade => Offer::Either,
            (_, HttpVersion::Auto) => Offer::Http1,
        }
    }

    async fn place(&self, client: u128) -> Result<Place, ProxyError> {
        let place = self.places.take(client);
        timeout(self.options.connect_time_max, place)
            .await
            .map_err(|_elapsed| ProxyError::Busy {
                backend: self.address.to_string(),
            })
    }

    /// An idle connection that seems to be open, if there is one.
    fn idle_connection(&self, worker: usize) -> Option<Lease> {
        let oldest_ns = self.idle_since_ns_min();
        let mut idle = self.idle.lock();
        loop {
            let own = idle.iter().rposition(|idle| idle.lease.worker() == worker);
            let index = own.or(idle.len().checked_sub(1))?;
            let Idle { lease, since_ns } = idle.remove(index);
            if since_ns >= oldest_ns && lease.is_ready() {
                return Some(lease.again(worker));
            }
        }
    }

    /// A new connection for the health check. It needs no place, so it is asked however many
    /// requests wait.
    ///
    /// # Errors
    /// [`ProxyError::Connect`], [`ProxyError::Broken`]
    pub async fn connect_to_probe(&self) -> Result<Lease, ProxyError> {
        self.connect(usize::MAX, None, self.offer(false)).await
    }

    /// A new connection for the holder of `place`.
    async fn connect(
        &self,
        worker: usize,
        place: Option<Place>,
        offer: Offer,
    ) -> Result<Lease, ProxyError> {
        let time_max = self.options.connect_time_max;
        let late = |_| Err(io::ErrorKind::TimedOut.into());
        let opened = timeout(time_max, self.open(offer)).await;
        let (stream, is_http2) = opened
            .unwrap_or_else(late)
            .map_err(|e| self.unreachable(e))?;
        self.connections_total.fetch_add(1, Ordering::Relaxed);
        if !is_http2 {
            let complaints = self.address.speaks_fastcgi().then_some(&self.complaints);
            return Lease::alone(stream, worker, place, &self.options, complaints).await;
        }
        let secure = self.tls.is_some();
        let begun = http2::Connection::begin(stream, secure, &self.options);
        let begun = timeout(time_max, begun).await;
        let late = |_| Err(http2::is_not_http2("it sends no settings"));
        let connection = begun
            .unwrap_or_else(late)
            .map_err(|e| self.unreachable(e))?;
        let stream = connection.place();
        let none = || self.unreachable(io::Error::other("it allows no stream of HTTP/2"));
        Ok(Lease::http2(stream.ok_or_else(none)?, worker, false, place))
    }

    fn unreachable(&self, source: io::Error) -> ProxyError {
        ProxyError::Connect {
            backend: self.address.to_string(),
            source,
        }
    }

    /// Opens a socket. The second value is whether it is HTTP/2.
    async fn open(&self, offer: Offer) -> io::Result<(Box<dyn Stream>, bool)> {
        let is_http2 = offer == Offer::Http2;
        if let UpstreamAddress::Tcp { host, port } | UpstreamAddress::H2c { host, port } =
            &self.address
            && let Some(connecting) = world::connect(host, *port)
        {
            return Ok((connecting.await?, is_http2));
        }
        Ok(match (&self.address, &self.tls) {
            (UpstreamAddress::Unix(path) | UpstreamAddress::FastCgiUnix(path), _) => {
                (Box::new(UnixStream::connect(path).await?), is_http2)
            }
            (UpstreamAddress::Tls { host, port }, Some(tls)) => {
                let stream = open_tcp(host, *port).await?;
                let (stream, chosen) = tls.connect(host, stream, offer).await?;
                if is_http2 && !chosen {
                    return Err(http2::is_not_http2("its TLS does not offer it"));
                }
                (Box::new(stream), chosen)
            }
            (UpstreamAddress::Tls { .. }, None) => {
                return Err(io::Error::other("TLS was not set up"));
            }
            (
                UpstreamAddress::Tcp { host, port }
                | UpstreamAddress::H2c { host, port }
                | UpstreamAddress::FastCgiTcp { host, port },
                _,
            ) => (Box::new(open_tcp(host, *port).await?), is_http2),
        })
    }

    /// Keeps a connection for the next request, once its exchange is over. A stream of HTTP/2 ends.
    pub async fn keep(&self, mut lease: Lease) {
        if lease.is_http2() || !lease.becomes_ready().await {
            return;
        }
        let place = {
            let mut idle = self.idle.lock();
            if idle.len() >= self.options.idle_connections_max {
                // The one idle for longest goes: the backend is likeliest to close it.
                if idle.is_empty() {
                    return;
                }
                idle.remove(0);
            }
            // Before others see the connection: its next user stores its own place there.
            let place = lease.take_place();
            idle.push(Idle {
                lease,
                since_ns: now_ns(),
            });
            place
        };
        // Only now, so that the next holder of the place finds the connection.
        drop(place);
    }

    /// Closes connections that were idle for too long.
    pub fn close_idle(&self) {
        let oldest_ns = self.idle_since_ns_min();
        self.idle
            .lock()
            .retain(|idle| idle.since_ns >= oldest_ns && !idle.lease.is_closed());
        let mut idle_left = self.options.idle_connections_max;
        self.shared.lock().retain(|connection| {
            let is_idle = connection.streams() == 0;
            let keeps = !is_idle || (idle_left > 0 && connection.idle_since_ns() >= oldest_ns);
            idle_left -= usize::from(is_idle && keeps);
            keeps && connection.is_open()
        });
    }

    fn idle_since_ns_min(&self) -> u64 {
        let kept_ns = self.options.idle_connection_time_max.as_nanos() as u64;
        now_ns().saturating_sub(kept_ns)
    }

    /// Counts a request sent to the backend.
    pub fn begin(self: &Arc<Self>) -> Outstanding {
        self.outstanding.fetch_add(1, Ordering::AcqRel);
        self.requests_total.fetch_add(1, Ordering::Relaxed);
        Outstanding(Arc::clone(self))
    }

    /// Requests under way.
    pub fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Acquire)
    }

    /// Its address, for messages.
    pub fn address(&self) -> &UpstreamAddress {
        &self.address
    }

    /// Notes that it has answered.
    pub fn succeeded(&self) {
        if self.failures_in_a_row.load(Ordering::Relaxed) > 0 {
            self.failures_in_a_row.store(0, Ordering::Relaxed);
            if self.down_until_ns.swap(0, Ordering::Relaxed) > 0 {
                tracing::info!("{}: answers again", self.address);
            }
        }
    }

    /// Notes that it has not answered, through no fault of the client.
    pub fn failed(&self) {
        self.failures_total.fetch_add(1, Ordering::Relaxed);
        let failures = self.failures_in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
        if failures >= self.options.failures_max {
            let down_ns = self.options.down_time.as_nanos() as u64;
            let before = self
                .down_until_ns
                .swap(now_ns() + down_ns, Ordering::Relaxed);
            if before == 0 {
                tracing::warn!("{}: {failures} requests in a row failed", self.address);
            }
        }
    }

    /// Notes the result of its health check.
    pub fn probed(&self, health: Result<(), String>) {
        let was_down = self.probe_failed.swap(health.is_err(), Ordering::Relaxed);
        match health {
            Ok(()) => {
                if was_down {
                    tracing::info!("{}: up again, says its health check", self.address);
                }
                self.succeeded();
            }
            Err(reason) if !was_down => {
                tracing::warn!("{}: down, says its health check: {reason}", self.address);
            }
            Err(_) => {}
        }
    }

    /// How likely it is to answer now.
    pub fn standing(&self) -> Standing {
        if self.probe_failed.load(Ordering::Relaxed) {
            Standing::Down
        } else if self.down_until_ns.load(Ordering::Relaxed) > now_ns() {
            Standing::Doubtful
        } else {
            Standing::Up
        }
    }

    /// Its state now.
    pub fn snapshot(&self) -> BackendSnapshot {
        let streams: Vec<usize> = self.shared.lock().iter().map(|one| one.streams()).collect();
        let shared_idle = streams.iter().filter(|streams| **streams == 0).count();
        let connections_idle = self.idle.lock().len() + shared_idle;
        // A place is a connection of HTTP/1.1 or a stream of HTTP/2.
        let of_http1 = self.places.taken().saturating_sub(streams.iter().sum());
        let shared_busy = streams.len() - shared_idle;
        BackendSnapshot {
            address: self.address.to_string(),
            up: self.standing() == Standing::Up,
            outstanding: self.outstanding(),
            connections_open: of_http1 + shared_busy + connections_idle,
            connections_idle,
            connections_total: self.connections_total.load(Ordering::Relaxed),
            requests_total: self.requests_total.load(Ordering::Relaxed),
            failures_total: self.failures_total.load(Ordering::Relaxed),
        }
    }
}

impl Outstanding {
    /// The backend.
    pub fn backend(&self) -> &Arc<Backend> {
        &self.0
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.0.outstanding.fetch_sub(1, Ordering::AcqRel);
    }
}

async fn open_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
