//! Asks PostgreSQL. `pg_stat_activity` shows what each process waits for.

use super::ANSWER_TIME_MAX;
use super::url::Place;
use crate::postgres::pool::ask::{Answer, ask};
use crate::postgres::pool::login::{Kind, Login, log_in};
use crate::postgres::reply::query;
use crate::postgres::scram::Secret;
use crate::relay::Stream;
use crate::relay::tls::UpstreamTls;

/// Whether the role has `pg_read_all_stats`. Without it, it sees only the waits of its own sessions.
const MAY_SEE: &str = "select pg_has_role('pg_read_all_stats', 'usage')::int";

/// A connection of the monitor.
#[derive(Debug)]
pub struct Asker(Stream);

impl Asker {
    pub async fn connect(place: &Place, tls: &UpstreamTls) -> Result<Self, String> {
        let connecting = crate::postgres::connect_to(&place.upstream, tls, ANSWER_TIME_MAX);
        let stream = connecting.await.map_err(|error| error.to_string())?;
        let database = place.database.as_ref().unwrap_or(&place.user);
        let kind = Kind {
            user: place.user.clone(),
            database: database.clone(),
            startup: Default::default(),
        };
        let login = Login::Scram(Secret::Password(place.password.clone()));
        let logged_in = log_in(stream, &kind, &login).await;
        let mut asker = Self(logged_in.map_err(|error| error.to_string())?.stream);
        if asker.numbers(MAY_SEE).await? != [1] {
            return Err(
                "its role does not see others' sessions: grant it pg_read_all_stats".into(),
            );
        }
        Ok(asker)
    }

    /// Which of these processes wait for a lock.
    pub async fn ask(&mut self, backends: &[u32]) -> Result<Vec<u32>, String> {
        // Process numbers are positive and have 31 bits.
        let pids: Vec<String> = backends
            .iter()
            .map(|pid| pid.cast_signed().to_string())
            .collect();
        let locked = format!(
            "select pid from pg_stat_activity where pid in ({}) and wait_event_type = 'Lock'",
            pids.join(",")
        );
        if pids.is_empty() {
            return Ok(Vec::new());
        }
        self.numbers(&locked).await
    }

    /// Cancels the statement of a process if it has run for `runs_s` seconds. Returns whether it did.
    pub async fn cancel(&mut self, backend: u32, runs_s: u64) -> Result<bool, String> {
        let pid = backend.cast_signed();
        let cancel = format!(
            "select pg_cancel_backend(pid)::int from pg_stat_activity where pid = {pid} \
             and state = 'active' and clock_timestamp() - query_start >= interval '{runs_s} seconds'"
        );
        Ok(self.numbers(&cancel).await? == [1])
    }

    /// The numbers in the only column of an answer.
    async fn numbers(&mut self, statement: &str) -> Result<Vec<u32>, String> {
        let answered = ask(&mut self.0, &query(statement)).await;
        let Answer { rows, .. } = answered.map_err(|error| error.to_string())?;
        let numbers = rows.iter().map(|row| number(row));
        let numbers: Option<Vec<u32>> = numbers.collect();
        numbers.ok_or_else(|| "expected a column of numbers".to_owned())
    }
}

/// The number in the body of a DataRow with one column. The body is the number of columns (2 bytes), the length of
/// the text (4 bytes), and the text.
fn number(row: &[u8]) -> Option<u32> {
    let (columns, rest) = row.split_first_chunk::<2>()?;
    let (length, text) = rest.split_first_chunk::<4>()?;
    let is_one = *columns == [0, 1] && u32::from_be_bytes(*length) as usize == text.len();
    is_one.then(|| std::str::from_utf8(text).ok()?.parse().ok())?
}
