//! Why a command did not succeed, and the exit code that follows from it.

use std::process::ExitCode;

use shortline_load::summary::VOID_EXIT_CODE;

use crate::output::note;

/// A command's end other than success. Its text is one line: what, where, what would be right.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command was called in a way that cannot mean anything: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The call was right but could not be carried out: exit code 1.
    #[error("{0}")]
    Failure(String),
    /// The run was made and told, but what it measured does not count: exit code 3.
    #[error("void: {0}")]
    Void(String),
}

impl CommandError {
    /// Bad usage, told by another error.
    pub fn usage(error: impl ToString) -> Self {
        Self::Usage(error.to_string())
    }

    /// A failure, told by another error.
    pub fn failure(error: impl ToString) -> Self {
        Self::Failure(error.to_string())
    }

    /// What another error tells, bad usage or a failure.
    pub fn told(is_usage: bool, error: impl ToString) -> Self {
        if is_usage {
            Self::usage(error)
        } else {
            Self::failure(error)
        }
    }

    /// Prints the error as one line to standard error and names the exit code.
    pub fn report(&self) -> ExitCode {
        // A line break inside (from a path, say) must not start a line of its own.
        let line = self.to_string().replace(['\n', '\r'], " ");
        note(&format!("shortline: {line}"));
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failure(_) => ExitCode::from(1),
            Self::Void(_) => ExitCode::from(VOID_EXIT_CODE),
        }
    }
}
