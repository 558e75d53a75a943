//! Asks MySQL and MariaDB. InnoDB's transactions show whether they wait for a row. The process list
//! shows who waits for a table or for metadata.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};

/// The most rows read of an answer.
const LOCKED: &str = "(select trx_mysql_thread_id from information_schema.innodb_trx \
    where trx_state = 'LOCK WAIT' limit 10000) \
    union (select id from information_schema.processlist \
    where state like 'Waiting for % lock' limit 10000)";

/// Who has been at a statement for so many seconds.
const RUNNING: &str = "select id from information_schema.processlist \
    where command in ('Query', 'Execute') and time >= ? limit 10000";

/// A connection of the monitor.
pub struct Asker(Conn);

impl Asker {
    pub async fn connect(options: &Opts) -> Result<Self, String> {
        let connected = Conn::new(options.clone()).await;
        connected.map(Self).map_err(|error| error.to_string())
    }

    pub async fn ask(&mut self, backends: &[u32]) -> Result<Vec<u32>, String> {
        let rows: Result<Vec<u64>, _> = self.0.query(LOCKED).await;
        let mut locked = rows.map_err(|error| error.to_string())?;
        // The gate knows the lower 32 bits of the numbers.
        locked.sort_unstable_by_key(|&id| id as u32);
        let is_locked = |backend: &&u32| {
            let found = locked.binary_search_by_key(*backend, |&id| id as u32);
            found.is_ok()
        };
        Ok(backends.iter().filter(is_locked).copied().collect())
    }

    /// Cancels the statement of a connection, if it has run for so many seconds; whether it did.
    pub async fn cancel(&mut self, backend: u32, runs_s: u64) -> Result<bool, String> {
        let running: Result<Vec<u64>, _> = self.0.exec(RUNNING, (runs_s,)).await;
        let running = running.map_err(|error| error.to_string())?;
        // The gate knows the lower 32 bits of the numbers.
        let Some(id) = running.into_iter().find(|&id| id as u32 == backend) else {
            return Ok(false);
        };
        let killed = self.0.query_drop(format!("KILL QUERY {id}")).await;
        killed.map(|()| true).map_err(|error| error.to_string())
    }
}
