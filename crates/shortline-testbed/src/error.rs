//! Errors of a test bed. Each is one line: what is wrong, where, and what would be right.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// An error of a bed, or of a process in it.
#[derive(Debug, Error)]
pub enum TestbedError {
    /// No server of that name.
    #[error(
        "unknown server `{0}`: want nginx, nginx-QUEUE (fq_codel, fq, cake, cake-hosts), apache, h2o, caddy, off, \
            slots, slots-POLICY, writers-POLICY, kernel-POLICY, kernel-mixed-POLICY, POLICY-aging-X, or \
            a POLICY ({1}) for ours paced"
    )]
    UnknownServer(String, String),
    /// Servers and clients have a processor each.
    #[error(
        "this takes two processors, one for the server and one for its clients, and there is one"
    )]
    OneProcessor,
    /// A proxy that is to serve files.
    #[error("{0} has no files: want a backend")]
    NoFiles(String),
    /// No queue of that name.
    #[error("unknown server `{0}`: behind nginx- want fq_codel, fq, cake or cake-hosts")]
    UnknownQueue(String),
    /// Not a factor of aging.
    #[error("server aging `{0}`: {1}")]
    Aging(String, String),
    /// No bed of that name.
    #[error("unknown bed `{0}`: want native, uml or virtual")]
    UnknownBed(String),
    /// A bed's guest kernel is missing.
    #[error("{0}: `shortline lab kernel build` makes one")]
    NoKernel(&'static str),
    /// A bed's guest kernel, or the command in it, ended badly.
    #[error("the guest kernel {problem}; its last words: {last_words} (all in {console})", console = console.display())]
    Guest {
        /// What it did.
        problem: String,
        /// Everything it printed.
        console: PathBuf,
        /// The last line of that.
        last_words: String,
    },
    /// The kernel lacks a queue.
    #[error("this kernel has no queue {0}: --bed uml has")]
    NoQueue(&'static str),
    /// A program that the bed needs is missing.
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
    /// A file's content is not what the bed writes there.
    #[error("{path}: {problem}: want a folder written by `shortline lab run --out`", path = path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The environment, the records or a certificate is invalid.
    #[error("{0}")]
    Refused(String),
    /// The run is over: SIGINT or SIGTERM came.
    #[error("interrupted: everything the experiment made has been removed")]
    Interrupted,
}

impl TestbedError {
    /// Whether the cause is a wrong name on the command line (exit status 2) or the run (1).
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::UnknownServer(..) | Self::UnknownQueue(_) | Self::UnknownBed(_) | Self::Aging(..)
        )
    }

    /// The error that a command or a part of the lab `failed`, and why.
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

    /// For `map_err` on a file with the wrong content.
    pub fn content<E: ToString>(path: &Path) -> impl FnOnce(E) -> Self + '_ {
        move |problem| Self::Content {
            path: path.into(),
            problem: problem.to_string(),
        }
    }

    /// For `map_err` on something invalid.
    pub(crate) fn refused<E: ToString>(error: E) -> Self {
        Self::Refused(error.to_string())
    }
}
