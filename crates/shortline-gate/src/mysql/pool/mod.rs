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
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::Gate;
use crate::pool::cancels::Cancels;
use crate::pool::{Common, PoolLimits, Pooling};
use crate::relay::RelayConfig;
use backend::{Backend, Kind};
use greeting::Server;

pub(super) use entry::open;
pub use secrets::{Stored, Users};

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
    common: Common<Backend, Stored>,
    /// What the server has said of itself.
    server: Mutex<Option<Server>>,
    /// Databases that somebody could begin in.
    places: Mutex<HashSet<(Arc<Kind>, String)>>,
    next_id: AtomicU32,
    /// Sessions by the numbers that they were given.
    targets: Mutex<HashMap<u32, Arc<Target>>>,
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
        let backend = Backend(relay.clone());
        Arc::new(Self {
            common: Common::new(backend, config.limits, config.users, gate),
            server: Mutex::default(),
            places: Mutex::default(),
            next_id: AtomicU32::new(FIRST_ID),
            targets: Mutex::default(),
            secret: crate::postgres::scram::random(),
        })
    }

    /// Closes what has been idle for too long, for ever.
    pub(super) async fn sweep(&self) {
        self.common.sweep().await;
    }

    /// A number that no session has.
    fn new_id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed) | FIRST_ID
    }
}

impl Pooling for Pool {
    type Backend = Backend;
    type Secret = Stored;

    fn common(&self) -> &Common<Backend, Stored> {
        &self.common
    }

    /// A session with prepared statements keeps its connection: none are shared.
    fn shared_statements(&self) -> usize {
        0
    }
}
