//! The pool as it was asked for.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use shortline_gate::GateConfig;
use shortline_gate::pool::PoolMode;
use shortline_gate::postgres::pool::Lookup;
use shortline_sched::units::Span;

use super::super::Kind;
use super::super::options::{GateOptions, PoolName};
use shortline_daemon::given::Given;

const SIZE: NonZeroUsize = NonZeroUsize::new(20).expect("not zero");
const STATEMENTS_MAX: NonZeroUsize = NonZeroUsize::new(200).expect("not zero");
const IDLE_TIME_MAX: Duration = Duration::from_secs(600);

/// A pool that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// How long connections are lent for.
    pub mode: PoolMode,
    /// Connections to the backend at most.
    pub size: NonZeroUsize,
    /// The file of those who may use it.
    pub users: PathBuf,
    /// Where users that it does not have are looked up.
    pub lookup: Option<Lookup>,
    /// When an idle connection is closed.
    pub idle_time_max: Duration,
    /// Prepared statements of a connection.
    pub statements_max: NonZeroUsize,
}

/// The pool, if there is to be one.
///
/// # Errors
/// Names the place of what makes no sense.
pub fn pool(kind: Kind, given: &Given<'_, GateOptions>) -> Result<Option<PoolSettings>, String> {
    let (flags, merged) = (given.flags, given.merged);
    let mode = match merged.pool {
        None | Some(PoolName::Off) => {
            refuse_without_pool(given)?;
            return Ok(None);
        }
        Some(PoolName::Session) => PoolMode::Session,
        Some(PoolName::Transaction) => PoolMode::Transaction,
    };
    let place = given.at(flags.pool.is_some(), "pool");
    match kind {
        Kind::Postgres => {}
        Kind::Mysql => refuse_of_postgres(given)?,
        Kind::Http => {
            return Err(format!(
                "{place}: is for gate postgres and gate mysql: leave it out"
            ));
        }
    }
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

/// PgBouncer's own.
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

/// With a pool that lends for transactions no more of them run than it has connections.
pub fn bound(gate: &mut GateConfig, pool: Option<&PoolSettings>) {
    let transactions = pool.filter(|pool| pool.mode == PoolMode::Transaction);
    gate.admission.running_max = transactions.map(|pool| pool.size);
}

/// MySQL's pool looks nobody up, and shares no prepared statements.
fn refuse_of_postgres(given: &Given<'_, GateOptions>) -> Result<(), String> {
    let (flags, merged) = (given.flags, given.merged);
    let useless = [
        (
            "pool-auth-user",
            flags.pool_auth_user.is_some(),
            merged.pool_auth_user.is_some(),
        ),
        (
            "pool-auth-query",
            flags.pool_auth_query.is_some(),
            merged.pool_auth_query.is_some(),
        ),
        (
            "pool-statements-max",
            flags.pool_statements_max.is_some(),
            merged.pool_statements_max.is_some(),
        ),
    ];
    match useless.iter().find(|(_, _, is_given)| *is_given) {
        None => Ok(()),
        Some(&(key, by_flag, _)) => Err(format!(
            "{}: is for gate postgres: leave it out",
            given.at(by_flag, key)
        )),
    }
}

fn refuse_without_pool(given: &Given<'_, GateOptions>) -> Result<(), String> {
    let (flags, merged) = (given.flags, given.merged);
    let useless = [
        (
            "admin-users",
            flags.admin_users.is_some(),
            merged.admin_users.is_some(),
        ),
        (
            "stats-users",
            flags.stats_users.is_some(),
            merged.stats_users.is_some(),
        ),
        (
            "pool-size",
            flags.pool_size.is_some(),
            merged.pool_size.is_some(),
        ),
        (
            "pool-users",
            flags.pool_users.is_some(),
            merged.pool_users.is_some(),
        ),
        (
            "pool-auth-user",
            flags.pool_auth_user.is_some(),
            merged.pool_auth_user.is_some(),
        ),
        (
            "pool-auth-query",
            flags.pool_auth_query.is_some(),
            merged.pool_auth_query.is_some(),
        ),
        (
            "pool-idle-max",
            flags.pool_idle_max.is_some(),
            merged.pool_idle_max.is_some(),
        ),
        (
            "pool-statements-max",
            flags.pool_statements_max.is_some(),
            merged.pool_statements_max.is_some(),
        ),
    ];
    match useless.iter().find(|(_, _, is_given)| *is_given) {
        None => Ok(()),
        Some(&(key, by_flag, _)) => Err(format!(
            "{}: there is no pool: add --pool transaction, or leave it out",
            given.at(by_flag, key)
        )),
    }
}
