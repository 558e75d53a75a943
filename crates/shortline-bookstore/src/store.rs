//! The database behind the application: an ordinary pool of connections of an ordinary driver.
//!
//! An interaction checks out one connection and gives it back at its end (002, 3.1). The statements
//! are written once, with `?` for a value, and prepared once per connection.

mod connection;
mod error;
mod text;
mod value;
mod work;

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use deadpool::managed::{self, Metrics, RecycleResult};

pub(crate) use connection::Connection;
pub use error::StoreError;
pub(crate) use text::quoted;
pub(crate) use value::{Row, Value};
pub(crate) use work::{Work, WorkOptions};

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    MariaDb,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Postgres, Self::MariaDb];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres => "postgres",
            Self::MariaDb => "mariadb",
        })
    }
}

impl FromStr for Kind {
    type Err = StoreError;

    fn from_str(name: &str) -> Result<Self, StoreError> {
        match name {
            "postgres" => Ok(Self::Postgres),
            "mariadb" => Ok(Self::MariaDb),
            _ => Err(StoreError::UnknownKind(name.to_owned())),
        }
    }
}

/// The address of the database (or of a gate in front of it), and its user.
#[derive(Clone, Debug)]
pub struct Database {
    /// Which one.
    pub kind: Kind,
    /// Its address.
    pub address: SocketAddr,
    /// The user's name.
    pub user: String,
    /// The user's password. `None` if the server trusts this address.
    pub password: Option<String>,
    /// The database's name.
    pub name: String,
}

/// How statements go to PostgreSQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statements {
    /// Each is prepared once on a connection, under a name.
    #[default]
    Prepared,
    /// Each is planned anew and has no name, as poolers want it that share connections and know no names, such
    /// as PgBouncer before 1.21.
    Unnamed,
}

/// Connections, made on demand up to a maximum.
pub(crate) type Pool = managed::Pool<Connector>;

/// Makes a pool of at most `connections_max`. If none is free, an interaction waits up to
/// `wait_max`.
pub(crate) fn pool(
    database: Database,
    statements: Statements,
    connections_max: usize,
    wait_max: Duration,
) -> Result<Pool, StoreError> {
    Pool::builder(Connector {
        database,
        statements,
    })
    .max_size(connections_max)
    // Connections used last have their statements prepared and their memory cached.
    .queue_mode(managed::QueueMode::Lifo)
    .wait_timeout(Some(wait_max))
    .create_timeout(Some(wait_max))
    .runtime(deadpool::Runtime::Tokio1)
    .build()
    .map_err(|_| StoreError::Pool)
}

/// Makes connections for the pool.
#[derive(Debug)]
pub(crate) struct Connector {
    database: Database,
    statements: Statements,
}

impl managed::Manager for Connector {
    type Type = Connection;
    type Error = StoreError;

    async fn create(&self) -> Result<Connection, StoreError> {
        Connection::open(&self.database, self.statements).await
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<StoreError> {
        if connection.is_closed() {
            return Err(StoreError::Closed.into());
        }
        Ok(())
    }
}
