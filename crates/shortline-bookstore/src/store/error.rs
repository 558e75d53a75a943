//! What can go wrong between the application and its database.

use std::time::Duration;

use thiserror::Error;
use tokio_postgres::error::SqlState;

/// The SQLSTATE of a transaction that was undone to end a deadlock.
const MARIADB_RESTART: &str = "40001";

/// A failure of the database, of the way to it, or of what it holds.
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
        /// How long it was waited for.
        wait_max: Duration,
    },
    /// The pool could not be made or is being closed.
    #[error("the pool of connections is not in service")]
    Pool,
    /// The connection was closed by the other side.
    #[error("the database closed the connection")]
    Closed,
    /// A column that holds something else than the statement's reader wants.
    #[error("column {column} of a result: want {want}")]
    Column {
        /// Its position, from 0.
        column: usize,
        /// What would be right.
        want: &'static str,
    },
    /// A row that the population's rules promise is not there.
    #[error("the database holds no {0}")]
    Missing(&'static str),
    /// A word that names no database.
    #[error("database `{0}`: want postgres or mariadb")]
    UnknownKind(String),
}

impl StoreError {
    /// Whether the connection is of no more use: what the other side said itself leaves it whole.
    pub(crate) fn breaks_connection(&self) -> bool {
        match self {
            Self::Postgres(error) => error.is_closed() || error.as_db_error().is_none(),
            Self::MariaDb(error) => !matches!(error, mysql_async::Error::Server(_)),
            _ => false,
        }
    }

    /// Whether the transaction was undone for the sake of others and may go well if it begins anew.
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
