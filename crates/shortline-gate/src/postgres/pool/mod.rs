//! Pooling: many clients on few connections of the backend (`--pool`).
//!
//! A client is known by the gate itself (`greeting`) and has no connection until it begins a unit of work.
//! Then admission decides whose turn it is, and hands over a connection with it: no more units run than there
//! are connections ([`shortline_sched::admission::AdmissionConfig::running_max`]). At the end of its transaction the
//! connection goes back. So a crowd of clients costs the backend nothing, and who waits, waits in the order of
//! the gate.
//!
//! | part | what it does |
//! |---|---|
//! | `users`, `lookup`, `greeting` | who a client is |
//! | `login`, `ask` | a connection of the gate's own: opened, and asked something |
//! | `connections`, `servers` | all of them: idle, lent, waited for; as an operator sees them |
//! | `settings`, `leaving` | what a session has set, and what ties it to its connection; when the server is asked |
//! | `prepared` | statements that clients have prepared, by names that all connections share |
//! | `pipeline` | what the backend still has to answer, and what the client does not see of it |
//! | `protocol` | both directions of a session |
//!
//! What is kept between sessions: a connection's settings and prepared statements, which the next session is
//! given or does not see. A session that has more than that keeps its connection (is *pinned*) as long as the
//! server says so.

mod ask;
mod cancels;
mod connections;
mod entry;
mod greeting;
pub mod leaving;
mod login;
mod lookup;
mod pipeline;
mod prepared;
mod protocol;
mod servers;
pub mod settings;
mod users;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use super::PostgresConfig;
use super::scram;
use crate::Gate;
use cancels::{Cancelling, Cancels};
use connections::Connections;
use entry::Greetings;
use prepared::Table;

pub use connections::Counts;
pub(super) use entry::{EntryError, identify, open};
pub use lookup::Lookup;
pub(super) use protocol::Pooled;
pub use servers::ServerView;
pub use users::{Users, UsersError};

/// How long connections are lent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolMode {
    /// For a client's whole session, from its first statement on.
    Session,
    /// For a transaction.
    Transaction,
}

/// How a pool works.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// How long connections are lent for.
    pub mode: PoolMode,
    /// Connections to the backend at most, of all users and databases together.
    pub size: NonZeroUsize,
    /// A connection that nobody has used for so long is closed.
    pub idle_time_max: Duration,
    /// How long a unit that was admitted waits for a connection.
    pub wait_max: Duration,
    /// Prepared statements of a connection.
    pub statements_max: usize,
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
    kept: AtomicUsize,
    /// Of these, those without a unit.
    pinned: AtomicUsize,
    /// Makes the salts of users that are not there.
    secret: [u8; 32],
    gate: Gate,
}

/// A session keeps its connection as long as this lives.
#[derive(Debug)]
struct Keeping(Arc<Pool>);

impl Drop for Keeping {
    fn drop(&mut self) {
        self.0.kept.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The connection that a session has now.
#[derive(Debug, Default)]
struct Target(Mutex<Option<Meant>>);

/// The backend's key of a connection, and the requests for it that are under way.
type Meant = (Arc<[u8]>, Arc<Cancels>);

impl Pool {
    /// A pool without connections.
    pub fn new(config: PoolConfig, relay: &PostgresConfig, gate: &Gate) -> Arc<Self> {
        let size = config.size.get();
        Arc::new(Self {
            connections: Connections::new(
                relay.clone(),
                size,
                config.idle_time_max,
                config.wait_max,
            ),
            statements: Arc::default(),
            greetings: Greetings::default(),
            targets: Mutex::default(),
            kept: AtomicUsize::new(0),
            pinned: AtomicUsize::new(0),
            secret: scram::random(),
            gate: gate.clone(),
            users: RwLock::new(Arc::clone(&config.users)),
            config,
        })
    }

    /// How long connections are lent for.
    pub fn mode(&self) -> PoolMode {
        self.config.mode
    }

    /// Connections to the backend at most.
    pub fn size(&self) -> usize {
        self.connections.size()
    }

    /// Goes on with so many connections and these users. Those that are lent stay so until they are given back.
    pub fn reload(&self, size: NonZeroUsize, users: Users) {
        *self.users.write() = Arc::new(users);
        self.connections.resize(size.get());
        self.tell_places(self.pinned());
    }

    /// Who may use it, as far as the file says.
    fn users(&self) -> Arc<Users> {
        Arc::clone(&self.users.read())
    }

    /// Its connections now.
    pub fn counts(&self) -> Counts {
        self.connections.counts()
    }

    /// Each of its connections now.
    pub fn servers(&self) -> Vec<ServerView> {
        self.connections.servers().views()
    }

    /// How often one was lent to a session.
    pub fn lent(&self) -> u64 {
        self.connections.servers().lent()
    }

    /// How many connections to a database, or to all, are open.
    pub fn open(&self, database: Option<&str>) -> usize {
        self.connections.servers().count(database).0
    }

    /// Closes the connections to a database, or all: those that are lent, once they are given back.
    pub fn reconnect(&self, database: Option<&str>) {
        self.connections.close(database);
    }

    /// Whether some that [`Self::reconnect`] closes are not given back yet.
    pub fn is_reconnecting(&self, database: Option<&str>) -> bool {
        self.connections.servers().count(database).1
    }

    /// Sessions that keep a connection between two units.
    pub fn pinned(&self) -> usize {
        self.pinned.load(Ordering::Relaxed)
    }

    /// Statements that are prepared by somebody.
    pub fn statements(&self) -> usize {
        self.statements.len()
    }

    /// Closes what has been idle for too long, for ever.
    pub(super) async fn sweep(&self) {
        let every =
            (self.config.idle_time_max / 4).clamp(Duration::from_secs(1), Duration::from_secs(60));
        loop {
            tokio::time::sleep(every).await;
            self.connections.sweep();
        }
    }

    /// A session keeps its connection without a unit from now on, or no more: admission is told how many
    /// units can run.
    fn set_pinned(&self, is_pinned: bool) {
        if self.config.mode != PoolMode::Transaction {
            return;
        }
        let pinned = match is_pinned {
            true => self.pinned.fetch_add(1, Ordering::AcqRel) + 1,
            false => self.pinned.fetch_sub(1, Ordering::AcqRel) - 1,
        };
        self.tell_places(pinned);
    }

    /// Tells admission how many units can run, where so many sessions keep a connection without one.
    fn tell_places(&self, pinned: usize) {
        if self.config.mode != PoolMode::Transaction {
            return;
        }
        let left = self.size().saturating_sub(pinned);
        // One at least: what it lets in waits for a connection.
        self.gate
            .set_running_max(NonZeroUsize::new(left).unwrap_or(NonZeroUsize::MIN));
    }

    /// One more session keeps its connection, if one is left for all others.
    fn keep(self: &Arc<Self>) -> Option<Keeping> {
        let size = self.size();
        let more = |kept| (kept + 1 < size).then_some(kept + 1);
        let kept = self
            .kept
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        kept.ok().map(|_| Keeping(Arc::clone(self)))
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
