//! Turns a command line into a command, or ends the program: with the help asked for, or an error
//! of one line.

use std::env;
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::CommandError;

/// Why there is nothing (more) to do.
#[derive(Debug)]
pub enum Ended {
    /// Help or version was asked for and printed.
    Reported(ExitCode),
    /// The command did not succeed.
    Error(CommandError),
}

/// A word of the command line that means nothing there.
#[derive(Clone, Copy, Debug)]
pub struct Unknown<'a> {
    /// The commands before it, such as `gate postgres`'s `gate`; empty where a command should stand.
    pub command: &'a str,
    /// The word, without a value behind `=`.
    pub word: &'a str,
    /// The word before it, if there is one.
    pub before: Option<&'a str>,
}

/// What is to be written instead of a word, for somebody who knows it from another program.
pub type Meant = fn(Unknown<'_>) -> Option<String>;

/// What the command line asks for. `meant` knows words of other programs.
///
/// # Errors
/// Help was asked for, or the command line is wrong.
pub fn parse<C: Parser>(meant: Meant) -> Result<C, Ended> {
    let parsed = C::command()
        .try_get_matches()
        .and_then(|matches| C::from_arg_matches(&matches));
    parsed.map_err(|error| ended_by(&error, meant))
}

/// The program's exit code. Prints an error.
pub fn exit_code(ended: Result<(), Ended>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Reported(code)) => code,
        Err(Ended::Error(error)) => error.report(),
    }
}

fn ended_by(error: &clap::Error, meant: Meant) -> Ended {
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
        _ => {
            let words: Vec<String> = env::args_os()
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            let told = explained(error, &words, meant);
            Ended::Error(CommandError::Usage(
                told.unwrap_or_else(|| in_one_line(error)),
            ))
        }
    }
}

/// What is wrong with a word that `meant` knows.
fn explained(error: &clap::Error, words: &[String], meant: Meant) -> Option<String> {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if error.kind() == ErrorKind::MissingRequiredArgument {
        return missing(error, words, meant);
    }
    let (word, what) = match error.kind() {
        ErrorKind::ArgumentConflict => (
            named(ContextKind::InvalidSubcommand)?,
            "unexpected argument",
        ),
        ErrorKind::UnknownArgument => (named(ContextKind::InvalidArg)?, "unexpected argument"),
        ErrorKind::InvalidSubcommand => (named(ContextKind::InvalidSubcommand)?, "unknown command"),
        ErrorKind::InvalidValue => (named(ContextKind::InvalidValue)?, "unknown value"),
        _ => return None,
    };
    let stands = |one: &String| {
        one == word
            || one
                .strip_prefix(word)
                .is_some_and(|rest| rest.starts_with('='))
    };
    let at = words.iter().position(stands);
    let before = at
        .and_then(|at| words.get(at.checked_sub(1)?))
        .map(String::as_str);
    let is_surplus = error.kind() == ErrorKind::UnknownArgument;
    let is_flag = |word: &&str| is_surplus && word.starts_with('-');
    // clap takes a number with a minus for an option of its own.
    let is_negative = word
        .strip_prefix('-')
        .is_some_and(|rest| rest.parse::<f64>().is_ok());
    if let Some(flag) = before.filter(is_flag).filter(|_| is_negative) {
        return Some(format!(
            "{what} '{word}' behind {flag}: a value must not be negative"
        ));
    }
    if let Some(flag) = before.filter(is_flag).filter(|_| is_truth(word)) {
        return Some(format!(
            "{what} '{word}': write {flag}={} or {flag} alone for true",
            truth(word)
        ));
    }
    let command = command(error, words);
    let unknown = Unknown {
        command: &command,
        word,
        before,
    };
    meant(unknown).map(|meant| format!("{what} '{word}': {meant}"))
}

/// What must be there and is not, with what it is.
fn missing(error: &clap::Error, words: &[String], meant: Meant) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let word = missing.first()?;
    let command = command(error, words);
    let unknown = Unknown {
        command: &command,
        word,
        before: None,
    };
    meant(unknown).map(|meant| format!("{word} is missing: {meant}"))
}

fn is_truth(word: &str) -> bool {
    ["true", "false", "yes", "no", "on", "off"].contains(&word)
}

fn truth(word: &str) -> bool {
    ["true", "yes", "on"].contains(&word)
}

/// The commands that were typed, as the usage of the error names them.
fn command(error: &clap::Error, words: &[String]) -> String {
    let usage = error.render().to_string();
    let usage = usage.split("Usage: ").nth(1).unwrap_or_default();
    let usage = usage.split_whitespace().skip(1);
    let is_command = |word: &&str| {
        !word.starts_with(['-', '<', '[']) && words.iter().skip(1).any(|typed| typed == word)
    };
    let commands = usage.take_while(is_command);
    commands.collect::<Vec<_>>().join(" ")
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
        .filter(|paragraph| !paragraph.starts_with("For more information"))
        // What is no flag of ours is hardly meant as a value.
        .filter(|paragraph| !paragraph.starts_with("tip: to pass '"));
    let line = paragraphs.collect::<Vec<_>>().join("; ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    let line = in_words(line);
    match error.kind() {
        ErrorKind::InvalidValue if line.contains("<BOOL>") => {
            format!("{line}: must be true or false")
        }
        _ => line,
    }
}

/// What the standard library says of a number, in words that say what to write.
fn in_words(line: &str) -> String {
    [
        (
            "number would be zero for non-zero type",
            "must be a whole number from 1 on",
        ),
        ("invalid digit found in string", "must be a whole number"),
        (
            "cannot parse integer from empty string",
            "must be a whole number",
        ),
        ("number too large to fit in target type", "is too large"),
        ("invalid float literal", "must be a number, such as 0.9"),
    ]
    .iter()
    .fold(line.to_owned(), |line, (std, ours)| line.replace(std, ours))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::{Parser, Subcommand};

    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "tool")]
    struct Cli {
        #[command(subcommand)]
        command: Command,
    }

    #[derive(Debug, Subcommand)]
    enum Command {
        Serve {
            #[arg(long)]
            listen: Option<u16>,
            #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
            listing: Option<bool>,
        },
    }

    fn meant(unknown: Unknown<'_>) -> Option<String> {
        match (unknown.command, unknown.word) {
            ("serve", "--port") => Some("here it is --listen".to_owned()),
            ("", "run") => Some("here it is serve".to_owned()),
            _ => None,
        }
    }

    fn told(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error = Cli::try_parse_from(&words).unwrap_err();
        explained(&error, &words, meant).unwrap_or_else(|| in_one_line(&error))
    }

    #[test]
    fn words_of_other_programs_are_told_as_ours() {
        for (line, expected) in [
            (
                "tool serve --port 80",
                "unexpected argument '--port': here it is --listen",
            ),
            (
                "tool serve --port=80",
                "unexpected argument '--port': here it is --listen",
            ),
            ("tool run", "unknown command 'run': here it is serve"),
            (
                "tool serve --listing yes",
                "unexpected argument 'yes': write --listing=true or --listing alone for true",
            ),
            (
                "tool serve --listen -1",
                "unexpected argument '-1' behind --listen: a value must not be negative",
            ),
        ] {
            assert_eq!(told(line), expected);
        }
    }

    #[test]
    fn values_are_told_with_what_to_write() {
        assert!(told("tool serve --listen x").ends_with("must be a whole number"));
        assert!(
            told("tool serve --listen 70000").contains("70000 is not in"),
            "{}",
            told("tool serve --listen 70000")
        );
        assert!(
            told("tool serve --listing=x").contains("true"),
            "{}",
            told("tool serve --listing=x")
        );
        assert!(told("tool serve --lsten 1").contains("'--listen'"));
    }
}
