//! One backend: the connections to it, kept alive between requests, and whether it seems to be up.
//!
//! An idle connection is offered first to the worker that used it last, so that its task wakes on
//! the same thread. At most `connections_max` are open at a time, idle and upgraded ones included.
//! A request with a place ([`Places`]) uses an idle connection, or opens one if there is none. The
//! place is free again when the connection is idle or closed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde::Serialize;
use shortline_base::clock::now_ns;
use shortline_base::world::{self, Stream};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::io::InspectReader;

use super::address::UpstreamAddress;
use super::error::ProxyError;
use super::options::UpstreamOptions;
use super::places::{Place, Places};
use super::tls::Connector;
use super::upload::RequestBody;

/// How long a connection may take to become ready again after a response.
const READY_TIME_MAX: Duration = Duration::from_secs(1);

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
    idle: Mutex<Vec<Idle>>,
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

/// A connection to a backend.
pub struct Lease {
    /// Sends requests on the connection.
    pub sender: SendRequest<RequestBody>,
    /// Whether it has carried another request.
    pub reused: bool,
    received: Arc<AtomicU64>,
    received_before: u64,
    worker: usize,
    /// The place of the client that uses the connection. The socket holds it too. Empty while idle.
    place: Arc<Mutex<Option<Place>>>,
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
        Arc::new(Self {
            address,
            tls,
            options: Arc::clone(options),
            idle: Mutex::default(),
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

    /// A connection for a request of `client`: an idle one, or a new one.
    ///
    /// # Errors
    /// As [`Backend::connect`].
    pub async fn connection(&self, worker: usize, client: u128) -> Result<Lease, ProxyError> {
        let place = self.place(client).await?;
        match self.idle_connection(worker) {
            Some(lease) => {
                *lease.place.lock() = Some(place);
                Ok(lease)
            }
            None => self.connect(worker, Some(place)).await,
        }
    }

    /// A new connection in place of `lease`, which was found closed.
    ///
    /// # Errors
    /// [`ProxyError::Connect`], [`ProxyError::Broken`]
    pub async fn reconnect(&self, lease: Lease) -> Result<Lease, ProxyError> {
        let place = lease.place.lock().take();
        self.connect(lease.worker, place).await
    }

    async fn place(&self, client: u128) -> Result<Place, ProxyError> {
        let place = self.places.take(client);
        tokio::time::timeout(self.options.connect_time_max, place)
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
            let own = idle.iter().rposition(|idle| idle.lease.worker == worker);
            let index = own.or(idle.len().checked_sub(1))?;
            let Idle { lease, since_ns } = idle.remove(index);
            if since_ns >= oldest_ns && lease.sender.is_ready() {
                return Some(Lease {
                    reused: true,
                    received_before: lease.received.load(Ordering::Relaxed),
                    worker,
                    ..lease
                });
            }
        }
    }

    /// A new connection for the holder of `place`. The health check needs no place, so it is asked
    /// however many requests wait.
    ///
    /// # Errors
    /// [`ProxyError::Connect`], [`ProxyError::Broken`]
    pub async fn connect(&self, worker: usize, place: Option<Place>) -> Result<Lease, ProxyError> {
        let time_max = self.options.connect_time_max;
        let connected = tokio::time::timeout(time_max, self.open()).await;
        let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let received = Arc::new(AtomicU64::new(0));
        let stream = connected.map_err(|source| ProxyError::Connect {
            backend: self.address.to_string(),
            source,
        })?;
        self.connections_total.fetch_add(1, Ordering::Relaxed);
        let counted = Arc::clone(&received);
        let place = Arc::new(Mutex::new(place));
        let held = Arc::clone(&place);
        // The socket holds its place in the pool and counts what comes.
        let socket = InspectReader::new(stream, move |bytes: &[u8]| {
            let _held = &held;
            counted.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        });
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(self.options.response_head_bytes_max)
            .max_headers(self.options.response_fields_max)
            .handshake(TokioIo::new(socket))
            .await
            .map_err(ProxyError::Broken)?;
        tokio::spawn(async move {
            // Whoever waits for the response gets the error.
            let _ = connection.with_upgrades().await;
        });
        Ok(Lease {
            sender,
            reused: false,
            received,
            received_before: 0,
            worker,
            place,
        })
    }

    async fn open(&self) -> io::Result<Box<dyn Stream>> {
        if let UpstreamAddress::Tcp { host, port } = &self.address
            && let Some(connecting) = world::connect(host, *port)
        {
            return connecting.await;
        }
        Ok(match (&self.address, &self.tls) {
            (UpstreamAddress::Unix(path), _) => Box::new(UnixStream::connect(path).await?),
            (UpstreamAddress::Tls { host, port }, Some(tls)) => {
                let stream = open_tcp(host, *port).await?;
                Box::new(tls.connect(host, stream).await?)
            }
            (UpstreamAddress::Tls { .. }, None) => {
                return Err(io::Error::other("TLS was not set up"));
            }
            (UpstreamAddress::Tcp { host, port }, _) => Box::new(open_tcp(host, *port).await?),
        })
    }

    /// Keeps a connection for the next request, once its exchange is over.
    pub async fn keep(&self, mut lease: Lease) {
        let ready = tokio::time::timeout(READY_TIME_MAX, lease.sender.ready()).await;
        if !matches!(ready, Ok(Ok(()))) {
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
            let place = lease.place.lock().take();
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
            .retain(|idle| idle.since_ns >= oldest_ns && !idle.lease.sender.is_closed());
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
        let connections_idle = self.idle.lock().len();
        BackendSnapshot {
            address: self.address.to_string(),
            up: self.standing() == Standing::Up,
            outstanding: self.outstanding(),
            connections_open: self.places.taken() + connections_idle,
            connections_idle,
            connections_total: self.connections_total.load(Ordering::Relaxed),
            requests_total: self.requests_total.load(Ordering::Relaxed),
            failures_total: self.failures_total.load(Ordering::Relaxed),
        }
    }
}

impl Lease {
    /// Whether anything came from the backend since the last exchange ended.
    pub fn has_received(&self) -> bool {
        self.received.load(Ordering::Relaxed) != self.received_before
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
