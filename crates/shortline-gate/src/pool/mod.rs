//! Pooling, whatever the protocol: many clients on few connections of the backend (`--pool`).
//!
//! A client has no connection until it begins a unit of work. Then admission decides whose turn it is, and hands
//! over a connection with it: no more units run than there are connections
//! ([`shortline_sched::admission::AdmissionConfig::running_max`]). At the end of its transaction the
//! connection goes back. So a crowd of clients costs the backend nothing, and who waits, waits in the order of
//! the gate. What a session sets is the protocol's to follow
//! ([`crate::postgres::pool`], [`crate::mysql::pool`]).
//!
//! | part | what it does |
//! |---|---|
//! | `backend` | what opens connections |
//! | `connections`, `servers` | all of them: idle, lent, waited for; as an operator sees them |
//! | `cancels` | requests to cancel that are under way |
//! | `pins` | sessions that keep their connection |
//! | `users` | who clients are |

mod backend;
pub mod cancels;
pub mod connections;
mod pins;
mod servers;
pub mod users;

use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

pub use backend::Backend;
pub use connections::Counts;
pub use pins::{Keeping, Pins};
pub use servers::{Names, ServerView};
pub use users::UsersError;

/// How long connections are lent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolMode {
    /// For a client's whole session, from its first statement on.
    Session,
    /// For a transaction.
    Transaction,
}

/// How large a pool is, and how it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
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
}

/// Goes on with what was read.
pub type Reload<'a> = Box<dyn FnOnce() + 'a>;

/// What is shown of a pool, and done with it at an operator's word.
pub trait Shown: Debug + Send + Sync {
    /// How long connections are lent for.
    fn mode(&self) -> PoolMode;

    /// Connections to the backend at most.
    fn size(&self) -> usize;

    /// Its connections now.
    fn counts(&self) -> Counts;

    /// Sessions that keep a connection between two units.
    fn pinned(&self) -> usize;

    /// Statements that are prepared by somebody.
    fn statements(&self) -> usize;

    /// Each of its connections now.
    fn servers(&self) -> Vec<ServerView>;

    /// How often one was lent to a session.
    fn lent(&self) -> u64;

    /// How many connections to a database, or to all, are open.
    fn open(&self, database: Option<&str>) -> usize;

    /// Closes the connections to a database, or all: those that are lent, once they are given back.
    fn reconnect(&self, database: Option<&str>);

    /// Whether some that [`Self::reconnect`] closes are not given back yet.
    fn is_reconnecting(&self, database: Option<&str>) -> bool;

    /// Reads the file of users again. What it returns goes on with them and so many connections; those that are
    /// lent stay so until they are given back.
    ///
    /// # Errors
    /// The file cannot be read, or a line of it makes no sense: then nothing has changed.
    fn reload(&self, size: NonZeroUsize, users: &Path) -> Result<Reload<'_>, UsersError>;
}

/// How often what has been idle for too long is looked for.
pub fn sweep_every(idle_time_max: Duration) -> Duration {
    (idle_time_max / 4).clamp(Duration::from_secs(1), Duration::from_secs(60))
}
