//! The server: listeners and settings that can be replaced while it runs, limits on connections, and
//! its shutdown.

mod front;
mod socket;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::HeaderValue;
use serde::Serialize;
use shortline_base::accept;
use shortline_base::socket::{Halves, SendHalf};
use shortline_link::LinkSnapshot;
use tokio::sync::watch as channel;

use crate::comparison::{Comparison, Figures};
use crate::compress::counts::{self, CompressedBytes};
use crate::connection;
use crate::context::{Connection, Settings, Shared};
use crate::http3::port::QuicListener;
use crate::ledger::{Ledger, ResponseCounts};
use crate::log::AccessLogs;
use crate::proxy::BackendSnapshot;
use crate::proxy::head::LastIntroduction;
use crate::proxy::upstream::Upstream;
use crate::proxy_header;
use crate::sites::{Site, Sites};
use crate::watch::{ConnectionCounts, Registration, SWEEP_EVERY};
use front::{Follower, Front};
use socket::{Incoming, Registered};

pub use front::Listener;
pub use socket::Socket;

/// The protocols of a TLS [`Listener`], by their ALPN names.
pub const ALPN: &[&[u8]] = &[b"h2", b"http/1.1"];

/// The server at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct ServerSnapshot {
    /// Open connections by stage.
    pub connections: ConnectionCounts,
    /// Connections accepted since the start.
    pub connections_total: u64,
    /// Connections closed at once because their address had its share.
    pub connections_refused_total: u64,
    /// Connections closed because a time limit ran out.
    pub connections_expired_total: u64,
    /// Connections that ended by an error: malformed requests, resets, failed handshakes.
    pub connections_failed_total: u64,
    /// Responses that wait for the disk.
    pub disk_jobs: usize,
    /// Responses since the start.
    pub responses: ResponseCounts,
    /// What was compressed on the fly since the start, by coding.
    pub compressed: Vec<CompressedBytes>,
    /// The servers behind the routes.
    pub backends: Vec<BackendSnapshot>,
}

/// A web server; see the module's text.
pub struct Server {
    shared: Arc<Shared>,
    front: Front,
    stopping: channel::Sender<bool>,
}

impl Server {
    /// A server with `settings`, not yet listening.
    pub fn new(settings: Settings, access_logs: impl Into<AccessLogs>) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::new(Shared::new(settings, Ledger::new(workers(), access_logs))),
            front: Front::default(),
            stopping: channel::Sender::new(false),
        })
    }

    /// Accepts connections from the listeners of [`Server::listen`] until [`Server::drain`] is called. Each
    /// processor gets a thread with its own runtime, and a connection stays on the thread that accepted it. A
    /// small request then takes a fifth less time than on one runtime that moves tasks between threads.
    ///
    /// # Errors
    /// A thread cannot be started, or a listener cannot be registered with its poller.
    pub async fn run(&self) -> io::Result<()> {
        let mut workers = tokio::task::JoinSet::new();
        for worker in 0..self.shared.ledger.workers() {
            let (front, stopping) = (self.front.follow(), self.stopping.subscribe());
            let shared = Arc::clone(&self.shared);
            workers.spawn_blocking(move || work(&shared, worker, front, stopping));
        }
        let shared = Arc::clone(&self.shared);
        let sweeper = tokio::spawn(async move { sweep(&shared).await });
        let mut result = Ok(());
        while let Some(ended) = workers.join_next().await {
            result = result.and(ended.unwrap_or_else(|error| Err(io::Error::other(error))));
        }
        sweeper.abort();
        result
    }

    /// Accepts from these sockets from now on, which the link has prepared, and from no others. What waits in the
    /// others is taken before they are closed.
    pub fn listen(&self, listeners: Vec<Listener>) {
        self.front.replace(listeners);
    }

    /// Leaves the sockets to another process. Connections go on: one by HTTP/1.1 to the end of its next response,
    /// one by HTTP/2 or HTTP/3 until its client has heard of it, others as long as they would.
    pub fn retire(&self) {
        self.front.set_paused(true);
        self.front.free_ports();
        self.shared.set_retiring(true);
        self.shared.registry.wake();
    }

    /// Accepts connections again after [`Server::retire`].
    pub fn resume(&self) {
        self.shared.set_retiring(false);
        self.front.set_paused(false);
    }

    /// Waits until no connection is left.
    pub async fn deserted(&self) {
        self.shared.registry.empty().await;
    }

    /// Serves one connection that was accepted elsewhere, such as in a simulated world. It runs on
    /// the runtime of the caller.
    pub fn take(&self, halves: Halves, peer: IpAddr, local: IpAddr) {
        let ends = (SocketAddr::new(peer, 0), SocketAddr::new(local, 0));
        take(
            &self.shared,
            0,
            halves,
            Arrival::new(ends, ends, false),
            None,
        );
    }

    /// The same of a proxy that announces its client.
    pub fn take_announced(&self, halves: Halves, peer: IpAddr, local: IpAddr) {
        let ends = (SocketAddr::new(peer, 0), SocketAddr::new(local, 0));
        let announcing = Announcing::begin(&self.shared);
        tokio::spawn(take_announced(announcing, 0, halves, ends, None));
    }

    /// Accepts QUIC connections of a port that was opened elsewhere, such as in a simulated world, until it is dropped. They
    /// run on the runtime of the caller.
    pub async fn accept_quic(&self, listener: QuicListener) {
        let taker = Taker {
            shared: Arc::clone(&self.shared),
            worker: 0,
        };
        listener.accept(taker).await;
    }

    /// Enforces the time limits until it is dropped. [`Server::run`] does so by itself.
    pub async fn keep_limits(&self) {
        sweep(&self.shared).await;
    }

    /// Stops accepting, lets responses finish until `deadline`, then closes what is left. Returns
    /// how many connections it had to close.
    pub async fn drain(&self, deadline: Duration) -> usize {
        self.stopping.send_replace(true);
        self.front.close();
        self.shared.registry.drain();
        let emptied = tokio::time::timeout(deadline, self.shared.registry.empty()).await;
        let left = if emptied.is_ok() {
            0
        } else {
            self.shared.registry.open()
        };
        self.shared.registry.close();
        left
    }

    /// Serves new connections with `settings` from now on.
    pub fn replace(&self, settings: Settings) {
        self.shared.replace(settings);
    }

    /// Compares the responses with fair sharing among clients from now on: [`Server::comparison`].
    ///
    /// # Errors
    /// No thread can be started.
    pub fn compare(&self) -> io::Result<()> {
        if self.shared.ledger.comparison().is_some() {
            return Ok(());
        }
        let shared = Arc::downgrade(&self.shared);
        let rate = move || shared.upgrade()?.active().link.rate_bps();
        let ledger = &self.shared.ledger;
        ledger.compare(Comparison::start(ledger.workers(), rate)?);
        Ok(())
    }

    /// What fair sharing among clients would have given, if that is compared.
    pub fn comparison(&self) -> Option<Figures> {
        let comparison = self.shared.ledger.comparison();
        comparison.map(|comparison| comparison.figures())
    }

    /// Logs responses to `access_logs` from now on.
    pub fn set_access_logs(&self, access_logs: AccessLogs) {
        self.shared.ledger.set_access_logs(access_logs);
    }

    /// The server's state now.
    pub fn snapshot(&self) -> ServerSnapshot {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let active = self.shared.active();
        ServerSnapshot {
            connections: self.shared.registry.counts(),
            connections_total: load(&self.shared.connections),
            connections_refused_total: load(&self.shared.refused),
            connections_expired_total: load(&self.shared.expired),
            connections_failed_total: load(&self.shared.failed),
            disk_jobs: active.disk.jobs(),
            responses: self.shared.ledger.snapshot(),
            compressed: counts::snapshot(),
            backends: upstreams(&active.sites)
                .into_iter()
                .flat_map(|upstream| upstream.snapshot())
                .collect(),
        }
    }

    /// The uplink's state now.
    pub fn link_snapshot(&self) -> LinkSnapshot {
        self.shared.active().link.snapshot()
    }
}

/// All upstreams, each once even if several routes share it.
fn upstreams(sites: &Sites) -> Vec<&Arc<Upstream>> {
    let mut upstreams: Vec<&Arc<Upstream>> = Vec::new();
    for upstream in sites.iter().flat_map(of_site) {
        if !upstreams.iter().any(|known| Arc::ptr_eq(known, upstream)) {
            upstreams.push(upstream);
        }
    }
    upstreams
}

/// The upstreams of a site's routes and rules.
fn of_site(site: &Site) -> impl Iterator<Item = &Arc<Upstream>> {
    site.routes.upstreams().chain(site.rules.upstreams())
}

/// The number of workers: one per processor.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// One worker: accepts and serves connections until the server stops and none is left.
fn work(
    shared: &Arc<Shared>,
    worker: usize,
    front: Follower,
    mut stopping: channel::Receiver<bool>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let accepting = front.accept(Taker {
            shared: Arc::clone(shared),
            worker,
        });
        tokio::select! {
            ended = accepting => ended?,
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
        // The runtime must outlive its connections.
        shared.registry.empty().await;
        Ok(())
    })
}

/// Takes the connections that a worker accepts.
#[derive(Clone)]
pub struct Taker {
    shared: Arc<Shared>,
    worker: usize,
}

impl Taker {
    /// Whether another connection may be open.
    pub fn has_room(&self) -> bool {
        let shared = &self.shared;
        let open = shared.registry.open() + shared.announcing.load(Ordering::Relaxed);
        open < shared.active().limits.connections_max
    }

    /// Whether half of the connections that an address may have are open.
    pub fn is_half_full(&self, peer: SocketAddr) -> bool {
        let open = self.shared.registry.open_of(peer.ip().to_canonical());
        open >= self.shared.active().limits.connections_per_address_max / 2
    }

    /// Counts a connection that is refused.
    pub fn refuse(&self) {
        self.shared.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Enters a connection. `None`: its client has as many as it may.
    pub fn enter(
        &self,
        sending: Box<dyn SendHalf>,
        arrival: Arrival,
    ) -> Option<(Registration, Arc<Connection>)> {
        enter(&self.shared, self.worker, sending, arrival)
    }

    /// Takes a connection that `listener` has accepted. Must be called inside the worker's runtime.
    fn take(&self, socket: Incoming, peer: SocketAddr, listener: &Listener) {
        // A socket that has no address has already been reset.
        let Some(local) = listener.local().or_else(|| socket.local().ok()) else {
            return;
        };
        let (ends, tls) = ((peer, local), listener.tls());
        match listener.admits(peer) {
            Some(false) => {
                let arrival = Arrival {
                    announcement: listener.announcement(),
                    ..Arrival::new(ends, ends, tls.is_some())
                };
                take(&self.shared, self.worker, socket.into(), arrival, tls);
            }
            Some(true) => {
                let announcing = Announcing::begin(&self.shared);
                tokio::spawn(take_announced(
                    announcing,
                    self.worker,
                    socket.into(),
                    ends,
                    tls,
                ));
            }
            None => self.shared.refuse_stranger(peer),
        }
    }

    /// Accepts until it is dropped.
    async fn accept(self, socket: Registered, listener: Listener) {
        let take = |socket, peer| self.take(socket, peer, &listener);
        let warn = |error, untold| tracing::warn!(untold, "cannot accept connections now: {error}");
        accept::accept(&socket, || self.has_room(), take, warn).await;
    }
}

/// A proxy's connection that has not said yet who the client is. It counts among those that are open.
struct Announcing(Arc<Shared>);

impl Announcing {
    fn begin(shared: &Arc<Shared>) -> Self {
        shared.announcing.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(shared))
    }
}

impl Drop for Announcing {
    fn drop(&mut self) {
        self.0.announcing.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Takes a connection of a proxy once that has said who the client is.
async fn take_announced(
    announcing: Announcing,
    worker: usize,
    mut halves: Halves,
    ends: Ends,
    tls: Option<Arc<rustls::ServerConfig>>,
) {
    let shared = &announcing.0;
    let time_max = shared.active().limits.header_time_max;
    match tokio::time::timeout(time_max, proxy_header::read(&mut halves.receiving)).await {
        Ok(Ok(announced)) => {
            let told = announced.map_or(ends, |announced| (announced.client, announced.proxy));
            let arrival = Arrival::new(ends, told, tls.is_some());
            take(shared, worker, halves, arrival, tls);
        }
        Ok(Err(error)) => shared.count_connection_error(&error),
        Err(_elapsed) => {
            shared.expired.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The other end of a connection, and ours.
type Ends = (SocketAddr, SocketAddr);

/// A connection that comes.
pub struct Arrival {
    /// Its ends, the client's first.
    pub ends: Ends,
    /// The ends that it counts as having.
    pub told: Ends,
    /// Whether it speaks TLS, or QUIC.
    pub is_secure: bool,
    /// The field `Alt-Svc` of its responses.
    pub announcement: Option<HeaderValue>,
}

impl Arrival {
    fn new(ends: Ends, told: Ends, is_secure: bool) -> Self {
        Self {
            ends,
            told,
            is_secure,
            announcement: None,
        }
    }
}

/// Serves a connection.
fn take(
    shared: &Arc<Shared>,
    worker: usize,
    Halves { receiving, sending }: Halves,
    arrival: Arrival,
    tls: Option<Arc<rustls::ServerConfig>>,
) {
    let Some((registration, connection)) = enter(shared, worker, sending, arrival) else {
        return;
    };
    tokio::spawn(async move {
        connection::serve(connection, receiving, tls).await;
        registration.watch.transport().end();
        drop(registration);
    });
}

/// Enters a connection into the registry. `None`: its client has as many as it may.
fn enter(
    shared: &Arc<Shared>,
    worker: usize,
    sending: Box<dyn SendHalf>,
    arrival: Arrival,
) -> Option<(Registration, Arc<Connection>)> {
    shared.connections.fetch_add(1, Ordering::Relaxed);
    let settings = shared.active();
    // The path is that of the connection itself.
    let (neighbour, local) = (arrival.ends.0.ip().to_canonical(), arrival.ends.1.ip());
    let transport = || settings.link.transport(sending, neighbour, local);
    let peer = arrival.told.0.ip().to_canonical();
    let per_address_max = settings.limits.connections_per_address_max;
    let Some(registration) = shared.registry.register(peer, per_address_max, transport) else {
        shared.refused.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    let connection = Arc::new(Connection {
        server: Arc::clone(shared),
        watch: Arc::clone(registration.watch.member()),
        settings,
        peer,
        ends: arrival.told,
        secure: arrival.is_secure,
        announcement: arrival.announcement,
        session: OnceLock::new(),
        shown: OnceLock::new(),
        certified: OnceLock::new(),
        tls_version: OnceLock::new(),
        introduction: LastIntroduction::default(),
        worker,
    });
    Some((registration, connection))
}

async fn sweep(shared: &Shared) {
    let mut ticks = tokio::time::interval(SWEEP_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let expired = shared.registry.sweep(&shared.active().limits);
        shared.expired.fetch_add(expired, Ordering::Relaxed);
    }
}
