//! Refuses options that have no effect for a gate of this kind, or without a pool.

use super::super::Kind;
use super::super::options::{GateOptions, PoolName};
use shortline_daemon::given::Given;

/// An option's field, whether a flag sets it, and whether it is set at all.
type Said = (&'static str, bool, bool);

macro_rules! said {
    ($given:ident: $($field:ident),* $(,)?) => {
        &[$((stringify!($field), $given.flags.$field.is_some(), $given.merged.$field.is_some())),*]
    };
}

/// Refuses the first option that has no effect.
///
/// # Errors
/// Names its place.
pub fn refuse(kind: Kind, given: &Given<'_, GateOptions>) -> Result<(), String> {
    match kind {
        Kind::Http => refuse_for_http(given)?,
        Kind::Mysql => refuse_for_mysql(given)?,
        Kind::Postgres => refuse_for_postgres(given)?,
    }
    match given.merged.pool {
        None | Some(PoolName::Off) => refuse_without_pool(given),
        Some(PoolName::Session | PoolName::Transaction) => refuse_with_pool(given),
    }
}

fn refuse_for_http(given: &Given<'_, GateOptions>) -> Result<(), String> {
    let of_databases = said![given:
        handover,
        proxy_from,
        send_proxy,
        application_name_add_host,
        monitor,
        monitor_password_file,
        tls_required,
        upstream_tls,
        types_from,
        admin_database,
        admin_users,
        stats_users,
        authentication_time_max,
        message_size_max,
        held_size_max,
        pipelined_max,
        statements_max,
        threads,
        idle_transaction_max,
        pool,
        pool_size,
        pool_users,
        pool_auth_user,
        pool_auth_query,
        pool_idle_max,
        pool_statements_max,
    ];
    refuse_each(
        given,
        of_databases,
        "means nothing to gate http: leave it out",
    )
}

fn refuse_for_mysql(given: &Given<'_, GateOptions>) -> Result<(), String> {
    let of_postgres = said![given:
        application_name_add_host,
        admin_database,
        admin_users,
        stats_users,
        pool_auth_user,
        pool_auth_query,
        pool_statements_max,
    ];
    refuse_each(given, of_postgres, "is for gate postgres: leave it out")
}

fn refuse_for_postgres(given: &Given<'_, GateOptions>) -> Result<(), String> {
    let why = "PostgreSQL does not know it; there is --application-name-add-host";
    refuse_each(given, said![given: send_proxy], why)
}

fn refuse_with_pool(given: &Given<'_, GateOptions>) -> Result<(), String> {
    let why = "a connection of the pool is for many clients: leave one of the two out";
    refuse_each(given, said![given: send_proxy], why)
}

fn refuse_without_pool(given: &Given<'_, GateOptions>) -> Result<(), String> {
    let of_pool = said![given:
        admin_users,
        stats_users,
        pool_size,
        pool_users,
        pool_auth_user,
        pool_auth_query,
        pool_idle_max,
        pool_statements_max,
    ];
    let why = "there is no pool: add --pool transaction, or leave it out";
    refuse_each(given, of_pool, why)
}

fn refuse_each(given: &Given<'_, GateOptions>, options: &[Said], why: &str) -> Result<(), String> {
    match options.iter().find(|(_, _, is_given)| *is_given) {
        None => Ok(()),
        Some(&(field, by_flag, _)) => {
            let place = given.at(by_flag, &field.replace('_', "-"));
            Err(format!("{place}: {why}"))
        }
    }
}
