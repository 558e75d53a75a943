//! Turns a command line into a command, or ends the program: with the help asked for, or an error
//! of one line.

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::error::CommandError;

/// Why there is nothing (more) to do.
#[derive(Debug)]
pub enum Ended {
    /// Help or version was asked for and printed.
    Reported(ExitCode),
    /// The command did not succeed.
    Error(CommandError),
}

/// What the command line asks for.
///
/// # Errors
/// Help was asked for, or the command line is wrong.
pub fn parse<C: Parser>() -> Result<C, Ended> {
    let parsed = C::command()
        .try_get_matches()
        .and_then(|matches| C::from_arg_matches(&matches));
    parsed.map_err(|error| ended_by(&error))
}

/// The program's exit code. Prints an error.
pub fn exit_code(ended: Result<(), Ended>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Reported(code)) => code,
        Err(Ended::Error(error)) => error.report(),
    }
}

fn ended_by(error: &clap::Error) -> Ended {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // If standard output is closed, nobody is left to report it to.
            let _ = error.print();
            Ended::Reported(ExitCode::SUCCESS)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Ended::Reported(ExitCode::from(2))
        }
        _ => Ended::Error(CommandError::Usage(in_one_line(error))),
    }
}

/// clap reports an error in several paragraphs: the first says what is wrong, the others are hints.
pub fn in_one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let paragraphs = text
        .split("\n\n")
        .take_while(|paragraph| !paragraph.starts_with("Usage:"))
        .map(|paragraph| {
            let words: Vec<&str> = paragraph.split_whitespace().collect();
            words.join(" ")
        })
        .filter(|paragraph| !paragraph.starts_with("For more information"));
    let line = paragraphs.collect::<Vec<_>>().join("; ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}
