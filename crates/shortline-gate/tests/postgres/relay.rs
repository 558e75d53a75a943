//! A relay under test, on a thread of its own, and clients of it.

use std::future::Future;
use std::io::Write;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use shortline_gate::classify::{self, Terms};
use shortline_gate::cluster::ClusterConfig;
use shortline_gate::pool::{PoolLimits, PoolMode};
use shortline_gate::postgres::pool::{Lookup, Users};
use shortline_gate::postgres::{Pool, PoolConfig, PostgresConfig, run};
use shortline_gate::relay::{Registry, Upstream};
use shortline_gate::{Gate, GateConfig, GateSnapshot};
use tokio::sync::oneshot;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use super::cluster::Cluster;

/// How long a test waits for what must come before it fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// See the module's text.
pub struct Relay {
    pub port: u16,
    pub gate: Gate,
    pub registry: Arc<Registry>,
    pub pool: Option<Arc<Pool>>,
    shutdown: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A gate that admits one request at a time, since everything is larger than its capacity.
pub fn one_at_a_time() -> GateConfig {
    let mut config = GateConfig::default();
    config.admission.capacity = "1us".parse().unwrap();
    config
}

/// A relay's configuration: each statement's type is its first bytes.
pub fn config(port: u16) -> PostgresConfig {
    let upstream = Upstream {
        host: "localhost".to_owned(),
        port,
    };
    let mut config = PostgresConfig::new(
        upstream,
        Arc::new(move |text: &[u8], _: &classify::Client<'_>| {
            String::from_utf8_lossy(&text[..text.len().min(24)]).into()
        }),
    );
    config.relay.limits.drain_time_max = Duration::from_secs(5);
    config
}

/// Clients that call themselves `whole` have sessions, and those that are `hurried` no time between statements.
fn terms(client: &classify::Client<'_>) -> Terms {
    let is = |name| client.application_name == Some(name);
    Terms {
        pool: is("whole").then_some(PoolMode::Session),
        idle_transaction_time_max: is("hurried").then_some(Duration::from_millis(50)),
        ..Terms::default()
    }
}

impl Relay {
    /// In front of `cluster`, with a gate that lets everything through.
    pub fn open(cluster: &Cluster) -> Self {
        Self::start(cluster.port, GateConfig::default(), |_| {})
    }

    /// In front of `upstream`, with what `change` makes of the defaults.
    pub fn start(
        upstream: u16,
        gate: GateConfig,
        change: impl FnOnce(&mut PostgresConfig),
    ) -> Self {
        Self::start_with(upstream, gate, |config, _| change(config))
    }

    /// The same, with a pool of so many connections, whose users are these lines of a file.
    pub fn pooled(upstream: u16, mode: PoolMode, size: usize, users: &str) -> Self {
        Self::clustered(upstream, None, mode, size, users, GateConfig::default())
    }

    /// The same, in front of several servers.
    pub fn clustered(
        upstream: u16,
        cluster: Option<ClusterConfig>,
        mode: PoolMode,
        size: usize,
        users: &str,
        mut gate: GateConfig,
    ) -> Self {
        let size = NonZeroUsize::new(size).unwrap();
        if mode == PoolMode::Transaction {
            gate.admission.running_max = Some(size);
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(users.as_bytes()).unwrap();
        let pool = PoolConfig {
            limits: PoolLimits {
                mode,
                size,
                idle_time_max: Duration::from_secs(600),
                wait_max: PATIENCE,
                statements_max: 20,
            },
            users: Arc::new(Users::read(file.path()).unwrap()),
            // The superuser of these tests' file.
            lookup: users.contains("\"postgres\"").then(|| Lookup {
                user: "postgres".to_owned(),
                query: "select rolname, rolpassword from pg_authid where rolname = $1".to_owned(),
            }),
            cluster,
        };
        Self::start_with(upstream, gate, |config, gate| {
            config.relay.terms_of = Arc::new(terms);
            config.pool = Some(Pool::new(pool, config, gate));
        })
    }

    fn start_with(
        upstream: u16,
        gate: GateConfig,
        change: impl FnOnce(&mut PostgresConfig, &Gate),
    ) -> Self {
        let gate = Gate::new(gate);
        let mut config = config(upstream);
        change(&mut config, &gate);
        let registry = Arc::clone(&config.relay.registry);
        let pool = config.pool.clone();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (shutdown, ended) = oneshot::channel();
        let (gate_of_thread, runtime) = (gate.clone(), runtime());
        let watched = pool.clone();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let ended = async { drop(ended.await) };
                let watching = watched.map(|pool| tokio::spawn(pool.watch()));
                run(listener, config, gate_of_thread, ended).await.unwrap();
                if let Some(watching) = watching {
                    watching.abort();
                }
            });
        });
        Self {
            port,
            gate,
            registry,
            pool,
            shutdown: Some(shutdown),
            thread: Some(thread),
        }
    }

    /// Asks the relay to end.
    pub fn shut_down(&mut self) {
        drop(self.shutdown.take());
    }

    /// Waits until it has ended.
    pub fn join(&mut self) {
        self.shut_down();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// A client, whose notices and notifications are printed.
    pub async fn client(&self) -> Client {
        self.client_as("user=postgres").await
    }

    /// A client with these parameters.
    pub async fn client_as(&self, parameters: &str) -> Client {
        connect(self.port, parameters).await.unwrap()
    }

    /// A client whose transactions only read, from its first on.
    pub async fn client_as_read_only(&self) -> Client {
        let options = "options='-c default_transaction_read_only=on'";
        self.client_as(&format!("user=postgres password=any {options}"))
            .await
    }

    /// Waits until the gate looks like that.
    pub async fn until(&self, what: &str, is_so: impl Fn(&GateSnapshot) -> bool) {
        let begun = Instant::now();
        loop {
            let snapshot = self.gate.snapshot();
            if is_so(&snapshot) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "never {what}: {snapshot:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until nothing waits and nothing runs.
    pub async fn until_at_rest(&self) {
        self.until("at rest", |gate| {
            gate.waiting == 0 && gate.running == 0 && gate.load_ns == 0
        })
        .await;
    }

    /// Waits until no client is left.
    pub async fn until_alone(&self) {
        soon(self.registry.empty()).await;
    }

    /// Requests of that type that ended, completed or not.
    pub fn completed(&self, type_name: &str) -> u64 {
        let types = self.gate.snapshot().types;
        let found = types.iter().find(|view| view.name == type_name);
        found.map_or(0, |view| view.completed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shut_down();
        if let Some(thread) = self.thread.take() {
            // A panic there has failed the test already.
            let _ = thread.join();
        }
    }
}

/// A client of whatever listens on `port`.
pub async fn connect(port: u16, parameters: &str) -> Result<Client, tokio_postgres::Error> {
    let parameters = format!("host=127.0.0.1 port={port} dbname=postgres {parameters}");
    let (client, mut connection) = tokio_postgres::connect(&parameters, NoTls).await?;
    tokio::spawn(async move {
        while let Some(message) =
            std::future::poll_fn(|context| connection.poll_message(context)).await
        {
            match message {
                Ok(AsyncMessage::Notice(_) | AsyncMessage::Notification(_)) => {}
                Ok(_) => {}
                Err(_) => break,
            }
        }
    });
    Ok(client)
}

/// Fails the test if `work` does not end.
pub async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work)
        .await
        .expect("it takes for ever")
}

/// A runtime on the caller's thread.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}
