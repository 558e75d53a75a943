//! `shortline lab`: starts `shortline-lab`, a separate program that is not needed to serve. git and
//! cargo do the same with commands that are programs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use shortline_command::CommandError;

/// The program's name. It is looked for beside this one and in `PATH`.
const PROGRAM: &str = "shortline-lab";

/// The arguments passed on.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// See `shortline lab --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Becomes the program. Returns only if that fails.
///
/// # Errors
/// [`CommandError::Failure`], which says where to get the program.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let beside = beside_this();
    let program = beside.as_deref().map_or(OsStr::new(PROGRAM), AsRef::as_ref);
    let error = Command::new(program).args(&args.words).exec();
    Err(CommandError::Failure(match error.kind() {
        io::ErrorKind::NotFound => format!(
            "lab: {PROGRAM} is neither beside shortline nor in PATH; it is built with it: cargo build --release"
        ),
        _ => format!("lab: {}: {error}", program.display()),
    }))
}

fn beside_this() -> Option<PathBuf> {
    let this = env::current_exe().ok()?;
    Some(this.with_file_name(PROGRAM)).filter(|program| program.exists())
}
