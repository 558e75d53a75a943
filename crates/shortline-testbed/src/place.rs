//! Where a process runs.

use std::path::Path;
use std::process::Command;

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::{TestbedError, command};

/// Where a process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this process's own network namespace.
    Here,
    /// In the network namespace of that name.
    Namespace(String),
    /// Here, on the processor of that number alone. A server then has one worker.
    Processor(u32),
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
            Self::Processor(number) => {
                let mut command = command::installed("taskset");
                command
                    .args(["--cpu-list", &number.to_string()])
                    .arg(program);
                command
            }
        }
    }
}

/// Two processors that this process may run on: one for a server, one for its clients.
///
/// # Errors
/// There are not two.
pub fn two_processors() -> Result<(u32, u32), TestbedError> {
    let allowed = sched_getaffinity(None).map_err(TestbedError::refused)?;
    let mut numbers = (0..CpuSet::MAX_CPU).filter(|number| allowed.is_set(*number));
    let mut next = || numbers.next().and_then(|number| u32::try_from(number).ok());
    match (next(), next()) {
        (Some(one), Some(other)) => Ok((one, other)),
        _ => Err(TestbedError::OneProcessor),
    }
}
