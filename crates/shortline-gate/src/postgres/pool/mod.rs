//! PostgreSQL's side of pooling ([`crate::pool`]): a client is known by the gate itself (`greeting`), and gets a
//! connection with its admission.
//!
//! | part | what it does |
//! |---|---|
//! | `secrets`, `lookup`, `greeting` | who a client is |
//! | `login`, `ask` | a connection of the gate's own: opened, and asked something |
//! | `backend` | what is known of a connection |
//! | `settings`, `leaving` | what a session has set, and what ties it to its connection; when the server is asked |
//! | `prepared` | statements that clients have prepared, by names that all connections share |
//! | `pipeline` | what the backend still has to answer, and what the client does not see of it |
//! | `protocol` | both directions of a session |
//!
//! What is kept between sessions: a connection's settings and prepared statements, which the next session is
//! given or does not see. A session that has more than that keeps its connection (is *pinned*) as long as the
//! server says so.

pub(crate) mod ask;
mod backend;
mod entry;
mod greeting;
pub mod leaving;
pub(crate) mod login;
mod lookup;
mod pipeline;
mod prepared;
mod protocol;
mod secrets;
pub mod settings;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::PostgresConfig;
use super::scram;
use crate::Gate;
use crate::pool::cancels::{Cancelling, Cancels};
use crate::pool::{
    Counts, Pins, PoolLimits, PoolMode, Reload, ServerView, Shown, UsersError, sweep_every,
};
use backend::{Backend, Connections};
use entry::Greetings;
use prepared::Table;

pub(super) use entry::{EntryError, identify, open};
pub use lookup::Lookup;
pub(super) use protocol::Pooled;
pub use secrets::Users;

/// How a pool works.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// How large it is.
    pub limits: PoolLimits,
    /// Who may use it.
    pub users: Arc<Users>,
    /// Where others are looked up.
    pub lookup: Option<Lookup>,
}

/// What all sessions of a pool share.
#[derive(Debug)]
pub struct Pool {
    config: PoolConfig,
    /// Exchanged at a reload.
    users: RwLock<Arc<Users>>,
    connections: Arc<Connections>,
    statements: Arc<Table>,
    greetings: Greetings,
    /// Whose connection a cancel request means, by the key that the gate gave out.
    targets: Mutex<HashMap<Box<[u8]>, Arc<Target>>>,
    /// Sessions that keep their connection.
    pins: Arc<Pins>,
    /// Makes the salts of users that are not there.
    secret: [u8; 32],
}

/// The connection that a session has now.
#[derive(Debug, Default)]
struct Target(Mutex<Option<Meant>>);

/// The backend's key of a connection, and the requests for it that are under way.
type Meant = (Arc<[u8]>, Arc<Cancels>);

impl Pool {
    /// A pool without connections.
    pub fn new(config: PoolConfig, relay: &PostgresConfig, gate: &Gate) -> Arc<Self> {
        let limits = config.limits;
        Arc::new(Self {
            connections: Connections::new(Backend(relay.clone()), &limits),
            statements: Arc::default(),
            greetings: Greetings::default(),
            targets: Mutex::default(),
            pins: Pins::new(limits.mode, limits.size, gate),
            secret: scram::random(),
            users: RwLock::new(Arc::clone(&config.users)),
            config,
        })
    }

    /// Who may use it, as far as the file says.
    fn users(&self) -> Arc<Users> {
        Arc::clone(&self.users.read())
    }

    /// Closes what has been idle for too long, for ever.
    pub(super) async fn sweep(&self) {
        let every = sweep_every(self.config.limits.idle_time_max);
        loop {
            tokio::time::sleep(every).await;
            self.connections.sweep();
        }
    }

    /// The key that the backend has for whatever session a cancel request names, and a mark that the request
    /// is under way.
    pub(super) fn target_of(&self, key: &[u8]) -> Option<(Arc<[u8]>, Cancelling)> {
        let target = self.targets.lock().get(key).cloned()?;
        let current = target.0.lock();
        let (key, cancels) = current.as_ref()?;
        Some((Arc::clone(key), cancels.begin()))
    }
}

impl Shown for Pool {
    fn mode(&self) -> PoolMode {
        self.config.limits.mode
    }

    fn size(&self) -> usize {
        self.connections.size()
    }

    fn counts(&self) -> Counts {
        self.connections.counts()
    }

    fn pinned(&self) -> usize {
        self.pins.pinned()
    }

    fn statements(&self) -> usize {
        self.statements.len()
    }

    fn servers(&self) -> Vec<ServerView> {
        self.connections.servers().views()
    }

    fn lent(&self) -> u64 {
        self.connections.servers().lent()
    }

    fn open(&self, database: Option<&str>) -> usize {
        self.connections.servers().count(database).0
    }

    fn reconnect(&self, database: Option<&str>) {
        self.connections.close(database);
    }

    fn is_reconnecting(&self, database: Option<&str>) -> bool {
        self.connections.servers().count(database).1
    }

    fn reload(&self, size: NonZeroUsize, users: &Path) -> Result<Reload<'_>, UsersError> {
        let users = Arc::new(Users::read(users)?);
        Ok(Box::new(move || {
            *self.users.write() = users;
            self.connections.resize(size.get());
            self.pins.resize(size);
        }))
    }
}
