//! MySQL's and MariaDB's side of pooling ([`crate::pool`]). The gate itself authenticates a client (`greeting`). The
//! client gets a connection when its unit is admitted.
//!
//! | part | what it does |
//! |---|---|
//! | `secrets`, `greeting`, `entry` | authentication of a client, and the start of its session |
//! | `arrived` | a session that comes from another process |
//! | `backend` | a connection of the gate's own, and its state |
//! | `track` | the changes that the server reports |
//! | `settings`, `leaving` | a session's settings, and what pins it |
//! | `prepared`, `execute`, `longer` | prepared statements that sessions share, and their executions |
//! | `kill` | KILL by the numbers that clients were given |
//! | `protocol` | both directions of a session |
//!
//! Between sessions a connection keeps its database and variables. The next session gets its own instead. A session
//! with other state keeps its connection (is *pinned*) until that state is gone, or until the session ends or resets
//! itself. In the last two cases the connection is reset (`COM_RESET_CONNECTION`).

mod arrived;
mod backend;
mod entry;
mod execute;
mod greeting;
mod kill;
pub mod leaving;
mod longer;
mod prepared;
mod protocol;
mod secrets;
pub mod settings;
pub mod track;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::Gate;
use crate::cluster::ClusterConfig;
use crate::mysql::login::Secret;
use crate::pool::cancels::Cancels;
use crate::pool::nodes::Nodes;
use crate::pool::{Common, PoolLimits, Pooling};
use crate::relay::RelayConfig;
use crate::relay::tls::UpstreamTls;
use backend::{Backend, Kind};
use greeting::Server;
use prepared::Table;

pub(super) use arrived::go_on;
pub(super) use entry::open;
pub(super) use kill::serve_passed_on;
pub(super) use protocol::Pooled;
pub use secrets::{Stored, Users};

/// The bit that all numbers of clients have. They are far above the servers' numbers, which start at 1.
const ID_BIT: u32 = 0x8000_0000;
/// The most places that are remembered.
const PLACES_MAX: usize = 1024;

/// The settings of a pool.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// The limits of its size.
    pub limits: PoolLimits,
    /// The users that may use it.
    pub users: Arc<Users>,
    /// Several servers; None for the relay's one.
    pub cluster: Option<ClusterConfig>,
}

/// The state that all sessions of a pool share.
#[derive(Debug)]
pub struct Pool {
    common: Common<Backend, Stored>,
    /// TLS towards the servers.
    tls: UpstreamTls,
    /// The server's properties, from its greeting.
    server: Mutex<Option<Server>>,
    /// Kinds and databases in which a session could begin.
    places: Mutex<HashSet<(Arc<Kind>, String)>>,
    statements: Arc<Table>,
    next_id: AtomicU32,
    /// The sessions, by the numbers that their clients got.
    targets: Mutex<HashMap<u32, Arc<Target>>>,
    /// The secret behind the passwords of unknown users.
    secret: [u8; 32],
}

/// A session's connection.
#[derive(Debug)]
struct Meant {
    /// Its number at the server.
    thread_id: u32,
    /// The requests for it under way.
    cancels: Arc<Cancels>,
    /// The number of its server.
    node: usize,
}

/// A session that KILL can end.
#[derive(Debug)]
struct Target {
    user: String,
    /// What its connections are opened with.
    secret: Secret,
    /// The connection that the session has now.
    current: Mutex<Option<Meant>>,
}

impl Pool {
    /// A pool without connections.
    pub fn new(config: PoolConfig, relay: &RelayConfig, gate: &Gate) -> Arc<Self> {
        let nodes = Nodes::new(
            config.cluster,
            relay.upstream.clone(),
            &config.limits,
            gate,
            &relay.registry,
            |upstream| Backend::to(relay, upstream),
        );
        Arc::new(Self {
            common: Common::new(nodes, config.limits, config.users, gate),
            tls: relay.upstream_tls.clone(),
            server: Mutex::default(),
            places: Mutex::default(),
            statements: Arc::default(),
            // Another process may hand sessions over that keep their numbers.
            next_id: AtomicU32::new(u32::from_le_bytes(crate::postgres::scram::random())),
            targets: Mutex::default(),
            secret: crate::postgres::scram::random(),
        })
    }

    /// Closes connections that have been idle for too long. Never returns.
    pub async fn sweep(&self) {
        self.common.sweep().await;
    }

    /// Asks several servers what they are, for ever, and follows what they say. Ends at once where there is one.
    pub async fn watch(self: Arc<Self>) {
        self.common.watch(&self.tls, Stored::login).await;
    }

    /// The next number for a session, of those that none has.
    fn new_id(&self) -> u32 {
        loop {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed) | ID_BIT;
            if !self.targets.lock().contains_key(&id) {
                return id;
            }
        }
    }
}

impl Pooling for Pool {
    type Backend = Backend;
    type Secret = Stored;

    fn common(&self) -> &Common<Backend, Stored> {
        &self.common
    }

    fn shared_statements(&self) -> usize {
        self.statements.len()
    }
}
