//! The context: what the code of a request needs from the server, from the settings in force, and
//! from its connection. All other modules build on it.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use http::{HeaderMap, HeaderValue, StatusCode};
use parking_lot::{Mutex, RwLock};
use rustls::ProtocolVersion;
use shortline_link::Link;
use shortline_sched::QueueFull;
use shortline_tls::{Certified, ClientIdentity};
use tokio::time::Instant;

use crate::clients::{Asks, Clients};
use crate::compress::streams::Streams;
use crate::disk::Disk;
use crate::identity::Identity;
use crate::ledger::{Ledger, SiteRow};
use crate::limits::Limits;
use crate::proxy::Caller;
use crate::proxy::head::LastIntroduction;
use crate::proxy_header::Ends;
use crate::sites::{Site, SiteNumber, Sites};
use crate::trace_context::Sampling;
use crate::watch::{Registry, Watch};
use shortline_base::throttle::Throttle;

/// What may change while the server runs. A connection keeps the settings it was accepted under.
pub struct Settings {
    /// The sites.
    pub sites: Sites,
    /// The limits.
    pub limits: Limits,
    /// How clients are told apart.
    pub clients: Clients,
    /// The uplink. Its pacer must be running ([`Link::run`]).
    pub link: Arc<Link>,
    /// Whether each response tells the id of its request (`X-Request-Id`).
    pub tells_request_id: bool,
    /// Which spans are recorded, if the access log exports any.
    pub sampling: Option<Sampling>,
}

/// [`Settings`] in force.
pub struct Active {
    /// The sites.
    pub sites: Sites,
    /// The limits.
    pub limits: Limits,
    /// How clients are told apart.
    pub clients: Clients,
    /// The uplink.
    pub link: Arc<Link>,
    /// The queue in front of the disk.
    pub disk: Arc<Disk>,
    /// Whether each response tells the id of its request.
    pub tells_request_id: bool,
    /// Which spans are recorded, if any are exported.
    pub sampling: Option<Sampling>,
    /// Where the ledger counts what each site answers.
    site_rows: Vec<SiteRow>,
    /// Requests at a time of each site that has a limit for that.
    site_requests: Vec<Option<Arc<AtomicUsize>>>,
    /// Responses of backends that are compressed.
    pub streams: Arc<Streams>,
}

/// What all connections share.
pub struct Shared {
    active: RwLock<Arc<Active>>,
    /// The open connections.
    pub registry: Arc<Registry>,
    /// Counters and access log.
    pub ledger: Ledger,
    /// Connections since the start: accepted; closed at once because their address had its share;
    /// closed because a time limit ran out; ended by an error.
    pub connections: AtomicU64,
    pub refused: AtomicU64,
    pub expired: AtomicU64,
    pub failed: AtomicU64,
    /// Connections of proxies that have not said yet who their clients are.
    pub announcing: AtomicUsize,
    /// Limits the log lines about a full queue.
    full: Mutex<Throttle>,
    /// Limits those about connections that are not of the proxies.
    strangers: Mutex<Throttle>,
    /// Limits those about certificates of clients.
    certificates: Mutex<Throttle>,
    /// Limits those about requests that a limit of their site refuses.
    limited: Mutex<Throttle>,
    /// Another process has the listening sockets.
    retiring: AtomicBool,
}

/// What a connection's code needs of the server.
pub struct Connection {
    /// The server.
    pub server: Arc<Shared>,
    /// The settings in force when the connection was accepted.
    pub settings: Arc<Active>,
    /// The connection in the registry.
    pub watch: Arc<Watch>,
    /// The client's address.
    pub peer: IpAddr,
    /// Both ends of the client's connection, the client's first. It may be a connection to a proxy, which announces it.
    pub ends: (SocketAddr, SocketAddr),
    /// Whether it came over TLS.
    pub secure: bool,
    /// The field `Alt-Svc` of its responses, where its address has HTTP/3 too.
    pub announcement: Option<HeaderValue>,
    /// The number of its TLS session, once there is one.
    pub session: OnceLock<u64>,
    /// The site whose certificate was shown, once one was.
    pub shown: OnceLock<Option<SiteNumber>>,
    /// What its handshake has told of the client, if it was asked for a certificate.
    pub certified: OnceLock<Box<Certified>>,
    /// The version of TLS, once it is agreed upon.
    pub tls_version: OnceLock<Option<ProtocolVersion>>,
    /// How its client was introduced to a backend last.
    pub introduction: LastIntroduction,
    /// The worker that serves it from accept to close.
    pub worker: usize,
}

impl Connection {
    /// The client of a request with these fields.
    pub fn asks(&self, headers: &HeaderMap) -> Asks {
        let session = self.session.get().copied();
        self.settings.clients.asks(self.peer, session, headers)
    }

    /// Whether the client was asked for a certificate as a site wants it, where a site wants one at all.
    pub fn is_certified_for(&self, site: &Site) -> bool {
        let certified = self.certified.get();
        let is = |wanted| certified.is_some_and(|certified| Arc::ptr_eq(&certified.auth, wanted));
        site.client_auth.as_ref().is_none_or(is)
    }

    /// Who asks a site, by the certificate that the site wanted.
    pub fn identity_for(&self, site: &Site) -> Option<&Arc<ClientIdentity>> {
        let certified = self.certified.get()?;
        let wanted = site.client_auth.as_ref()?;
        let identity = certified.identity.as_ref()?;
        Arc::ptr_eq(&certified.auth, wanted).then_some(identity)
    }

    /// Logs that a client's certificate was refused, if that ended the handshake.
    pub fn report_certificate(&self, error: &io::Error) {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        let Some(problem) = inner.and_then(shortline_tls::refusal) else {
            return;
        };
        if let Some(untold) = self.server.certificates.lock().allow(Instant::now()) {
            let peer = self.peer;
            tracing::warn!(%peer, untold, "a client's certificate is refused: {problem}");
        }
    }

    /// Whose requests backends get: of this client, by its name.
    pub fn caller(&self, client: u128) -> Caller {
        let (from, proxy) = self.ends;
        Caller {
            worker: self.worker,
            client,
            ends: Ends {
                client: from,
                proxy,
            },
        }
    }
}

impl Active {
    /// Where the ledger counts what a site answers.
    pub fn row(&self, site: Option<SiteNumber>) -> SiteRow {
        let row = site.and_then(|site| self.site_rows.get(site.index()));
        row.copied().unwrap_or(SiteRow::OTHER)
    }

    /// The requests of a site now, if it has a limit for that.
    pub fn requests(&self, site: SiteNumber) -> Option<&Arc<AtomicUsize>> {
        self.site_requests.get(site.index())?.as_ref()
    }

    fn new(settings: Settings, ledger: &Ledger) -> Self {
        let requests = settings.sites.iter().map(|site| {
            let limit = site.limits.requests_max;
            limit.map(|_| ledger.requests(&site.label()))
        });
        let rows = settings.sites.iter().map(|site| ledger.row(&site.label()));
        Self {
            streams: Streams::new(settings.limits.compressions_max, ledger.workers()),
            site_requests: requests.collect(),
            site_rows: rows.collect(),
            disk: Disk::new(settings.link.policy(), settings.limits.disk_reads_max),
            sites: settings.sites,
            limits: settings.limits,
            clients: settings.clients,
            link: settings.link,
            tells_request_id: settings.tells_request_id,
            sampling: settings.sampling,
        }
    }
}

impl Shared {
    /// Starts with these settings and no connection.
    pub fn new(settings: Settings, ledger: Ledger) -> Self {
        Self {
            active: RwLock::new(Arc::new(Active::new(settings, &ledger))),
            registry: Arc::default(),
            ledger,
            connections: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            announcing: AtomicUsize::new(0),
            full: Mutex::default(),
            strangers: Mutex::default(),
            certificates: Mutex::default(),
            limited: Mutex::default(),
            retiring: AtomicBool::new(false),
        }
    }

    /// Whether connections end as soon as none of their requests is lost.
    pub fn is_retiring(&self) -> bool {
        self.retiring.load(Ordering::Relaxed)
    }

    /// Says whether they do.
    pub fn set_retiring(&self, retires: bool) {
        self.retiring.store(retires, Ordering::Relaxed);
    }

    /// Serves new connections with `settings` from now on.
    pub fn replace(&self, settings: Settings) {
        *self.active.write() = Arc::new(Active::new(settings, &self.ledger));
    }

    /// The settings in force now.
    pub fn active(&self) -> Arc<Active> {
        Arc::clone(&self.active.read())
    }

    /// Counts a connection that ended by an error. Clients cause most of these, so they are not
    /// logged.
    pub fn count_connection_error(&self, error: &(dyn Error + 'static)) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        tracing::debug!("connection ended: {error}");
    }

    /// Counts and logs a connection to an address for proxies that is not one of theirs.
    pub fn refuse_stranger(&self, peer: SocketAddr) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        if let Some(untold) = self.strangers.lock().allow(Instant::now()) {
            tracing::warn!(%peer, untold, "a connection is refused: its address is not in proxy-from");
        }
    }

    /// Logs that a limit of a site refuses a request.
    pub fn report_limited(
        &self,
        site: &str,
        status: StatusCode,
        limit: &str,
        identity: Option<&Identity>,
    ) {
        if let Some(untold) = self.limited.lock().allow(Instant::now()) {
            let (status, request_id) = (
                status.as_u16(),
                identity.map(|identity| identity.id.to_string()),
            );
            tracing::warn!(
                site,
                status,
                request_id,
                untold,
                "a request is refused: {limit} of the site"
            );
        }
    }

    /// Logs that a response was refused with 503 because too many already wait. `None`: a handshake was.
    pub fn report_full(&self, full: &QueueFull, identity: Option<&Identity>) {
        if let Some(untold) = self.full.lock().allow(Instant::now()) {
            let request_id = identity.map(|identity| identity.id.to_string());
            tracing::warn!(status = 503, request_id, untold, "{full}");
        }
    }
}
