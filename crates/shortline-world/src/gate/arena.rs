//! The gate, its clients and the database together, and what each saw of the other.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use shortline_base::world::Stream;
use shortline_gate::Gate;
use shortline_gate::classify::{Classifier, ClassifierConfig, Classify, Dialect, Protocol};
use shortline_gate::mysql::MysqlRelay;
use shortline_gate::postgres::{PostgresConfig, PostgresRelay};
use shortline_gate::relay::{Order, Registry, RelayConfig, Upstream};

use super::answer::Answer;
use super::client;
use super::database::Database;
use super::scenario::{Scenario, Statement, Unit};
use super::{mysql, postgres};
use crate::machine::{Machine, Peers};
use crate::network::{Connection, End, Path};
use crate::scenario::DiskPlan;
use crate::verdict::Fault;
use crate::world::World;
use crate::{Judged, Living, held_of};

const SECOND_NS: u64 = 1_000_000_000;
/// The longest that requests may wait while the gate runs none.
const IDLE_NS_MAX: u64 = 12 * SECOND_NS;
/// The database's port.
pub const PORT: u16 = 5432;

/// Everything; see the module's text.
pub struct Arena {
    /// Time.
    pub world: Arc<World>,
    scenario: Scenario,
    relay: Relay,
    registry: Arc<Registry>,
    gate: Gate,
    database: Arc<Database>,
    connections: AtomicU64,
    /// The answer to each statement. `None` while it is under way.
    asked: Mutex<HashMap<u64, Option<Answer>>>,
    living: AtomicUsize,
    patience: Patience,
}

/// Since when a request has waited while none runs.
#[derive(Default)]
pub struct Patience(Mutex<Option<u64>>);

impl Patience {
    /// Looks whether requests wait that have waited for too long while none ran.
    pub fn look(&self, waiting: usize, running: usize, now_ns: u64) -> Judged {
        let mut idle_since_ns = self.0.lock();
        if waiting == 0 || running > 0 {
            *idle_since_ns = None;
            return Ok(());
        }
        let since_ns = *idle_since_ns.get_or_insert(now_ns);
        if now_ns - since_ns > IDLE_NS_MAX {
            return Err(Fault::Stuck {
                clients: vec![format!("{waiting} at the gate, where nobody runs")],
            });
        }
        Ok(())
    }
}

#[derive(Clone)]
enum Relay {
    Postgres(PostgresRelay),
    Mysql(MysqlRelay),
}

impl Arena {
    /// The arena of a scenario, before anybody has come.
    pub fn new(world: &Arc<World>, scenario: Scenario, database: Arc<Database>) -> Arc<Self> {
        let gate = Gate::new(scenario.gate.clone());
        let upstream = Upstream {
            host: "database".to_owned(),
            port: PORT,
        };
        let (relay, registry) = match scenario.is_mysql {
            true => {
                let config = RelayConfig::new(upstream, classify(Protocol::Sql(Dialect::MySql)));
                let registry = Arc::clone(&config.registry);
                (
                    Relay::Mysql(MysqlRelay::new(config, None, gate.clone())),
                    registry,
                )
            }
            false => {
                let config =
                    PostgresConfig::new(upstream, classify(Protocol::Sql(Dialect::Postgres)));
                let registry = Arc::clone(&config.relay.registry);
                let relay = PostgresRelay::new(config, gate.clone());
                (Relay::Postgres(relay), registry)
            }
        };
        Arc::new(Self {
            world: Arc::clone(world),
            living: AtomicUsize::new(scenario.clients.len()),
            scenario,
            relay,
            registry,
            gate,
            database,
            connections: AtomicU64::new(0),
            asked: Mutex::default(),
            patience: Patience::default(),
        })
    }

    /// Whether the database is MySQL.
    pub fn is_mysql(&self) -> bool {
        self.scenario.is_mysql
    }

    /// Opens a connection from a client to the gate.
    pub async fn connect(&self, client: usize, path: Path) -> End {
        let relay = self.relay.clone();
        let serve = |theirs: Box<dyn Stream>, peer| async move {
            match relay {
                Relay::Postgres(relay) => relay.serve(theirs.into(), peer).await,
                Relay::Mysql(relay) => relay.serve(theirs.into(), peer).await,
            }
        };
        open_connection(&self.world, &self.connections, client, path, serve).await
    }

    /// Notes that a client sends a statement.
    pub fn asks(&self, client: usize, statement: &Statement) {
        self.world
            .note(format_args!("client {client} asks {}", statement.text()));
        self.asked.lock().insert(statement.number, None);
    }

    /// Notes that a client has its answer.
    pub fn heard(&self, client: usize, statement: &Statement, answer: &Answer) {
        let number = statement.number;
        match answer {
            Answer::Done(rows) => self.world.note(format_args!(
                "client {client} has {} bytes of {number}",
                rows.len()
            )),
            error => self
                .world
                .note(format_args!("client {client} has {error:?} for {number}")),
        }
        self.asked.lock().insert(number, Some(answer.clone()));
    }

    /// Notes that a client leaves by itself.
    pub fn leaves(&self, client: usize) {
        self.world.note(format_args!("client {client} leaves"));
    }

    /// Notes that a client was refused.
    pub fn refused(&self, client: usize, how: &str) {
        self.world
            .note(format_args!("client {client} is not let in: {how}"));
        if self.scenario.refusals == 0.0 && self.scenario.drain_ns.is_none() {
            self.world.report(Fault::Broken {
                whose: format!("client {client}"),
                how: format!("not let in: {how}"),
            });
        }
    }

    /// Notes that a client's connection was cut.
    pub fn cut_off(&self, client: usize, unit: &Unit, how: &str) {
        self.world
            .note(format_args!("client {client} is cut off: {how}"));
        let babbles = matches!(unit, Unit::Babble);
        if !babbles && self.scenario.kills == 0.0 && self.scenario.drain_ns.is_none() {
            self.world.report(Fault::Broken {
                whose: format!("client {client}, {unit:?}"),
                how: how.to_owned(),
            });
        }
    }

    /// Whether the gate may refuse a statement with this error.
    pub fn gate_may_refuse(&self, code: &str, text: &str) -> bool {
        let config = &self.scenario.gate;
        let by_queue = config.admission.queue_max < 100 && text.contains("queue");
        let by_time = config.wait_max.as_secs() == 0 && text.contains("within");
        let states = ["53300", "57014", "42000", "HY000"];
        states.contains(&code) && (by_queue || by_time) || self.is_last_word(code)
    }

    /// Whether this is the last error of a gate that ends.
    pub fn is_last_word(&self, code: &str) -> bool {
        self.scenario.drain_ns.is_some() && matches!(code, "57P01" | "08S01")
    }
}

impl Living for Arc<Arena> {
    const SERVED_NS_MAX: u64 = 300 * SECOND_NS;
    const GONE_NS_MAX: u64 = 60 * SECOND_NS;

    fn begin(&self) {
        for (index, plan) in self.scenario.clients.iter().cloned().enumerate() {
            let arena = Arc::clone(self);
            self.world
                .note(format_args!("client {index}: {:?}", plan.path));
            tokio::spawn(async move {
                client::live(Arc::clone(&arena), index, plan).await;
                arena.living.fetch_sub(1, Ordering::Relaxed);
            });
        }
        if let Some(at_ns) = self.scenario.drain_ns {
            let (world, registry) = (Arc::clone(&self.world), Arc::clone(&self.registry));
            tokio::spawn(async move {
                world.sleep(at_ns).await;
                world.note(format_args!("the gate is told to finish"));
                registry.give_all(Order::Drain);
            });
        }
    }

    fn look(&self) -> Judged {
        let gate = self.gate.snapshot();
        let now_ns = self.world.now_ns();
        self.patience.look(gate.waiting, gate.active, now_ns)
    }

    fn is_served(&self) -> bool {
        self.living.load(Ordering::Relaxed) == 0
    }

    fn waiting(&self) -> Vec<String> {
        let asked = self.asked.lock();
        let waits = asked.iter().filter(|(_, answer)| answer.is_none());
        let mut waits: Vec<_> = waits.map(|(number, _)| number.to_string()).collect();
        waits.sort();
        waits
    }

    fn left(&self) -> Vec<String> {
        let gate = self.gate.snapshot();
        held_of([
            ("connections", self.registry.open()),
            ("units that wait", gate.waiting),
            ("units that run", gate.running),
            ("statements of the database", self.database.busy()),
        ])
    }

    fn judge(&self) -> Judged {
        // What the database did is known only once it has finished everything.
        Ok(())
    }

    // Each statement was executed once if it was answered, and never twice.
    fn judge_empty(&self) -> Judged {
        for (number, answer) in self.asked.lock().iter() {
            let times = self.database.executed(*number);
            let answered = matches!(answer, Some(Answer::Done(_)));
            if times > 1 || answered && times == 0 {
                return Err(Fault::Counted {
                    whose: format!("statement {number}"),
                    times,
                });
            }
        }
        Ok(())
    }

    fn counts(&self) -> (usize, usize) {
        let asked = self.asked.lock();
        let done = asked
            .values()
            .filter(|answer| matches!(answer, Some(Answer::Done(_))));
        (done.count(), asked.len())
    }
}

/// Opens a connection from a client to the gate, which `serve`s it. `opened` counts connections.
pub async fn open_connection<S: Future<Output = ()> + Send + 'static>(
    world: &Arc<World>,
    opened: &AtomicU64,
    client: usize,
    path: Path,
    serve: impl FnOnce(Box<dyn Stream>, SocketAddr) -> S,
) -> End {
    let number = opened.fetch_add(1, Ordering::Relaxed);
    let connection = Connection::open(world, number, path, None);
    world.note(format_args!("client {client} has connection {number}"));
    world.sleep(path.delay_ns).await;
    let theirs = Box::new(End::of_backend(&connection));
    let peer = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)), 40_000);
    tokio::spawn(serve(theirs, peer));
    world.sleep(path.delay_ns).await;
    End::of_client(&connection)
}

/// How statements are classified: without rules.
pub fn classify(protocol: Protocol) -> Classify {
    let classifier = Classifier::new(&ClassifierConfig::new(protocol));
    let classifier = classifier.expect("no rules, no wrong ones");
    Arc::new(move |sql, client| classifier.statement(sql, client))
}

/// The machine of a scenario. It can connect only to the database.
pub fn machine(world: &Arc<World>, scenario: &Scenario, database: &Arc<Database>) -> Machine {
    let (database, is_mysql, refusals) =
        (Arc::clone(database), scenario.is_mysql, scenario.refusals);
    let serve = move |_, end| {
        let database = Arc::clone(&database);
        tokio::spawn(async move {
            match is_mysql {
                true => mysql::serve(database, end).await,
                false => postgres::serve(database, end).await,
            }
        });
    };
    let peers = Peers {
        serve: Box::new(serve),
        refusals: Box::new(move |_| refusals),
    };
    Machine::new(world, DiskPlan::SOUND, scenario.path, peers)
}
