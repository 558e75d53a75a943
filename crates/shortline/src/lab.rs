//! `shortline lab`: Runs experiments beside nginx and Apache.

use crate::error::CommandError;

/// Flags of `shortline lab`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line.
pub fn run(_args: Args) -> Result<(), CommandError> {
    Err(CommandError::Usage(
        "`lab` comes in a later release".to_owned(),
    ))
}
