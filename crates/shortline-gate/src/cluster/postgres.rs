//! Asks a PostgreSQL whether it is in recovery, and where its log is: functions that any role may call.

use std::time::Duration;

use super::{Asker, Behind, Looks, Said};
use crate::postgres::pool::ask::{Answer, ask};
use crate::postgres::pool::login::{Kind, Login, log_in};
use crate::postgres::reply::query;
use crate::relay::{Stream, Upstream};

/// The database to ask in, which every server has.
const DATABASE: &str = "postgres";

/// Whether it is a replica; its timeline, if it is not; and where its log is. A replica does not know of its
/// timeline what it is after it has followed a promotion, and need not.
const QUESTION: &str = "\
    select pg_catalog.pg_is_in_recovery()::int, \
    case when pg_catalog.pg_is_in_recovery() then 0 else \
    ('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int end, \
    (case when pg_catalog.pg_is_in_recovery() then pg_catalog.pg_last_wal_replay_lsn() \
    else pg_catalog.pg_current_wal_lsn() end - '0/0'::pg_catalog.pg_lsn)::bigint";

impl Looks for Asker<Login> {
    type Connection = Stream;

    async fn connect(&self, server: &Upstream, time_max: Duration) -> Result<Stream, String> {
        let login = (self.login)().ok_or_else(|| {
            format!(
                "{}, who asks servers what they are, has no line in --pool-users with a password or an MD5 hash",
                self.user
            )
        })?;
        let connecting = crate::postgres::connect_to(server, &self.tls, time_max);
        let stream = connecting.await.map_err(|error| error.to_string())?;
        let kind = Kind {
            user: self.user.clone(),
            database: DATABASE.to_owned(),
            startup: Default::default(),
        };
        let logged_in = log_in(stream, &kind, &login).await;
        Ok(logged_in.map_err(|error| error.to_string())?.stream)
    }

    async fn ask(&self, connection: &mut Stream) -> Result<Said, String> {
        let answered = ask(connection, &query(QUESTION)).await;
        let Answer { rows, .. } = answered.map_err(|error| error.to_string())?;
        let said = rows.first().and_then(|row| said(row));
        said.ok_or_else(|| "the answer makes no sense".to_owned())
    }
}

/// What a DataRow of the question says.
fn said(row: &[u8]) -> Option<Said> {
    let mut columns = columns(row)?.into_iter();
    let is_replica = columns.next()?? != 0;
    let timeline = columns.next()??;
    let position = columns.next()?.and_then(|at| u64::try_from(at).ok());
    Some(match is_replica {
        true => Said::Replica(position.map_or(Behind::Time(None), Behind::Replayed)),
        false => Said::Primary {
            timeline: u32::try_from(timeline).ok()?,
            position,
        },
    })
}

/// The columns of a DataRow's body, numbers as text.
fn columns(row: &[u8]) -> Option<Vec<Option<i64>>> {
    let (count, mut rest) = row.split_first_chunk::<2>()?;
    let mut columns = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*length);
        let Ok(length) = usize::try_from(length) else {
            columns.push(None);
            rest = behind;
            continue;
        };
        let (text, behind) = behind.split_at_checked(length)?;
        columns.push(Some(std::str::from_utf8(text).ok()?.parse().ok()?));
        rest = behind;
    }
    Some(columns)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(values: &[Option<&str>]) -> Vec<u8> {
        let mut row = (values.len() as u16).to_be_bytes().to_vec();
        for value in values {
            match value {
                None => row.extend((-1_i32).to_be_bytes()),
                Some(text) => {
                    row.extend((text.len() as i32).to_be_bytes());
                    row.extend(text.as_bytes());
                }
            }
        }
        row
    }

    #[test]
    fn an_answer_says_what_the_server_is() {
        let primary = Said::Primary {
            timeline: 3,
            position: Some(4096),
        };
        assert_eq!(
            said(&row(&[Some("0"), Some("3"), Some("4096")])),
            Some(primary)
        );
        let replica = Said::Replica(Behind::Replayed(7));
        assert_eq!(
            said(&row(&[Some("1"), Some("0"), Some("7")])),
            Some(replica)
        );
        // Before it has replayed anything.
        let replica = Said::Replica(Behind::Time(None));
        assert_eq!(said(&row(&[Some("1"), Some("0"), None])), Some(replica));
        assert_eq!(said(&row(&[Some("0"), Some("-1"), None])), None);
        assert_eq!(said(&row(&[None, None, None])), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            said(&bytes);
        }
    }
}
