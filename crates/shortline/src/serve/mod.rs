//! `shortline serve`: from flags and configuration to a running server.

mod access_log;
mod admin;
mod combined;
mod file;
mod metrics;
mod options;
mod ordering;
mod routes;
mod running;
mod settings;
mod sockets;
mod tls;

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::error::CommandError;
use options::{AdminOptions, LimitOptions, LogOptions, SiteKeys, UplinkOptions};

/// Flags of `shortline serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Take connections at this address; may be given again [default: 0.0.0.0:8080]
    #[arg(long, value_name = "ADDR", help_heading = "Addresses")]
    listen: Vec<SocketAddr>,
    /// Speak TLS with this certificate chain (PEM); offers HTTP/2 and HTTP/1.1
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        help_heading = "Addresses"
    )]
    tls_cert: Option<PathBuf>,
    /// The certificate's key (PEM)
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_cert",
        help_heading = "Addresses"
    )]
    tls_key: Option<PathBuf>,
    /// Read options from this TOML file; flags override it, SIGHUP reads it again
    #[arg(long, value_name = "FILE", help_heading = "Addresses")]
    config: Option<PathBuf>,
    #[command(flatten)]
    uplink: UplinkOptions,
    #[command(flatten)]
    site: SiteKeys,
    #[command(flatten)]
    admin: AdminOptions,
    #[command(flatten)]
    log: LogOptions,
    #[command(flatten)]
    limits: LimitOptions,
}

const EXAMPLES: &str = "\
Examples:
  shortline serve /srv/www                          at port 8080, no rate known
  shortline serve /srv/www --uplink 100mbit         paced at the uplink's rate
  shortline serve --config /etc/shortline.toml

Rates read 10mbit or 1.5gbit, sizes 64KiB or 2MB, times 500ms or 2s.
SIGHUP reads configuration and certificates again and reopens the log; SIGTERM lets
responses finish, a second one stops at once.";

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line.
pub fn run(args: Args) -> Result<(), CommandError> {
    let settings = settings::read(&args)?;
    tell_to_stderr();
    raise_open_files();
    // Connections have threads of their own; this one wakes the pacer and answers the admin.
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| CommandError::failure(format!("no runtime: {error}")))?
        .block_on(running::run(args, settings))
}

/// Warnings of the rooms go where errors go.
fn tell_to_stderr() {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .with_target(false)
        .init();
}

/// Every connection and open file takes a descriptor; the hard limit is what we may have.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!("limit of open files stays as it is: {error}");
    }
}
