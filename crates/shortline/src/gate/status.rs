//! The visible state of a running gate: what its pages, metrics and SHOW commands show.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::RwLock;
use serde::Serialize;
use shortline_gate::pool::{PoolMode, Shown};
use shortline_gate::relay::{ConnectionCounts, Registry};
use shortline_gate::{Gate, GateConfig, GateSnapshot};
use shortline_sched::admission::Order;
use shortline_web::server::ServerSnapshot;

use super::clients::{self, ClientStatus, Paused};
use super::history::{self, Sample};
use super::opening::Opened;
use super::options::PolicyName;
use super::quiet::Quiet;
use super::series::Series;
use super::servers::{self, ServerStatus};
use super::settings::Settings;
use crate::history::History;

/// Everything the endpoint shows except the history.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The program's version.
    pub version: &'static str,
    /// Time since the start.
    pub uptime_seconds: f64,
    /// The settings.
    pub settings: SettingsView,
    /// The queue, the load against the capacity, and the types.
    pub admission: GateSnapshot,
    /// A note if the gate currently changes nothing, or has opened up.
    pub note: Option<String>,
    /// Clients' connections.
    pub connections: Connections,
    /// The pool of connections to the backend, if there is one.
    pub pool: Option<PoolStatus>,
    /// The servers, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerStatus>,
    /// The clients whose requests wait or run. At most 20, the longest in that state.
    pub busy_clients: Vec<ClientStatus>,
    /// What the operator has paused or disabled.
    pub paused: Paused,
    /// Chooses the types that have metrics.
    #[serde(skip)]
    pub series: Arc<Series>,
}

/// Clients' connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connections {
    /// Open now.
    pub open: usize,
    /// Accepted since the start.
    pub total: u64,
    /// Rejected because there were too many.
    pub refused_total: u64,
    /// Ended by an error.
    pub failed_total: u64,
}

/// The connections to the backend that clients share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PoolStatus {
    /// `session` or `transaction`.
    pub mode: &'static str,
    /// The most connections.
    pub size: usize,
    /// Open now, or being opened.
    pub open: usize,
    /// Of these, lent to no session.
    pub idle: usize,
    /// Of these, kept by sessions that have no transaction.
    pub pinned: usize,
    /// Sessions that are admitted and wait for a connection.
    pub waiting: usize,
    /// Prepared statements that some client or connection has.
    pub statements: usize,
    /// How often a connection was lent to a session.
    pub lent: u64,
}

impl PoolStatus {
    fn of(pool: &dyn Shown) -> Self {
        let counts = pool.counts();
        Self {
            mode: match pool.mode() {
                PoolMode::Session => "session",
                PoolMode::Transaction => "transaction",
            },
            size: pool.size(),
            open: counts.total,
            idle: counts.idle,
            pinned: pool.pinned(),
            waiting: counts.waiting,
            statements: pool.statements(),
            lent: pool.lent(),
        }
    }
}

/// The settings that are shown, in the form of the options.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingsView {
    /// The kind of backend, such as `postgres`.
    pub kind: &'static str,
    /// The addresses that clients connect to.
    pub listen: Vec<String>,
    /// The backend's address.
    pub upstream: String,
    /// The settings of admission.
    #[serde(flatten)]
    pub admission: AdmissionSettings,
}

/// The settings of admission.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdmissionSettings {
    /// `fifo`, `sjf`, `boost` or `gittins`.
    pub policy: &'static str,
    /// The bound on waiting, in multiples of the expected service time.
    pub aging: Option<String>,
    /// The share of the work for the request that has waited longest. `None` except for `gittins`, and
    /// for `sjf` without aging.
    pub oldest_share: Option<String>,
    /// `off`, `auto`, `calibrate` or a time.
    pub capacity: String,
    /// Whether everything is admitted, and waits are only counted.
    pub dry_run: bool,
    /// The most requests that may wait.
    pub queue_max: usize,
    /// The longest time that a request may wait, in seconds.
    pub wait_max_seconds: f64,
}

/// The visible state of a running gate. A handle: clones show the same.
#[derive(Clone)]
pub struct View {
    gate: Gate,
    connections: Arc<dyn Fn() -> Connections + Send + Sync>,
    connections_max: usize,
    is_ending: Arc<AtomicBool>,
    /// The clients of a database. `None` for HTTP.
    clients: Option<Arc<Registry>>,
    pool: Arc<OnceLock<Arc<dyn Shown>>>,
    history: History<Sample>,
    quiet: Quiet,
    opened: Opened,
    started: Instant,
    /// Replaced at a reload.
    told: Arc<RwLock<SettingsView>>,
    series: Arc<Series>,
}

impl View {
    /// The view of a gate that starts now.
    pub fn new(
        gate: Gate,
        connections: impl Fn() -> Connections + Send + Sync + 'static,
        clients: Option<Arc<Registry>>,
        settings: &Settings,
    ) -> Self {
        let (started, quiet, opened) = (Instant::now(), Quiet::default(), Opened::default());
        Self {
            history: history::start(gate.clone(), started, quiet.clone(), opened.clone()),
            quiet,
            opened,
            gate,
            connections: Arc::new(connections),
            connections_max: settings.limits.connections_max,
            is_ending: Arc::default(),
            clients,
            pool: Arc::default(),
            started,
            told: Arc::new(RwLock::new(SettingsView::new(settings))),
            series: Arc::new(Series::new(settings.metrics_types_max)),
        }
    }

    /// Shows this pool from now on.
    pub fn show_pool(&self, pool: Arc<dyn Shown>) {
        self.pool.get_or_init(|| pool);
    }

    /// Shows these settings from now on.
    pub fn tell(&self, settings: &Settings) {
        *self.told.write() = SettingsView::new(settings);
    }

    /// What the backend speaks.
    pub fn kind(&self) -> &'static str {
        self.told.read().kind
    }

    /// The gate itself.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The pool, if there is one.
    pub fn pool(&self) -> Option<&dyn Shown> {
        self.pool.get().map(|pool| &**pool)
    }

    /// The same for as long as it is needed.
    pub fn shared_pool(&self) -> Option<Arc<dyn Shown>> {
        self.pool.get().cloned()
    }

    /// The clients of a database. `None` for HTTP.
    pub fn clients(&self) -> Option<&Registry> {
        self.clients.as_deref()
    }

    /// Records that the gate ends, and stops accepting clients.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        if let Some(clients) = self.clients() {
            clients.shut();
        }
    }

    /// Whether the gate takes no new clients because it ends.
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// The most connections of clients.
    pub fn connections_max(&self) -> usize {
        self.connections_max
    }

    /// The state now.
    pub fn status(&self) -> Status {
        let (uptime, admission) = (self.started.elapsed(), self.gate.snapshot());
        Status {
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: uptime.as_secs_f64(),
            settings: self.told.read().clone(),
            note: self
                .opened
                .note(uptime, &admission)
                .or_else(|| self.quiet.note(uptime, &admission)),
            admission,
            connections: (self.connections)(),
            pool: self.pool.get().map(|pool| PoolStatus::of(&**pool)),
            servers: servers::all(self.pool()),
            busy_clients: clients::busy(self.clients()),
            paused: Paused::of(&self.gate),
            series: Arc::clone(&self.series),
        }
    }

    /// The samples of the last minutes, one per second, and the current state last.
    pub fn samples(&self) -> Vec<Sample> {
        let mut samples = self.history.samples();
        samples.push(Sample::new(self.started.elapsed(), &self.gate.snapshot()));
        samples
    }
}

impl From<ConnectionCounts> for Connections {
    fn from(counts: ConnectionCounts) -> Self {
        Self {
            open: counts.open,
            total: counts.total,
            refused_total: counts.refused_total,
            failed_total: counts.failed_total,
        }
    }
}

impl From<&ServerSnapshot> for Connections {
    fn from(server: &ServerSnapshot) -> Self {
        let open = &server.connections;
        Self {
            open: open.idle + open.head + open.response + open.tunnel,
            total: server.connections_total,
            refused_total: server.connections_refused_total,
            failed_total: server.connections_failed_total,
        }
    }
}

impl SettingsView {
    fn new(settings: &Settings) -> Self {
        Self {
            kind: settings.kind.name(),
            listen: settings.listen.iter().map(ToString::to_string).collect(),
            upstream: settings.upstream.clone(),
            admission: AdmissionSettings::new(&settings.gate),
        }
    }
}

impl AdmissionSettings {
    /// The settings of a gate.
    pub fn new(config: &GateConfig) -> Self {
        let admission = &config.admission;
        let (policy, aging) = match admission.order {
            Order::Fifo => (PolicyName::Fifo, None),
            Order::Sjf => (PolicyName::Sjf, None),
            Order::SjfAging(aging) => (PolicyName::Sjf, Some(aging)),
            Order::Boost => (PolicyName::Boost, None),
            Order::Gittins => (PolicyName::Gittins, None),
        };
        Self {
            policy: policy.name(),
            aging: aging.map(|aging| aging.to_string()),
            oldest_share: admission
                .order
                .has_oldest_share()
                .then(|| admission.oldest_share.to_string()),
            capacity: admission.capacity.to_string(),
            dry_run: admission.dry_run,
            queue_max: admission.queue_max,
            wait_max_seconds: config.wait_max.as_secs_f64(),
        }
    }
}
