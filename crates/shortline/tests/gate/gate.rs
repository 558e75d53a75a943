//! A gate of any kind, with an admin endpoint, at a free port.

use std::process::Command;

use crate::process::{PROGRAM, Server};

/// `shortline gate KIND` in front of `upstream`.
pub fn gate(kind: &str, upstream: &str, flags: &[&str]) -> Server {
    let mut command = Command::new(PROGRAM);
    command
        .args(["gate", kind, "--listen", "127.0.0.1:0"])
        .args(["--admin", "127.0.0.1:0", "--upstream", upstream])
        .args(flags);
    Server::spawn(&mut command)
}
