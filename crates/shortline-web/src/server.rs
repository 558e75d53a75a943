//! The server: listeners, limits on connections, settings that can be replaced while it runs, and
//! its shutdown.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Serialize;
use shortline_base::accept;
use shortline_base::socket::Halves;
use shortline_link::LinkSnapshot;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch as channel;

use crate::connection;
use crate::context::{Connection, Settings, Shared};
use crate::ledger::{Ledger, ResponseCounts};
use crate::log::AccessLog;
use crate::proxy::BackendSnapshot;
use crate::proxy::upstream::Upstream;
use crate::sites::Sites;
use crate::watch::{ConnectionCounts, SWEEP_EVERY};

/// The protocols of a TLS [`Listener`], by their ALPN names.
pub const ALPN: &[&[u8]] = &[b"h2", b"http/1.1"];

/// A socket that accepts connections.
pub struct Listener {
    /// A bound and listening socket.
    pub socket: std::net::TcpListener,
    /// Its certificate and protocols, if it speaks TLS.
    pub tls: Option<Arc<rustls::ServerConfig>>,
}

impl Listener {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            socket: self.socket.try_clone()?,
            tls: self.tls.clone(),
        })
    }
}

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
    /// The servers behind the routes.
    pub backends: Vec<BackendSnapshot>,
}

/// A web server; see the module's text.
pub struct Server {
    shared: Arc<Shared>,
    stopping: channel::Sender<bool>,
}

impl Server {
    /// A server with `settings`, not yet listening.
    pub fn new(settings: Settings, access_log: Option<Arc<dyn AccessLog>>) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::new(Shared::new(settings, Ledger::new(workers(), access_log))),
            stopping: channel::Sender::new(false),
        })
    }

    /// Accepts connections from `listeners`, which the link has prepared, until [`Server::drain`]
    /// is called. Each processor gets a thread with its own runtime, and a connection stays on the
    /// thread that accepted it. A small request then takes a fifth less time than on one runtime
    /// that moves tasks between threads.
    ///
    /// # Errors
    /// A thread cannot be started, or a listener cannot be registered with its poller.
    pub async fn run(&self, listeners: Vec<Listener>) -> io::Result<()> {
        for listener in &listeners {
            listener.socket.set_nonblocking(true)?;
            // Accepted sockets inherit this. Without it, a response of several grants would stall
            // for the client's delayed acknowledgement.
            socket2::SockRef::from(&listener.socket).set_tcp_nodelay(true)?;
        }
        let mut workers = tokio::task::JoinSet::new();
        for worker in 0..self.shared.ledger.workers() {
            let listeners = listeners
                .iter()
                .map(Listener::try_clone)
                .collect::<io::Result<Vec<_>>>()?;
            let (shared, stopping) = (Arc::clone(&self.shared), self.stopping.subscribe());
            workers.spawn_blocking(move || work(&shared, worker, listeners, &stopping));
        }
        drop(listeners);
        let shared = Arc::clone(&self.shared);
        let sweeper = tokio::spawn(async move { sweep(&shared).await });
        let mut result = Ok(());
        while let Some(ended) = workers.join_next().await {
            result = result.and(ended.unwrap_or_else(|error| Err(io::Error::other(error))));
        }
        sweeper.abort();
        result
    }

    /// Serves one connection that was accepted elsewhere, such as in a simulated world. It runs on
    /// the runtime of the caller.
    pub fn take(&self, halves: Halves, peer: IpAddr, local: IpAddr) {
        take(&self.shared, 0, halves, (peer, local), None);
    }

    /// Enforces the time limits until it is dropped. [`Server::run`] does so by itself.
    pub async fn keep_limits(&self) {
        sweep(&self.shared).await;
    }

    /// Stops accepting, lets responses finish until `deadline`, then closes what is left. Returns
    /// how many connections it had to close.
    pub async fn drain(&self, deadline: Duration) -> usize {
        self.stopping.send_replace(true);
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

    /// Logs responses to `access_log` from now on.
    pub fn set_access_log(&self, access_log: Option<Arc<dyn AccessLog>>) {
        self.shared.ledger.set_access_log(access_log);
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
    for upstream in sites.iter().flat_map(|site| site.routes.upstreams()) {
        if !upstreams.iter().any(|known| Arc::ptr_eq(known, upstream)) {
            upstreams.push(upstream);
        }
    }
    upstreams
}

/// The number of workers: one per processor.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// One worker: accepts and serves connections until the server stops and none is left.
fn work(
    shared: &Arc<Shared>,
    worker: usize,
    listeners: Vec<Listener>,
    stopping: &channel::Receiver<bool>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for listener in listeners {
            let socket = TcpListener::from_std(listener.socket)?;
            let (shared, mut stopping) = (Arc::clone(shared), stopping.clone());
            tasks.spawn(async move {
                tokio::select! {
                    () = accept(shared, worker, socket, listener.tls) => {}
                    _ = stopping.wait_for(|stopping| *stopping) => {}
                }
            });
        }
        tasks.join_all().await;
        // The runtime must outlive its connections.
        shared.registry.empty().await;
        Ok(())
    })
}

async fn accept(
    shared: Arc<Shared>,
    worker: usize,
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
) {
    let has_room = || shared.registry.open() < shared.active().limits.connections_max;
    let take = |socket: TcpStream, peer: SocketAddr| {
        // A socket that has no address has already been reset.
        if let Ok(local) = socket.local_addr() {
            let ends = (peer.ip(), local.ip());
            take(&shared, worker, socket.into(), ends, tls.clone());
        }
    };
    let warn = |error, untold| tracing::warn!(untold, "cannot accept connections now: {error}");
    accept::accept(&listener, has_room, take, warn).await;
}

fn take(
    shared: &Arc<Shared>,
    worker: usize,
    Halves { receiving, sending }: Halves,
    (peer, local): (IpAddr, IpAddr),
    tls: Option<Arc<rustls::ServerConfig>>,
) {
    shared.connections.fetch_add(1, Ordering::Relaxed);
    let settings = shared.active();
    let peer = peer.to_canonical();
    let transport = || settings.link.transport(sending, peer, local);
    let per_address_max = settings.limits.connections_per_address_max;
    let Some(registration) = shared.registry.register(peer, per_address_max, transport) else {
        shared.refused.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let connection = Arc::new(Connection {
        server: Arc::clone(shared),
        watch: Arc::clone(registration.watch.member()),
        settings,
        peer,
        secure: tls.is_some(),
        session: OnceLock::new(),
        shown: OnceLock::new(),
        worker,
    });
    tokio::spawn(async move {
        connection::serve(connection, receiving, tls).await;
        registration.watch.transport().end();
        drop(registration);
    });
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
