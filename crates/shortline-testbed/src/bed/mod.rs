//! Where servers and clients run: on this machine's loopback, or in the [`native`] bed
//! with an uplink that can be saturated.

pub mod hop;
pub mod kind;
pub mod native;
mod netns;
pub mod parameters;
mod queue;
mod router;
pub mod setup;

use std::path::Path;
use std::process::Command;

pub use kind::BedKind;
pub use native::{BedConfig, Counters, NativeBed};
pub use queue::FairQueue;
pub use router::client_address;
pub use setup::Setup;

/// Where a process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the lab's own network namespace.
    Here,
    /// In the network namespace of that name.
    Namespace(String),
}

impl Place {
    /// A command that runs `program` there.
    pub fn command(&self, program: &Path) -> Command {
        match self {
            Self::Here => Command::new(program),
            // It changes namespace and then becomes the program: the process id stays.
            Self::Namespace(name) => {
                let mut command = crate::command::installed("ip");
                command.args(["netns", "exec", name]).arg(program);
                command
            }
        }
    }
}
