//! Errors of the lab. Each is one line: what is wrong, where, and what would be right. The errors of a bed
//! are [`TestbedError`]s.

use std::io;
use std::path::{Path, PathBuf};

use shortline_testbed::TestbedError;
use thiserror::Error;

use crate::papers::catalogue::UnknownExperiment;
use crate::report::ReportError;
use crate::study::shop::ShopNameError;
use crate::study::{KeptError, StudyError};

/// Why an experiment could not be run or reported.
#[derive(Debug, Error)]
pub enum LabError {
    /// An error of a bed, or of a process in it.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// No experiment of that name.
    #[error(transparent)]
    UnknownExperiment(#[from] UnknownExperiment),
    /// No load or door of that name.
    #[error(transparent)]
    ShopName(#[from] ShopNameError),
    /// Kept results are wrong, or cannot be written.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// There can be no report.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The file of a study is wrong.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The bed lacks what the experiment is about.
    #[error("experiment `{experiment}` needs {needs}: want --bed virtual or --bed uml")]
    Needs {
        /// The experiment asked for.
        experiment: String,
        /// What is missing.
        needs: &'static str,
    },
    /// The experiment cannot run that server.
    #[error("experiment `{experiment}` cannot run `{server}`: it takes {allowed}")]
    ServerNotInExperiment {
        /// The experiment asked for.
        experiment: String,
        /// The server that it does not take.
        server: String,
        /// The servers that it takes.
        allowed: String,
    },
    /// A number outside its limits.
    #[error("{what} is {value}: want {low} to {high}")]
    OutOfRange {
        /// Which option.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The smallest that is right.
        low: u64,
        /// The largest that is right.
        high: u64,
    },
    /// A rate at which the generator cannot fill the phases.
    #[error("experiment `{0}` has no uplink of a rate to choose: --rate does not apply")]
    NoRate(String),
    /// A bed was given for an experiment that needs none.
    #[error("experiment `{0}` has no uplink: --bed does not apply")]
    NoBed(String),
    /// Namespaces need root.
    #[error("experiment `{0}` makes network namespaces: run it as root (the demo needs none)")]
    NotRoot(String),
    /// The experiment ended after some runs.
    #[error(
        "{source}; {kept} of {all} runs are kept in {path}: the same command goes on with the others, `lab report` tells what there is",
        path = path.display()
    )]
    CutShort {
        /// Why it ended.
        source: Box<LabError>,
        /// How many runs are kept.
        kept: usize,
        /// How many there should be.
        all: usize,
        /// Where they are kept.
        path: PathBuf,
    },
}

impl LabError {
    /// Whether the cause is the command line (exit status 2) or the run (1).
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Testbed(error) => error.is_usage(),
            Self::Kept(error) => error.is_usage(),
            Self::UnknownExperiment(_)
            | Self::ShopName(_)
            | Self::Study(_)
            | Self::ServerNotInExperiment { .. }
            | Self::OutOfRange { .. }
            | Self::NoRate(_)
            | Self::NoBed(_) => true,
            Self::Report(_) | Self::Needs { .. } | Self::NotRoot(_) | Self::CutShort { .. } => {
                false
            }
        }
    }

    /// The error that a part of the lab `failed`, and why.
    pub(crate) fn failed(what: impl Into<String>, problem: &dyn std::fmt::Display) -> Self {
        Self::Testbed(TestbedError::command(what, problem))
    }

    /// For `map_err` on anything done to the file at `path`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Kept(KeptError::file(path)(source))
    }

    /// For `map_err` on a kept file with the wrong content.
    pub(crate) fn kept<E: ToString>(path: &Path) -> impl FnOnce(E) -> Self + '_ {
        move |problem| Self::Kept(KeptError::content(path)(problem))
    }

    /// For `map_err` on the errors of the workload and trace crates.
    pub(crate) fn refused<E: ToString>(error: E) -> Self {
        Self::Kept(KeptError::refused(error))
    }
}
