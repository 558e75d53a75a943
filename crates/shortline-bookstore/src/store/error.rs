//! What can go wrong between the application and its database.

use std::time::Duration;

use thiserror::Error;
use tokio_postgres::error::SqlState;

/// The SQLSTATE of a transaction that was rolled back to end a deadlock.
const MARIADB_RESTART: &str = "40001";

/// A failure of the database, of the connection to it, or of its content.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// PostgreSQL refused, or its connection broke.
    #[error("PostgreSQL: {}", postgres_text(.0))]
    Postgres(#[from] tokio_postgres::Error),
    /// MariaDB refused, or its connection broke.
    #[error("MariaDB: {0}")]
    MariaDb(#[from] mysql_async::Error),
    /// No connection became free.
    #[error("no connection of the pool became free within {wait_max:?}")]
    Busy {
        /// The longest wait.
        wait_max: Duration,
    },
    /// The pool could not be made or is being closed.
    #[error("the pool of connections is not in service")]
    Pool,
    /// The connection was closed by the other side.
    #[error("the database closed the connection")]
    Closed,
    /// A column with a different type than the statement's reader wants.
    #[error("column {column} of a result: want {want}")]
    Column {
        /// Its position, from 0.
        column: usize,
        /// What would be right.
        want: &'static str,
    },
    /// A row is missing that the population's rules guarantee.
    #[error("the database holds no {0}")]
    Missing(&'static str),
    /// A word that is not the name of a database.
    #[error("database `{0}`: want postgres or mariadb")]
    UnknownKind(String),
}

impl StoreError {
    /// Whether the connection is useless now. An error reported by the server leaves it usable.
    pub(crate) fn breaks_connection(&self) -> bool {
        match self {
            Self::Postgres(error) => error.is_closed() || error.as_db_error().is_none(),
            Self::MariaDb(error) => !matches!(error, mysql_async::Error::Server(_)),
            _ => false,
        }
    }

    /// Whether the transaction was rolled back because of others and may succeed if it is repeated.
    pub(crate) fn asks_to_restart(&self) -> bool {
        match self {
            Self::Postgres(error) => error.code().is_some_and(|code| {
                [
                    &SqlState::T_R_DEADLOCK_DETECTED,
                    &SqlState::T_R_SERIALIZATION_FAILURE,
                ]
                .contains(&code)
            }),
            Self::MariaDb(mysql_async::Error::Server(told)) => told.state == MARIADB_RESTART,
            _ => false,
        }
    }
}

/// The driver's own text says only "db error".
fn postgres_text(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(told) => format!("{} ({})", told.message(), told.code().code()),
        None => error.to_string(),
    }
}
