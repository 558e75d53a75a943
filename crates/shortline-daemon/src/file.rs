//! Reading a configuration file: TOML, into whatever keys the program has.
//!
//! An error names the file, the line, the key and what would be right, in one line.

mod explained;
pub mod spot;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use shortline_command::toml_text;
use spot::Spot;
use toml::de::DeTable;

/// The most bytes a configuration file may have.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A file that says nothing usable.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is a folder.
    #[error("configuration {}: is a folder: name the file in it", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
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
        !matches!(self, Self::Unreadable { .. } | Self::Folder { .. })
    }
}

/// The keys of a program, as read from a file.
pub trait Keys: DeserializeOwned {
    /// What messages say beside what the parser says.
    const WORDS: Words = Words {
        elsewhere: &[],
        missing: &[],
        wanted: &[],
    };

    /// What to do with a text that is no TOML but another program's configuration; `None` if it is not known.
    fn foreign(_text: &str) -> Option<&'static str> {
        None
    }
}

/// Words for messages, each a pair.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// What keys of other programs are called here: the key there, and what to write instead.
    pub elsewhere: &'static [(&'static str, &'static str)],
    /// Keys that must be there, and an example of each.
    pub missing: &'static [(&'static str, &'static str)],
    /// What the parser calls what it expects, and what to write.
    pub wanted: &'static [(&'static str, &'static str)],
}

/// A file's content with its text, to name lines of it.
#[derive(Clone, Debug, Default)]
pub struct Source {
    path: Arc<PathBuf>,
    text: Arc<str>,
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
    if metadata.is_dir() {
        return Err(FileError::Folder {
            path: path.to_owned(),
        });
    }
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
        path: Arc::new(path.to_owned()),
        // Editors of other systems begin a file with a mark of its encoding.
        text: text.strip_prefix('\u{feff}').unwrap_or(&text).into(),
    };
    let file = toml::from_str(&source.text).map_err(|error| source.content_error::<T>(&error))?;
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
    /// The whole file.
    pub fn top(&self) -> Spot {
        Spot::top(self)
    }

    /// Names a key of a table as `file:line: table.key`, for errors about a combination.
    pub fn place(&self, table: &str, key: &str) -> String {
        let spot = self.top().key(table).key(key);
        format!("{}: {table}.{key}", spot.file_and_line())
    }

    fn content_error<T: Keys>(&self, error: &toml::de::Error) -> FileError {
        let offset = error.span().map_or(0, |span| span.start);
        let key = toml_text::key(&self.text, offset);
        let at = format!(
            "{}:{}",
            self.path.display(),
            toml_text::line(&self.text, offset)
        );
        let is_toml = DeTable::parse(&self.text).is_ok();
        let (place, problem) = match (is_toml, key) {
            (false, _) => match T::foreign(&self.text) {
                Some(foreign) => (self.path.display().to_string(), foreign.to_owned()),
                None => (at, self.syntax(error.message(), offset)),
            },
            (true, None) => (at, explained::content(error.message(), &T::WORDS)),
            (true, Some(key)) => {
                let problem = explained::content(error.message(), &T::WORDS);
                (at, format!("{key}: {problem}"))
            }
        };
        FileError::Content {
            place,
            problem: problem.replace('\n', "; "),
        }
    }

    /// What is wrong where the parser stopped.
    fn syntax(&self, message: &str, offset: usize) -> String {
        let line = toml_text::line(&self.text, offset);
        let mut lines = self.text.lines();
        let at = lines.clone().nth(line - 1).unwrap_or_default();
        let before = lines
            .by_ref()
            .take(line - 1)
            .filter_map(|line| line.trim().strip_prefix('['));
        let table = before.last().map(|name| name.trim_matches(['[', ']', ' ']));
        explained::syntax(message, at, table)
    }
}
