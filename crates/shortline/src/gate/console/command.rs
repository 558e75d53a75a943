//! The commands of the admin database and of `POST /command`, named as PgBouncer names them (its
//! doc/usage.md, "Admin console").
//!
//! ```text
//! SHOW what | PAUSE [db] | RESUME [db] | RECONNECT [db] | KILL [db] | KILL_CLIENT id | DISABLE db | ENABLE db
//! WAIT_CLOSE [db] | RELOAD | SHUTDOWN [WAIT_FOR_CLIENTS | WAIT_FOR_SERVERS]
//! ```
//!
//! The case of commands does not matter. The name of a database is plain, or in double quotes. Inside them a double
//! quote is doubled. `SHUTDOWN` alone ends at once, as in PgBouncer.

/// A command of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Shows a table. Its name is in capitals.
    Show(String),
    /// Admits no request of a database, or none at all, and waits until running ones have ended.
    Pause(Option<String>),
    /// Ends a pause.
    Resume(Option<String>),
    /// Closes the backend's connections when they are given back.
    Reconnect(Option<String>),
    /// Closes clients' connections at once, and admits no request.
    Kill(Option<String>),
    /// Closes a client's connection at once.
    KillClient(u64),
    /// Refuses new clients of a database.
    Disable(String),
    /// Accepts new clients of a database again.
    Enable(String),
    /// Waits until connections that are to close have closed.
    WaitClose(Option<String>),
    /// Reads the configuration again.
    Reload,
    /// Ends the gate.
    Shutdown(End),
}

/// How the gate ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At once.
    Now,
    /// When running transactions have ended, as after SIGTERM.
    WhenServersRest,
    /// When all clients have left. No new ones are accepted.
    WhenClientsLeft,
}

/// A text that is not a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// There is no command of this name.
    #[error("no such command; try SHOW HELP")]
    Unknown,
    /// A word is missing.
    #[error("{command} needs {what}")]
    Missing {
        /// Its name.
        command: &'static str,
        /// What it needs.
        what: &'static str,
    },
    /// There are too many words.
    #[error("{0} has too many words")]
    TooMany(&'static str),
    /// A double quote is not closed, or no blank follows the closing one.
    #[error("a double quote has no end, or no blank behind it")]
    Quote,
    /// A number was expected.
    #[error("KILL_CLIENT needs the id of SHOW CLIENTS, a number")]
    NoId,
    /// An unknown way to end.
    #[error("SHUTDOWN alone, or with WAIT_FOR_CLIENTS or WAIT_FOR_SERVERS")]
    NoWay,
}

impl Command {
    /// Reads a command.
    ///
    /// # Errors
    /// [`CommandError`]
    pub fn parse(text: &str) -> Result<Self, CommandError> {
        let text = text.trim().trim_end_matches(';');
        let mut words = words(text)?.into_iter();
        let verb = words.next().unwrap_or_default().to_ascii_uppercase();
        let argument = words.next();
        let is_longer = words.next().is_some();
        let named = NAMES.iter().find(|name| **name == verb);
        let name = *named.ok_or(CommandError::Unknown)?;
        if is_longer || (name == "RELOAD" && argument.is_some()) {
            return Err(CommandError::TooMany(name));
        }
        let needed = |what| {
            argument.clone().ok_or(CommandError::Missing {
                command: name,
                what,
            })
        };
        Ok(match name {
            "SHOW" => Self::Show(needed("what to show; try SHOW HELP")?.to_ascii_uppercase()),
            "PAUSE" => Self::Pause(argument),
            "RESUME" => Self::Resume(argument),
            "RECONNECT" => Self::Reconnect(argument),
            "KILL" => Self::Kill(argument),
            "KILL_CLIENT" => {
                let id = needed("the id of a client")?;
                Self::KillClient(id.parse().map_err(|_| CommandError::NoId)?)
            }
            "DISABLE" => Self::Disable(needed("the name of a database")?),
            "ENABLE" => Self::Enable(needed("the name of a database")?),
            "WAIT_CLOSE" => Self::WaitClose(argument),
            "RELOAD" => Self::Reload,
            _ => Self::Shutdown(end(argument.as_deref())?),
        })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Show(_) => "SHOW",
            Self::Pause(_) => "PAUSE",
            Self::Resume(_) => "RESUME",
            Self::Reconnect(_) => "RECONNECT",
            Self::Kill(_) => "KILL",
            Self::KillClient(_) => "KILL_CLIENT",
            Self::Disable(_) => "DISABLE",
            Self::Enable(_) => "ENABLE",
            Self::WaitClose(_) => "WAIT_CLOSE",
            Self::Reload => "RELOAD",
            Self::Shutdown(_) => "SHUTDOWN",
        }
    }
}

const NAMES: [&str; 11] = [
    "SHOW",
    "PAUSE",
    "RESUME",
    "RECONNECT",
    "KILL",
    "KILL_CLIENT",
    "DISABLE",
    "ENABLE",
    "WAIT_CLOSE",
    "RELOAD",
    "SHUTDOWN",
];

fn end(way: Option<&str>) -> Result<End, CommandError> {
    match way.map(str::to_ascii_uppercase).as_deref() {
        None => Ok(End::Now),
        Some("WAIT_FOR_CLIENTS") => Ok(End::WhenClientsLeft),
        Some("WAIT_FOR_SERVERS") => Ok(End::WhenServersRest),
        Some(_) => Err(CommandError::NoWay),
    }
}

/// The words of a text, without quotes.
fn words(text: &str) -> Result<Vec<String>, CommandError> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = if let Some(quoted) = rest.strip_prefix('"') {
            let (word, length) = quoted_word(quoted).ok_or(CommandError::Quote)?;
            words.push(word);
            length + 1
        } else {
            let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
            words.push(rest[..length].to_owned());
            length
        };
        let behind = &rest[end..];
        rest = behind.trim_start();
        if !rest.is_empty() && rest.len() == behind.len() {
            return Err(CommandError::Quote);
        }
    }
    Ok(words)
}

/// A word up to its closing quote, and its length in bytes including that quote.
fn quoted_word(text: &str) -> Option<(String, usize)> {
    let mut word = String::new();
    let mut from = 0;
    loop {
        let quote = from + text[from..].find('"')?;
        word.push_str(&text[from..quote]);
        if !text[quote + 1..].starts_with('"') {
            return Some((word, quote + 1));
        }
        word.push('"');
        from = quote + 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commands_are_read_as_pgbouncer_reads_them() {
        let db = || Some("shop".to_owned());
        for (text, expected) in [
            ("show pools;", Command::Show("POOLS".to_owned())),
            ("PAUSE", Command::Pause(None)),
            (" pause  shop ; ", Command::Pause(db())),
            ("RESUME \"shop\"", Command::Resume(db())),
            (
                "reconnect \"a \"\"b\"\"\"",
                Command::Reconnect(Some("a \"b\"".to_owned())),
            ),
            ("KILL shop", Command::Kill(db())),
            ("KILL_CLIENT 12", Command::KillClient(12)),
            ("DISABLE Shop", Command::Disable("Shop".to_owned())),
            ("wait_close", Command::WaitClose(None)),
            ("RELOAD", Command::Reload),
            ("SHUTDOWN", Command::Shutdown(End::Now)),
            (
                "shutdown wait_for_clients",
                Command::Shutdown(End::WhenClientsLeft),
            ),
        ] {
            assert_eq!(Command::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_told() {
        for text in [
            "",
            "SHOW",
            "SHOW A B",
            "select 1",
            "ENABLE",
            "KILL_CLIENT x",
            "RELOAD now",
            "PAUSE \"a",
            "PAUSE \"a\"b",
            "SHUTDOWN softly",
        ] {
            let told = Command::parse(text).map_err(|error| error.to_string());
            assert!(told.is_err_and(|told| !told.contains('\n')), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_name_can_be_said(name in "[^;]{1,40}") {
            let quoted = name.replace('"', "\"\"");
            let parsed = Command::parse(&format!("PAUSE \"{quoted}\""));
            prop_assert_eq!(parsed, Ok(Command::Pause(Some(name))));
        }

        #[test]
        fn no_text_harms(text: String) {
            if let Ok(command) = Command::parse(&text) {
                let begins = text.trim_start().to_ascii_uppercase();
                prop_assert!(begins.trim_start_matches('"').starts_with(command.name()), "{}", text);
            }
        }
    }
}
