//! `[admin]` and `[log]`: what the server tells of itself.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::Deserialize;
use shortline_daemon::admin::HostName;
use shortline_daemon::keys::{one_or_more, some_from_text};
use shortline_daemon::log_line::LineFormat;
use shortline_daemon::otlp::{Collector, Share};
use shortline_daemon::overlay;
use shortline_daemon::sockets::AdminAddress;

/// `[admin]`: metrics and status.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Admin and log")]
pub struct AdminOptions {
    /// Serve /metrics, /status and /healthz at this address, or at unix:/PATH for this user and its group; never scheduled, keep it
    /// private
    ///
    /// The server warns of an address that strangers may reach.
    #[arg(long = "admin", value_name = "ADDR")]
    #[serde(deserialize_with = "some_from_text")]
    pub address: Option<AdminAddress>,
    /// The most open connections to the admin address [default: 64]
    #[arg(
        id = "admin_connections_max",
        long = "admin-connections-max",
        value_name = "N"
    )]
    pub connections_max: Option<NonZeroUsize>,
    /// Answer admin requests for this host name too, besides IP addresses and localhost; may be
    /// given again
    ///
    /// Requests for another name get 421, because a page of any site can have its own name lead to
    /// 127.0.0.1 (DNS rebinding).
    #[arg(id = "admin_host", long = "admin-host", value_name = "NAME")]
    #[serde(deserialize_with = "one_or_more")]
    pub host: Option<Vec<HostName>>,
}

/// `[log]`: the access log.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Admin and log")]
pub struct LogOptions {
    /// Log each response to this file, or to standard output (-)
    #[arg(long = "access-log", value_name = "FILE|-")]
    pub access: Option<PathBuf>,
    /// What a line of the access log has: combined (Combined Log Format and times), json, or a text with the
    /// variables of nginx's log_format, such as '$remote_addr $status $request_time' [default: combined]
    ///
    /// A text may begin with `escape=json ` for values inside JSON strings. docs/operations.md has the variables.
    #[arg(id = "access_format", long = "log-format", value_name = "FORMAT")]
    #[serde(deserialize_with = "some_from_text")]
    pub format: Option<LineFormat>,
    /// The most log lines that wait for the disk; further ones are dropped and counted [default:
    /// 8192]
    #[arg(long = "access-log-lines-max", value_name = "N")]
    pub lines_max: Option<NonZeroUsize>,
    /// Tell the client the id of its request in each response, in X-Request-Id [default: false]
    ///
    /// The log and the backend have the id in any case.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub send_request_id: Option<bool>,
    /// Export a span of requests to this OpenTelemetry collector, by OTLP over HTTP, such as http://127.0.0.1:4318
    ///
    /// Only a program that was built with the cargo feature `otel` does that.
    #[arg(long, value_name = "URL")]
    #[serde(deserialize_with = "some_from_text")]
    pub otlp: Option<Collector>,
    /// The part of all traces that is exported, from 0 to 1; what a trusted proxy has recorded is, in any case [default: 0.01]
    #[arg(long, value_name = "PART")]
    #[serde(deserialize_with = "some_from_text")]
    pub otlp_sample: Option<Share>,
}

overlay!(AdminOptions {
    address,
    connections_max,
    host,
});
overlay!(LogOptions {
    access,
    format,
    lines_max,
    send_request_id,
    otlp,
    otlp_sample,
});
