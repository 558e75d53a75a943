//! What can go wrong in the lab, in one line each: what, where, and what would be right.

use std::io;
use std::path::{Path, PathBuf};

use shortline_plot::PlotError;
use thiserror::Error;

use crate::experiment::StudyError;

/// Why an experiment could not be run or reported.
#[derive(Debug, Error)]
pub enum LabError {
    /// No experiment of that name.
    #[error(
        "unknown experiment `{0}`: `shortline lab list` names them all; a study of your own is named by its file, such as mine.toml"
    )]
    UnknownExperiment(String),
    /// No server of that name.
    #[error(
        "unknown server `{0}`: want nginx, nginx-QUEUE (fq_codel, fq, cake, cake-hosts), apache, off, slots, \
         slots-POLICY, writers-POLICY, kernel-POLICY, kernel-mixed-POLICY, POLICY-aging-X, or a POLICY ({1}) for ours paced"
    )]
    UnknownServer(String, String),
    /// The file of a study is wrong.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// No load of that name comes to the bookstore.
    #[error(
        "unknown load `{0}`: want alone, N-browsers, N-browsers-slowed, N-browsers-other-mix, \
         N-browsers-short-sessions, alternating or alternating-clicks"
    )]
    UnknownLoad(String),
    /// Nothing of that name is before the bookstore's database.
    #[error(
        "unknown door `{0}`: want none, fifo, sjf or sjf-aging-X, with a fixed capacity such as fifo@40ms"
    )]
    UnknownDoor(String),
    /// No bed of that name.
    #[error("unknown bed `{0}`: want native, uml or virtual")]
    UnknownBed(String),
    /// The guest kernel of a bed is not there.
    #[error("{0}: `shortline lab kernel build` makes one")]
    NoKernel(&'static str),
    /// The guest kernel of a bed, or the experiment in it, ended badly.
    #[error("the guest kernel {problem}; its last words: {last_words} (all in {console})", console = console.display())]
    Guest {
        /// What it did.
        problem: String,
        /// Everything it printed.
        console: PathBuf,
        /// The last line of that.
        last_words: String,
    },
    /// No queue of that name.
    #[error("unknown server `{0}`: behind nginx- want fq_codel, fq, cake or cake-hosts")]
    UnknownQueue(String),
    /// No factor of aging.
    #[error("server aging `{0}`: {1}")]
    Aging(String, String),
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
        "{path} holds results of another plan (of `{1}`: points, lengths, rates or traces differ): \
         want another --out, or the same flags to go on",
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
    /// A queue that the kernel does not have.
    #[error("this kernel has no queue {0}: --bed uml has")]
    NoQueue(&'static str),
    /// Namespaces need root.
    #[error("experiment `{0}` makes network namespaces: run it as root (the demo needs none)")]
    NotRoot(String),
    /// A program that the experiment needs is not there.
    #[error("`{program}` is not installed: apt-get install {package}")]
    ToolMissing {
        /// What was looked for on the PATH and in the sbin folders.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A command ended badly or could not be started.
    #[error("`{command}` failed: {problem}")]
    Command {
        /// The command line.
        command: String,
        /// Its exit status and the last line it wrote.
        problem: String,
    },
    /// A command or server took longer than its limit.
    #[error("{what} took more than {limit_s} s and was stopped")]
    TooLong {
        /// Which process.
        what: String,
        /// The limit, in seconds.
        limit_s: u64,
    },
    /// A server ended or never listened.
    #[error("server `{server}` {problem}; its last words: {log}")]
    Server {
        /// Which server.
        server: String,
        /// What it did.
        problem: String,
        /// The last line of its log.
        log: String,
    },
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
    #[error(
        "{path}:{line}: {problem}: want lines `## FIGURE`, each once and named as `shortline lab list` \
         does, with the reasons below",
        path = path.display()
    )]
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
    /// SIGINT or SIGTERM.
    #[error("interrupted: everything the experiment made has been removed")]
    Interrupted,
    /// The same after some runs, or another error after some runs.
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
        matches!(
            self,
            Self::UnknownExperiment(_)
                | Self::UnknownServer(..)
                | Self::UnknownLoad(_)
                | Self::Study(_)
                | Self::UnknownQueue(_)
                | Self::UnknownDoor(_)
                | Self::UnknownBed(_)
                | Self::Aging(..)
                | Self::OtherPlan(..)
                | Self::ServerNotInExperiment { .. }
                | Self::OutOfRange { .. }
                | Self::NoRate(_)
                | Self::NoBed(_)
        )
    }

    /// For `map_err` on a factor of aging in a server's name.
    pub(crate) fn aging<E: ToString>(text: &str) -> impl FnOnce(E) -> Self + '_ {
        move |error| Self::Aging(text.into(), error.to_string())
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
