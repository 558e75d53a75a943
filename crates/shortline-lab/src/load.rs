//! Starting the load generator, `shortline load`, as a process.

use std::path::Path;

use crate::LabError;
use crate::bed::Place;
use crate::bed::setup::Abort;
use crate::lab::Lab;
use crate::process::{Log, Process};
use crate::server::{ServerSetup, certificate_file};

/// What the generator is to do.
#[derive(Clone, Debug)]
pub struct LoadSetup<'a> {
    /// What is asked for.
    pub work: Work<'a>,
    /// Where the records go.
    pub records: &'a Path,
    /// How many requests a connection serves; without it the generator's own few HTTP/2
    /// connections serve them all.
    pub requests_per_connection: Option<u32>,
    /// How long after the last arrival it waits for what is still under way, in seconds.
    pub drain_s: u64,
    /// The addresses that requests come from, for `--source`; none says the system's choice.
    pub sources: Option<String>,
    /// Users who give up; none wait until the end.
    pub abort: Option<Abort>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    /// These arrivals, a trace CSV.
    Trace(&'a Path),
    /// What users of a SURGE preset come to, in a closed loop.
    Users {
        /// The preset.
        surge: &'static str,
        /// How many.
        users: u32,
        /// For how long, in seconds.
        seconds: u64,
        /// Seed of what they do.
        seed: u64,
    },
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
    match load.work {
        Work::Trace(trace) => add("--trace", trace.display().to_string()),
        Work::Users {
            surge,
            users,
            seconds,
            seed,
        } => {
            add("--surge", surge.into());
            add("--users", users.to_string());
            add("--seconds", seconds.to_string());
            add("--seed", seed.to_string());
        }
    }
    add("--out", load.records.display().to_string());
    add("--drain", load.drain_s.to_string());
    if let Some(requests) = load.requests_per_connection {
        add("--requests-per-connection", requests.to_string());
    }
    if let Some(sources) = &load.sources {
        add("--source", sources.clone());
    }
    if let Some(abort) = load.abort {
        add(
            "--abort-after",
            abort.after.duration().as_secs_f64().to_string(),
        );
        add("--retries", abort.retries.to_string());
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
