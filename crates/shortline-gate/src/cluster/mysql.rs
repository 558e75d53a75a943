//! Asks a MySQL or MariaDB whether it is read only, and how far it is behind.
//!
//! A server with `read_only` takes no writes of those without special rights, and is a replica here, whatever it
//! replicates. How far it is behind it says only to who has `REPLICATION CLIENT` (MySQL), `REPLICA MONITOR`
//! (MariaDB). Who does not tell is a replica whose lag is unknown, and gets nothing.

use std::time::Duration;

use super::{Asker, Behind, Looks, Said};
use crate::mysql::ask::{AskError, Row, ask_on};
use crate::mysql::capability::Capabilities;
use crate::mysql::link::Link;
use crate::mysql::login::{self, Account, Secret, Way, Wishes};
use crate::relay::Upstream;

const IS_READ_ONLY: &str = "select @@global.read_only, @@version";
/// MySQL since 8.0.22.
const STATUS: &str = "show replica status";
/// MySQL before, and MariaDB. Both tell the lag in the same column.
const STATUS_OF_OLD: &str = "show slave status";
const LAG_COLUMN: usize = 32;

impl Looks for Asker<Secret> {
    type Connection = (Link, Capabilities);

    async fn connect(
        &self,
        server: &Upstream,
        time_max: Duration,
    ) -> Result<(Link, Capabilities), String> {
        let secret = (self.login)().ok_or_else(|| {
            format!(
                "{}, who asks servers what they are, has no line in --pool-users with a password",
                self.user
            )
        })?;
        let way = Way {
            upstream: server,
            tls: &self.tls,
            time_max,
        };
        let account = Account {
            user: self.user.clone(),
            secret,
            database: None,
        };
        let opened = login::open(way, &account, Wishes::default()).await;
        let ready = opened.map_err(|error| error.to_string())?;
        Ok((Link::of_established(ready.stream), ready.capabilities))
    }

    async fn ask(&self, (link, capabilities): &mut (Link, Capabilities)) -> Result<Said, String> {
        let rows = ask_on(link, *capabilities, IS_READ_ONLY).await;
        let rows = rows.map_err(|error| error.to_string())?;
        let [Some(is_read_only), Some(version)] = &rows.first().ok_or(SENSELESS)?[..] else {
            return Err(SENSELESS.to_owned());
        };
        if is_read_only == b"0" {
            return Ok(Said::Primary {
                timeline: 0,
                position: None,
            });
        }
        let lag = match ask_on(link, *capabilities, status_of(version)).await {
            Ok(rows) => rows.first().and_then(lag_of),
            // It may not tell.
            Err(AskError::Refused { .. }) => None,
            Err(error) => return Err(error.to_string()),
        };
        Ok(Said::Replica(Behind::Time(lag)))
    }
}

const SENSELESS: &str = "the answer makes no sense";

/// What a server of this version is asked for its lag.
fn status_of(version: &[u8]) -> &'static str {
    let text = String::from_utf8_lossy(version);
    let mut numbers = text.split(|sign: char| !sign.is_ascii_digit());
    let mut next = || {
        numbers
            .next()
            .and_then(|number| number.parse().ok())
            .unwrap_or(0_u32)
    };
    let number = (next(), next(), next());
    match number < (8, 0, 22) || text.contains("MariaDB") {
        true => STATUS_OF_OLD,
        false => STATUS,
    }
}

fn lag_of(row: &Row) -> Option<Duration> {
    let text = row.get(LAG_COLUMN)?.as_deref()?;
    let seconds = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_in_its_own_words() {
        for (version, statement) in [
            ("8.4.3", STATUS),
            ("8.0.22-log", STATUS),
            ("8.0.21", STATUS_OF_OLD),
            ("5.7.44", STATUS_OF_OLD),
            ("11.8.3-MariaDB-log", STATUS_OF_OLD),
            ("", STATUS_OF_OLD),
        ] {
            assert_eq!(status_of(version.as_bytes()), statement, "{version}");
        }
    }

    #[test]
    fn a_lag_is_a_number_of_seconds() {
        let mut row = vec![None; 60];
        assert_eq!(lag_of(&row), None);
        row[LAG_COLUMN] = Some(b"7".to_vec());
        assert_eq!(lag_of(&row), Some(Duration::from_secs(7)));
        assert_eq!(lag_of(&vec![None; 3]), None);
    }
}
