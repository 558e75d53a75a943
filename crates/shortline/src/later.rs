//! The command of the fixed command line whose room is not built yet: `gate`.

use crate::error::CommandError;

/// Whatever follows the command's name.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<String>,
}

/// Says so in one line.
///
/// # Errors
/// Always bad usage.
pub fn run(command: &str) -> Result<(), CommandError> {
    Err(CommandError::Usage(format!(
        "`{command}` comes in a later release; this one has serve, uplink, load, lab, sim and model"
    )))
}
