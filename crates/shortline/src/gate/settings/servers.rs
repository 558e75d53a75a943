//! Several servers behind a gate, and how they are watched.

use std::time::Duration;

use shortline_gate::cluster::{ClusterConfig, SERVERS_MAX};
use shortline_gate::pool::PoolMode;
use shortline_gate::relay::{Upstream, UpstreamError};
use shortline_sched::units::Span;
use shortline_web::proxy::UpstreamAddress;

use super::super::Kind;
use super::super::options::GateOptions;
use super::pool::PoolSettings;
use shortline_daemon::given::Given;

const EVERY: Duration = Duration::from_secs(1);
const EVERY_MIN: Duration = Duration::from_millis(50);
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
const LAG_MAX: Duration = Duration::from_secs(10);
const PRIMARY_WAIT_MAX: Duration = Duration::from_secs(30);

/// The servers, if `upstream` names several databases.
///
/// # Errors
/// Names the place of what does not go together.
pub fn cluster(
    kind: Kind,
    upstream: &str,
    pool: Option<&PoolSettings>,
    given: &Given<'_, GateOptions>,
) -> Result<Option<ClusterConfig>, String> {
    let (flags, merged) = (given.flags, given.merged);
    let is_one = kind == Kind::Http || !upstream.contains(',') || is_path(upstream);
    if is_one {
        return refuse_for_one(kind, given).map(|()| None);
    }
    let place = given.at(flags.upstream.is_some(), "upstream");
    let servers = servers(upstream).map_err(|problem| format!("{place}: {problem}"))?;
    if pool.is_none_or(|pool| pool.mode != PoolMode::Transaction) {
        return Err(format!(
            "{place}: several servers take --pool transaction: without it a client has one connection, to one server"
        ));
    }
    if let Some(url) = merged.monitor.as_ref()
        && !servers.contains(url.upstream())
    {
        return Err(format!(
            "{}: {} is none of the servers: name one of them, and all are asked as its user",
            given.at(flags.monitor.is_some(), "monitor"),
            url.upstream()
        ));
    }
    if merged.handover.is_some() {
        return Err(format!(
            "{}: hands over sessions of one server, and there are {}: leave it out",
            given.at(flags.handover.is_some(), "handover"),
            servers.len()
        ));
    }
    let Some(user) = merged.watch_user.clone() else {
        return Err(format!(
            "{place}: which of these is the primary? Add --watch-user NAME, a user of --pool-users who asks them"
        ));
    };
    Ok(Some(ClusterConfig {
        servers,
        user,
        every: every(given)?,
        answer_time_max: given.time(
            "watch-time-max",
            |options| options.watch_time_max,
            ANSWER_TIME_MAX,
        )?,
        lag_max: merged.lag_max.map_or(LAG_MAX, Span::duration),
        primary_wait_max: merged
            .primary_wait_max
            .map_or(PRIMARY_WAIT_MAX, Span::duration),
    }))
}

fn every(given: &Given<'_, GateOptions>) -> Result<Duration, String> {
    let every = given.time("watch-every", |options| options.watch_every, EVERY)?;
    match every < EVERY_MIN {
        false => Ok(every),
        true => Err(format!(
            "{}: must be at least {} ms",
            given.at(given.flags.watch_every.is_some(), "watch-every"),
            EVERY_MIN.as_millis()
        )),
    }
}

/// The addresses as they are used: a host alone is at the usual port.
///
/// # Errors
/// One of them is none.
pub fn completed(kind: Kind, upstream: &str) -> Result<String, UpstreamError> {
    let Some(port) = kind.port_usual().filter(|_| !is_path(upstream)) else {
        return Ok(as_http(upstream));
    };
    let read = |text: &str| Upstream::read(text.trim(), Some(port)).map(|one| one.to_string());
    let servers: Result<Vec<String>, UpstreamError> = upstream.split(',').map(read).collect();
    servers.map(|servers| servers.join(","))
}

/// The same of servers that speak HTTP. One that is none is refused where it is used.
fn as_http(upstream: &str) -> String {
    let read = |text: &str| match text.trim().parse::<UpstreamAddress>() {
        Ok(address) => address.to_string(),
        Err(_) => text.trim().to_owned(),
    };
    upstream.split(',').map(read).collect::<Vec<_>>().join(",")
}

/// A path of a socket may have a comma.
fn is_path(upstream: &str) -> bool {
    upstream
        .parse()
        .is_ok_and(|upstream: Upstream| upstream.is_path())
}

fn servers(upstream: &str) -> Result<Vec<Upstream>, String> {
    let mut servers: Vec<Upstream> = Vec::new();
    for text in upstream.split(',') {
        let server = text.trim().parse::<Upstream>();
        let server = server.map_err(|error| error.to_string())?;
        if servers.contains(&server) {
            return Err(format!("{server} stands there twice"));
        }
        servers.push(server);
    }
    match servers.len() > SERVERS_MAX {
        true => Err(format!(
            "{} servers: at most {SERVERS_MAX} are allowed",
            servers.len()
        )),
        false => Ok(servers),
    }
}

/// What is of several servers is refused where there is one, so that nobody counts on it.
fn refuse_for_one(kind: Kind, given: &Given<'_, GateOptions>) -> Result<(), String> {
    let (flags, merged) = (given.flags, given.merged);
    let of_several = [
        (
            "watch-user",
            flags.watch_user.is_some(),
            merged.watch_user.is_some(),
        ),
        (
            "watch-every",
            flags.watch_every.is_some(),
            merged.watch_every.is_some(),
        ),
        (
            "watch-time-max",
            flags.watch_time_max.is_some(),
            merged.watch_time_max.is_some(),
        ),
        ("lag-max", flags.lag_max.is_some(), merged.lag_max.is_some()),
        (
            "primary-wait-max",
            flags.primary_wait_max.is_some(),
            merged.primary_wait_max.is_some(),
        ),
    ];
    let why = match kind {
        Kind::Http => "means nothing to gate http: leave it out",
        _ => "there is one server: give several as --upstream A,B, or leave it out",
    };
    if let Some((key, by_flag, _)) = of_several.iter().find(|(_, _, is_given)| *is_given) {
        return Err(format!("{}: {why}", given.at(*by_flag, key)));
    }
    let mut rules = merged.rule.iter().flatten().zip(1..);
    match rules.find(|(rule, _)| rule.server.is_some() && kind != Kind::Http) {
        None => Ok(()),
        Some((_, position)) => Err(format!(
            "{}: rule {position}: server: {why}",
            given.at(false, "rule")
        )),
    }
}
