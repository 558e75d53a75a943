//! Why a command failed, and its exit code.

use std::process::ExitCode;

use shortline_load::summary::VOID_EXIT_CODE;

use crate::output::refuse;

/// The error of a command. Its text is one line: what, where, and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command line makes no sense: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The command line was right but could not be carried out: exit code 1.
    #[error("{0}")]
    Failure(String),
    /// The run was made and reported, but what it measured does not count: exit code 3.
    #[error("void: {0}")]
    Void(String),
}

impl CommandError {
    /// Bad usage with the text of another error.
    pub fn usage(error: impl ToString) -> Self {
        Self::Usage(error.to_string())
    }

    /// A failure with the text of another error.
    pub fn failure(error: impl ToString) -> Self {
        Self::Failure(error.to_string())
    }

    /// Bad usage or a failure, with the text of another error.
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
        refuse(&line);
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failure(_) => ExitCode::from(1),
            Self::Void(_) => ExitCode::from(VOID_EXIT_CODE),
        }
    }
}
