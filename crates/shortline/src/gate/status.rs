//! What `shortline gate` serves at its admin endpoint: a live page, `/status`, `/history`,
//! `/metrics`.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde::Serialize;
use shortline_gate::postgres::{Pool, PoolMode};
use shortline_gate::relay::ConnectionCounts;
use shortline_gate::{Gate, GateConfig, GateSnapshot};
use shortline_sched::admission::Order;
use shortline_web::server::ServerSnapshot;

use super::history::{History, Sample};
use super::options::PolicyName;
use super::quiet::Quiet;
use super::series::Series;
use super::settings::Settings;
use super::{metrics, page};
use shortline_daemon::admin::{Page, Pages};

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
    /// A note if the gate currently changes nothing.
    pub note: Option<String>,
    /// Clients' connections.
    pub connections: Connections,
    /// The pool of connections to the backend, if there is one.
    pub pool: Option<PoolStatus>,
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
    /// Of these, kept by sessions between two transactions.
    pub pinned: usize,
    /// Sessions that wait for a connection although they are admitted.
    pub waiting: usize,
    /// Prepared statements that some client or connection has.
    pub statements: usize,
}

impl PoolStatus {
    fn of(pool: &Pool) -> Self {
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
        }
    }
}

/// The settings that are shown, in the form of the options.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingsView {
    /// The kind of backend, such as `postgres`.
    pub kind: &'static str,
    /// Where clients connect.
    pub listen: Vec<String>,
    /// Where the backend listens.
    pub upstream: String,
    /// The settings of admission.
    #[serde(flatten)]
    pub admission: AdmissionSettings,
}

/// The settings of admission.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdmissionSettings {
    /// `fifo` or `sjf`.
    pub policy: &'static str,
    /// The bound on waiting, in multiples of the expected service time.
    pub aging: Option<String>,
    /// The share of the work for the request that has waited longest. `None` except for `sjf`
    /// without aging.
    pub oldest_share: Option<String>,
    /// `off`, `auto` or a time.
    pub capacity: String,
    /// Whether everything is admitted, and waits are only counted.
    pub dry_run: bool,
    /// The most requests that may wait.
    pub queue_max: usize,
    /// Time a request may wait, in seconds.
    pub wait_max_seconds: f64,
}

/// The visible state of a running gate. A handle: clones show the same.
#[derive(Clone)]
pub struct View {
    gate: Gate,
    connections: Arc<dyn Fn() -> Connections + Send + Sync>,
    pool: Arc<OnceLock<Arc<Pool>>>,
    history: History,
    quiet: Quiet,
    started: Instant,
    told: Arc<SettingsView>,
    series: Arc<Series>,
}

impl View {
    /// A gate that starts now.
    pub fn new(
        gate: Gate,
        connections: impl Fn() -> Connections + Send + Sync + 'static,
        settings: &Settings,
    ) -> Self {
        let (started, quiet) = (Instant::now(), Quiet::default());
        Self {
            history: History::start(gate.clone(), started, quiet.clone()),
            quiet,
            gate,
            connections: Arc::new(connections),
            pool: Arc::default(),
            started,
            told: Arc::new(SettingsView::new(settings)),
            series: Arc::new(Series::new(settings.metrics_types_max)),
        }
    }

    /// Shows this pool from now on.
    pub fn show_pool(&self, pool: &Arc<Pool>) {
        self.pool.get_or_init(|| Arc::clone(pool));
    }

    /// The state now.
    pub fn status(&self) -> Status {
        let (uptime, admission) = (self.started.elapsed(), self.gate.snapshot());
        Status {
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: uptime.as_secs_f64(),
            settings: SettingsView::clone(&self.told),
            note: self.quiet.note(uptime, &admission),
            admission,
            connections: (self.connections)(),
            pool: self.pool.get().map(|pool| PoolStatus::of(pool)),
            series: Arc::clone(&self.series),
        }
    }

    /// The samples of the last minutes, one per second, and the current state last.
    fn samples(&self) -> Vec<Sample> {
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

impl Pages for View {
    const PATHS: &'static str = "/, /status, /history, /metrics or /healthz";

    fn page(&self, path: &str) -> Option<Page> {
        match path {
            "/" => Some(Page::html(page::html())),
            "/status" => Some(Page::json(&self.status())),
            "/history" => Some(Page::json(&self.samples())),
            "/metrics" => Some(Page::metrics(metrics::render(&self.status()))),
            _ => None,
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
