//! MySQL's and MariaDB's side of pooling ([`crate::pool`]): a client is known by the gate itself (`greeting`), and gets a
//! connection with its admission.
//!
//! | part | what it does |
//! |---|---|
//! | `secrets`, `greeting`, `entry` | who a client is, and what it begins with |
//! | `backend` | a connection of the gate's own, and what is known of it |
//! | `track` | what the server says of changes |
//! | `settings`, `leaving` | what a session has set, and what ties it to its connection |
//! | `kill` | KILL by the numbers that clients were given |
//! | `protocol` | both directions of a session |
//!
//! What is kept between sessions: a connection's database and variables, which the next session is given or does
//! not see. A session that has more than that keeps its connection (is *pinned*) until it is gone, or until the
//! session ends or resets itself; the connection then forgets all (`COM_RESET_CONNECTION`).

mod backend;
mod entry;
mod greeting;
mod kill;
pub mod leaving;
mod protocol;
mod secrets;
pub mod settings;
pub mod track;

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::Gate;
use crate::pool::cancels::Cancels;
use crate::pool::{
    Counts, Pins, PoolLimits, PoolMode, Reload, ServerView, Shown, UsersError, sweep_every,
};
use crate::relay::RelayConfig;
use backend::{Backend, Connections, Kind};
use greeting::Server;

pub(super) use entry::open;
pub use secrets::Users;

/// The first number that a client gets: far from those that servers count up from 1.
const FIRST_ID: u32 = 0x8000_0000;
/// Places to begin that are remembered as there.
const PLACES_MAX: usize = 1024;

/// How a pool works.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// How large it is.
    pub limits: PoolLimits,
    /// Who may use it.
    pub users: Arc<Users>,
}

/// What all sessions of a pool share.
#[derive(Debug)]
pub struct Pool {
    config: PoolConfig,
    /// Exchanged at a reload.
    users: RwLock<Arc<Users>>,
    connections: Arc<Connections>,
    /// What the server has said of itself.
    server: Mutex<Option<Server>>,
    /// Databases that somebody could begin in.
    places: Mutex<HashSet<(Arc<Kind>, String)>>,
    next_id: AtomicU32,
    /// Sessions by the numbers that they were given.
    targets: Mutex<HashMap<u32, Arc<Target>>>,
    /// Sessions that keep their connection.
    pins: Arc<Pins>,
    /// Makes the passwords of users that are not there.
    secret: [u8; 32],
}

/// What KILL meets.
#[derive(Debug)]
struct Target {
    user: String,
    /// The connection that the session has now: its number at the server, and the requests for it under way.
    current: Mutex<Option<(u32, Arc<Cancels>)>>,
}

impl Pool {
    /// A pool without connections.
    pub fn new(config: PoolConfig, relay: &RelayConfig, gate: &Gate) -> Arc<Self> {
        let limits = config.limits;
        Arc::new(Self {
            connections: Connections::new(Backend(relay.clone()), &limits),
            server: Mutex::default(),
            places: Mutex::default(),
            next_id: AtomicU32::new(FIRST_ID),
            targets: Mutex::default(),
            pins: Pins::new(limits.mode, limits.size, gate),
            secret: crate::postgres::scram::random(),
            users: RwLock::new(Arc::clone(&config.users)),
            config,
        })
    }

    /// Who may use it.
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

    /// A number that no session has.
    fn new_id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed) | FIRST_ID
    }

    fn is_of_transactions(&self) -> bool {
        self.config.limits.mode == PoolMode::Transaction
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

    /// A session with prepared statements keeps its connection: none are shared.
    fn statements(&self) -> usize {
        0
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
