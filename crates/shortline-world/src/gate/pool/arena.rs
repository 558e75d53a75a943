//! The pool, its clients and its server together, and what must hold of them at every moment.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering as Atomic};

use parking_lot::Mutex;
use shortline_base::world::{Boxed, Stream};
use shortline_gate::Gate;
use shortline_gate::pool::{PoolLimits, Shown};
use shortline_gate::relay::{self, Registry, Upstream};

use super::super::arena::{PORT, Patience, open_connection};
use super::roster::Roster;
use super::scenario::{Order, Scenario};
use super::server::Server;
use crate::machine::{Machine, Peers};
use crate::network::{End, Path};
use crate::scenario::DiskPlan;
use crate::verdict::Fault;
use crate::world::World;
use crate::{Judged, Living, held_of};

const SECOND_NS: u64 = 1_000_000_000;

/// Serves the connection of a client at this address.
pub type Serve = Box<dyn Fn(Box<dyn Stream>, SocketAddr) -> Boxed<()> + Send + Sync>;

/// A gate with a pool.
pub struct Door {
    /// Serves a client's connection.
    pub serve: Serve,
    /// Closes connections that have been idle for too long.
    pub sweep: Boxed<()>,
    /// The pool.
    pub pool: Arc<dyn Shown>,
    /// Its sessions.
    pub registry: Arc<Registry>,
}

/// A client's life.
pub struct Life {
    /// What it is like, in a line.
    pub described: String,
    /// Lives it, as the client of this index.
    pub live: Box<dyn FnOnce(Arc<Arena>, usize) -> Boxed<()> + Send>,
}

/// Everything; see the module's text.
pub struct Arena {
    /// Time.
    pub world: Arc<World>,
    /// What may go wrong in it.
    pub scenario: Scenario,
    serve: Serve,
    pool: Arc<dyn Shown>,
    registry: Arc<Registry>,
    gate: Gate,
    server: Arc<Server>,
    /// What is to be started.
    beginnings: Mutex<Option<(Boxed<()>, Vec<Life>)>>,
    connections: AtomicU64,
    living: AtomicUsize,
    asked: AtomicUsize,
    answered: Mutex<Vec<u64>>,
    patience: Patience,
    bound: Mutex<Bound>,
    /// What clients know of each other.
    pub roster: Roster,
}

/// The pool's size, and how many connections it may have while it has not yet come down to it.
struct Bound {
    size: NonZeroUsize,
    most: usize,
}

impl Arena {
    /// The arena of a scenario, before anybody has come.
    pub fn new(
        world: &Arc<World>,
        scenario: Scenario,
        server: Arc<Server>,
        door: impl FnOnce(PoolLimits, &Gate) -> Door,
        lives: Vec<Life>,
    ) -> Arc<Self> {
        let gate = Gate::new(scenario.gate.clone());
        let door = door(scenario.limits, &gate);
        let size = scenario.limits.size;
        Arc::new(Self {
            world: Arc::clone(world),
            living: AtomicUsize::new(lives.len()),
            roster: Roster::of(lives.len()),
            serve: door.serve,
            pool: door.pool,
            registry: door.registry,
            gate,
            server,
            beginnings: Mutex::new(Some((door.sweep, lives))),
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
        open_connection(&self.world, &self.connections, client, path, &self.serve).await
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
        if !self.scenario.may_cut_off() {
            self.world.report(Fault::Broken {
                whose: format!("client {client}"),
                how: how.to_owned(),
            });
        }
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
        // Whoever runs has a connection, or waits for one.
        let (lent, running) = (counts.total - counts.idle, self.gate.running());
        if running > lent + counts.waiting {
            return unbounded(format!("{running} units that run, and {counts:?}"));
        }
        if self.pool.pinned() > lent {
            let pinned = self.pool.pinned();
            return unbounded(format!("{pinned} sessions that keep one, and {counts:?}"));
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
        let Some((sweep, lives)) = self.beginnings.lock().take() else {
            return;
        };
        tokio::spawn(sweep);
        for (index, life) in lives.into_iter().enumerate() {
            let arena = Arc::clone(self);
            self.world
                .note(format_args!("client {index}: {}", life.described));
            tokio::spawn(async move {
                (life.live)(Arc::clone(&arena), index).await;
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

/// The server of a scenario.
pub fn server(world: &Arc<World>, scenario: &Scenario) -> Arc<Server> {
    let delay_ns = (!scenario.has_keepers).then_some(scenario.path.delay_ns);
    Server::new(world, scenario.faults, delay_ns)
}

/// The machine of a scenario. It can connect only to the server, whose connections `serve` serves.
pub fn machine<S: Future<Output = ()> + Send + 'static>(
    world: &Arc<World>,
    scenario: &Scenario,
    server: &Arc<Server>,
    serve: impl Fn(Arc<Server>, End) -> S + Send + Sync + 'static,
) -> Machine {
    let (server, refusals) = (Arc::clone(server), scenario.faults.refusals);
    let serve = move |_, end| {
        tokio::spawn(serve(Arc::clone(&server), end));
    };
    let peers = Peers {
        serve: Box::new(serve),
        refusals: Box::new(move |_| refusals),
    };
    Machine::new(world, DiskPlan::SOUND, scenario.path, peers)
}

/// The server, as the gate finds it.
pub fn upstream() -> Upstream {
    Upstream {
        host: "database".to_owned(),
        port: PORT,
    }
}
