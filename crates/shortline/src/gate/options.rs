//! Every option of `shortline gate`, each defined once: as a flag and as a key of the table `[gate]`
//! of the configuration file (`--wait-max 60s` is `wait-max = "60s"`).
//!
//! What is left out is `None` here; the defaults are those of the rooms that use the values.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::Deserialize;
use shortline_gate::classify::{RuleText, Source, Trusted};
use shortline_gate::locks::MonitorUrl;
use shortline_sched::Aging;
use shortline_sched::admission::{Capacity, Estimator, OldestShare};
use shortline_sched::units::{Size, Span};

use shortline_daemon::admin::HostName;
use shortline_daemon::keys::{all_from_text, some_from_text};
use shortline_daemon::overlay;

/// `[gate]`: what is relayed where, and who waits.
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Addresses")]
pub struct GateOptions {
    /// Take clients' connections at this address; may be given again
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<Vec<SocketAddr>>,
    /// Where the backend takes them; for http also https://HOST:PORT, unix:/PATH, and several apart
    /// by commas
    #[arg(long, value_name = "HOST:PORT")]
    pub upstream: Option<String>,
    /// Ask the database as this user which statements wait for a lock there, which is no service:
    /// postgres://USER@HOST:PORT/DATABASE or mysql://USER@HOST:PORT [default: nobody asks]
    #[arg(long, value_name = "URL")]
    #[serde(deserialize_with = "some_from_text")]
    pub monitor: Option<MonitorUrl>,
    /// The first line of this file is that user's password
    #[arg(long, value_name = "FILE")]
    pub monitor_password_file: Option<PathBuf>,
    /// Speak TLS to clients that ask for it, with this certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Turn clients without TLS away [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub tls_required: Option<bool>,
    /// Whether the backend is spoken to with TLS, and how far its certificate is checked: follow,
    /// with TLS for clients that have it; disable, prefer, require, or verify-full by --upstream-ca
    /// [default: follow]
    #[arg(long, value_name = "HOW")]
    pub upstream_tls: Option<UpstreamTlsMode>,
    /// The authorities that sign the backend's certificate (PEM), for verify-full; for http, of an
    /// https:// upstream [default there: those of the system]
    #[arg(long, value_name = "FILE")]
    pub upstream_ca: Option<PathBuf>,

    /// Who goes first of those that wait: fifo or sjf, shortest estimate first [default: sjf]
    #[arg(long, value_name = "NAME", help_heading = "Admission")]
    pub policy: Option<PolicyName>,
    /// Let a shorter request pass others only if that pushes none of them beyond X times its
    /// expected service (sjf)
    #[arg(long, value_name = "X", help_heading = "Admission")]
    pub aging: Option<Aging>,
    /// Let whoever has waited longest have so much of the work (sjf): 0 for the shortest first, whoever
    /// starves [default: 10%]
    #[arg(long, value_name = "SHARE", help_heading = "Admission")]
    #[serde(deserialize_with = "some_from_text")]
    pub oldest_share: Option<OldestShare>,
    /// How much may run at once: a sum of estimated service times, such as 400ms; auto, what lets
    /// the backend do most; calibrate, which searches for that once under the load that runs, and
    /// tells it; or off, for everything [default: auto]
    #[arg(
        long,
        value_name = "TIME|auto|calibrate|off",
        help_heading = "Admission"
    )]
    #[serde(deserialize_with = "some_from_text")]
    pub capacity: Option<Capacity>,
    /// How long calibrate tries each capacity at least [default: 5s]
    #[arg(long, value_name = "TIME", help_heading = "Admission")]
    pub trial_time: Option<Span>,
    /// Requests that may wait at once; one more is refused [default: 10000]
    #[arg(long, value_name = "N", help_heading = "Admission")]
    pub queue_max: Option<NonZeroUsize>,
    /// Time a request may wait before it is refused [default: 2min]
    #[arg(long, value_name = "TIME", help_heading = "Admission")]
    pub wait_max: Option<Span>,
    /// Refuse a request at once that is expected to wait for longer [default: wait nevertheless]
    #[arg(long, value_name = "TIME", help_heading = "Admission")]
    pub shed: Option<Span>,
    /// Let the next request in if nothing has started or ended for so long, for what runs may
    /// wait for it; 0s for never [default: 10s]
    #[arg(long, value_name = "TIME", help_heading = "Admission")]
    pub stall_max: Option<Span>,
    /// Admit everything at once, and only count what would have waited [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true, help_heading = "Admission")]
    pub dry_run: Option<bool>,

    /// What tells the type of a statement that no rule names, the first that knows something:
    /// tag, application-name, statement [default: tag,statement]
    #[arg(
        long,
        value_name = "SOURCE",
        value_delimiter = ',',
        help_heading = "Types of requests"
    )]
    #[serde(deserialize_with = "all_from_text")]
    pub types_from: Option<Vec<Source>>,
    /// Whose tags count, of rules and of types-from: networks of clients' addresses, user:NAME, or any
    /// [default: nobody's]
    #[arg(
        long,
        value_name = "NETWORK|user:NAME|any",
        value_delimiter = ',',
        help_heading = "Types of requests"
    )]
    #[serde(deserialize_with = "all_from_text")]
    pub tags_from: Option<Vec<Trusted>>,
    /// Types told apart; the rare share one [default: 1000]
    #[arg(long, value_name = "N", help_heading = "Types of requests")]
    pub types_max: Option<NonZeroUsize>,
    /// How a type's service time comes from its last requests: median-of-means, which
    /// outliers do not move, or moving-average [default: median-of-means]
    #[arg(long, value_name = "NAME", help_heading = "Types of requests")]
    #[serde(deserialize_with = "some_from_text")]
    pub estimator: Option<Estimator>,
    /// Keep what was learnt in this file, over restarts
    #[arg(long, value_name = "FILE", help_heading = "Types of requests")]
    pub estimates: Option<PathBuf>,
    /// Take the estimates of that file as they are: what has run since changes none of them, and the
    /// file is not written [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true, help_heading = "Types of requests")]
    pub estimates_fixed: Option<bool>,
    /// Rules that name types, the first that matches (`[[gate.rule]]` of the file only)
    #[arg(skip)]
    pub rule: Option<Vec<RuleText>>,

    /// Tell a page, /metrics and /status at this address; never queued, keep it private
    #[arg(long, value_name = "ADDR", help_heading = "Admin and log")]
    pub admin: Option<SocketAddr>,
    /// Open connections to it [default: 64]
    #[arg(long, value_name = "N", help_heading = "Admin and log")]
    pub admin_connections_max: Option<NonZeroUsize>,
    /// Answer requests that ask for it by this name, beside IP addresses and localhost; may be given
    /// again
    #[arg(long, value_name = "NAME", help_heading = "Admin and log")]
    pub admin_host: Option<Vec<HostName>>,
    /// Types of requests that /metrics tells apart, those with most work; the rest are one
    /// [default: 50]
    #[arg(long, value_name = "N", help_heading = "Admin and log")]
    pub metrics_types_max: Option<NonZeroUsize>,
    /// The database whose connections get SHOW commands of the gate instead of the backend, from
    /// this machine's root and the gate's own user; empty for none (postgres) [default: shortline]
    #[arg(long, value_name = "NAME", help_heading = "Admin and log")]
    pub admin_database: Option<String>,
    /// Users of this machine who are answered there, too, by their numbers
    #[arg(
        long,
        value_name = "UID",
        value_delimiter = ',',
        help_heading = "Admin and log"
    )]
    pub admin_uids: Option<Vec<u32>>,
    /// Log each request that has waited for longer, and tell its client in a notice
    #[arg(long, value_name = "TIME", help_heading = "Admin and log")]
    pub slow_wait: Option<Span>,
    /// How the log is written: text or json [default: text]
    #[arg(long, value_name = "FORMAT", help_heading = "Admin and log")]
    pub log_format: Option<LogFormat>,

    /// Open connections of clients; one more is told so and closed [default: 10000]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub connections_max: Option<NonZeroUsize>,
    /// Time from a connection's acceptance to the end of its authentication [default: 60s]
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub authentication_time_max: Option<Span>,
    /// Time to connect to the backend [default: 10s]
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub connect_time_max: Option<Span>,
    /// A message of the protocol [default: 1GiB less 2 bytes]
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub message_size_max: Option<Size>,
    /// What is kept of a client whose request waits; the rest stays in its socket [default: 16KiB]
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub held_size_max: Option<Size>,
    /// Answers a client may be owed before no more is taken from it [default: 1024]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub pipelined_max: Option<NonZeroUsize>,
    /// Prepared statements of a connection whose type is remembered [default: 512]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub statements_max: Option<NonZeroUsize>,
    /// Threads that relay [default: one for two processors]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub threads: Option<NonZeroUsize>,
    /// Time that transactions under way have left after SIGTERM [default: 30s]
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub drain: Option<Span>,
}

/// How the backend is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpstreamTlsMode {
    /// With TLS for clients that have it, if the backend has it, and without for the others; its
    /// certificate is not checked.
    Follow,
    /// Without TLS.
    Disable,
    /// With TLS if the backend has it; its certificate is not checked.
    Prefer,
    /// With TLS or not at all; its certificate is not checked.
    Require,
    /// With TLS, a certificate that the authorities signed, and the name of the backend in it.
    VerifyFull,
}

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyName {
    /// In order of arrival.
    Fifo,
    /// Shortest estimate first.
    Sjf,
}

impl PolicyName {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Sjf => "sjf",
        }
    }
}

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// An object a line.
    Json,
}

overlay!(GateOptions {
    listen,
    upstream,
    monitor,
    monitor_password_file,
    tls_cert,
    tls_key,
    tls_required,
    upstream_tls,
    upstream_ca,
    policy,
    aging,
    oldest_share,
    capacity,
    trial_time,
    queue_max,
    wait_max,
    shed,
    stall_max,
    dry_run,
    types_from,
    tags_from,
    types_max,
    estimator,
    estimates,
    estimates_fixed,
    rule,
    admin,
    admin_connections_max,
    admin_host,
    metrics_types_max,
    admin_database,
    admin_uids,
    slow_wait,
    log_format,
    connections_max,
    authentication_time_max,
    connect_time_max,
    message_size_max,
    held_size_max,
    pipelined_max,
    statements_max,
    threads,
    drain,
});
