//! Where a process runs.

use std::path::Path;
use std::process::Command;

use crate::command;

/// Where a process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this process's own network namespace.
    Here,
    /// In the network namespace of that name.
    Namespace(String),
}

impl Place {
    /// A command that runs `program` there.
    pub fn command(&self, program: &Path) -> Command {
        match self {
            Self::Here => Command::new(program),
            // It changes the namespace and then becomes the program, so the process id stays.
            Self::Namespace(name) => {
                let mut command = command::installed("ip");
                command.args(["netns", "exec", name]).arg(program);
                command
            }
        }
    }
}
