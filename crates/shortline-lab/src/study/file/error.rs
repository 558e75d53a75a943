//! Errors of a study's file. Each is one line: file, line, key, and what would be right.

use std::fmt::Display;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use shortline_command::toml_text;
use thiserror::Error;
use toml::Spanned;

/// Why a file is not a study.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The file could not be read.
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
    /// Its name cannot be that of a folder of results.
    #[error("{path}: want a name of a-z, 0-9, . and - before .toml, which its results have, too", path = path.display())]
    Name {
        /// Which file.
        path: PathBuf,
    },
    /// Its name is that of a study of the catalogue.
    #[error("{path}: the catalogue has a study `{id}`: want a file of another name", path = path.display())]
    Taken {
        /// Which file.
        path: PathBuf,
        /// The name that it has.
        id: String,
    },
    /// The value of a key is wrong.
    #[error("{path}:{line}: {key}{problem}", path = path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// The key with its tables and a colon. Empty if the text is not TOML.
        key: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

/// The text that a study is read from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    /// Its name in errors.
    pub path: &'a Path,
    /// The whole text.
    pub text: &'a str,
}

impl Source<'_> {
    /// The error of a wrong value.
    pub fn wrong<T>(
        &self,
        value: &Spanned<T>,
        problem: impl Display,
        want: impl Display,
    ) -> StudyError {
        self.error_at(value.span(), format!("{problem}: want {want}"))
    }

    /// The error of a table without `key`.
    pub fn lacks(&self, table: Range<usize>, key: &str, want: impl Display) -> StudyError {
        self.error_at(table, format!("`{key}` is missing: want {want}"))
    }

    /// The error at a place in the text. The problem says what would be right.
    pub fn error_at(&self, place: Range<usize>, problem: String) -> StudyError {
        let key = toml_text::key(self.text, place.start);
        StudyError::Content {
            path: self.path.into(),
            line: toml_text::line(self.text, place.start),
            key: key.map_or_else(String::new, |key| format!("{key}: ")),
            problem,
        }
    }

    /// The error of text that is not TOML, or has a key that is unknown, missing or of another type.
    pub fn syntax(&self, error: &toml::de::Error) -> StudyError {
        let problem = error.message().replace('\n', "; ");
        self.error_at(error.span().unwrap_or(0..0), problem)
    }
}
