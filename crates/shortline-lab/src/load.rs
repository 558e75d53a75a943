//! Starting the load generator, `shortline load`, as a process.

use std::path::Path;
use std::time::Duration;

use crate::LabError;
use crate::bed::Place;
use crate::lab::Lab;
use crate::process::{Log, Process};
use crate::server::{ServerSetup, certificate_file};

/// How long after the last arrival the generator waits for what is still under way. In an
/// hour of W1 the fluid link is never more than 10 s of work behind.
pub const DRAIN_MAX: Duration = Duration::from_secs(120);

/// What the generator is to do.
#[derive(Clone, Copy, Debug)]
pub struct LoadSetup<'a> {
    /// The arrivals, a trace CSV.
    pub trace: &'a Path,
    /// Where the records go.
    pub records: &'a Path,
    /// How many requests a connection serves; without it the generator's own few HTTP/2
    /// connections serve them all.
    pub requests_per_connection: Option<u32>,
}

/// Starts the generator at `place` against the server that was set up so; its progress is
/// shown on the lab's terminal, its summary kept beside the records.
///
/// # Errors
/// If it cannot be started.
pub fn start(
    lab: &Lab,
    place: &Place,
    server: &ServerSetup,
    load: &LoadSetup<'_>,
) -> Result<Process, LabError> {
    let scheme = if server.speech.tls { "https" } else { "http" };
    let target = format!("{scheme}://{}:{}", server.address, server.port);
    let mut arguments = vec!["load".to_owned()];
    let mut add = |flag: &str, value: String| arguments.extend([flag.to_owned(), value]);
    add("--target", target);
    add("--trace", load.trace.display().to_string());
    add("--out", load.records.display().to_string());
    add("--drain", DRAIN_MAX.as_secs().to_string());
    if let Some(requests) = load.requests_per_connection {
        add("--requests-per-connection", requests.to_string());
    }
    if server.speech.tls {
        add("--tls-ca", certificate_file(lab).display().to_string());
    }
    if server.speech.http2 {
        arguments.push("--http2".into());
    }
    let log = Log::Progress(load.records.with_extension("txt"));
    Process::start(lab, place, lab.program(), &arguments, &log)
}
