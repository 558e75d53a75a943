//! Asks MySQL and MariaDB. InnoDB's transactions show waits for rows. The process list shows waits
//! for tables and for metadata.

use super::ANSWER_TIME_MAX;
use super::url::Place;
use crate::mysql::ask::{Row, ask};
use crate::mysql::login::{self, Account, Ready, Secret, Way, Wishes};
use crate::relay::tls::UpstreamTls;

/// The connections that wait for a lock. At most 10,000 rows are read of each table.
const LOCKED: &str = "(select trx_mysql_thread_id from information_schema.innodb_trx \
    where trx_state = 'LOCK WAIT' limit 10000) \
    union (select id from information_schema.processlist \
    where state like 'Waiting for % lock' limit 10000)";

/// A connection of the monitor, unless its last answer broke it.
#[derive(Debug)]
pub struct Asker(Option<Ready>);

impl Asker {
    pub async fn connect(place: &Place, tls: &UpstreamTls) -> Result<Self, String> {
        let way = Way {
            upstream: &place.upstream,
            tls,
            time_max: ANSWER_TIME_MAX,
        };
        let account = Account {
            user: place.user.clone(),
            secret: Secret::Password(place.password.clone()),
            database: place.database.clone(),
        };
        let opened = login::open(way, &account, Wishes::default()).await;
        opened
            .map(|ready| Self(Some(ready)))
            .map_err(|error| error.to_string())
    }

    /// Which of these connections wait for a lock.
    pub async fn ask(&mut self, backends: &[u32]) -> Result<Vec<u32>, String> {
        // The gate has only the lower 32 bits of the numbers.
        let mut locked: Vec<u32> = self
            .numbers(LOCKED)
            .await?
            .iter()
            .map(|&id| id as u32)
            .collect();
        locked.sort_unstable();
        let is_locked = |backend: &&u32| locked.binary_search(*backend).is_ok();
        Ok(backends.iter().filter(is_locked).copied().collect())
    }

    /// Cancels the statement of a connection if it has run for `runs_s` seconds. Returns whether it did.
    pub async fn cancel(&mut self, backend: u32, runs_s: u64) -> Result<bool, String> {
        let running = format!(
            "select id from information_schema.processlist \
             where command in ('Query', 'Execute') and time >= {runs_s} limit 10000"
        );
        // The gate has only the lower 32 bits of the numbers.
        let mut running = self.numbers(&running).await?.into_iter();
        let Some(id) = running.find(|&id| id as u32 == backend) else {
            return Ok(false);
        };
        self.rows(&format!("KILL QUERY {id}")).await?;
        Ok(true)
    }

    /// The numbers of connections in an answer.
    async fn numbers(&mut self, statement: &str) -> Result<Vec<u64>, String> {
        let rows = self.rows(statement).await?;
        let numbers = rows.iter().flatten().flatten().map(|value| number(value));
        let numbers: Option<Vec<u64>> = numbers.collect();
        numbers.ok_or_else(|| "expected numbers of connections".to_owned())
    }

    /// The rows of an answer.
    async fn rows(&mut self, statement: &str) -> Result<Vec<Row>, String> {
        let ready = self.0.take().ok_or("the connection is gone")?;
        let answered = ask(ready.stream, ready.capabilities, statement).await;
        let (stream, rows) = answered.map_err(|error| error.to_string())?;
        self.0 = Some(Ready { stream, ..ready });
        Ok(rows)
    }
}

fn number(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
