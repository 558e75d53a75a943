//! Asks MySQL and MariaDB. InnoDB's transactions show whether they wait for a row. The process list
//! shows who waits for a table or for metadata.

use super::ANSWER_TIME_MAX;
use super::url::Place;
use crate::mysql::ask::ask;
use crate::mysql::login::{self, Account, Ready, Secret, Way, Wishes};
use crate::relay::tls::UpstreamTls;

/// The most rows read of an answer.
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

    pub async fn ask(&mut self, backends: &[u32]) -> Result<Vec<u32>, String> {
        let ready = self.0.take().ok_or("the connection is gone")?;
        let answered = ask(ready.stream, ready.capabilities, LOCKED).await;
        let (stream, rows) = answered.map_err(|error| error.to_string())?;
        self.0 = Some(Ready { stream, ..ready });
        let mut locked = Vec::new();
        for value in rows.iter().flatten().flatten() {
            let id: Option<u64> = std::str::from_utf8(value)
                .ok()
                .and_then(|text| text.parse().ok());
            // The gate knows the lower 32 bits of the numbers.
            locked.push(id.ok_or("expected numbers of connections")? as u32);
        }
        locked.sort_unstable();
        let is_locked = |backend: &&u32| locked.binary_search(*backend).is_ok();
        Ok(backends.iter().filter(is_locked).copied().collect())
    }
}
