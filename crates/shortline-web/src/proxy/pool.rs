//! One backend: the connections to it, kept alive between requests, and what is known of it.
//!
//! A request needs a place ([`Places`]), of which there are `connections_max`.
//!
//! In HTTP/1.1 it uses an idle connection, or opens one if there is none. An idle connection is
//! offered first to the worker that used it last, so that its task wakes on the same thread. The
//! place is free again when the connection is idle or closed. So no more connections are open than
//! there are places, idle and upgraded ones included. A connection that has announced a client
//! (PROXY protocol) carries only requests that came over the same connection of that client.
//!
//! In HTTP/2 it is a stream of a connection with room for one. If there is none, one request at a
//! time opens another connection, and the others wait for it. The place is free again when the
//! response has ended.

mod dial;
mod lease;
mod snapshot;

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use futures_util::FutureExt;
use parking_lot::Mutex;
use shortline_base::clock::now_ns;
use tokio::time::timeout;

use super::address::{Service, UpstreamAddress};
use super::choice::{Candidate, ONE, name_of};
use super::condition::{Change, Condition};
use super::error::ProxyError;
use super::fastcgi::Complaints;
use super::http2;
use super::options::{BackendOptions, HttpVersion, UpstreamOptions};
use super::places::{Place, Places};
use super::tls::{Connector, Offer};
use crate::proxy_header::Ends;
pub use lease::Lease;
pub use snapshot::BackendSnapshot;

/// A backend; see the module's text.
pub struct Backend {
    own: BackendOptions,
    /// One of the addresses of its host, if they are backends of their own.
    at: Option<IpAddr>,
    /// What messages call it.
    label: String,
    /// What the cookie of a client calls it.
    id: String,
    /// The same as a number.
    name: u64,
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
    connections_max: usize,
    condition: Mutex<Condition>,
    outstanding: AtomicUsize,
    connections_total: AtomicU64,
    requests_total: AtomicU64,
    retries_total: AtomicU64,
    failures_total: AtomicU64,
}

struct Idle {
    lease: Box<Lease>,
    since_ns: u64,
}

/// Whose request wants a connection.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The worker that serves it.
    pub worker: usize,
    /// The client, by its name.
    pub client: u128,
    /// The ends of the client's connection.
    pub ends: Ends,
}

/// A request under way at a backend, as long as this is held.
pub struct Outstanding(Arc<Backend>);

impl Backend {
    /// A backend, or one address of its host.
    pub fn new(
        own: BackendOptions,
        at: Option<IpAddr>,
        tls: Option<Connector>,
        options: &Arc<UpstreamOptions>,
    ) -> Arc<Self> {
        let label = match at {
            Some(at) => format!("{} ({at})", own.address),
            None => own.address.to_string(),
        };
        let digest = format!("{:016x}", name_of(label.as_bytes()));
        let id = match (&own.id, at) {
            (Some(id), None) => id.clone(),
            (Some(id), Some(_)) => format!("{id}.{digest}"),
            (None, _) => digest,
        };
        let complaints = Complaints::new(label.clone());
        let connections_max = own.connections_max.unwrap_or(options.connections_max);
        Arc::new(Self {
            own,
            at,
            name: name_of(id.as_bytes()),
            id,
            label,
            tls,
            options: Arc::clone(options),
            complaints: Arc::new(complaints),
            idle: Mutex::default(),
            shared: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            prefers_http1: AtomicBool::new(false),
            places: Places::new(connections_max),
            connections_max,
            condition: Mutex::default(),
            outstanding: AtomicUsize::new(0),
            connections_total: AtomicU64::new(0),
            requests_total: AtomicU64::new(0),
            retries_total: AtomicU64::new(0),
            failures_total: AtomicU64::new(0),
        })
    }

    /// A connection for a request: one that is open, or a new one. An `upgrade` needs HTTP/1.1, if the
    /// backend speaks it.
    ///
    /// # Errors
    /// As [`Backend::connect`], and [`ProxyError::Busy`].
    pub async fn connection(
        &self,
        caller: &Caller,
        upgrade: bool,
    ) -> Result<Box<Lease>, ProxyError> {
        let worker = caller.worker;
        let place = self.place(caller.client).await?;
        let offer = self.offer(upgrade);
        if offer == Offer::Http1 || self.prefers_http1.load(Ordering::Relaxed) {
            let announced = self.own.send_proxy.and(Some(caller.ends));
            return match self.idle_connection(worker, announced) {
                Some(lease) => {
                    lease.give_place(place);
                    Ok(lease)
                }
                None => {
                    let connecting = self.connect(worker, Some(place), offer, announced);
                    Box::pin(connecting).await.map(|lease| self.noted(lease))
                }
            };
        }
        Box::pin(self.stream(worker, place, offer)).await
    }

    /// A stream of HTTP/2 on a connection with room for one, or on a new one.
    async fn stream(
        &self,
        worker: usize,
        place: Place,
        offer: Offer,
    ) -> Result<Box<Lease>, ProxyError> {
        if let Some(stream) = self.shared_stream() {
            return Ok(Lease::http2(stream, worker, true, Some(place)));
        }
        let turn = timeout(self.options.connect_time_max, self.opening.lock()).await;
        let _turn = turn.map_err(|_elapsed| self.unreachable(io::ErrorKind::TimedOut.into()))?;
        if let Some(stream) = self.shared_stream() {
            return Ok(Lease::http2(stream, worker, true, Some(place)));
        }
        let lease = self.connect(worker, Some(place), offer, None).await?;
        if !lease.is_http2() {
            self.prefers_http1.store(true, Ordering::Relaxed);
        }
        Ok(self.noted(lease))
    }

    /// Offers a new connection to other requests, if it is HTTP/2.
    fn noted(&self, lease: Box<Lease>) -> Box<Lease> {
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
    pub async fn reconnect(&self, lease: Box<Lease>) -> Result<Box<Lease>, ProxyError> {
        let worker = lease.worker();
        match (lease.is_http2(), lease.take_place()) {
            (true, Some(place)) => {
                let mut lease = self.stream(worker, place, self.offer(false)).await?;
                // It has no excuse to fail.
                lease.reused = false;
                Ok(lease)
            }
            (_, place) => {
                let announced = lease.announced();
                self.connect(worker, place, self.offer(true), announced)
                    .await
            }
        }
    }

    /// The versions of HTTP to ask for.
    fn offer(&self, upgrade: bool) -> Offer {
        match (&self.own.address, self.options.http) {
            (UpstreamAddress::FastCgiTcp { .. } | UpstreamAddress::FastCgiUnix(_), _) => {
                Offer::Http1
            }
            (UpstreamAddress::H2c { .. }, _) | (_, HttpVersion::Two) => Offer::Http2,
            (_, HttpVersion::One) => Offer::Http1,
            // A connection of HTTP/2 would be for many clients.
            _ if self.own.send_proxy.is_some() => Offer::Http1,
            (UpstreamAddress::Tls { .. }, HttpVersion::Auto) if !upgrade => Offer::Either,
            (_, HttpVersion::Auto) => Offer::Http1,
        }
    }

    async fn place(&self, client: u128) -> Result<Place, ProxyError> {
        let mut place = pin!(self.places.take(client));
        // Mostly there is one, and a time limit would cost more than that.
        if let Some(place) = place.as_mut().now_or_never() {
            return Ok(place);
        }
        timeout(self.options.connect_time_max, place)
            .await
            .map_err(|_elapsed| ProxyError::Busy {
                backend: self.label.clone(),
            })
    }

    /// An idle connection that seems to be open and has announced this client, if there is one.
    fn idle_connection(&self, worker: usize, announced: Option<Ends>) -> Option<Box<Lease>> {
        let oldest_ns = self.idle_since_ns_min();
        let mut idle = self.idle.lock();
        loop {
            let of_client = |idle: &Idle| idle.lease.announced() == announced;
            let own = |idle: &Idle| of_client(idle) && idle.lease.worker() == worker;
            let found = idle.iter().rposition(own);
            let Some(index) = found.or_else(|| idle.iter().rposition(of_client)) else {
                // Those of other clients are of no use here, and a new one takes their place.
                if self.places.taken() + idle.len() > self.connections_max && !idle.is_empty() {
                    idle.remove(0);
                }
                return None;
            };
            let Idle {
                mut lease,
                since_ns,
            } = idle.remove(index);
            if since_ns >= oldest_ns && lease.is_ready() {
                lease.begin_again(worker);
                return Some(lease);
            }
        }
    }

    /// A new connection for the health check. It needs no place, so it is asked however many
    /// requests wait.
    ///
    /// # Errors
    /// [`ProxyError::Connect`], [`ProxyError::Broken`]
    pub async fn connect_to_probe(&self) -> Result<Box<Lease>, ProxyError> {
        self.connect(usize::MAX, None, self.offer(false), None)
            .await
    }

    /// A new connection for the holder of `place`. Without a client to announce it is our own.
    async fn connect(
        &self,
        worker: usize,
        place: Option<Place>,
        offer: Offer,
        announced: Option<Ends>,
    ) -> Result<Box<Lease>, ProxyError> {
        let time_max = self.options.connect_time_max;
        let late = |_| Err(io::ErrorKind::TimedOut.into());
        let opened = timeout(time_max, self.open(offer, announced)).await;
        let (stream, is_http2) = opened
            .unwrap_or_else(late)
            .map_err(|e| self.unreachable(e))?;
        self.connections_total.fetch_add(1, Ordering::Relaxed);
        if !is_http2 {
            let is_fastcgi = self.own.address.speaks_fastcgi();
            let complaints = is_fastcgi.then_some(&self.complaints);
            let options = &self.options;
            let lease = Lease::alone(stream, worker, place, announced, options, complaints);
            return Ok(lease);
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
            backend: self.label.clone(),
            source,
        }
    }

    /// Keeps a connection for the next request, once its exchange is over. A stream of HTTP/2 ends.
    pub async fn keep(&self, mut lease: Box<Lease>) {
        if !lease.is_http2() && lease.becomes_ready().await {
            self.keep_ready(lease);
        }
    }

    /// The same of a connection that is ready.
    pub fn keep_ready(&self, lease: Box<Lease>) {
        if lease.is_http2() {
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

    /// What messages call it.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Its address.
    pub fn address(&self) -> &UpstreamAddress {
        &self.own.address
    }

    /// Whether this is what the operator says of it.
    pub fn is(&self, own: &BackendOptions) -> bool {
        self.own == *own
    }

    /// Whether it is one of the servers of this service.
    pub fn is_of(&self, service: &Service) -> bool {
        self.own.service.as_ref() == Some(service)
    }

    /// The address of its host, if that is a backend of its own.
    pub fn at(&self) -> Option<IpAddr> {
        self.at
    }

    /// What the cookie of a client calls it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Counts a request that was tried elsewhere before.
    pub fn retried(&self) {
        self.retries_total.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that it has answered.
    pub fn succeeded(&self) {
        let change = self.condition.lock().succeeded(now_ns);
        self.log(change, "");
    }

    /// Notes that it has not answered, through no fault of the client.
    pub fn failed(&self) {
        self.failures_total.fetch_add(1, Ordering::Relaxed);
        let change = self.condition.lock().failed(now_ns(), &self.options.health);
        self.log(change, "");
    }

    /// Notes the result of its health check.
    pub fn probed(&self, health: Result<(), String>) {
        let options = &self.options.health;
        let change = self
            .condition
            .lock()
            .probed(health.is_ok(), now_ns(), options);
        self.log(change, health.as_ref().err().map_or("", String::as_str));
        if health.is_ok() {
            self.succeeded();
        }
    }

    fn log(&self, change: Option<Change>, reason: &str) {
        let label = &self.label;
        match change {
            None => {}
            Some(Change::Doubtful(failures)) => {
                tracing::warn!("{label}: {failures} requests in a row failed");
            }
            Some(Change::AnswersAgain) => tracing::info!("{label}: answers again"),
            Some(Change::Out) => tracing::warn!("{label}: down, says its health check: {reason}"),
            Some(Change::Back) => tracing::info!("{label}: up again, says its health check"),
        }
    }

    /// What is known of it at this time.
    pub fn candidate(&self, tried: bool, now_ns: u64) -> Candidate {
        let condition = self.condition.lock();
        Candidate {
            name: self.name,
            tried,
            standing: condition.standing(now_ns),
            backup: self.own.backup,
            rank: self.own.rank,
            weight: condition.weight(
                u64::from(self.own.weight) * ONE,
                now_ns,
                &self.options.health,
            ),
            outstanding: self.outstanding(),
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
