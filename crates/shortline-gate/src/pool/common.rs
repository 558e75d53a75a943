//! The common part of all protocols' pools, and an operator's view of it.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;

use super::connections::Connections;
use super::users::{Stored, Users};
use super::{Backend, Counts, Pins, PoolLimits, PoolMode, Reload, ServerView, Shown, UsersError};
use crate::Gate;

/// The part of a pool that does not depend on the protocol.
pub struct Common<B: Backend, S> {
    /// Its settings.
    pub limits: PoolLimits,
    /// The backend's connections.
    pub connections: Arc<Connections<B>>,
    /// The sessions that keep their connection.
    pub pins: Arc<Pins>,
    /// Replaced at a reload.
    users: RwLock<Arc<Users<S>>>,
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
    pub fn new(backend: B, limits: PoolLimits, users: Arc<Users<S>>, gate: &Gate) -> Self {
        Self {
            connections: Connections::new(backend, &limits),
            pins: Pins::new(limits.mode, limits.size, gate),
            users: RwLock::new(users),
            limits,
        }
    }

    /// The users in the file of users.
    pub fn users(&self) -> Arc<Users<S>> {
        Arc::clone(&self.users.read())
    }

    /// Whether connections are lent for a transaction.
    pub fn is_of_transactions(&self) -> bool {
        self.limits.mode == PoolMode::Transaction
    }

    /// Closes connections that have been idle for too long. Never returns.
    pub async fn sweep(&self) {
        let every =
            (self.limits.idle_time_max / 4).clamp(Duration::from_secs(1), Duration::from_secs(60));
        loop {
            tokio::time::sleep(every).await;
            self.connections.sweep();
        }
    }
}

/// Without the users' secrets.
impl<B: Backend, S> fmt::Debug for Common<B, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Common")
            .field("limits", &self.limits)
            .field("connections", &self.connections)
            .field("pins", &self.pins)
            .finish_non_exhaustive()
    }
}

impl<P: Pooling> Shown for P {
    fn mode(&self) -> PoolMode {
        self.common().limits.mode
    }

    fn size(&self) -> usize {
        self.common().connections.size()
    }

    fn counts(&self) -> Counts {
        self.common().connections.counts()
    }

    fn pinned(&self) -> usize {
        self.common().pins.pinned()
    }

    fn statements(&self) -> usize {
        self.shared_statements()
    }

    fn servers(&self) -> Vec<ServerView> {
        self.common().connections.servers().views()
    }

    fn lent(&self) -> u64 {
        self.common().connections.servers().lent()
    }

    fn share(&self, places: usize) {
        let common = self.common();
        common.connections.resize(places);
        common
            .pins
            .resize(NonZeroUsize::new(places).unwrap_or(NonZeroUsize::MIN));
    }

    fn reconnect(&self, database: Option<&str>) {
        self.common().connections.close(database);
    }

    fn is_reconnecting(&self, database: Option<&str>) -> bool {
        self.common().connections.servers().any_to_close(database)
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
            common.connections.set_wait_max(wait_max);
            common.connections.resize(size.get());
            common.pins.resize(size);
        }))
    }
}
