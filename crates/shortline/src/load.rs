//! `shortline load`: Replays a trace against a server and reports response times.

use crate::error::CommandError;

/// Flags of `shortline load`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line.
pub fn run(_args: Args) -> Result<(), CommandError> {
    Err(CommandError::Usage(
        "`load` comes in a later release".to_owned(),
    ))
}
