//! What can go wrong in the lab, in one line each: what, where, and what would be right. What goes wrong in
//! a bed is the test bed's to say ([`TestbedError`]).

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
    /// A bed, or a process in it, is not what it should be.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// No experiment of that name.
    #[error(transparent)]
    UnknownExperiment(#[from] UnknownExperiment),
    /// No load or door of that name.
    #[error(transparent)]
    ShopName(#[from] ShopNameError),
    /// What is kept is wrong, or cannot be kept.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// Nothing can be reported.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The file of a study is wrong.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// What the experiment is about cannot be had in that bed.
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
        /// The server it has no use for.
        server: String,
        /// The servers it takes.
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
    /// A rate whose phases the generator could not fill.
    #[error("experiment `{0}` has no uplink of a rate to choose: --rate does not apply")]
    NoRate(String),
    /// A bed for what needs none.
    #[error("experiment `{0}` has no uplink: --bed does not apply")]
    NoBed(String),
    /// Namespaces need root.
    #[error("experiment `{0}` makes network namespaces: run it as root (the demo needs none)")]
    NotRoot(String),
    /// It ended after some runs.
    #[error(
        "{source}; {kept} of {all} runs are kept in {path}: the same command goes on with the others, `lab report` tells what there is",
        path = path.display()
    )]
    CutShort {
        /// Why it did not go on.
        source: Box<LabError>,
        /// How many runs are kept.
        kept: usize,
        /// How many there should be.
        all: usize,
        /// Where.
        path: PathBuf,
    },
}

impl LabError {
    /// Whether the command line was wrong (exit status 2) and not the run (1).
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

    /// A part of the lab that `failed`, and why.
    pub(crate) fn failed(what: impl Into<String>, problem: &dyn std::fmt::Display) -> Self {
        Self::Testbed(TestbedError::command(what, problem))
    }

    /// For `map_err` on anything done to the file at `path`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Kept(KeptError::file(path)(source))
    }

    /// For `map_err` where a kept file does not hold what it should.
    pub(crate) fn kept<E: ToString>(path: &Path) -> impl FnOnce(E) -> Self + '_ {
        move |problem| Self::Kept(KeptError::content(path)(problem))
    }

    /// For `map_err` on the errors of the workload and trace crates.
    pub(crate) fn refused<E: ToString>(error: E) -> Self {
        Self::Kept(KeptError::refused(error))
    }
}
