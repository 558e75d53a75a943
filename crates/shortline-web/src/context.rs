//! The context: what the code of a request needs of the server, of the settings in force, and of its connection. It
//! stands below all of them.

use std::error::Error;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use parking_lot::{Mutex, RwLock};
use shortline_link::Link;
use shortline_sched::QueueFull;
use tokio::time::Instant;

use crate::clients::{Asks, Clients};
use crate::disk::Disk;
use crate::ledger::Ledger;
use crate::limits::Limits;
use crate::proxy::routes::Routes;
use crate::site::Site;
use crate::watch::{Registry, Watch};
use shortline_base::throttle::Throttle;

/// What may change while the server runs; connections keep what they were accepted under.
pub struct Settings {
    /// The files; `None`: what no route is for is not found.
    pub site: Option<Arc<Site>>,
    /// What other servers answer.
    pub routes: Routes,
    /// The limits.
    pub limits: Limits,
    /// Who is a client of its own.
    pub clients: Clients,
    /// The uplink. Its pacer must be running ([`Link::run`]).
    pub link: Arc<Link>,
}

/// [`Settings`] in force.
pub struct Active {
    /// The files, if any are served.
    pub site: Option<Arc<Site>>,
    /// What other servers answer.
    pub routes: Routes,
    /// The limits.
    pub limits: Limits,
    /// Who is a client of its own.
    pub clients: Clients,
    /// The uplink.
    pub link: Arc<Link>,
    /// The queue in front of the disk.
    pub disk: Arc<Disk>,
}

/// What all connections share.
pub struct Shared {
    active: RwLock<Arc<Active>>,
    /// The open connections.
    pub registry: Arc<Registry>,
    /// Counters and access log.
    pub ledger: Ledger,
    /// Connections accepted, closed at once because their address had its share, closed because a limit of time ran
    /// out, and ended by an error, since the start.
    pub connections: AtomicU64,
    pub refused: AtomicU64,
    pub expired: AtomicU64,
    pub failed: AtomicU64,
    /// Lines about a queue that is full.
    full: Mutex<Throttle>,
}

/// What a connection's code needs of the server.
pub struct Connection {
    /// The server.
    pub server: Arc<Shared>,
    /// The settings in force when the connection was accepted.
    pub settings: Arc<Active>,
    /// The connection in the registry.
    pub watch: Arc<Watch>,
    /// The client.
    pub peer: IpAddr,
    /// Whether it came over TLS.
    pub secure: bool,
    /// The number of its TLS session, as soon as it has one.
    pub session: OnceLock<u64>,
    /// The worker it stays with.
    pub worker: usize,
}

impl Connection {
    /// Who asks by a request with these fields.
    pub fn asks(&self, headers: &HeaderMap) -> Asks {
        let session = self.session.get().copied();
        self.settings.clients.asks(self.peer, session, headers)
    }
}

impl Active {
    fn new(settings: Settings) -> Self {
        Self {
            disk: Disk::new(settings.link.policy(), settings.limits.disk_reads_max),
            site: settings.site,
            routes: settings.routes,
            limits: settings.limits,
            clients: settings.clients,
            link: settings.link,
        }
    }
}

impl Shared {
    /// With these settings, and no connection yet.
    pub fn new(settings: Settings, ledger: Ledger) -> Self {
        Self {
            active: RwLock::new(Arc::new(Active::new(settings))),
            registry: Arc::default(),
            ledger,
            connections: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            full: Mutex::default(),
        }
    }

    /// New connections are served with `settings` from now on.
    pub fn replace(&self, settings: Settings) {
        *self.active.write() = Arc::new(Active::new(settings));
    }

    /// The settings in force now.
    pub fn active(&self) -> Arc<Active> {
        Arc::clone(&self.active.read())
    }

    /// A connection ended by an error; clients cause most of them, so they are only counted.
    pub fn count_connection_error(&self, error: &(dyn Error + 'static)) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        tracing::debug!("connection ended: {error}");
    }

    /// A response was answered with 503, as too many wait already.
    pub fn tell_full(&self, full: &QueueFull) {
        if let Some(untold) = self.full.lock().allow(Instant::now()) {
            tracing::warn!(status = 503, untold, "{full}");
        }
    }
}
