//! Errors of a report, in one line each.

use std::io;
use std::path::{Path, PathBuf};

use shortline_plot::PlotError;
use thiserror::Error;

use crate::study::KeptError;

/// Why there can be no report.
#[derive(Debug, Error)]
pub enum ReportError {
    /// Kept results are wrong, or the report cannot be written beside them.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// `why.md` does not name a paper's claim correctly.
    #[error("{path}:{line}: {problem}: want lines `## FIGURE`, each once and named as `shortline lab \
        list` does, with the reasons below", path = path.display())]
    Why {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The plot could not be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
}

impl ReportError {
    /// For `map_err` on anything done to the file at `path`.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Kept(KeptError::file(path)(source))
    }
}
