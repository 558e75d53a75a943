//! The settings of tenants.

use std::collections::BTreeMap;

use shortline_gate::TenantTable;
use shortline_gate::classify::{Protocol, TenantBy, Trusted};
use shortline_sched::admission::{DEFAULT_TENANT, TenantLimits};

use super::super::options::GateOptions;
use shortline_daemon::given::Given;

/// The name for the limits of all tenants without limits of their own.
const OTHERS: &str = "*";

/// The weights and limits of tenants.
///
/// # Errors
/// Names the place of a tenant that no request can have.
pub fn tenants(given: &Given<'_, GateOptions>) -> Result<TenantTable, String> {
    let mut named = given.merged.tenant.clone().unwrap_or_default();
    for name in named.keys() {
        if name != OTHERS && name != DEFAULT_TENANT && !is_named(given.merged, name) {
            return Err(format!(
                "{}: nothing is of tenant `{name}`: add a rule with tenant = \"{name}\", or tenant-by",
                given.at(false, "tenant")
            ));
        }
    }
    let others = named.remove(OTHERS).unwrap_or_default();
    Ok(TenantTable { named, others })
}

/// Whether a request can have the tenant of that name.
fn is_named(options: &GateOptions, name: &str) -> bool {
    let is_by_name = !matches!(options.tenant_by, None | Some(TenantBy::None));
    let mut rules = options.rule.iter().flatten();
    is_by_name || rules.any(|rule| rule.tenant.as_deref() == Some(name))
}

/// The source of tenants' names.
///
/// # Errors
/// Names the place of a source or limit that the protocol does not have, or of a claim that counts from no client.
pub fn tenant_by(given: &Given<'_, GateOptions>, protocol: Protocol) -> Result<TenantBy, String> {
    let tenant_by = given.merged.tenant_by.clone().unwrap_or_default();
    let place = || given.at(given.flags.tenant_by.is_some(), "tenant-by");
    let is_strange = match tenant_by {
        TenantBy::None => false,
        TenantBy::Host | TenantBy::Header(_) => protocol != Protocol::Http,
        _ => protocol == Protocol::Http,
    };
    if is_strange {
        return Err(format!(
            "{}: `{tenant_by}` means nothing to a gate for {protocol}: choose {}",
            place(),
            match protocol {
                Protocol::Http => "none, host or header:NAME",
                Protocol::Sql(_) => "none, user, database, application-name or tag:KEY",
            }
        ));
    }
    refuse_tags_of_http(given, protocol, &tenant_by)?;
    if tenant_by.is_claim() && given.merged.tags_from.as_ref().is_none_or(Vec::is_empty) {
        return Err(format!(
            "{}: `{tenant_by}` is a client's own claim, and nobody's counts: add tags-from, such as \
             [\"10.0.1.0/24\", \"user:shop\"]",
            place()
        ));
    }
    let has_connections = |table: &BTreeMap<String, TenantLimits>| {
        table.values().any(|each| each.connections_max.is_some())
    };
    if protocol == Protocol::Http && given.merged.tenant.as_ref().is_some_and(has_connections) {
        return Err(format!(
            "{}: connections-max means nothing to a gate for HTTP, whose connections are nobody's: leave it out",
            given.at(false, "tenant")
        ));
    }
    Ok(tenant_by)
}

/// HTTP has no tags. There, `tags-from` names the networks of proxies whose header counts.
fn refuse_tags_of_http(
    given: &Given<'_, GateOptions>,
    protocol: Protocol,
    tenant_by: &TenantBy,
) -> Result<(), String> {
    let tags_from = given.merged.tags_from.as_deref().unwrap_or_default();
    if protocol != Protocol::Http || tags_from.is_empty() {
        return Ok(());
    }
    let place = given.at(given.flags.tags_from.is_some(), "tags-from");
    if !matches!(tenant_by, TenantBy::Header(_)) {
        return Err(format!(
            "{place}: for HTTP says whose header counts, and none is read: add tenant-by header:NAME, or leave it out"
        ));
    }
    let user = tags_from
        .iter()
        .find(|trusted| matches!(trusted, Trusted::User(_)));
    match user {
        Some(user) => Err(format!(
            "{place}: `{user}`: HTTP's clients have not logged in: give the networks of your proxies"
        )),
        None => Ok(()),
    }
}

/// The names of tenants.
pub fn names(given: &Given<'_, GateOptions>) -> Vec<String> {
    let names = given.merged.tenant.iter().flat_map(BTreeMap::keys);
    names.filter(|name| *name != OTHERS).cloned().collect()
}
