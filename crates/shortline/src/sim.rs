//! `shortline sim`: The bound: what the best order could do on a trace's own arrivals.

use crate::error::CommandError;

/// Flags of `shortline sim`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line.
pub fn run(_args: Args) -> Result<(), CommandError> {
    Err(CommandError::Usage(
        "`sim` comes in a later release".to_owned(),
    ))
}
