//! PostgreSQL's side of pooling ([`crate::pool`]). The gate itself authenticates a client (`greeting`). The client
//! gets a connection when its unit is admitted.
//!
//! | part | what it does |
//! |---|---|
//! | `secrets`, `lookup`, `greeting` | authentication of a client |
//! | `login`, `ask` | a connection of the gate's own: login, and a query on it |
//! | `backend` | the state of a connection |
//! | `settings`, `leaving` | a session's settings, what pins it, and when the server must be asked about both |
//! | `prepared` | clients' prepared statements, under names that all connections share |
//! | `pipeline` | the answers that the backend still has to send, and those that the client does not get |
//! | `protocol` | both directions of a session |
//! | `replication` | a client that replicates: a connection of its own beside the pool |
//!
//! Between sessions a connection keeps its settings and prepared statements. The next session gets its own
//! settings, and does not see those statements. A session with other state keeps its connection (is *pinned*)
//! for as long as the server reports that state.

pub(crate) mod ask;
mod backend;
mod entry;
mod greeting;
pub mod leaving;
pub(crate) mod login;
mod lookup;
pub mod own_names;
mod pipeline;
mod prepared;
mod protocol;
mod replication;
mod secrets;
pub mod settings;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::PostgresConfig;
use super::scram;
use crate::Gate;
use crate::cluster::ClusterConfig;
use crate::pool::cancels::{Cancelling, Cancels};
use crate::pool::nodes::Nodes;
use crate::pool::{Common, PoolLimits, Pooling};
use crate::relay::Upstream;
use crate::relay::tls::UpstreamTls;
use backend::Backend;
use entry::Greetings;
use prepared::Table;

pub(super) use entry::{EntryError, identify, open};
pub use login::{Login, md5_of};
pub use lookup::Lookup;
pub(super) use protocol::Pooled;
pub(super) use replication::{Beside, Cancellable, replicate};
pub use secrets::{Stored, Users};

/// The settings of a pool.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// The limits of its size.
    pub limits: PoolLimits,
    /// The users that may use it.
    pub users: Arc<Users>,
    /// The lookup of other users in the database.
    pub lookup: Option<Lookup>,
    /// Several servers; None for the relay's one.
    pub cluster: Option<ClusterConfig>,
}

/// The state that all sessions of a pool share.
#[derive(Debug)]
pub struct Pool {
    common: Common<Backend, Stored>,
    /// TLS towards the servers.
    tls: UpstreamTls,
    /// The lookup of users that are not in the file.
    lookup: Option<Lookup>,
    statements: Arc<Table>,
    greetings: Greetings,
    /// The sessions, by the keys that the gate gave to their clients for cancel requests.
    targets: Mutex<HashMap<Box<[u8]>, Arc<Target>>>,
    /// The secret behind the salts of unknown users.
    secret: [u8; 32],
}

/// The connection that a session has now.
#[derive(Debug, Default)]
struct Target(Mutex<Option<Meant>>);

/// The backend's key of a connection, and the cancel requests under way for it.
#[derive(Debug)]
struct Meant {
    key: Arc<[u8]>,
    cancels: Arc<Cancels>,
    /// The number of its server.
    node: usize,
}

impl Pool {
    /// A pool without connections.
    pub fn new(config: PoolConfig, relay: &PostgresConfig, gate: &Gate) -> Arc<Self> {
        let nodes = Nodes::new(
            config.cluster,
            relay.relay.upstream.clone(),
            &config.limits,
            gate,
            &relay.relay.registry,
            |upstream| Backend::to(relay, upstream),
        );
        Arc::new(Self {
            common: Common::new(nodes, config.limits, config.users, gate),
            tls: relay.relay.upstream_tls.clone(),
            lookup: config.lookup,
            statements: Arc::default(),
            greetings: Greetings::default(),
            targets: Mutex::default(),
            secret: scram::random(),
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

    /// The backend's key of the connection of the session that a cancel request names, and its server. Also marks the
    /// request as under way. None if the session is unknown or has no connection.
    pub(super) fn target_of(&self, key: &[u8]) -> Option<(Arc<[u8]>, Upstream, Cancelling)> {
        let target = self.targets.lock().get(key).cloned()?;
        let current = target.0.lock();
        let meant = current.as_ref()?;
        let upstream = self.common.nodes.upstream(meant.node).clone();
        Some((Arc::clone(&meant.key), upstream, meant.cancels.begin()))
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
