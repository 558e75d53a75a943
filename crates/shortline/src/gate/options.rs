//! Every option of `shortline gate`, each defined once: as a flag and as a key of the table `[gate]`
//! of the configuration file (`--wait-max 60s` is `wait-max = "60s"`).
//!
//! An option that is left out is `None`. The code that uses a value defines its default.

mod names;
mod overlaid;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::Deserialize;
use shortline_gate::classify::{RuleText, Source, TenantBy, Trusted};
use shortline_gate::locks::MonitorUrl;
use shortline_sched::Aging;
use shortline_sched::Estimator;
use shortline_sched::admission::{Capacity, OldestShare, OpenUp, Runaway, TenantLimits};
use shortline_sched::units::{Size, Span};

use shortline_daemon::admin::HostName;
use shortline_daemon::keys::{all_from_text, one_or_more, some_from_text};
use shortline_daemon::sockets::{Address, AdminAddress, PrivatePath};
use shortline_sched::Network;

pub use names::{LogFormat, PolicyName, PoolName, UpstreamTlsMode};

/// `[gate]`: what is relayed where, and who waits.
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Addresses")]
pub struct GateOptions {
    /// Accept clients at this address, or at unix:/PATH (postgres, mysql); may be given again
    ///
    /// Required, unless systemd hands a socket over. Everybody of the machine may connect to a Unix socket, as to
    /// PostgreSQL's own; one that nobody listens on any more is replaced.
    #[arg(long, value_name = "ADDR")]
    #[serde(deserialize_with = "all_from_text")]
    pub listen: Option<Vec<Address>>,
    /// Let other processes listen on the same addresses, which say so too, for a restart without a gap [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub reuse_port: Option<bool>,
    /// Take over addresses and clients from the gate that listens at unix:/PATH, and hand them over there to the
    /// next one: a restart without dropping a client (postgres, mysql)
    ///
    /// Give it to both. Only processes of the gate's own user may connect. Pooled sessions move when no transaction
    /// of theirs is open; others stay with the old gate for --drain at most.
    #[arg(long, value_name = "unix:PATH")]
    #[serde(deserialize_with = "some_from_text")]
    pub handover: Option<PrivatePath>,
    /// Proxies that say who the client is, by the PROXY protocol before anything else (postgres, mysql)
    ///
    /// Version 1 or 2. A connection from there without it is closed; from other networks it is not read.
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    #[serde(deserialize_with = "all_from_text")]
    pub proxy_from: Option<Vec<Network>>,
    /// Say to the backend who the client is, by the PROXY protocol before anything else (mysql without --pool)
    /// [default: false]
    ///
    /// Version 2, as HAProxy's send-proxy-v2. The backend must expect it from the gate's address: MariaDB's
    /// proxy_protocol_networks. Its accounts and logs then go by the client's address.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub send_proxy: Option<bool>,
    /// The backend's address, or unix:/PATH; for http also https://HOST:PORT. Several separated by commas
    /// for http, or with --pool transaction a primary and its replicas
    ///
    /// Required. Which of several databases is the primary they say themselves, in whatever order they stand here.
    #[arg(long, value_name = "HOST:PORT")]
    pub upstream: Option<String>,
    /// Ask the database as this user which statements wait for a lock, since that time is not
    /// service: postgres://USER@HOST:PORT/DATABASE or mysql://USER@HOST:PORT [default: do not ask]
    ///
    /// The gate asks over a connection of its own. Of several servers it asks each as that user; the
    /// URL has the address of one. Whoever sees the process sees a password in the URL, so give it in
    /// a file.
    #[arg(long, value_name = "URL")]
    #[serde(deserialize_with = "some_from_text")]
    pub monitor: Option<MonitorUrl>,
    /// The file whose first line is the monitor user's password
    #[arg(long, value_name = "FILE")]
    pub monitor_password_file: Option<PathBuf>,
    /// Add the client's address to its application_name (postgres) [default: false]
    ///
    /// As PgBouncer's option of that name.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub application_name_add_host: Option<bool>,
    /// Speak TLS to clients that ask for it, with this certificate chain (PEM)
    ///
    /// The server's own certificate comes first. It is TLS 1.2 and 1.3.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Reject clients without TLS [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub tls_required: Option<bool>,
    /// Whether to use TLS to the backend, and how to check its certificate: follow, which uses TLS
    /// for clients that have it; disable, prefer, require, or verify-full with --upstream-ca
    /// [default: follow]
    ///
    /// `follow` uses TLS for a client that has it, if the backend has it, and for no other client.
    /// The others are as libpq's sslmode: `prefer` uses TLS if the backend has it (with mysql it is
    /// `follow`), and `verify-full` wants a certificate for the backend's name.
    #[arg(long, ignore_case = true, value_name = "HOW")]
    #[serde(deserialize_with = "some_from_text")]
    pub upstream_tls: Option<UpstreamTlsMode>,
    /// The authorities that sign the backend's certificate (PEM), for verify-full or, with http,
    /// for an https:// upstream [default: with http those of the system]
    ///
    /// The certificate of an https:// upstream is always checked.
    #[arg(long, value_name = "FILE")]
    pub upstream_ca: Option<PathBuf>,

    /// Which waiting request goes first: sjf, the shortest estimate; gittins, the least expected work
    /// to an end by the type's distribution; boost, the earliest, short types as if they had come
    /// earlier; fifo, the earliest [default: sjf]
    #[arg(
        long,
        ignore_case = true,
        value_name = "NAME",
        help_heading = "Admission"
    )]
    #[serde(deserialize_with = "some_from_text")]
    pub policy: Option<PolicyName>,
    /// Let a shorter request pass others only if none of them then waits beyond X times its
    /// expected service time (sjf)
    #[arg(long, value_name = "X", help_heading = "Admission")]
    pub aging: Option<Aging>,
    /// Reserve this share of the work for requests that have waited longest (sjf, gittins). With 0
    /// the shortest always goes first, and others may starve [default: 10%]
    ///
    /// At most 50%. It does not count with --aging.
    #[arg(long, value_name = "SHARE", help_heading = "Admission")]
    #[serde(deserialize_with = "some_from_text")]
    pub oldest_share: Option<OldestShare>,
    /// What becomes of a request that takes more than 20 times (or as class:50) the 99th percentile
    /// of its type and 2 s: class, cancel or charge [default: it pays what it takes]
    ///
    /// With `class` the next ones like it are of the type runaway for 10 minutes. With `cancel` its
    /// statement is cancelled as well, by the --monitor. With `charge` it is only counted. Rules may
    /// say otherwise for what they match.
    #[arg(long, value_name = "WHAT", help_heading = "Admission")]
    #[serde(deserialize_with = "some_from_text")]
    pub runaway: Option<Runaway>,
    /// How much may run at once: a sum of estimated service times, such as 400ms, or off for no
    /// limit. With auto it is the value at which the backend does most; calibrate searches for that
    /// value once, under the current load, and prints it [default: auto]
    #[arg(
        long,
        value_name = "TIME|auto|calibrate|off",
        help_heading = "Admission"
    )]
    #[serde(deserialize_with = "some_from_text")]
    pub capacity: Option<Capacity>,
    /// Where a higher limit than the capacity does clearly more, raise it up to this one, such as 2s, and say so;
    /// or off [default: auto as far as it helps, a capacity that is a time never]
    ///
    /// It is tried in windows of seconds while requests wait. The limit never rises by more than twice at once.
    #[arg(long, value_name = "TIME|off", help_heading = "Admission")]
    #[serde(deserialize_with = "some_from_text")]
    pub open_up: Option<OpenUp>,
    /// The least time for which calibrate tries each capacity [default: 5s]
    ///
    /// Where that says too little it takes four times as long.
    #[arg(long, value_name = "TIME", help_heading = "Admission")]
    pub trial_time: Option<Span>,
    /// The most requests that may wait; one more is refused [default: 10000]
    #[arg(long, value_name = "N", help_heading = "Admission")]
    pub queue_max: Option<NonZeroUsize>,
    /// Time a request may wait before it is refused [default: 2min]
    #[arg(long, value_name = "TIME", help_heading = "Admission")]
    pub wait_max: Option<Span>,
    /// Refuse a request at once if it is expected to wait longer than this [default: let it wait]
    #[arg(long, value_name = "TIME", help_heading = "Admission")]
    pub shed: Option<Span>,
    /// Admit the next request if none has started or ended for this long, since those that run may
    /// depend on it; 0s for never [default: 10s]
    ///
    /// What runs may wait for a lock that only a session in the queue gives back.
    #[arg(long, value_name = "TIME", help_heading = "Admission")]
    pub stall_max: Option<Span>,
    /// Admit everything at once, and only count what would have waited [default: false]
    ///
    /// It counts where a capacity is known, and does not go with --capacity calibrate.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true,
        help_heading = "Admission"
    )]
    pub dry_run: Option<bool>,

    /// What gives a type to a statement that no rule matches; the first source that has a value
    /// counts: tag, application-name, statement [default: tag,statement]
    #[arg(
        long,
        value_name = "SOURCE",
        value_delimiter = ',',
        help_heading = "Types of requests"
    )]
    #[serde(deserialize_with = "all_from_text")]
    pub types_from: Option<Vec<Source>>,
    /// Whose tags count, in rules and in --types-from: client networks, user:NAME, or any; for http the networks of
    /// proxies whose header counts (--tenant-by header:NAME) [default: nobody's]
    #[arg(
        long,
        value_name = "NETWORK|user:NAME|any",
        value_delimiter = ',',
        help_heading = "Types of requests"
    )]
    #[serde(deserialize_with = "all_from_text")]
    pub tags_from: Option<Vec<Trusted>>,
    /// The most types; rare ones share one [default: 1000]
    ///
    /// The one that they share is `other`.
    #[arg(long, value_name = "N", help_heading = "Types of requests")]
    pub types_max: Option<NonZeroUsize>,
    /// Keep the estimates in this file across restarts
    ///
    /// It is written every minute and at the end. A damaged file is reported in the log and
    /// ignored.
    #[arg(long, value_name = "FILE", help_heading = "Types of requests")]
    pub estimates: Option<PathBuf>,
    /// Rules that name types, tenants and servers, or say what never waits; the first match counts (only
    /// `[[gate.rule]]` in the file)
    #[arg(skip)]
    #[serde(deserialize_with = "one_or_more")]
    pub rule: Option<Vec<RuleText>>,

    /// Who shares the backend, where no rule says it: none, user, database, application-name, tag:KEY, or host or
    /// header:NAME for http; the least served of them goes first [default: none]
    #[arg(long, value_name = "WHAT", help_heading = "Tenants")]
    #[serde(deserialize_with = "some_from_text")]
    pub tenant_by: Option<TenantBy>,
    /// The weights and limits of tenants by name (only `[gate.tenant.NAME]` in the file)
    #[arg(skip)]
    pub tenant: Option<BTreeMap<String, TenantLimits>>,
    /// The most requests that run at once of those that never wait, by a rule with wait = false [default: 16]
    #[arg(long, value_name = "N", help_heading = "Tenants")]
    pub unqueued_max: Option<NonZeroUsize>,

    /// Serve a live page, /metrics and /status at this address, or at unix:/PATH for this user and its group; never queued, keep it
    /// private
    ///
    /// It has no password. The gate warns of an address that strangers may reach.
    #[arg(long, value_name = "ADDR", help_heading = "Admin and log")]
    #[serde(deserialize_with = "some_from_text")]
    pub admin: Option<AdminAddress>,
    /// The most open connections to the admin address [default: 64]
    #[arg(long, value_name = "N", help_heading = "Admin and log")]
    pub admin_connections_max: Option<NonZeroUsize>,
    /// Answer admin requests for this host name too, besides IP addresses and localhost; may be
    /// given again
    ///
    /// Requests for another name get 421, because a page of any site can have its own name lead to
    /// 127.0.0.1 (DNS rebinding) and would read what is there.
    #[arg(long, value_name = "NAME", help_heading = "Admin and log")]
    #[serde(deserialize_with = "one_or_more")]
    pub admin_host: Option<Vec<HostName>>,
    /// The most types that have their own series in /metrics: those with the most work. The others
    /// share one [default: 50]
    #[arg(long, value_name = "N", help_heading = "Admin and log")]
    pub metrics_types_max: Option<NonZeroUsize>,
    /// The database name whose connections go to the gate itself, for commands such as SHOW and PAUSE. Only this
    /// machine's root and the gate's own user may use it; empty for none (postgres) [default:
    /// shortline]
    #[arg(long, value_name = "NAME", help_heading = "Admin and log")]
    pub admin_database: Option<String>,
    /// Further users of this machine, by number, who may use the admin database
    ///
    /// The admin address obeys their commands too (POST /command). Root and the gate's own user
    /// need not be named.
    #[arg(
        long,
        value_name = "UID",
        value_delimiter = ',',
        help_heading = "Admin and log"
    )]
    #[serde(deserialize_with = "one_or_more")]
    pub admin_uids: Option<Vec<u32>>,
    /// Users of the pool who may say everything at the admin database, from anywhere, by their password (postgres
    /// with --pool)
    ///
    /// They are users of --pool-users. As PgBouncer's admin_users.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "Admin and log"
    )]
    #[serde(deserialize_with = "all_from_text")]
    pub admin_users: Option<Vec<String>>,
    /// Users of the pool who may only SHOW there (postgres with --pool)
    ///
    /// As PgBouncer's stats_users.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "Admin and log"
    )]
    #[serde(deserialize_with = "all_from_text")]
    pub stats_users: Option<Vec<String>>,
    /// Log each request that has waited longer than this, and send its client a notice
    ///
    /// Only PostgreSQL's clients get the notice. A line has type, wait and queue. At most ten lines
    /// a second are written; the next one says how many were left out.
    #[arg(long, value_name = "TIME", help_heading = "Admin and log")]
    pub slow_wait: Option<Span>,
    /// The format of the log on standard error: text or json [default: text]
    #[arg(
        long,
        ignore_case = true,
        value_name = "FORMAT",
        help_heading = "Admin and log"
    )]
    #[serde(deserialize_with = "some_from_text")]
    pub log_format: Option<LogFormat>,

    /// Lend clients the backend's connections, for a transaction or a whole session, instead of giving each its
    /// own (postgres, mysql) [default: off]
    #[arg(long, ignore_case = true, value_name = "MODE", help_heading = "Pool")]
    #[serde(deserialize_with = "some_from_text")]
    pub pool: Option<PoolName>,
    /// Connections to the backend at most, of all users and databases together; of several servers to each [default: 20]
    #[arg(long, value_name = "N", help_heading = "Pool")]
    pub pool_size: Option<NonZeroUsize>,
    /// Who may use the pool: lines of "user" "password", as in PgBouncer's userlist.txt; a password may be an
    /// MD5 hash or a SCRAM secret of pg_authid, or MySQL's hash of mysql_native_password
    ///
    /// Required with the pool.
    #[arg(long, value_name = "FILE", help_heading = "Pool")]
    pub pool_users: Option<PathBuf>,
    /// A user of that file that looks others up in the database (postgres)
    ///
    /// The file has its password or its MD5 hash. It looks up whoever the file does not have.
    #[arg(long, value_name = "NAME", help_heading = "Pool")]
    pub pool_auth_user: Option<String>,
    /// What it asks, with $1 for the name; a row has the name and the secret [default: PgBouncer's auth_query]
    #[arg(long, value_name = "SQL", help_heading = "Pool")]
    pub pool_auth_query: Option<String>,
    /// Close a connection to the backend that nobody has used for so long [default: 10min]
    #[arg(long, value_name = "TIME", help_heading = "Pool")]
    pub pool_idle_max: Option<Span>,
    /// Prepared statements that a connection to the backend keeps [default: 200]
    ///
    /// Beyond them the one used longest ago is closed.
    #[arg(long, value_name = "N", help_heading = "Pool")]
    pub pool_statements_max: Option<NonZeroUsize>,

    /// The user by whom the gate asks each of several servers what it is, and how far behind (postgres, mysql)
    ///
    /// One of --pool-users, whose line has its password or with postgres its MD5 hash. Required with several servers.
    /// PostgreSQL asks nothing special of it, and is asked in its database postgres; MySQL tells how far behind it is to
    /// who has REPLICATION CLIENT, MariaDB to who has REPLICA MONITOR.
    #[arg(long, value_name = "NAME", help_heading = "Servers")]
    pub watch_user: Option<String>,
    /// How often each server is asked [default: 1s]
    ///
    /// At least 50ms. One that does not answer three times in a row is not there.
    #[arg(long, value_name = "TIME", help_heading = "Servers")]
    pub watch_every: Option<Span>,
    /// Time that a server has to answer, the connection included [default: 2s]
    #[arg(long, value_name = "TIME", help_heading = "Servers")]
    pub watch_time_max: Option<Span>,
    /// Send nothing to a replica that is further behind [default: 10s]
    #[arg(long, value_name = "TIME", help_heading = "Servers")]
    pub lag_max: Option<Span>,
    /// Time for which transactions wait while no primary is known; after that they are refused at once [default: 30s]
    #[arg(long, value_name = "TIME", help_heading = "Servers")]
    pub primary_wait_max: Option<Span>,

    /// The most open connections of clients; one more gets an error and is closed [default: 10000]
    ///
    /// Each takes two files (descriptors). The gate takes as many as the hard limit allows, and
    /// warns if that is too few.
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub connections_max: Option<NonZeroUsize>,
    /// Time from accepting a connection to the end of its authentication [default: 60s]
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub authentication_time_max: Option<Span>,
    /// Time to connect to the backend [default: 10s]
    ///
    /// With postgres the backend also has this time to close the connection of a cancel request;
    /// then the client's is closed. With --pool a login of the gate's own may take as long.
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub connect_time_max: Option<Span>,
    /// The largest message of the protocol [default: 1GiB less 2 bytes]
    ///
    /// At least 64KiB. A message is not held as a whole.
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub message_size_max: Option<Size>,
    /// Bytes kept for a client whose request waits; the rest stays in its socket [default: 16KiB]
    ///
    /// From 1KiB to 1MiB.
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub held_size_max: Option<Size>,
    /// Answers a client may have outstanding before the gate stops reading from it [default: 1024]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub pipelined_max: Option<NonZeroUsize>,
    /// Prepared statements per connection whose type is remembered [default: 512]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub statements_max: Option<NonZeroUsize>,
    /// Threads that relay [default: one per two processors]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub threads: Option<NonZeroUsize>,
    /// Time a client may keep a transaction open without asking for anything; 0 for no limit [default: 0]
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub idle_transaction_max: Option<Span>,
    /// Time that transactions under way get to finish after SIGTERM [default: 30s]
    ///
    /// Those left then get an error, and their clients 5s to read it.
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub drain: Option<Span>,

    /// How to estimate a type's service time from its last requests: median-of-means, which ignores
    /// outliers, or moving-average [default: median-of-means]
    ///
    /// Either goes by a type's last 64 requests. `median-of-means` is the median of the means of
    /// eight groups, neighbours in time, so that neither a few outliers nor a short while in which
    /// all were slow move it. `moving-average` is their mean, as in the paper. With --capacity auto
    /// the estimate orders the types; what they add to the load is their mean.
    #[arg(long, value_name = "NAME", help_heading = "Research")]
    #[serde(deserialize_with = "some_from_text")]
    pub estimator: Option<Estimator>,
    /// Use the estimates in the --estimates file unchanged: requests do not update them, and the
    /// file is not written [default: false]
    ///
    /// Types that the file does not have are learnt. Needs a capacity that is a time, or off. It is
    /// for experiments: what was learnt under one load is wrong under another (002, Fig. 6).
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true,
        help_heading = "Research"
    )]
    pub estimates_fixed: Option<bool>,
}
