//! From flags and file to the gate's settings. Flags override the table `[gate]`, and the table
//! overrides the defaults.
//!
//! A contradiction is an error. It names the flag, or the file, line and key.

mod admission;
mod limits;
mod monitor;
mod pool;
mod servers;
mod strange;
mod tenants;

#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use shortline_gate::GateConfig;
use shortline_gate::classify::{ClassifierConfig, Dialect, Protocol};
use shortline_gate::cluster::ClusterConfig;
use shortline_gate::locks::MonitorUrl;
use shortline_gate::relay::Limits;

pub use admission::RouteGate;
pub use pool::PoolSettings;

use super::options::{GateOptions, LogFormat, PolicyName, PoolName, UpstreamTlsMode};
use super::series::TYPES_MAX_DEFAULT;
use super::{Args, Kind};
use crate::file::File;
use shortline_command::CommandError;
use shortline_daemon::admin::HostName;
use shortline_daemon::file::{self, Place};
use shortline_daemon::given::{Given, count};
use shortline_daemon::keys::Overlay;
use shortline_daemon::sockets::Address;
use shortline_sched::Network;

const ADMIN_DATABASE: &str = "shortline";

/// The complete settings of `shortline gate`, without contradictions.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The options as given, to notice a change.
    pub options: GateOptions,
    /// What the backend speaks.
    pub kind: Kind,
    /// The addresses that clients connect to. Empty if systemd hands sockets over.
    pub listen: Vec<Address>,
    /// Whether other processes may listen on these addresses, too.
    pub reuse_port: bool,
    /// Where a running gate hands over, and this one to the next.
    pub handover: Option<PathBuf>,
    /// Proxies in these networks announce the client's address.
    pub proxies: Vec<Network>,
    /// Whether connections to the backend begin with the client's address.
    pub announces_clients: bool,
    /// Whether the backend sees the client's address in `application_name`.
    pub tells_address: bool,
    /// The backend's address as given.
    pub upstream: String,
    /// TLS towards clients.
    pub client_tls: Option<CertificateFiles>,
    /// Whether clients without TLS are rejected.
    pub is_tls_required: bool,
    /// TLS towards the backend.
    pub upstream_tls: UpstreamTlsMode,
    /// The authorities of the backend's certificate. Set for `verify-full`.
    pub upstream_ca: Option<PathBuf>,
    /// The database that the monitor asks for waits for locks.
    pub monitor: Option<MonitorUrl>,
    /// The file with the monitor's password.
    pub monitor_password_file: Option<PathBuf>,
    /// The settings of admission.
    pub gate: GateConfig,
    /// The rules for types.
    pub classifier: ClassifierConfig,
    /// The relay's limits.
    pub limits: Limits,
    /// The pool of connections to the backend.
    pub pool: Option<PoolSettings>,
    /// The servers, if there are several databases.
    pub cluster: Option<ClusterConfig>,
    /// The file of estimates.
    pub estimates: Option<PathBuf>,
    /// The format of the log.
    pub log_format: LogFormat,
    /// The address of the admin endpoint.
    pub admin: Option<Address>,
    /// The most open connections to it.
    pub admin_connections_max: Option<NonZeroUsize>,
    /// The host names it answers to, besides addresses and localhost.
    pub admin_hosts: Vec<HostName>,
    /// The most types with their own metrics.
    pub metrics_types_max: usize,
    /// The name of the admin database. Empty for none.
    pub admin_database: String,
    /// Users of this machine that may use the admin database, besides root and the gate's own.
    pub admin_uids: Vec<u32>,
    /// Users of the pool that may give all its commands.
    pub admin_users: Vec<String>,
    /// Users of the pool that may only SHOW.
    pub stats_users: Vec<String>,
}

impl Settings {
    /// What the log says of it at the start: where to, how much at once, in which order, and over whose connections.
    pub fn start_line(&self) -> String {
        let admission = &self.gate.admission;
        let policy = self.options.policy.map_or("sjf", PolicyName::name);
        let pool = match self.options.pool {
            _ if self.kind == Kind::Http => String::new(),
            None | Some(PoolName::Off) => {
                "; pool off: each client has its own connection".to_owned()
            }
            Some(pool) => format!("; pool {}", pool.name()),
        };
        let dry_run = if admission.dry_run {
            "; a dry run: nothing waits"
        } else {
            ""
        };
        format!(
            "backend {}; capacity {}; policy {policy}{pool}{dry_run}",
            self.upstream, admission.capacity
        )
    }
}

/// A certificate chain and its key, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain.
    pub cert: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// Reads the file that the flags name, if any, and overrides it with the flags.
///
/// # Errors
/// [`CommandError`]: the file cannot be read, or values do not fit together.
pub fn read(args: &Args) -> Result<Settings, CommandError> {
    let (file, source) = file::read_if_named::<File>(args.config.as_deref())
        .map_err(|error| CommandError::told(error.is_usage(), error))?;
    let merged = args.options.clone().over(file.gate);
    let place = Place {
        source: &source,
        table: "gate",
    };
    let given = Given {
        flags: &args.options,
        merged: &merged,
        place: &|by_flag, key| place.of(by_flag, key, key),
    };
    let kind = args
        .kind
        .ok_or_else(|| CommandError::usage("gate: which KIND: http, postgres or mysql?"))?;
    resolve(kind, &given).map_err(CommandError::Usage)
}

fn resolve(kind: Kind, given: &Given<'_, GateOptions>) -> Result<Settings, String> {
    refuse_contradictions(given)?;
    if kind == Kind::Http {
        refuse_for_http(given)?;
    } else {
        refuse_unchecked_authorities(given)?;
    }
    strange::refuse(kind, given)?;
    let protocol = match kind {
        Kind::Http => Protocol::Http,
        Kind::Postgres => Protocol::Sql(Dialect::Postgres),
        Kind::Mysql => Protocol::Sql(Dialect::MySql),
    };
    let merged = given.merged.clone();
    let pool = pool::pool(given)?;
    let mut gate = admission::gate(given)?;
    pool::bound(&mut gate, pool.as_ref());
    let upstream = merged.upstream.as_deref().ok_or_else(|| {
        format!(
            "gate {}: where is the backend? Add --upstream HOST:PORT, or the key gate.upstream to the file",
            kind.name()
        )
    })?;
    let upstream = servers::completed(kind, upstream).map_err(|error| {
        format!(
            "{}: {error}",
            given.at(given.flags.upstream.is_some(), "upstream")
        )
    })?;
    Ok(Settings {
        cluster: servers::cluster(kind, &upstream, pool.as_ref(), given)?,
        classifier: admission::classifier(given, protocol)?,
        monitor: monitor::monitor(kind, given)?,
        monitor_password_file: merged.monitor_password_file.clone(),
        gate,
        pool,
        limits: limits::limits(given)?,
        options: merged.clone(),
        kind,
        listen: merged.listen.unwrap_or_default(),
        reuse_port: merged.reuse_port.unwrap_or(false),
        handover: merged.handover.map(|path| path.0),
        proxies: merged.proxy_from.unwrap_or_default(),
        announces_clients: merged.send_proxy.unwrap_or(false),
        tells_address: merged.application_name_add_host.unwrap_or(false),
        upstream,
        client_tls: merged
            .tls_cert
            .zip(merged.tls_key)
            .map(|(cert, key)| CertificateFiles { cert, key }),
        is_tls_required: merged.tls_required.unwrap_or(false),
        upstream_tls: merged.upstream_tls.unwrap_or(UpstreamTlsMode::Follow),
        upstream_ca: merged.upstream_ca,
        estimates: merged.estimates,
        log_format: merged.log_format.unwrap_or_default(),
        admin: merged.admin.map(|address| address.0),
        admin_connections_max: merged.admin_connections_max,
        admin_hosts: merged.admin_host.unwrap_or_default(),
        metrics_types_max: count(merged.metrics_types_max, TYPES_MAX_DEFAULT),
        admin_database: merged
            .admin_database
            .unwrap_or_else(|| ADMIN_DATABASE.to_owned()),
        admin_uids: merged.admin_uids.unwrap_or_default(),
        admin_users: merged.admin_users.unwrap_or_default(),
        stats_users: merged.stats_users.unwrap_or_default(),
    })
}

fn refuse_contradictions(given: &Given<'_, GateOptions>) -> Result<(), String> {
    let (flags, merged) = (given.flags, given.merged);
    if merged.tls_cert.is_some() != merged.tls_key.is_some() {
        return Err(format!(
            "{}: tls-cert and tls-key belong together: give both or neither",
            given.at(
                flags.tls_cert.is_some() || flags.tls_key.is_some(),
                "tls-cert"
            )
        ));
    }
    if merged.tls_required == Some(true) && merged.tls_cert.is_none() {
        return Err(format!(
            "{}: nobody can speak TLS without a certificate: add --tls-cert and --tls-key",
            given.at(flags.tls_required.is_some(), "tls-required")
        ));
    }
    Ok(())
}

/// For databases: refuses verify-full without authorities, and authorities without verify-full.
fn refuse_unchecked_authorities(given: &Given<'_, GateOptions>) -> Result<(), String> {
    let (flags, merged) = (given.flags, given.merged);
    let verifies = merged.upstream_tls == Some(UpstreamTlsMode::VerifyFull);
    if verifies && merged.upstream_ca.is_none() {
        return Err(format!(
            "{}: verify-full needs the authorities that sign the backend's certificate: add \
             --upstream-ca FILE",
            given.at(flags.upstream_tls.is_some(), "upstream-tls")
        ));
    }
    if merged.upstream_ca.is_some() && !verifies {
        return Err(format!(
            "{}: is used by --upstream-tls verify-full alone: add that, or leave it out",
            given.at(flags.upstream_ca.is_some(), "upstream-ca")
        ));
    }
    Ok(())
}

/// For HTTP: refuses a Unix socket to listen on, and authorities for backends without TLS.
fn refuse_for_http(given: &Given<'_, GateOptions>) -> Result<(), String> {
    let upstream = given.merged.upstream.as_deref().unwrap_or_default();
    if given.merged.upstream_ca.is_some() && !upstream.contains("https://") {
        return Err(format!(
            "{}: is for backends with TLS: give --upstream https://HOST:PORT, or leave it out",
            given.at(given.flags.upstream_ca.is_some(), "upstream-ca")
        ));
    }
    let listen = given.merged.listen.iter().flatten();
    if let Some(path) = listen.clone().find(|at| matches!(at, Address::Unix(_))) {
        return Err(format!(
            "{}: gate http listens by TCP, not on {path}",
            given.at(given.flags.listen.is_some(), "listen")
        ));
    }
    Ok(())
}
