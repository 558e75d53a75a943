//! Starts a program that listens: a gate, or another that stands where a gate would.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use shortline_testbed::process::Process;
use shortline_testbed::{Place, Testbed, proc_fs};

use crate::LabError;

/// How long a program may take to listen.
const START_MAX: Duration = Duration::from_secs(10);

/// Starts a program with these words, and waits until it listens at all addresses. `name` is that of its log.
///
/// # Errors
/// If it ends, or does not listen in ten seconds, with its last words.
pub fn start(
    testbed: &Testbed,
    name: &str,
    program: &Path,
    words: &[String],
    addresses: &[SocketAddr],
) -> Result<Process, LabError> {
    let log = testbed.log(name);
    let mut process = Process::start(testbed, &Place::Here, program, words, &log)?;
    let deadline = Instant::now() + START_MAX;
    let pid = process.pid();
    let listens = |address: &SocketAddr| proc_fs::is_listening(pid, address.port());
    while !addresses.iter().all(listens) {
        if process.ended().is_some() || Instant::now() > deadline {
            return Err(LabError::failed(name, &process.last_words()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(process)
}
