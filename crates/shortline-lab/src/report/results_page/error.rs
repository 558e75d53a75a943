//! Errors of the results' entries, and of the pages made from them. Each is one line: where, what is wrong,
//! and what would be right.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why the results' page could not be made, or is stale.
#[derive(Debug, Error)]
pub enum ResultsError {
    /// A file could not be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The entries are not TOML, or a key is unknown, missing or of another type.
    #[error("{path}:{line}: {problem}", path = path.display())]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// A value of an entry is wrong.
    #[error("{path}:{line}: {key}: {problem}: want {want}", path = path.display())]
    Entry {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// The key of the value.
        key: &'static str,
        /// What is wrong with the value.
        problem: String,
        /// What would be right.
        want: &'static str,
    },
    /// The file has no region for the figures, or more than one.
    #[error("{path}: want one line `{begin}` and, below it, one line `{end}`", path = path.display())]
    Region {
        /// Which file.
        path: PathBuf,
        /// The line above the region.
        begin: String,
        /// The line below it.
        end: String,
    },
    /// Files that are stale.
    #[error("not what results.toml makes: {}: run `shortline lab results`", names(.0))]
    Stale(Vec<PathBuf>),
}

impl ResultsError {
    /// For `map_err` on anything done to the file at `path`.
    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::File {
            path: path.into(),
            source,
        }
    }
}

fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}
