//! `shortline gate`: from flags and configuration to a running gate in front of a backend.

mod admin_pages;
mod calibrating;
mod clients;
mod console;
mod dry_run;
mod handover;
mod history;
mod http;
mod import;
pub mod metrics;
mod monitors;
mod opening;
pub mod options;
mod page;
mod quiet;
mod relays;
mod running;
pub mod series;
mod servers;
pub mod settings;
pub mod status;

use std::path::PathBuf;

use options::GateOptions;
use shortline_command::CommandError;
use shortline_daemon::process;

/// Flags of `shortline gate`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    /// What the backend speaks
    #[arg(value_name = "KIND", required = true, ignore_case = true)]
    kind: Option<Kind>,
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    options: GateOptions,
    /// Read options from the table gate of this TOML file; flags override it
    ///
    /// At most 1MiB.
    #[arg(long, value_name = "FILE", help_heading = "Addresses")]
    config: Option<PathBuf>,
}

/// What `shortline gate` does beside relaying.
#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Translate a pgbouncer.ini: prints a configuration for `gate postgres --config`
    ///
    /// What has no counterpart is a comment that says why. The exit status is 1 if any of that
    /// makes the gate do something else than PgBouncer does.
    Import {
        /// The file
        #[arg(value_name = "PGBOUNCER.INI")]
        file: PathBuf,
    },
}

const EXAMPLES: &str = "\
Examples:
  shortline gate postgres --listen 127.0.0.1:6432 --upstream 127.0.0.1:5432
  shortline gate postgres --config /etc/shortline/shortline.toml --admin 127.0.0.1:9181
  shortline gate import /etc/pgbouncer/pgbouncer.ini > /etc/shortline/shortline.toml

Times read 500ms or 2s, sizes 64KiB or 2MB. --help and docs/gate.md say more about each option.
SIGHUP reads again rules, capacity, limits of the queue, the pool's users and the certificate;
SIGTERM lets transactions finish, a second one stops at once.";

/// What the backend speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// An application or a web server
    Http,
    /// PostgreSQL, or a server that speaks its protocol
    #[value(alias = "postgresql", alias = "pg")]
    Postgres,
    /// MySQL or MariaDB
    #[value(alias = "mariadb")]
    Mysql,
}

impl Kind {
    /// The port that such servers usually have; an application has none.
    pub fn port_usual(self) -> Option<u16> {
        match self {
            Self::Http => None,
            Self::Postgres => Some(5432),
            Self::Mysql => Some(3306),
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line.
pub fn run(args: Args) -> Result<(), CommandError> {
    if let Some(Action::Import { file }) = &args.action {
        return import::run(file);
    }
    let settings = settings::read(&args)?;
    // Connections have their own threads. The runtime's thread answers the admin endpoint.
    let log_format = match settings.log_format {
        options::LogFormat::Text => process::LogFormat::Text,
        options::LogFormat::Json => process::LogFormat::Json,
    };
    process::run(log_format, running::run(args, settings))
}
