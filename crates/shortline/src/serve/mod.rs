//! `shortline serve`: from flags and configuration to a running server.

use crate::error::CommandError;

/// Flags of `shortline serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The order in which responses are served
    #[arg(long, value_name = "NAME")]
    policy: Option<shortline_sched::Policy>,
}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line.
pub fn run(_args: Args) -> Result<(), CommandError> {
    Err(CommandError::Failure("no server yet".to_owned()))
}
