//! What can go wrong in a test bed, in one line each: what, where, and what would be right.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a bed, or a process in it, is not what it should be.
#[derive(Debug, Error)]
pub enum TestbedError {
    /// No server of that name.
    #[error(
        "unknown server `{0}`: want nginx, nginx-QUEUE (fq_codel, fq, cake, cake-hosts), apache, off, \
            slots, slots-POLICY, writers-POLICY, kernel-POLICY, kernel-mixed-POLICY, POLICY-aging-X, or \
            a POLICY ({1}) for ours paced"
    )]
    UnknownServer(String, String),
    /// No queue of that name.
    #[error("unknown server `{0}`: behind nginx- want fq_codel, fq, cake or cake-hosts")]
    UnknownQueue(String),
    /// No factor of aging.
    #[error("server aging `{0}`: {1}")]
    Aging(String, String),
    /// No bed of that name.
    #[error("unknown bed `{0}`: want native, uml or virtual")]
    UnknownBed(String),
    /// The guest kernel of a bed is not there.
    #[error("{0}: `shortline lab kernel build` makes one")]
    NoKernel(&'static str),
    /// The guest kernel of a bed, or the command in it, ended badly.
    #[error("the guest kernel {problem}; its last words: {last_words} (all in {console})", console = console.display())]
    Guest {
        /// What it did.
        problem: String,
        /// Everything it printed.
        console: PathBuf,
        /// The last line of that.
        last_words: String,
    },
    /// A queue that the kernel does not have.
    #[error("this kernel has no queue {0}: --bed uml has")]
    NoQueue(&'static str),
    /// A program that the bed needs is not there.
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
    /// A file does not hold what a part of the bed writes there.
    #[error("{path}: {problem}: want a folder written by `shortline lab run --out`", path = path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The environment, the records or a certificate cannot be so.
    #[error("{0}")]
    Refused(String),
    /// The run is over: SIGINT or SIGTERM came.
    #[error("interrupted: everything the experiment made has been removed")]
    Interrupted,
}

impl TestbedError {
    /// Whether a name on the command line was wrong (exit status 2) and not the run (1).
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::UnknownServer(..) | Self::UnknownQueue(_) | Self::UnknownBed(_) | Self::Aging(..)
        )
    }

    /// A command or a part of the lab that `failed`, and why.
    pub fn command(failed: impl Into<String>, problem: &dyn std::fmt::Display) -> Self {
        Self::Command {
            command: failed.into(),
            problem: problem.to_string(),
        }
    }

    /// For `map_err` on a factor of aging in a server's name.
    pub(crate) fn aging<E: ToString>(text: &str) -> impl FnOnce(E) -> Self + '_ {
        move |error| Self::Aging(text.into(), error.to_string())
    }

    /// For `map_err` on anything done to the file at `path`.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::File {
            path: path.into(),
            source,
        }
    }

    /// For `map_err` where a file does not hold what it should.
    pub fn content<E: ToString>(path: &Path) -> impl FnOnce(E) -> Self + '_ {
        move |problem| Self::Content {
            path: path.into(),
            problem: problem.to_string(),
        }
    }

    /// For `map_err` where something cannot be so.
    pub(crate) fn refused<E: ToString>(error: E) -> Self {
        Self::Refused(error.to_string())
    }
}
