//! Pooling for all protocols: many clients on few connections of the backend (`--pool`).
//!
//! A client has no connection until it begins a unit of work. The gate admits the unit, and the pool lends it a
//! connection. No more units run than there are connections
//! ([`shortline_sched::admission::AdmissionConfig::running_max`]). At the end of the transaction the connection
//! goes back. So idle clients cost the backend nothing, and all waiting is in the order of the gate. Each protocol
//! tracks the settings of its sessions ([`crate::postgres::pool`], [`crate::mysql::pool`]).
//!
//! | part | what it does |
//! |---|---|
//! | `common` | the common part of all protocols' pools |
//! | `backend` | opens connections |
//! | `nodes` | the servers of a cluster ([`crate::cluster`]): which of them a unit gets a connection to |
//! | `connections` | lends connections, and queues sessions for them |
//! | `servers` | an operator's view of the connections |
//! | `cancels` | counts cancel requests under way |
//! | `pins` | counts sessions that keep their connection |
//! | `statements` | prepared statements that sessions share, and those that a connection has |
//! | `users` | the file of users |

mod backend;
pub mod cancels;
mod common;
pub mod connections;
pub mod nodes;
mod pins;
mod servers;
pub(crate) mod statements;
pub mod users;

use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

pub use backend::Backend;
pub use common::{Common, Pooling};
pub use nodes::NodeView;
pub use pins::{Keeping, Pins};
pub use servers::{Names, ServerView};
pub use users::UsersError;

/// The counts of a pool at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Open, or being opened.
    pub total: usize,
    /// Of these, lent to no session.
    pub idle: usize,
    /// Sessions that wait for a connection, or for room to open one.
    pub waiting: usize,
    /// Sessions whose connection is being opened. They take one that comes back before.
    pub opening: usize,
}

/// How long connections are lent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoolMode {
    /// For a client's whole session, from its first statement on.
    Session,
    /// For a transaction.
    Transaction,
}

/// The settings of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// How long connections are lent for.
    pub mode: PoolMode,
    /// The most connections to the backend, for all users and databases together.
    pub size: NonZeroUsize,
    /// A connection that has been idle for this long is closed.
    pub idle_time_max: Duration,
    /// The longest that an admitted unit waits for a connection.
    pub wait_max: Duration,
    /// The most prepared statements of a connection.
    pub statements_max: usize,
}

/// Applies a reload that was read without an error.
pub type Reload<'a> = Box<dyn FnOnce() + 'a>;

/// An operator's view of a pool, and the operator's commands to it.
pub trait Shown: Debug + Send + Sync {
    /// How long connections are lent for.
    fn mode(&self) -> PoolMode;

    /// The most connections to the backend.
    fn size(&self) -> usize;

    /// The counts of its connections.
    fn counts(&self) -> Counts;

    /// The number of sessions that keep a connection between two units.
    fn pinned(&self) -> usize;

    /// The number of prepared statements that sessions share.
    fn statements(&self) -> usize;

    /// All its connections.
    fn servers(&self) -> Vec<ServerView>;

    /// How often a connection was lent to a session.
    fn lent(&self) -> u64;

    /// The servers, if there are several.
    fn nodes(&self) -> Vec<NodeView>;

    /// Whether a server is known that takes writes.
    fn has_primary(&self) -> bool;

    /// Takes so many of its connections for its own from now on; another process has the others. None is allowed.
    fn share(&self, places: usize);

    /// Closes the connections to a database, or all. Lent ones close when they are given back.
    fn reconnect(&self, database: Option<&str>);

    /// Whether connections that [`Self::reconnect`] closes are still lent.
    fn is_reconnecting(&self, database: Option<&str>) -> bool;

    /// Reads the file of users again. Calling the returned function applies the users, the new size and the
    /// time that a session waits for a connection. Lent connections stay lent until they are given back.
    ///
    /// # Errors
    /// The file cannot be read, or a line of it is malformed. Then nothing has changed.
    fn reload(
        &self,
        size: NonZeroUsize,
        wait_max: Duration,
        users: &Path,
    ) -> Result<Reload<'_>, UsersError>;
}
