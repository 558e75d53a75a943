//! Asks PostgreSQL. `pg_stat_activity` shows what each of its processes waits for.

use std::fmt;

use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, NoTls, Statement};

use super::ANSWER_TIME_MAX;
use crate::relay::Upstream;
use crate::relay::tls::UpstreamTls;

/// A role without this sees the waits of its own sessions only.
const MAY_SEE: &str = "select pg_has_role('pg_read_all_stats', 'usage')";

/// Which of these processes wait for a lock.
const LOCKED: &str = "select pid from pg_stat_activity \
    where pid = any($1) and wait_event_type = 'Lock'";

/// Cancels the statement of a process that has run for so many seconds.
const CANCEL: &str = "select pg_cancel_backend(pid) from pg_stat_activity \
    where pid = $1 and state = 'active' and clock_timestamp() - query_start >= $2 * interval '1 second'";

/// A connection of the monitor.
pub struct Asker {
    client: Client,
    locked: Statement,
    /// Moves its bytes.
    driver: JoinHandle<()>,
}

impl Asker {
    pub async fn connect(url: &Config, tls: &UpstreamTls) -> Result<Self, String> {
        let upstream = upstream(url)?;
        // TLS, if any, is already set up before the library takes over.
        let config = url.clone().ssl_mode(SslMode::Disable).to_owned();
        let stream = crate::postgres::connect_to(&upstream, tls, ANSWER_TIME_MAX)
            .await
            .map_err(|error| error.to_string())?;
        let connected = config.connect_raw(stream, NoTls).await;
        let (client, connection) = connected.map_err(|error| told(&error))?;
        let driver = tokio::spawn(async move {
            // The next question meets the error.
            let _ = connection.await;
        });
        let prepared = client.prepare(LOCKED).await;
        let asker = Self {
            locked: prepared.map_err(|error| told(&error))?,
            client,
            driver,
        };
        let may_see = asker.client.query_one(MAY_SEE, &[]).await;
        let may_see: bool = may_see.map_err(|error| told(&error))?.get(0);
        if !may_see {
            return Err(
                "its role does not see others' sessions: grant it pg_read_all_stats".into(),
            );
        }
        Ok(asker)
    }

    pub async fn ask(&self, backends: &[u32]) -> Result<Vec<u32>, String> {
        // Process numbers are positive and have 31 bits.
        let pids: Vec<i32> = backends.iter().map(|&pid| pid.cast_signed()).collect();
        let rows = self.client.query(&self.locked, &[&pids]).await;
        let rows = rows.map_err(|error| told(&error))?;
        Ok(rows
            .iter()
            .map(|row| row.get::<_, i32>(0).cast_unsigned())
            .collect())
    }

    /// Cancels the statement of a process, if it has run for so long; whether it did.
    pub async fn cancel(&self, backend: u32, runs_s: u64) -> Result<bool, String> {
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 2] =
            [&backend.cast_signed(), &(runs_s as f64)];
        let cancelled = self.client.query(CANCEL, &parameters).await;
        let rows = cancelled.map_err(|error| told(&error))?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The one address in the URL.
fn upstream(url: &Config) -> Result<Upstream, String> {
    match (url.get_hosts(), url.get_ports()) {
        ([Host::Tcp(host)], ports) => Ok(Upstream {
            host: host.clone(),
            port: ports.first().copied().unwrap_or(5432),
        }),
        _ => Err("names no single host".to_owned()),
    }
}

/// The server's own words, if it said any.
fn told(error: &tokio_postgres::Error) -> String {
    let said = error.as_db_error().map(|said| said.message().to_owned());
    let deeper = std::error::Error::source(error).map(ToString::to_string);
    said.or(deeper).unwrap_or_else(|| error.to_string())
}

impl fmt::Debug for Asker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Asker")
    }
}
