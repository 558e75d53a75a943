//! What can be wrong with kept results, in one line each.

use std::io;
use std::path::{Path, PathBuf};

use shortline_testbed::TestbedError;
use thiserror::Error;

/// Why results cannot be kept or read again.
#[derive(Debug, Error)]
pub enum KeptError {
    /// What an instrument kept is wrong.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// A file could not be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A kept result that is not what this version writes.
    #[error("{path}: {problem}: want a folder written by `shortline lab run --out`", path = path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The folder holds results that these would not go with.
    #[error(
        "{path} holds results of another plan (of `{1}`: points, lengths, rates or traces differ): want \
            another --out, or the same flags to go on",
        path = .0.display()
    )]
    OtherPlan(PathBuf, String),
    /// The records, the trace or the simulator refused.
    #[error("{0}")]
    Refused(String),
}

impl KeptError {
    /// Whether the command line was wrong (exit status 2) and not what is kept (1).
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::OtherPlan(..))
    }

    /// For `map_err` on anything done to the file at `path`.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::File {
            path: path.into(),
            source,
        }
    }

    /// For `map_err` where a kept file does not hold what it should.
    pub fn content<E: ToString>(path: &Path) -> impl FnOnce(E) -> Self + '_ {
        move |problem| Self::Content {
            path: path.into(),
            problem: problem.to_string(),
        }
    }

    /// For `map_err` on the errors of the workload, trace and simulator crates.
    pub fn refused<E: ToString>(error: E) -> Self {
        Self::Refused(error.to_string())
    }
}
