//! Several servers behind one gate: a primary and its replicas (`--upstream` with more than one address).
//!
//! | part | what it does |
//! |---|---|
//! | `choice` | which server is the primary, and which replica a read goes to; without I/O |
//! | `reads` | whether a transaction surely only reads |
//! | `positions` | how far a replica is behind, by positions in the log |
//! | `state` | what the servers said, and what follows from it; without I/O |
//! | `watch` | asks each of them what it is, again and again |
//! | `postgres`, `mysql` | the questions |
//!
//! A [`Cluster`] of one server is never asked: that one is the primary.

pub mod choice;
pub(crate) mod mysql;
mod positions;
pub(crate) mod postgres;
mod reads;
mod state;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch as channel};
use tokio::time::{Instant, timeout_at};

use crate::relay::Upstream;
use choice::{Left, Role};
use state::State;

pub use state::{Behind, Said};
pub(crate) use watch::{Asker, Looks, watch};

/// Servers behind one gate at most.
pub const SERVERS_MAX: usize = 32;

/// How several servers are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// All of them, two at least.
    pub servers: Vec<Upstream>,
    /// Who asks them what they are: a user of the pool's file.
    pub user: String,
    /// How often each is asked.
    pub every: Duration,
    /// How long an answer may take, the connection included.
    pub answer_time_max: Duration,
    /// A replica that is further behind gets nothing.
    pub lag_max: Duration,
    /// For so long transactions wait while no primary is known.
    pub primary_wait_max: Duration,
}

/// All servers behind a gate, and what is known of them.
#[derive(Debug)]
pub struct Cluster {
    servers: Box<[Upstream]>,
    /// None for a single server.
    config: Option<ClusterConfig>,
    state: Mutex<State>,
    primary: channel::Sender<Option<usize>>,
    /// A server is to be asked at once.
    hurry: Box<[Notify]>,
}

/// No server takes writes, and none has for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no server has been known as the primary for {} ms", limit.as_millis())]
pub struct NoPrimary {
    limit: Duration,
}

/// A server as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// Where it listens.
    pub address: String,
    /// What it said it was; `None` if it is not there.
    pub role: Option<Role>,
    /// Writes go to it.
    pub is_written: bool,
    /// Reads may go to it as a replica.
    pub is_read: bool,
    /// Why it does not answer, if it does not.
    pub problem: Option<Arc<str>>,
}

impl Cluster {
    /// One server, which is the primary whatever it says.
    pub fn of_one(upstream: Upstream) -> Arc<Self> {
        Self::with(Box::new([upstream]), None, Some(0))
    }

    /// Several, of which nothing is known yet.
    pub fn new(config: ClusterConfig) -> Arc<Self> {
        let servers = config.servers.clone().into_boxed_slice();
        Self::with(servers, Some(config), None)
    }

    fn with(
        servers: Box<[Upstream]>,
        config: Option<ClusterConfig>,
        primary: Option<usize>,
    ) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::new(servers.len(), primary, Instant::now())),
            primary: channel::Sender::new(primary),
            hurry: servers.iter().map(|_| Notify::new()).collect(),
            servers,
            config,
        })
    }

    /// Where each of them listens.
    pub fn servers(&self) -> &[Upstream] {
        &self.servers
    }

    /// How they are watched; None for a single one.
    pub fn config(&self) -> Option<&ClusterConfig> {
        self.config.as_ref()
    }

    /// The server that takes writes, if it is known.
    pub fn primary(&self) -> Option<usize> {
        *self.primary.borrow()
    }

    /// Hears of each change of the primary.
    pub fn changes(&self) -> channel::Receiver<Option<usize>> {
        self.primary.subscribe()
    }

    /// The server that takes writes, as soon as it is known.
    ///
    /// # Errors
    /// [`NoPrimary`]: none has been known for as long as is waited for one.
    pub async fn primary_in_time(&self) -> Result<usize, NoPrimary> {
        let mut primary = self.primary.subscribe();
        let limit = self.config.as_ref();
        let limit = limit.map_or(Duration::ZERO, |config| config.primary_wait_max);
        let until = self.state.lock().lost() + limit;
        // The sender is here: this never fails.
        match timeout_at(until, primary.wait_for(Option::is_some)).await {
            Ok(Ok(primary)) => primary.ok_or(NoPrimary { limit }),
            _ => self.primary().ok_or(NoPrimary { limit }),
        }
    }

    /// The replica for a read that there is no reason to send elsewhere.
    pub fn replica(&self, left: impl Fn(usize) -> Left) -> Option<usize> {
        let lag_max = self.config.as_ref()?.lag_max;
        choice::replica(self.state.lock().members(), lag_max, left)
    }

    /// A server could not be reached just now: it is asked at once. A replica gets nothing before it has answered.
    pub fn doubt(&self, at: usize) {
        self.state.lock().doubt(at);
        self.hurry[at].notify_one();
    }

    /// A server said what it is, or did not answer.
    fn note(&self, at: usize, said: Result<Said, String>, now: Instant) {
        let (events, primary) = {
            let mut state = self.state.lock();
            (state.note(at, said, now), state.primary())
        };
        for event in events {
            event.log(&self.servers);
        }
        self.primary.send_if_modified(|known| {
            let is_other = *known != primary;
            *known = primary;
            is_other
        });
    }

    /// All of them as they are known now.
    pub fn states(&self) -> Vec<ServerState> {
        let lag_max = self.config.as_ref().map_or(Duration::ZERO, |of| of.lag_max);
        let state = self.state.lock();
        let members = state.members().iter().zip(&self.servers).enumerate();
        let states = members.map(|(at, (member, server))| ServerState {
            address: server.to_string(),
            role: member.role,
            is_written: state.primary() == Some(at),
            is_read: member.may_read(lag_max),
            problem: state.problem(at),
        });
        states.collect()
    }
}

impl ServerState {
    /// Its role in a word.
    pub fn role_name(&self) -> &'static str {
        state::role_name(self.role)
    }

    /// How far it is behind, if it is a replica and that is known.
    pub fn lag(&self) -> Option<Duration> {
        match self.role {
            Some(Role::Replica { lag }) => lag,
            _ => None,
        }
    }
}

/// Which servers these are.
impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, server) in self.servers.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{server}")?;
        }
        Ok(())
    }
}
