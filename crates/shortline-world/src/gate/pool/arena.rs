//! The pool, its clients and its server together, and what must hold of them at every moment.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering as Atomic};

use parking_lot::Mutex;
use shortline_base::world::Stream;
use shortline_gate::Gate;
use shortline_gate::classify::{Dialect, Protocol};
use shortline_gate::pool::Shown;
use shortline_gate::postgres::pool::{Users, md5_of};
use shortline_gate::postgres::{Pool, PoolConfig, PostgresConfig, PostgresRelay};
use shortline_gate::relay::{self, Registry, Upstream};

use super::super::arena::{PORT, Patience, classify, open_connection};
use super::client::{self, PASSWORD};
use super::excuse::Failure;
use super::scenario::{Order, Scenario};
use super::server::Server;
use crate::machine::{Machine, Peers};
use crate::network::{End, Path};
use crate::scenario::DiskPlan;
use crate::verdict::Fault;
use crate::world::World;
use crate::{Judged, Living, held_of};

const SECOND_NS: u64 = 1_000_000_000;

/// Everything; see the module's text.
pub struct Arena {
    /// Time.
    pub world: Arc<World>,
    scenario: Scenario,
    relay: PostgresRelay,
    pool: Arc<Pool>,
    registry: Arc<Registry>,
    gate: Gate,
    server: Arc<Server>,
    connections: AtomicU64,
    living: AtomicUsize,
    asked: AtomicUsize,
    answered: Mutex<Vec<u64>>,
    patience: Patience,
    bound: Mutex<Bound>,
}

/// The pool's size, and how many connections it may have while it has not yet come down to it.
struct Bound {
    size: NonZeroUsize,
    most: usize,
}

impl Arena {
    /// The arena of a scenario, before anybody has come.
    pub fn new(world: &Arc<World>, scenario: Scenario, server: Arc<Server>) -> Arc<Self> {
        let gate = Gate::new(scenario.gate.clone());
        let upstream = Upstream {
            host: "database".to_owned(),
            port: PORT,
        };
        let mut config = PostgresConfig::new(upstream, classify(Protocol::Sql(Dialect::Postgres)));
        let registry = Arc::clone(&config.relay.registry);
        let pool = PoolConfig {
            limits: scenario.limits,
            users: Arc::new(users()),
            lookup: None,
            cluster: None,
        };
        let pool = Pool::new(pool, &config, &gate);
        config.pool = Some(Arc::clone(&pool));
        let size = scenario.limits.size;
        Arc::new(Self {
            world: Arc::clone(world),
            living: AtomicUsize::new(scenario.clients.len()),
            relay: PostgresRelay::new(config, gate.clone()),
            pool,
            registry,
            gate,
            server,
            connections: AtomicU64::new(0),
            asked: AtomicUsize::new(0),
            answered: Mutex::default(),
            patience: Patience::default(),
            bound: Mutex::new(Bound {
                size,
                most: size.get(),
            }),
            scenario,
        })
    }

    /// Opens a connection from a client to the gate.
    pub async fn connect(&self, client: usize, path: Path) -> End {
        let relay = self.relay.clone();
        let serve =
            |theirs: Box<dyn Stream>, peer| async move { relay.serve(theirs.into(), peer).await };
        open_connection(&self.world, &self.connections, client, path, serve).await
    }

    /// A client is let in. It counts as something that was asked for.
    pub fn entered(&self) {
        self.asks();
        self.is_answered(None);
    }

    /// A statement is awaited.
    pub fn asks(&self) {
        self.asked.fetch_add(1, Atomic::Relaxed);
    }

    /// It was answered, as the statement of this number.
    pub fn is_answered(&self, number: Option<u64>) {
        self.answered.lock().push(number.unwrap_or(0));
    }

    /// A connection is cut without a word.
    pub fn cut_off(&self, client: usize, how: &str) {
        self.world
            .note(format_args!("client {client} is cut off: {how}"));
        let faults = self.scenario.faults;
        let drains = self.scenario.is_told(|order| matches!(order, Order::Drain));
        if !faults.ends_connections() && faults.garbles == 0.0 && !drains {
            self.world.report(Fault::Broken {
                whose: format!("client {client}"),
                how: how.to_owned(),
            });
        }
    }

    /// As [`Scenario::may_refuse`].
    pub fn may_refuse(&self, told: &Failure) -> bool {
        self.scenario.may_refuse(told)
    }

    /// As [`Scenario::may_end`].
    pub fn may_end(&self, told: &Failure, is_open: bool) -> bool {
        self.scenario.may_end(told, is_open)
    }

    /// As [`Scenario::may_keep_out`].
    pub fn may_keep_out(&self, told: &Failure) -> bool {
        self.scenario.may_keep_out(told)
    }

    fn follow(&self, order: &Order) {
        self.world.note(format_args!("the operator: {order:?}"));
        match order {
            Order::Resize(size) => {
                let mut bound = self.bound.lock();
                bound.most = bound.most.max(size.get());
                bound.size = *size;
                self.pool.share(size.get());
            }
            Order::Reconnect => self.pool.reconnect(None),
            Order::Reload(gate) => self.gate.reconfigure(gate),
            Order::Drain => self.registry.give_all(relay::Order::Drain),
        }
    }

    /// Connections within their bound, and none idle while one is waited for.
    fn look_at_pool(&self) -> Judged {
        let counts = self.pool.counts();
        let mut bound = self.bound.lock();
        let size = bound.size.get();
        let unbounded = |what: String| Err(Fault::Unbounded { what });
        if counts.total > bound.most {
            return unbounded(format!("{} connections of {}", counts.total, bound.most));
        }
        bound.most = counts.total.max(size);
        if counts.idle > counts.total {
            return unbounded(format!("{} idle of {}", counts.idle, counts.total));
        }
        let has_room = counts.total < size || counts.total == size && counts.idle > 0;
        if counts.waiting > 0 && has_room {
            let what = format!("{} for room, and {counts:?} of {size}", counts.waiting);
            return Err(Fault::Stuck {
                clients: vec![what],
            });
        }
        if self.scenario.is_of_one_kind && counts.opening > 0 && counts.idle > 0 {
            let what = format!(
                "{} for a login, and {} are idle",
                counts.opening, counts.idle
            );
            return Err(Fault::Stuck {
                clients: vec![what],
            });
        }
        Ok(())
    }
}

impl Living for Arc<Arena> {
    const SERVED_NS_MAX: u64 = 300 * SECOND_NS;
    const GONE_NS_MAX: u64 = 60 * SECOND_NS;

    fn begin(&self) {
        let pool = Arc::clone(&self.pool);
        tokio::spawn(async move { pool.sweep().await });
        for (index, plan) in self.scenario.clients.iter().cloned().enumerate() {
            let arena = Arc::clone(self);
            self.world.note(format_args!(
                "client {index}: {} {:?} {:?}",
                plan.user, plan.startup, plan.path
            ));
            tokio::spawn(async move {
                client::live(Arc::clone(&arena), index, plan).await;
                arena.living.fetch_sub(1, Atomic::Relaxed);
            });
        }
        let arena = Arc::clone(self);
        tokio::spawn(async move {
            for (at_ns, order) in &arena.scenario.orders {
                let now_ns = arena.world.now_ns();
                arena.world.sleep(at_ns.saturating_sub(now_ns)).await;
                arena.follow(order);
            }
        });
    }

    fn look(&self) -> Judged {
        self.look_at_pool()?;
        // What runs may all wait, for connections or for clients.
        let now_ns = self.world.now_ns();
        self.patience
            .look(self.gate.waiting(), self.gate.running(), now_ns)
    }

    fn is_served(&self) -> bool {
        self.living.load(Atomic::Relaxed) == 0
    }

    fn waiting(&self) -> Vec<String> {
        vec![format!(
            "{} clients: {:?}",
            self.living.load(Atomic::Relaxed),
            self.pool.counts()
        )]
    }

    fn left(&self) -> Vec<String> {
        let gate = self.gate.snapshot();
        let counts = self.pool.counts();
        if counts.idle > 0 {
            // The last step: what is idle is closed.
            self.pool.reconnect(None);
        }
        held_of([
            ("sessions", self.registry.open()),
            ("units that wait", gate.waiting),
            ("units that run", gate.running),
            ("sessions that keep a connection", self.pool.pinned()),
            (
                "sessions that wait for a connection",
                counts.waiting + counts.opening,
            ),
            ("connections", self.pool.counts().total),
            ("connections an operator sees", self.pool.servers().len()),
            ("prepared statements", self.pool.statements()),
            ("statements of the server", self.server.busy()),
            ("connections of the server", self.server.open()),
        ])
    }

    fn judge(&self) -> Judged {
        // What the server did is known only once it has finished everything.
        Ok(())
    }

    // Each statement that was answered was executed, and none was executed twice.
    fn judge_empty(&self) -> Judged {
        let twice = self.server.executed_twice();
        let counted = |number: u64, times| Fault::Counted {
            whose: format!("statement {number}"),
            times,
        };
        match twice {
            Some((number, times)) => Err(counted(number, times)),
            None => Ok(()),
        }
    }

    fn counts(&self) -> (usize, usize) {
        (self.answered.lock().len(), self.asked.load(Atomic::Relaxed))
    }
}

/// The users, with the MD5 hashes of their passwords.
fn users() -> Users {
    let line = |user: &str| {
        let hash = md5_of(&[PASSWORD.as_bytes(), user.as_bytes()]);
        format!("\"{user}\" \"md5{hash}\"\n")
    };
    Users::parse(&["ann", "bob"].map(line).concat()).expect("the lines are right")
}

/// The server of a scenario.
pub fn server(world: &Arc<World>, scenario: &Scenario) -> Arc<Server> {
    let delay_ns = (!scenario.has_keepers()).then_some(scenario.path.delay_ns);
    Server::new(world, scenario.faults, delay_ns)
}

/// The machine of a scenario. It can connect only to the server.
pub fn machine(world: &Arc<World>, scenario: &Scenario, server: &Arc<Server>) -> Machine {
    let (server, refusals) = (Arc::clone(server), scenario.faults.refusals);
    let serve = move |_, end| {
        tokio::spawn(Arc::clone(&server).serve(end));
    };
    let peers = Peers {
        serve: Box::new(serve),
        refusals: Box::new(move |_| refusals),
    };
    Machine::new(world, DiskPlan::SOUND, scenario.path, peers)
}
