//! A command line becomes a command, or the end of the program: help that was asked for, an error of one line.

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::error::CommandError;

/// Why nothing (more) is to be done.
#[derive(Debug)]
pub enum Ended {
    /// Help or version was asked for and printed.
    Printed(ExitCode),
    /// The command did not succeed.
    Error(CommandError),
}

/// What the program's command line asks for.
///
/// # Errors
/// Help was asked for, or it asks for nothing that there is.
pub fn parse<C: Parser>() -> Result<C, Ended> {
    let parsed = C::command()
        .try_get_matches()
        .and_then(|matches| C::from_arg_matches(&matches));
    parsed.map_err(|error| ended_by(&error))
}

/// The program's exit code; an error is reported.
pub fn exit_code(ended: Result<(), Ended>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Printed(code)) => code,
        Err(Ended::Error(error)) => error.report(),
    }
}

fn ended_by(error: &clap::Error) -> Ended {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Nobody is left to tell if standard output is closed.
            let _ = error.print();
            Ended::Printed(ExitCode::SUCCESS)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Ended::Printed(ExitCode::from(2))
        }
        _ => Ended::Error(CommandError::Usage(in_one_line(error))),
    }
}

/// clap tells an error in several paragraphs: the first says what is wrong, the others hint.
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
