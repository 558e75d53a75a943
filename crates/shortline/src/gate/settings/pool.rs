//! The settings of the pool.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use shortline_gate::GateConfig;
use shortline_gate::pool::PoolMode;
use shortline_gate::postgres::pool::Lookup;
use shortline_sched::units::Span;

use super::super::options::{GateOptions, PoolName};
use shortline_daemon::given::Given;

const SIZE: NonZeroUsize = NonZeroUsize::new(20).expect("not zero");
const STATEMENTS_MAX: NonZeroUsize = NonZeroUsize::new(200).expect("not zero");
const IDLE_TIME_MAX: Duration = Duration::from_secs(600);

/// The settings of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// How long connections are lent for.
    pub mode: PoolMode,
    /// The most connections to the backend.
    pub size: NonZeroUsize,
    /// The file of users.
    pub users: PathBuf,
    /// How to look up users that the file does not have.
    pub lookup: Option<Lookup>,
    /// An idle connection is closed after this time.
    pub idle_time_max: Duration,
    /// The most prepared statements of a connection.
    pub statements_max: NonZeroUsize,
}

/// The pool, if one is configured.
///
/// # Errors
/// Names the place of a missing or malformed value.
pub fn pool(given: &Given<'_, GateOptions>) -> Result<Option<PoolSettings>, String> {
    let (flags, merged) = (given.flags, given.merged);
    let mode = match merged.pool {
        None | Some(PoolName::Off) => return refuse_rules(given).map(|()| None),
        Some(PoolName::Session) => {
            refuse_rules(given)?;
            PoolMode::Session
        }
        Some(PoolName::Transaction) => PoolMode::Transaction,
    };
    let place = given.at(flags.pool.is_some(), "pool");
    let Some(users) = merged.pool_users.clone() else {
        return Err(format!(
            "{place}: a pool has to know its clients: add --pool-users FILE, with lines of \"user\" \"password\""
        ));
    };
    Ok(Some(PoolSettings {
        mode,
        size: merged.pool_size.unwrap_or(SIZE),
        users,
        lookup: lookup(given)?,
        idle_time_max: merged.pool_idle_max.map_or(IDLE_TIME_MAX, Span::duration),
        statements_max: merged.pool_statements_max.unwrap_or(STATEMENTS_MAX),
    }))
}

/// Refuses rules on the mode where there is none to choose. A pool of sessions has no places by transaction.
fn refuse_rules(given: &Given<'_, GateOptions>) -> Result<(), String> {
    let mut rules = given.merged.rule.iter().flatten().zip(1..);
    match rules.find(|(rule, _)| rule.pool.is_some()) {
        None => Ok(()),
        Some((_, position)) => Err(format!(
            "{}: rule {position}: pool: takes --pool transaction, of which it makes exceptions: add that, or leave \
             it out",
            given.at(false, "rule")
        )),
    }
}

/// PgBouncer's default query.
const LOOKUP_QUERY: &str = "SELECT usename, passwd FROM pg_catalog.pg_shadow WHERE usename = $1";

fn lookup(given: &Given<'_, GateOptions>) -> Result<Option<Lookup>, String> {
    let (flags, merged) = (given.flags, given.merged);
    let place = || given.at(flags.pool_auth_query.is_some(), "pool-auth-query");
    match (
        merged.pool_auth_user.clone(),
        merged.pool_auth_query.clone(),
    ) {
        (None, Some(_)) => Err(format!("{}: who asks? Add --pool-auth-user NAME", place())),
        (Some(_), Some(query)) if !query.contains("$1") => Err(format!(
            "{}: has no $1, where the user's name goes",
            place()
        )),
        (user, query) => Ok(user.map(|user| Lookup {
            user,
            query: query.unwrap_or_else(|| LOOKUP_QUERY.to_owned()),
        })),
    }
}

/// If the pool lends for transactions, no more of them run than it has connections.
pub fn bound(gate: &mut GateConfig, pool: Option<&PoolSettings>) {
    let transactions = pool.filter(|pool| pool.mode == PoolMode::Transaction);
    gate.admission.running_max = transactions.map(|pool| pool.size);
}
