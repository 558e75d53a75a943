//! A gate in front of a server, with what tests want to know of it.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::{Conn, Opts, OptsBuilder};
use shortline_gate::classify::Client;
use shortline_gate::cluster::ClusterConfig;
use shortline_gate::mysql::{self, Pool, PoolConfig};
use shortline_gate::pool::{PoolLimits, PoolMode};
use shortline_gate::relay::{Limits, Registry, RelayConfig, Upstream};
use shortline_gate::{Gate, GateConfig, GateSnapshot};
use shortline_sched::admission::{AdmissionConfig, Order};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long tests wait for what must come.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Who may use a pool: `native` by the hash that MariaDB keeps of `secret`.
const USERS: &str = "\"root\" \"\"\n\"native\" \"*14E65567ABDB5135D0CFD9A70B3032C179A49EE7\"\n\
    \"ed\" \"secret\"\n\"ghost\" \"secret\"\n";

/// A gate.
pub struct Gated {
    pub address: SocketAddr,
    pub gate: Gate,
    pub registry: Arc<Registry>,
    pub pool: Option<Arc<Pool>>,
    end: Option<oneshot::Sender<()>>,
    relay: JoinHandle<std::io::Result<()>>,
}

/// How it admits.
pub fn admission(capacity: &str) -> GateConfig {
    GateConfig {
        admission: AdmissionConfig {
            order: Order::Sjf,
            capacity: capacity.parse().unwrap(),
            ..AdmissionConfig::default()
        },
        wait_max: PATIENCE,
        ..GateConfig::default()
    }
}

/// One unit at a time.
pub fn narrow() -> GateConfig {
    admission("1ns")
}

impl Gated {
    /// A gate before `upstream`.
    pub async fn new(upstream: SocketAddr, gate: GateConfig) -> Self {
        Self::with(upstream, gate, |_| {}).await
    }

    /// A gate before `upstream`, configured.
    pub async fn with(
        upstream: SocketAddr,
        gate: GateConfig,
        configure: impl FnOnce(&mut RelayConfig),
    ) -> Self {
        Self::start(upstream, gate, |config, _| {
            configure(config);
            None
        })
        .await
    }

    /// A gate before `upstream` with a pool of so many connections.
    pub async fn pooled(upstream: SocketAddr, mode: PoolMode, size: usize) -> Self {
        Self::clustered(upstream, None, mode, size, |_| {}).await
    }

    /// The same, before several servers.
    pub async fn clustered(
        upstream: SocketAddr,
        cluster: Option<ClusterConfig>,
        mode: PoolMode,
        size: usize,
        configure: impl FnOnce(&mut RelayConfig),
    ) -> Self {
        let limits = limits(mode, size, 20);
        Self::lending(upstream, cluster, limits, configure).await
    }

    /// The same, with these limits of the pool.
    pub async fn lending(
        upstream: SocketAddr,
        cluster: Option<ClusterConfig>,
        limits: PoolLimits,
        configure: impl FnOnce(&mut RelayConfig),
    ) -> Self {
        let PoolLimits { mode, size, .. } = limits;
        let mut gate = GateConfig {
            wait_max: PATIENCE,
            ..GateConfig::default()
        };
        if mode == PoolMode::Transaction {
            gate.admission.running_max = Some(size);
        }
        let users = Arc::new(mysql::pool::Users::parse(USERS).unwrap());
        let pool = PoolConfig {
            limits,
            users,
            cluster,
        };
        Self::start(upstream, gate, |config, gate| {
            configure(config);
            let pool = Pool::new(pool, config, gate);
            tokio::spawn(Arc::clone(&pool).watch());
            Some(pool)
        })
        .await
    }

    async fn start(
        upstream: SocketAddr,
        gate: GateConfig,
        configure: impl FnOnce(&mut RelayConfig, &Gate) -> Option<Arc<Pool>>,
    ) -> Self {
        let gate = Gate::new(gate);
        let mut config = config(upstream);
        let pool = configure(&mut config, &gate);
        let registry = Arc::clone(&config.registry);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel();
        let relay = tokio::spawn(mysql::run(
            listener,
            config,
            pool.clone(),
            gate.clone(),
            async {
                let _ = ended.await;
            },
        ));
        Self {
            address,
            gate,
            registry,
            pool,
            end: Some(end),
            relay,
        }
    }

    /// A connection through it, as root.
    pub async fn connect(&self) -> Conn {
        self.try_connect(|options| options).await.unwrap()
    }

    /// A connection through it, as root, with these options.
    pub async fn try_connect(
        &self,
        options: impl FnOnce(OptsBuilder) -> OptsBuilder,
    ) -> mysql_async::Result<Conn> {
        connect(self.address, options).await
    }

    pub fn snapshot(&self) -> GateSnapshot {
        self.gate.snapshot()
    }

    /// Waits until the gate is as wanted.
    pub async fn until(&self, what: &str, is_so: impl Fn(&GateSnapshot) -> bool) {
        let waiting = async {
            while !is_so(&self.snapshot()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            panic!("not {what}: {:?}", self.snapshot());
        }
    }

    /// Waits until nothing runs or waits, and all load has been given back.
    pub async fn until_empty(&self) {
        self.until("empty", |now| {
            now.running + now.waiting == 0 && now.load_ns == 0
        })
        .await;
    }

    /// Units of a type that ended: completed, failed.
    pub fn ended(&self, name: &str) -> (u64, u64) {
        let snapshot = self.snapshot();
        let view = snapshot.types.iter().find(|view| &*view.name == name);
        view.map_or((0, 0), |view| (view.completed, view.failed))
    }

    /// Ends it; true if it did so in good order.
    pub async fn end(mut self) -> bool {
        drop(self.end.take());
        let ended = tokio::time::timeout(PATIENCE, &mut self.relay).await;
        matches!(ended, Ok(Ok(Ok(()))))
    }
}

/// A pool's limits: so many connections, and so many statements on each.
pub fn limits(mode: PoolMode, size: usize, statements_max: usize) -> PoolLimits {
    PoolLimits {
        mode,
        size: NonZeroUsize::new(size).unwrap(),
        idle_time_max: Duration::from_secs(600),
        wait_max: PATIENCE,
        statements_max,
    }
}

/// A relay to `upstream`, on one thread.
pub fn config(upstream: SocketAddr) -> RelayConfig {
    // The type is the statement's first 60 bytes.
    let classify = Arc::new(move |statement: &[u8], _: &Client<'_>| {
        String::from_utf8_lossy(&statement[..statement.len().min(60)]).into()
    });
    let upstream = Upstream {
        host: upstream.ip().to_string(),
        port: upstream.port(),
    };
    let mut config = RelayConfig::new(upstream, classify);
    config.limits = Limits {
        workers: 1,
        drain_time_max: Duration::from_secs(2),
        ..Limits::default()
    };
    config
}

/// A connection to `address` as root.
pub async fn connect(
    address: SocketAddr,
    options: impl FnOnce(OptsBuilder) -> OptsBuilder,
) -> mysql_async::Result<Conn> {
    let builder = OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(address.port())
        .user(Some("root"))
        .prefer_socket(false)
        .max_allowed_packet(Some(64 << 20));
    Conn::new(Opts::from(options(builder))).await
}

/// The server's code in an error.
pub fn code(error: &mysql_async::Error) -> Option<u16> {
    match error {
        mysql_async::Error::Server(error) => Some(error.code),
        _ => None,
    }
}
