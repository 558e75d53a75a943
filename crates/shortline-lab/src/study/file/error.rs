//! What can be wrong with the file of a study, in one line: file, line, key, and what would be right.

use std::fmt::Display;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use shortline_command::toml_text;
use thiserror::Error;
use toml::Spanned;

/// Why a file is no study.
#[derive(Debug, Error)]
pub enum StudyError {
    /// It could not be read.
    #[error("{path}: {source}: want the file of a study, such as `shortline lab show w1` prints", path = path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is larger than any study.
    #[error("{path} has {bytes} bytes: want the file of a study, {most} at most", path = path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The largest that is read.
        most: u64,
    },
    /// Results could not be kept under its name.
    #[error("{path}: want a name of a-z, 0-9, . and - before .toml, which its results have, too", path = path.display())]
    Name {
        /// Which file.
        path: PathBuf,
    },
    /// Its results would pass for those of a study of the catalogue.
    #[error("{path}: the catalogue has a study `{id}`: want a file of another name", path = path.display())]
    Taken {
        /// Which file.
        path: PathBuf,
        /// The name that it has.
        id: String,
    },
    /// What stands at a key is wrong.
    #[error("{path}:{line}: {key}{problem}", path = path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// The key with its tables and a colon behind it; empty where the text is no TOML.
        key: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

/// The text that a study is read from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    /// What errors call it.
    pub path: &'a Path,
    /// All of it.
    pub text: &'a str,
}

impl Source<'_> {
    /// A value is wrong.
    pub fn wrong<T>(
        &self,
        value: &Spanned<T>,
        problem: impl Display,
        want: impl Display,
    ) -> StudyError {
        self.told(value.span(), format!("{problem}: want {want}"))
    }

    /// A table has no `key`.
    pub fn lacks(&self, table: Range<usize>, key: &str, want: impl Display) -> StudyError {
        self.told(table, format!("`{key}` is missing: want {want}"))
    }

    /// What stands there is wrong; the problem says what would be right.
    pub fn told(&self, place: Range<usize>, problem: String) -> StudyError {
        let key = toml_text::key(self.text, place.start);
        StudyError::Content {
            path: self.path.into(),
            line: toml_text::line(self.text, place.start),
            key: key.map_or_else(String::new, |key| format!("{key}: ")),
            problem,
        }
    }

    /// It is no TOML, or a key is unknown, missing or of another type.
    pub fn syntax(&self, error: &toml::de::Error) -> StudyError {
        let problem = error.message().replace('\n', "; ");
        self.told(error.span().unwrap_or(0..0), problem)
    }
}
