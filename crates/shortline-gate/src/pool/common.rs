//! The common part of all protocols' pools, and an operator's view of it.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;

use super::nodes::{NodeView, Nodes};
use super::users::{Stored, Users};
use super::{Backend, Counts, Pins, PoolLimits, PoolMode, Reload, ServerView, Shown, UsersError};
use crate::Gate;
use crate::classify::Terms;
use crate::cluster::{Asker, Looks};
use crate::relay::tls::UpstreamTls;

/// The part of a pool that does not depend on the protocol.
pub struct Common<B: Backend, S> {
    /// Its settings.
    pub limits: PoolLimits,
    /// The servers, and the connections to them.
    pub nodes: Arc<Nodes<B>>,
    /// The sessions that keep their connection.
    pub pins: Arc<Pins>,
    /// Replaced at a reload.
    users: Arc<RwLock<Arc<Users<S>>>>,
}

/// A protocol's pool.
pub trait Pooling: fmt::Debug + Send + Sync {
    /// Opens connections.
    type Backend: Backend;
    /// The stored form of a user's password.
    type Secret: Stored + Send + Sync;

    /// The common part.
    fn common(&self) -> &Common<Self::Backend, Self::Secret>;

    /// The number of prepared statements that sessions share.
    fn shared_statements(&self) -> usize;
}

impl<B: Backend, S> Common<B, S> {
    /// A pool of `gate`, without connections.
    pub fn new(nodes: Nodes<B>, limits: PoolLimits, users: Arc<Users<S>>, gate: &Gate) -> Self {
        Self {
            nodes: Arc::new(nodes),
            pins: Pins::new(limits.mode, limits.size, gate),
            users: Arc::new(RwLock::new(users)),
            limits,
        }
    }

    /// The users in the file of users.
    pub fn users(&self) -> Arc<Users<S>> {
        Arc::clone(&self.users.read())
    }

    /// Asks several servers what they are, for ever, and follows what they say. Ends at once where there is one.
    pub(crate) async fn watch<L>(&self, tls: &UpstreamTls, login: fn(&S) -> Option<L>)
    where
        Asker<L>: Looks,
        S: Stored + Send + Sync + 'static,
    {
        let Some(config) = self.nodes.cluster().config() else {
            return;
        };
        let (users, user) = (Arc::clone(&self.users), config.user.clone());
        let asker = Asker {
            tls: tls.clone(),
            user: config.user.clone(),
            login: Box::new(move || users.read().get(&user).and_then(login)),
        };
        self.nodes.watch(asker).await;
    }

    /// Whether a client with these terms is lent connections for a transaction at a time. A pool of sessions lends to all
    /// for sessions.
    pub fn lends_for_transactions(&self, terms: &Terms) -> bool {
        self.limits.mode == PoolMode::Transaction && terms.pool != Some(PoolMode::Session)
    }

    /// Closes connections that have been idle for too long. Never returns.
    pub async fn sweep(&self) {
        let every =
            (self.limits.idle_time_max / 4).clamp(Duration::from_secs(1), Duration::from_secs(60));
        loop {
            tokio::time::sleep(every).await;
            for node in self.nodes.iter() {
                node.connections.sweep();
            }
        }
    }
}

/// Without the users' secrets.
impl<B: Backend, S> fmt::Debug for Common<B, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Common")
            .field("limits", &self.limits)
            .field("nodes", &self.nodes)
            .field("pins", &self.pins)
            .finish_non_exhaustive()
    }
}

impl<P: Pooling> Shown for P {
    fn mode(&self) -> PoolMode {
        self.common().limits.mode
    }

    fn size(&self) -> usize {
        self.common().nodes.connections(0).size()
    }

    fn counts(&self) -> Counts {
        self.common().nodes.counts()
    }

    fn pinned(&self) -> usize {
        self.common().pins.pinned()
    }

    fn statements(&self) -> usize {
        self.shared_statements()
    }

    fn servers(&self) -> Vec<ServerView> {
        self.common().nodes.servers()
    }

    fn lent(&self) -> u64 {
        let nodes = self.common().nodes.iter();
        nodes.map(|node| node.connections.servers().lent()).sum()
    }

    fn nodes(&self) -> Vec<NodeView> {
        self.common().nodes.views()
    }

    fn has_primary(&self) -> bool {
        self.common().nodes.cluster().primary().is_some()
    }

    fn share(&self, places: usize) {
        let common = self.common();
        for node in common.nodes.iter() {
            node.connections.resize(places);
        }
        common
            .pins
            .resize(NonZeroUsize::new(places).unwrap_or(NonZeroUsize::MIN));
    }

    fn reconnect(&self, database: Option<&str>) {
        for node in self.common().nodes.iter() {
            node.connections.close(database);
        }
    }

    fn is_reconnecting(&self, database: Option<&str>) -> bool {
        let mut nodes = self.common().nodes.iter();
        nodes.any(|node| node.connections.servers().any_to_close(database))
    }

    fn reload(
        &self,
        size: NonZeroUsize,
        wait_max: Duration,
        users: &Path,
    ) -> Result<Reload<'_>, UsersError> {
        let users = Arc::new(Users::read(users)?);
        let common = self.common();
        Ok(Box::new(move || {
            *common.users.write() = users;
            for node in common.nodes.iter() {
                node.connections.set_wait_max(wait_max);
                node.resize(size);
            }
            common.pins.resize(size);
        }))
    }
}
