//! `shortline serve`: from flags and configuration to a running server.

pub mod acme;
mod certificates;
mod handover;
mod logs;
mod metrics;
pub mod options;
mod ordering;
mod page;
mod ports;
mod root;
pub mod routes;
mod running;
mod settings;
pub mod sites;
mod sockets;
mod start_line;
mod status;

use std::path::PathBuf;

use acme::keys::AcmeKeys;
use options::{
    AdminOptions, CacheKeys, ClientOptions, HandoverOptions, LimitOptions, LogOptions, SiteKeys,
    UplinkOptions,
};
use shortline_command::CommandError;
use shortline_daemon::process::{self, LogFormat};
use shortline_daemon::sockets::Address;
use shortline_tls::names::Pattern;

/// Flags of `shortline serve`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    mut_arg("link_mode", for_research),
    mut_arg("growing", for_research),
    mut_arg("slots", for_research),
    mut_arg("control_band", for_research),
    mut_arg("quantum", for_research),
)]
pub struct Args {
    /// Accept connections at this address; may be given again [default: 0.0.0.0:8080]
    ///
    /// With port 0 the kernel chooses one. unix:/PATH is a socket in the file system. Addresses given here replace all of
    /// the file's.
    #[arg(long, value_name = "ADDR", help_heading = "Addresses")]
    listen: Vec<Address>,
    /// Speak TLS with this certificate chain (PEM); offers HTTP/2 and HTTP/1.1
    ///
    /// The server's own certificate comes first. It is TLS 1.2 and 1.3. As a flag it is for every
    /// --listen.
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
    /// Speak HTTP/3, too: at the same port of UDP, which the firewall must let through
    ///
    /// It is for every address that speaks TLS. Responses over TCP tell clients of it (Alt-Svc).
    #[arg(long, help_heading = "Addresses")]
    http3: bool,
    /// Get certificates for this name by themselves (ACME), and answer for it; may be given again
    ///
    /// Connections are taken at 0.0.0.0:443 and, without TLS, at 0.0.0.0:80. With --listen they are taken there
    /// instead, all with TLS.
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "tls_cert",
        help_heading = "Addresses"
    )]
    tls_auto: Vec<Pattern>,
    /// Read options from this TOML file; flags override it, SIGHUP reads it again
    ///
    /// At most 16MiB.
    #[arg(long, value_name = "FILE", help_heading = "Addresses")]
    config: Option<PathBuf>,
    /// Only check the configuration, with the folders and certificates that it names, and say what it
    /// serves; the exit code is 0 if it is sound
    ///
    /// Nothing is listened on, and a running server does not notice. 2 is for a wrong value, 1 for a file that
    /// cannot be used.
    #[arg(long, help_heading = "Addresses")]
    check: bool,
    #[command(flatten)]
    handover: HandoverOptions,
    #[command(flatten)]
    uplink: UplinkOptions,
    #[command(flatten)]
    site: SiteKeys,
    #[command(flatten)]
    cache: CacheKeys,
    #[command(flatten)]
    clients: ClientOptions,
    #[command(flatten)]
    admin: AdminOptions,
    #[command(flatten)]
    log: LogOptions,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    acme: AcmeKeys,
}

/// Puts an option under a heading of its own, which is the last one: `mut_arg` moves it behind all others.
fn for_research(option: clap::Arg) -> clap::Arg {
    option.help_heading("Research")
}

const EXAMPLES: &str = "\
Examples:
  shortline serve /srv/www                          at port 8080, the rate is found out
  shortline serve /srv/www --uplink 100mbit         paced at the uplink's rate
  shortline serve /srv/www --tls-auto example.org   HTTPS with a certificate by itself
  shortline serve --config /etc/shortline/shortline.toml
  shortline serve --config /etc/shortline/shortline.toml --check

Rates read 10mbit or 1.5gbit, sizes 64KiB or 2MB, times 500ms or 2s.
Files are served from ROOT, or from `root` in the file, and from nowhere else: a file without
one serves its routes only. Without ROOT and --config it is the current folder.
SIGHUP reads configuration and certificates again and reopens the log; SIGTERM lets
responses finish, a second one stops at once. With --handover the same command once more
takes the running server's place.";

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line.
pub fn run(args: Args) -> Result<(), CommandError> {
    let settings = settings::read(&args)?;
    if args.check {
        return process::run(LogFormat::Text, running::check(&settings));
    }
    // Connections have their own threads. The runtime's thread wakes the pacer and answers the
    // admin endpoint.
    process::run(LogFormat::Text, running::run(args, settings))
}
