//! The translation of each key of PgBouncer's section `[pgbouncer]`.
//!
//! Source: the list of PgBouncer 1.25 (doc/config.md).

/// The translation of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// This key, with the same text.
    Text(&'static str),
    /// This key, from a list separated by commas.
    Texts(&'static str),
    /// This key, on or off.
    Switch(&'static str),
    /// This key, a number.
    Number(&'static str),
    /// This key, a time in seconds. PgBouncer's 0 stands for never, and becomes the second value, if there is one.
    Seconds(&'static str, Option<&'static str>),
    /// Translated together with other keys.
    Together,
    /// Not needed, for this reason.
    Needless(&'static str),
    /// Lost if it is on (neither empty nor 0), with this reason or advice.
    Lost(&'static str),
}

const LOG: &str = "the log is standard error; systemd keeps it";
const OWN: &str = "the gate sizes this itself";
const KEEPALIVE: &str = "the gate asks a silent peer after a minute, every 10 s, 6 times";
const DNS: &str = "the system's resolver is asked for each new connection";
const CLEAN: &str = "the gate looks what a session left, and puts each session's own settings on";
const TLS: &str = "TLS 1.2 and 1.3 with rustls' ciphers";

/// The translation of a key. `None` if PgBouncer has no such key.
pub fn fate(key: &str) -> Option<Fate> {
    use Fate::{Lost, Needless, Number, Seconds, Text, Texts, Together};
    let listed = FATES.iter().find(|(name, _)| *name == key);
    if let Some((_, fate)) = listed {
        return Some(*fate);
    }
    Some(match key {
        "auth_file" => Text("pool-users"),
        "auth_user" => Text("pool-auth-user"),
        "auth_query" => Text("pool-auth-query"),
        "client_tls_key_file" => Text("tls-key"),
        "client_tls_cert_file" => Text("tls-cert"),
        "admin_users" => Texts("admin-users"),
        "stats_users" => Texts("stats-users"),
        "max_client_conn" => Number("connections-max"),
        "max_prepared_statements"
        | "listen_addr"
        | "listen_port"
        | "unix_socket_dir"
        | "pool_mode"
        | "default_pool_size"
        | "max_db_connections"
        | "auth_type"
        | "client_tls_sslmode"
        | "server_tls_sslmode"
        | "server_tls_ca_file" => Together,
        "server_idle_timeout" => Seconds("pool-idle-max", Some("365d")),
        "query_wait_timeout" => Seconds("wait-max", Some("365d")),
        "client_login_timeout" => Seconds("authentication-time-max", Some("365d")),
        "server_connect_timeout" => Seconds("connect-time-max", Some("365d")),
        "min_pool_size" | "reserve_pool_size" | "reserve_pool_timeout" => {
            Needless("connections are opened ahead by one, and the order decides who gets them")
        }
        "idle_transaction_timeout" => Seconds("idle-transaction-max", None),
        "max_user_connections" | "max_db_client_connections" | "max_user_client_connections" => {
            Together
        }
        _ => return None.or(lost(key).map(Lost)),
    })
}

/// Keys that change the behaviour of sessions, and have no counterpart.
fn lost(key: &str) -> Option<&'static str> {
    Some(match key {
        "auth_hba_file" | "auth_ident_file" => {
            "the gate knows no HBA rules: restrict by --listen, a firewall, or PostgreSQL"
        }
        "auth_dbname" => "the query runs in the database that the client asks for",
        "auth_ldap_options" => "the gate asks no LDAP server",
        "query_timeout" => "use PostgreSQL's statement_timeout",
        "transaction_timeout" => "use PostgreSQL's transaction_timeout",
        "client_idle_timeout" => "the gate keeps idle clients",
        "client_tls_ca_file" => "the gate asks clients for no certificate",
        "server_tls_cert_file" | "server_tls_key_file" => {
            "the gate shows the server no certificate"
        }
        _ => return None,
    })
}

const FATES: [(&str, Fate); 54] = [
    ("logfile", Fate::Needless(LOG)),
    ("syslog", Fate::Needless(LOG)),
    ("syslog_ident", Fate::Needless(LOG)),
    ("syslog_facility", Fate::Needless(LOG)),
    (
        "log_connections",
        Fate::Needless("SHOW CLIENTS and /clients tell who is there"),
    ),
    (
        "log_disconnections",
        Fate::Needless("SHOW CLIENTS and /clients tell who is there"),
    ),
    ("log_pooler_errors", Fate::Needless(LOG)),
    (
        "log_stats",
        Fate::Needless("/metrics and /history have them"),
    ),
    (
        "stats_period",
        Fate::Needless("/metrics and /history have them"),
    ),
    ("verbose", Fate::Needless(LOG)),
    ("pidfile", Fate::Needless("systemd knows the process")),
    (
        "user",
        Fate::Needless("systemd's User= says who it runs as"),
    ),
    ("service_name", Fate::Needless("systemd names the service")),
    ("job_name", Fate::Needless("systemd names the service")),
    ("conffile", Fate::Needless("--config names the file")),
    ("resolv_conf", Fate::Needless(DNS)),
    ("dns_max_ttl", Fate::Needless(DNS)),
    ("dns_nxdomain_ttl", Fate::Needless(DNS)),
    ("dns_zone_check_period", Fate::Needless(DNS)),
    ("server_reset_query", Fate::Needless(CLEAN)),
    ("server_reset_query_always", Fate::Needless(CLEAN)),
    ("track_extra_parameters", Fate::Needless(CLEAN)),
    (
        "ignore_startup_parameters",
        Fate::Needless("each is set on the connection that a client gets"),
    ),
    (
        "server_check_query",
        Fate::Needless("a connection that has said anything is not lent"),
    ),
    (
        "server_check_delay",
        Fate::Needless("a connection that has said anything is not lent"),
    ),
    (
        "server_fast_close",
        Fate::Needless("RECONNECT and KILL say when"),
    ),
    (
        "server_lifetime",
        Fate::Needless("RECONNECT closes connections, by a timer of yours if need be"),
    ),
    (
        "server_login_retry",
        Fate::Needless("the next client tries again at once, two at a time"),
    ),
    (
        "server_round_robin",
        Fate::Needless("the last that was given back is lent first"),
    ),
    (
        "cancel_wait_timeout",
        Fate::Needless("a cancel request goes on at once"),
    ),
    ("suspend_timeout", Fate::Needless("the gate has no SUSPEND")),
    (
        "shutdown_timeout",
        Fate::Needless("--drain is how long transactions have at the end"),
    ),
    (
        "disable_pqexec",
        Fate::Lost("the gate lets several statements in one message through"),
    ),
    (
        "application_name_add_host",
        Fate::Switch("application-name-add-host"),
    ),
    ("pkt_buf", Fate::Needless(OWN)),
    (
        "max_packet_size",
        Fate::Needless("--message-size-max, 1 GiB without it"),
    ),
    ("listen_backlog", Fate::Needless(OWN)),
    ("sbuf_loopcnt", Fate::Needless(OWN)),
    ("query_cache_size", Fate::Needless(OWN)),
    ("so_reuseport", Fate::Switch("reuse-port")),
    ("tcp_defer_accept", Fate::Needless(OWN)),
    ("tcp_socket_buffer", Fate::Needless(OWN)),
    ("tcp_keepalive", Fate::Needless(KEEPALIVE)),
    ("tcp_keepcnt", Fate::Needless(KEEPALIVE)),
    ("tcp_keepidle", Fate::Needless(KEEPALIVE)),
    ("tcp_keepintvl", Fate::Needless(KEEPALIVE)),
    ("tcp_user_timeout", Fate::Needless(KEEPALIVE)),
    ("client_tls_protocols", Fate::Needless(TLS)),
    ("client_tls_ciphers", Fate::Needless(TLS)),
    ("client_tls13_ciphers", Fate::Needless(TLS)),
    ("server_tls_protocols", Fate::Needless(TLS)),
    ("server_tls_ciphers", Fate::Needless(TLS)),
    (
        "unix_socket_mode",
        Fate::Needless("everybody of the machine may connect, as with 0777"),
    ),
    (
        "unix_socket_group",
        Fate::Needless("everybody of the machine may connect, as with 0777"),
    ),
];
