//! Waits for locks inside the database. They are not service of the waiting statement.
//!
//! A statement may wait for a row that another transaction has locked. If that time were learnt as
//! service, the type would seem long and the gate would let it wait. The gate's own connections do
//! not show such a wait. So the monitor has a connection of its own and asks the database which of
//! the gate's connections wait for a lock. It asks every `EVERY`, and only while a statement has run
//! for longer than `LONG`. The time of such a wait is not learnt. The load stays. Otherwise more and
//! more requests would be admitted to wait for the same lock. Paper 002 counts such a wait as
//! service.
//!
//! | database | asked | needs |
//! |---|---|---|
//! | PostgreSQL | `pg_stat_activity`, `wait_event_type = 'Lock'` | the role `pg_read_all_stats` |
//! | MySQL, MariaDB | `innodb_trx`, `trx_state = 'LOCK WAIT'` | the privilege `PROCESS` |
//! | | `processlist`, `Waiting for ... lock` | |
//!
//! The monitor also cancels runaways ([`shortline_sched::admission::Runaway`]), if configured. It asks the database
//! to cancel the statement of a connection (`pg_cancel_backend`, `KILL QUERY`), on condition that the statement has
//! run for some time. A client's cancel request, by the connection's key, needs no privilege. But it does not name
//! the statement, so it could cancel the next one of the session.
//!
//! | database | needs, to cancel |
//! |---|---|
//! | PostgreSQL | the role `pg_signal_backend` |
//! | MySQL, MariaDB | the privilege `CONNECTION ADMIN` (`CONNECTION_ADMIN`) |
//!
//! The monitor logs any failure in one line. Until the database answers again, the gate works as
//! without a monitor.

mod mysql;
mod postgres;
mod url;

use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::Gate;
use crate::relay::tls::UpstreamTls;

pub use url::{MonitorUrl, MonitorUrlError};

/// How often the database is asked.
const EVERY: Duration = Duration::from_millis(100);
/// The monitor does not ask about a statement that has run for less.
const LONG: Duration = Duration::from_millis(100);
/// The longest wait for an answer or a connection.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
/// How long to wait after a failure.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// How to ask the database.
#[derive(Clone, Debug)]
pub struct MonitorConfig {
    /// Its address, and the user to ask as.
    pub url: MonitorUrl,
    /// The number of the server in its cluster.
    pub server: usize,
    /// TLS to it.
    pub tls: UpstreamTls,
}

/// A connection to the database.
enum Asker {
    Postgres(postgres::Asker),
    Mysql(mysql::Asker),
}

/// Asks for as long as the gate lives.
pub async fn watch(gate: Gate, config: MonitorConfig) {
    let server = config.server;
    let mut asker = None;
    let mut is_failing = false;
    // The first question comes before any work, so that a fault is logged at the start.
    let mut asked = Vec::new();
    let mut cancels_from = Instant::now();
    loop {
        let begun = Instant::now();
        let answered = timeout(ANSWER_TIME_MAX, ask(&mut asker, &config, &asked)).await;
        match answered.unwrap_or_else(|_| Err("no answer".to_owned())) {
            Ok(locked) => {
                gate.note_locked(server, &asked, &locked);
                let runaways = match begun >= cancels_from {
                    true => gate.runaways(server),
                    false => Vec::new(),
                };
                if !cancel(&mut asker, &runaways).await {
                    cancels_from = Instant::now() + AGAIN_AFTER;
                }
                if std::mem::replace(&mut is_failing, false) {
                    tracing::info!("monitor: the database answers again");
                }
            }
            Err(problem) => {
                asker = None;
                if !std::mem::replace(&mut is_failing, true) {
                    let url = &config.url;
                    tracing::warn!(
                        "monitor {url}: {problem}; until it answers, waits for locks count as service"
                    );
                }
                tokio::time::sleep(AGAIN_AFTER).await;
                // Waits in the meantime are unknown.
                gate.note_locked(server, &gate.long_at_work(server, Duration::ZERO), &[]);
            }
        }
        asked = loop {
            tokio::time::sleep(EVERY.saturating_sub(begun.elapsed())).await;
            let long = gate.long_at_work(server, LONG);
            if !long.is_empty() {
                break long;
            }
            tokio::time::sleep(EVERY).await;
        };
    }
}

/// Cancels the statements of these connections, each with the least seconds that it must have run. A failure is
/// logged and closes the monitor's connection. The next look opens a new one. Returns false after a failure.
async fn cancel(asker: &mut Option<Asker>, runaways: &[(u32, u64)]) -> bool {
    for &(backend, runs_s) in runaways {
        let Some(connected) = asker else { return false };
        let cancelling = async {
            match connected {
                Asker::Postgres(asker) => asker.cancel(backend, runs_s).await,
                Asker::Mysql(asker) => asker.cancel(backend, runs_s).await,
            }
        };
        let cancelled = timeout(ANSWER_TIME_MAX, cancelling).await;
        match cancelled.unwrap_or_else(|_| Err("no answer".to_owned())) {
            Ok(true) => tracing::info!(backend, runs_s, "cancelled a runaway"),
            Ok(false) => {}
            Err(problem) => {
                *asker = None;
                tracing::warn!(
                    backend,
                    runs_s,
                    "monitor: cannot cancel a runaway: {problem}"
                );
            }
        }
    }
    asker.is_some()
}

/// Which of these wait for a lock. Connects if there is no connection.
async fn ask(
    asker: &mut Option<Asker>,
    config: &MonitorConfig,
    backends: &[u32],
) -> Result<Vec<u32>, String> {
    let asker = match asker {
        Some(asker) => asker,
        None => asker.insert(Asker::connect(config).await?),
    };
    match asker {
        Asker::Postgres(asker) => asker.ask(backends).await,
        Asker::Mysql(asker) => asker.ask(backends).await,
    }
}

impl Asker {
    async fn connect(config: &MonitorConfig) -> Result<Self, String> {
        match &config.url {
            MonitorUrl::Postgres(place) => {
                let asker = postgres::Asker::connect(place, &config.tls).await?;
                Ok(Self::Postgres(asker))
            }
            MonitorUrl::Mysql(place) => {
                let asker = mysql::Asker::connect(place, &config.tls).await?;
                Ok(Self::Mysql(asker))
            }
        }
    }
}
