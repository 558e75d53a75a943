//! Waits for locks inside the database, which are no service of the statement that waits.
//!
//! A statement that waits for a row that another transaction has locked takes as long as that one
//! pleases. Taught as its service it makes its type long, and the gate lets the type wait. The gate's
//! own connections cannot tell, so a connection of the monitor's own asks the database: every
//! `EVERY`, and only while a statement runs for longer than `LONG`, which of the gate's connections
//! wait for a lock. That time teaches nothing. The load stays: else more and more would be let in to
//! wait for the same lock. Paper 002 counts such a wait as service.
//!
//! | database | asked | needs |
//! |---|---|---|
//! | PostgreSQL | `pg_stat_activity`, `wait_event_type = 'Lock'` | the role `pg_read_all_stats` |
//! | MySQL, MariaDB | `innodb_trx`, `trx_state = 'LOCK WAIT'`; `processlist`, `Waiting for ... lock` | the privilege `PROCESS` |
//!
//! Whatever the monitor meets is told in one line, and then it is as without it, until the database
//! answers again.

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
/// A statement that runs for less is not asked about.
const LONG: Duration = Duration::from_millis(100);
/// The longest that an answer, or a connection, is waited for.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
/// How long to wait after a failure.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// How the database is asked.
#[derive(Clone, Debug)]
pub struct MonitorConfig {
    /// Where it is, and as whom.
    pub url: MonitorUrl,
    /// TLS towards it, of PostgreSQL.
    pub tls: UpstreamTls,
}

/// A connection to the database.
enum Asker {
    Postgres(postgres::Asker),
    Mysql(Box<mysql::Asker>),
}

/// Asks as long as the gate lives.
pub async fn watch(gate: Gate, config: MonitorConfig) {
    let mut asker = None;
    let mut is_failing = false;
    // Once before anything happens, so that what is wrong is told at the start.
    let mut asked = Vec::new();
    loop {
        let begun = Instant::now();
        let answered = timeout(ANSWER_TIME_MAX, ask(&mut asker, &config, &asked)).await;
        match answered.unwrap_or_else(|_| Err("no answer".to_owned())) {
            Ok(locked) => {
                gate.note_locked(&asked, &locked);
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
                // Nobody knows who waited meanwhile.
                gate.note_locked(&gate.long_at_work(Duration::ZERO), &[]);
            }
        }
        asked = loop {
            tokio::time::sleep(EVERY.saturating_sub(begun.elapsed())).await;
            let long = gate.long_at_work(LONG);
            if !long.is_empty() {
                break long;
            }
            tokio::time::sleep(EVERY).await;
        };
    }
}

/// Which of these wait for a lock, by a connection that is made if there is none.
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
            MonitorUrl::Postgres(url) => {
                let asker = postgres::Asker::connect(url, &config.tls).await?;
                Ok(Self::Postgres(asker))
            }
            MonitorUrl::Mysql(options) => {
                let asker = mysql::Asker::connect(options).await?;
                Ok(Self::Mysql(Box::new(asker)))
            }
        }
    }
}
