//! Errors of kept results, in one line each.

use std::io;
use std::path::{Path, PathBuf};

use shortline_testbed::TestbedError;
use thiserror::Error;

/// Why results cannot be written or read.
#[derive(Debug, Error)]
pub enum KeptError {
    /// The file of an instrument is wrong.
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
    /// A kept result is not what this version writes.
    #[error("{path}: {problem}: want a folder written by `shortline lab run --out`", path = path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The folder has results of another plan.
    #[error(
        "{path} holds results of another plan (of `{1}`: points, lengths, rates or traces differ): want \
            another --out, or the same flags to go on",
        path = .0.display()
    )]
    OtherPlan(PathBuf, String),
    /// An error of the records, the trace or the simulator.
    #[error("{0}")]
    Refused(String),
}

impl KeptError {
    /// Whether the cause is the command line (exit status 2) or the kept results (1).
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

    /// For `map_err` on a kept file with the wrong content.
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
