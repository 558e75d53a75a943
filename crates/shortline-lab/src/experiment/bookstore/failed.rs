//! Errors of what an experiment with the bookstore starts.

use crate::LabError;

/// What failed, and why.
pub fn failed(what: &str, problem: &dyn std::fmt::Display) -> LabError {
    LabError::Command {
        command: what.to_owned(),
        problem: problem.to_string(),
    }
}
