//! What can go wrong in the lab, in one line each: what, where, and what would be right. What goes wrong in
//! a bed is the test bed's to say ([`TestbedError`]).

use std::io;
use std::path::{Path, PathBuf};

use shortline_plot::PlotError;
use shortline_testbed::TestbedError;
use thiserror::Error;

use crate::experiment::StudyError;

/// Why an experiment could not be run or reported.
#[derive(Debug, Error)]
pub enum LabError {
    /// A bed, or a process in it, is not what it should be.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// No experiment of that name.
    #[error(
        "unknown experiment `{0}`: `shortline lab list` names them all; a study of your own is named by its file, such as mine.toml"
    )]
    UnknownExperiment(String),
    /// The file of a study is wrong.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// No load of that name comes to the bookstore.
    #[error(
        "unknown load `{0}`: want alone, N-browsers, N-browsers-slowed, N-browsers-other-mix, N-browsers-short-sessions, alternating or alternating-clicks"
    )]
    UnknownLoad(String),
    /// Nothing of that name is before the bookstore's database.
    #[error(
        "unknown door `{0}`: want none, fifo, sjf or sjf-aging-X, with a fixed capacity such as fifo@40ms"
    )]
    UnknownDoor(String),
    /// What the experiment is about cannot be had in that bed.
    #[error("experiment `{experiment}` needs {needs}: want --bed virtual or --bed uml")]
    Needs {
        /// The experiment asked for.
        experiment: String,
        /// What is missing.
        needs: &'static str,
    },
    /// The folder holds results that these would not go with.
    #[error(
        "{path} holds results of another plan (of `{1}`: points, lengths, rates or traces differ): want another --out, or the same flags to go on",
        path = .0.display()
    )]
    OtherPlan(PathBuf, String),
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
    Kept {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// What people say of the papers' claims names none of them.
    #[error("{path}:{line}: {problem}: want lines `## FIGURE`, each once and named as `shortline lab list` does, with the reasons below", path = path.display())]
    Why {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The trace or the simulator refused.
    #[error("{0}")]
    Workload(String),
    /// The plot could not be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
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
        if let Self::Testbed(error) = self {
            return error.is_usage();
        }
        matches!(
            self,
            Self::UnknownExperiment(_)
                | Self::UnknownLoad(_)
                | Self::Study(_)
                | Self::UnknownDoor(_)
                | Self::OtherPlan(..)
                | Self::ServerNotInExperiment { .. }
                | Self::OutOfRange { .. }
                | Self::NoRate(_)
                | Self::NoBed(_)
        )
    }

    /// A part of the lab that `failed`, and why.
    pub(crate) fn failed(what: impl Into<String>, problem: &dyn std::fmt::Display) -> Self {
        Self::Testbed(TestbedError::command(what, problem))
    }

    /// For `map_err` on anything done to the file at `path`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::File {
            path: path.into(),
            source,
        }
    }

    /// For `map_err` where a kept file does not hold what it should.
    pub(crate) fn kept<E: ToString>(path: &Path) -> impl FnOnce(E) -> Self + '_ {
        move |problem| Self::Kept {
            path: path.into(),
            problem: problem.to_string(),
        }
    }

    /// For `map_err` on the errors of the workload, trace and simulator crates.
    pub(crate) fn workload<E: ToString>(error: E) -> Self {
        Self::Workload(error.to_string())
    }
}
