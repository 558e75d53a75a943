//! The work of one interaction on its connection, from check-out to commit.

use std::time::Instant;

use deadpool::managed::{Object, PoolError, TimeoutType};
use tokio::sync::OwnedMutexGuard;

use super::text::rendered;
use super::{Connection, Connector, Kind, Pool, Row, StoreError, Value};
use crate::interaction::Interaction;
use crate::locks::{self, Locking, Mutexes};
use crate::request::PageError;

/// How interactions use the database.
#[derive(Clone, Debug)]
pub(crate) struct WorkOptions {
    pub locking: Locking,
    /// One transaction around all statements of an interaction, or else one per statement.
    pub transactions: bool,
    /// SQLCommenter's tags.
    pub tags: bool,
    pub mutexes: Mutexes,
}

impl WorkOptions {
    /// Whether an interaction is done as a whole or not at all.
    pub fn is_one_transaction(&self) -> bool {
        self.transactions || self.locking == Locking::Database
    }
}

/// A connection used by one interaction. Without [`Work::finish`] the connection is closed, and the
/// database rolls back what was under way.
pub(crate) struct Work {
    /// `None` once it is back in the pool.
    connection: Option<Object<Connector>>,
    interaction: Interaction,
    options: WorkOptions,
    changing_items: Option<OwnedMutexGuard<()>>,
    began: Instant,
}

impl Work {
    /// Checks a connection out and begins.
    pub async fn begin(
        pool: &Pool,
        interaction: Interaction,
        options: WorkOptions,
    ) -> Result<Self, StoreError> {
        let connection = pool
            .get()
            .await
            .map_err(|error| no_connection(pool, error))?;
        let mut work = Self {
            connection: Some(connection),
            interaction,
            options,
            changing_items: None,
            began: Instant::now(),
        };
        if let Some(statements) = work.opening() {
            work.connection().run(&statements).await?;
        }
        Ok(work)
    }

    /// When the connection was available and the first statement could be sent.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// All rows of a result.
    pub async fn rows(
        &mut self,
        statement: &str,
        values: &[Value],
    ) -> Result<Vec<Row>, StoreError> {
        let text = self.text(statement);
        self.connection().rows(&text, values).await
    }

    /// The first row of a result, if there is one.
    pub async fn row(
        &mut self,
        statement: &str,
        values: &[Value],
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(statement, values).await?.into_iter().next())
    }

    /// Changes rows. Returns how many.
    pub async fn change(&mut self, statement: &str, values: &[Value]) -> Result<u64, StoreError> {
        let text = self.text(statement);
        self.connection().change(&text, values).await
    }

    /// Inserts one row and returns the number the database gave it in column `id`.
    pub async fn insert(
        &mut self,
        statement: &str,
        id: &'static str,
        values: &[Value],
    ) -> Result<i64, StoreError> {
        match self.kind() {
            Kind::Postgres => {
                let statement = format!("{statement} RETURNING {id}");
                let row = self.row(&statement, values).await?;
                row.ok_or(StoreError::Missing("new row's number"))?
                    .integer(0)
            }
            Kind::MariaDb => {
                self.change(statement, values).await?;
                let inserted = self.connection().inserted();
                inserted.ok_or(StoreError::Missing("new row's number"))
            }
        }
    }

    /// Waits until no other interaction changes items, and keeps others out to the end of this one.
    pub async fn change_items(&mut self) {
        if self.options.locking == Locking::Application {
            self.changing_items = Some(self.options.mutexes.items().await);
        }
    }

    /// Commits, frees the locks and gives the connection back. On failure, rolls back instead, and
    /// keeps the connection if it is still good.
    pub async fn finish<T>(mut self, result: Result<T, PageError>) -> Result<T, PageError> {
        let closing = self.closing(result.is_ok());
        if let Err(PageError::Store(error)) = &result
            && error.breaks_connection()
        {
            return result;
        }
        if let Some(statements) = closing {
            self.connection().run(statements).await?;
        }
        drop(self.connection.take());
        result
    }

    fn opening(&self) -> Option<String> {
        match self.options.locking {
            _ if !self.options.is_one_transaction() => None,
            Locking::Application => Some("BEGIN".to_owned()),
            Locking::Database => {
                let locks = locks::lock_statement(self.kind(), self.interaction)?;
                let begin = match self.kind() {
                    Kind::Postgres => "BEGIN",
                    // BEGIN would free the locks again.
                    Kind::MariaDb => "SET autocommit=0",
                };
                Some(self.text(&format!("{begin};{locks}")))
            }
        }
    }

    fn closing(&self, well: bool) -> Option<&'static str> {
        self.opening()?;
        let locked = self.options.locking == Locking::Database;
        Some(match (self.kind(), locked, well) {
            (Kind::MariaDb, true, true) => "COMMIT;UNLOCK TABLES;SET autocommit=1",
            (Kind::MariaDb, true, false) => "ROLLBACK;UNLOCK TABLES;SET autocommit=1",
            (_, _, true) => "COMMIT",
            (_, _, false) => "ROLLBACK",
        })
    }

    fn text(&self, statement: &str) -> String {
        let route = self.options.tags.then(|| self.interaction.name());
        rendered(self.kind(), statement, route)
    }

    fn kind(&self) -> Kind {
        let connection = self.connection.as_ref();
        connection.expect("given back only by finish").kind()
    }

    fn connection(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("given back only by finish")
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(Object::take(connection));
        }
    }
}

fn no_connection(pool: &Pool, error: PoolError<StoreError>) -> StoreError {
    match error {
        PoolError::Backend(error) => error,
        PoolError::Timeout(TimeoutType::Wait | TimeoutType::Create) => StoreError::Busy {
            wait_max: pool.timeouts().wait.unwrap_or_default(),
        },
        _ => StoreError::Pool,
    }
}
