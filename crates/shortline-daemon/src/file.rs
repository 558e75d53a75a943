//! Reading a configuration file: TOML, into whatever keys the program has.
//!
//! An error names the file, the line, the key and what would be right, in one line.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use shortline_command::toml_text;
use toml::de::{DeTable, DeValue};

/// The most bytes a configuration file may have.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A file that says nothing usable.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("configuration {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// It is absurdly long.
    #[error("configuration {}: larger than {FILE_BYTES_MAX} bytes; is it the right file?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not what is expected.
    #[error("{place}: {problem}")]
    Content {
        /// File, line and key.
        place: String,
        /// What is wrong with the value, and what would be right.
        problem: String,
    },
}

impl FileError {
    /// Whether the file itself is wrong, rather than out of reach.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Unreadable { .. })
    }
}

/// The keys of a program, as read from a file.
pub trait Keys: DeserializeOwned {
    /// What keys of other programs are called here: the key there, and what to write instead.
    const ELSEWHERE: &'static [(&'static str, &'static str)] = &[];
}

/// A file's content with its text, to name lines of it.
#[derive(Clone, Debug, Default)]
pub struct Source {
    path: PathBuf,
    text: String,
}

/// Reads a configuration file.
///
/// # Errors
/// [`FileError`]
pub fn read<T: Keys>(path: &Path) -> Result<(T, Source), FileError> {
    let unreadable = |source| FileError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(FileError::TooLarge {
            path: path.to_owned(),
        });
    }
    parse(path, std::fs::read_to_string(path).map_err(unreadable)?)
}

/// Reads the file that `--config` names; nothing is said where it names none.
///
/// # Errors
/// [`FileError`]
pub fn read_if_named<T: Keys + Default>(path: Option<&Path>) -> Result<(T, Source), FileError> {
    path.map_or_else(|| Ok(<(T, Source)>::default()), read)
}

/// Understands the text of a configuration file; the path is for messages.
///
/// # Errors
/// [`FileError::Content`]
pub fn parse<T: Keys>(path: &Path, text: String) -> Result<(T, Source), FileError> {
    let source = Source {
        path: path.to_owned(),
        text,
    };
    let file =
        toml::from_str(&source.text).map_err(|error| source.content_error(&error, T::ELSEWHERE))?;
    Ok((file, source))
}

/// Names where a value came from, for errors.
pub struct Place<'a> {
    /// The file.
    pub source: &'a Source,
    /// The table of the key.
    pub table: &'static str,
}

impl Place<'_> {
    /// The flag, or the key's place in the file.
    pub fn of(&self, by_flag: bool, flag: &str, key: &str) -> String {
        if by_flag {
            format!("--{flag}")
        } else {
            self.source.place(self.table, key)
        }
    }
}

impl Source {
    /// Names a key of a table as `file:line: table.key`, for errors about a combination.
    pub fn place(&self, table: &str, key: &str) -> String {
        let parsed = DeTable::parse(&self.text).ok();
        let span = parsed.as_ref().and_then(|document| {
            let DeValue::Table(table) = document.get_ref().get(table)?.get_ref() else {
                return None;
            };
            table.get_key_value(key).map(|(key, _)| key.span())
        });
        let line = span.map_or_else(String::new, |span| {
            format!(":{}", toml_text::line(&self.text, span.start))
        });
        format!("{}{line}: {table}.{key}", self.path.display())
    }

    fn content_error(&self, error: &toml::de::Error, elsewhere: &[(&str, &str)]) -> FileError {
        let offset = error.span().map_or(0, |span| span.start);
        let key = toml_text::key(&self.text, offset);
        let key = key.map_or_else(String::new, |key| format!(" {key}:"));
        FileError::Content {
            place: format!(
                "{}:{}",
                self.path.display(),
                toml_text::line(&self.text, offset)
            ),
            problem: format!(
                "{key} {}",
                explained(error.message(), elsewhere).replace('\n', "; ")
            )
            .trim_start()
            .to_owned(),
        }
    }
}

/// What serde says of an unknown key, with what was perhaps meant.
fn explained(message: &str, elsewhere: &[(&str, &str)]) -> String {
    let in_ticks: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (Some((unknown, known)), true) =
        (in_ticks.split_first(), message.starts_with("unknown field"))
    else {
        return message.to_owned();
    };
    let (what, expected) = message.split_once(", ").unwrap_or((message, ""));
    let here = elsewhere.iter().find(|(there, _)| there == unknown);
    let meant = match here {
        Some((_, here)) => format!("here it is {here}"),
        None => match nearest(unknown, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => return message.to_owned(),
        },
    };
    format!("{what}: {meant}; {expected}")
}

/// The known key that differs by a few letters.
fn nearest<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let unknown = unknown.replace('_', "-");
    let distances = known
        .iter()
        .map(|known| (strsim::osa_distance(&unknown, known), *known));
    let (distance, near) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + unknown.len() / 4).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_comes_with_what_was_perhaps_meant() {
        let told = |unknown: &str| {
            let message = format!("unknown field `{unknown}`, expected one of `tls-cert`, `names`");
            explained(&message, &[("server_name", "`names`")])
        };
        let expected = "expected one of `tls-cert`, `names`";
        let near = format!("unknown field `tls_crt`: did you mean `tls-cert`?; {expected}");
        assert_eq!(told("tls_crt"), near);
        let here = format!("unknown field `server_name`: here it is `names`; {expected}");
        assert_eq!(told("server_name"), here);
        assert_eq!(
            told("colour"),
            format!("unknown field `colour`, {expected}")
        );
        assert_eq!(explained("invalid type", &[]), "invalid type");
    }

    #[test]
    fn a_place_names_the_line_of_a_key() {
        let source = Source {
            path: "a.toml".into(),
            text: "[uplink]\n# x\nslots = 3\n".into(),
        };
        assert_eq!(source.place("uplink", "slots"), "a.toml:3: uplink.slots");
    }
}
