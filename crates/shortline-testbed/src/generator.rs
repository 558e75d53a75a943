//! Starts the load generator, `shortline load`, as one process, or as several that divide the
//! requests among them (`--part`). The records of several are then merged.
//!
//! Two things show that the generator does not limit a run: its starts are not late, and another
//! number of processes gives the same result (000, 2.5: the experiment `generators`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use shortline_load::RequestRecord;
use shortline_load::record::{PACKED, read_records, write_records};
use shortline_load::summary::VOID_EXIT_CODE;

use crate::TestbedError;
use crate::bed::setup::Abort;
use crate::place::Place;
use crate::process::{Log, Process};
use crate::server::{ServerSetup, certificate_file};
use crate::testbed::Testbed;

/// The generator's task.
#[derive(Clone, Debug)]
pub struct LoadSetup<'a> {
    /// What is asked for.
    pub work: Work<'a>,
    /// Where the records go.
    pub records: &'a Path,
    /// How many requests a connection serves. `None`: the generator's few HTTP/2 connections serve
    /// all.
    pub requests_per_connection: Option<u32>,
    /// How long after the last arrival it waits for requests under way, in seconds.
    pub drain_s: u64,
    /// The addresses that requests come from, for `--source`. `None`: the system chooses.
    pub sources: Option<String>,
    /// When users give up. `None`: they wait until the end.
    pub abort: Option<Abort>,
    /// How many processes divide the requests among them.
    pub processes: u32,
}

/// The generator's processes.
#[derive(Debug)]
pub struct Generator {
    parts: Vec<(Process, PathBuf)>,
    records: PathBuf,
}

impl Generator {
    /// Their ids.
    pub fn pids(&self) -> Vec<i32> {
        self.parts
            .iter()
            .map(|(process, _)| process.pid())
            .collect()
    }

    /// Waits until all have ended, and merges their records.
    ///
    /// # Errors
    /// If one fails or takes longer than `limit`, or the records cannot be read and written.
    pub fn finish(self, limit: Duration) -> Result<(), TestbedError> {
        let mut files = Vec::new();
        for (process, records) in self.parts {
            // A void run is kept, and the report says that it is void.
            process.finish_with(&[0, VOID_EXIT_CODE], "load", limit)?;
            files.push(records);
        }
        if files != [self.records.clone()] {
            let parts = files.iter().map(|file| read_records(file));
            let parts = parts
                .collect::<Result<_, _>>()
                .map_err(TestbedError::refused)?;
            write_records(&self.records, &together(parts)).map_err(TestbedError::refused)?;
            for file in files {
                fs::remove_file(&file).map_err(TestbedError::file(&file))?;
            }
        }
        Ok(())
    }
}

/// The file with the summary of these records.
fn summary_file(records: &Path) -> PathBuf {
    match records.extension() {
        Some(last) if last == PACKED => records.with_extension("").with_extension("txt"),
        _ => records.with_extension("txt"),
    }
}

/// The records of all parts in the order that one process would have left: by intended start, and
/// by part where these are equal.
fn together(parts: Vec<Vec<RequestRecord>>) -> Vec<RequestRecord> {
    let numbered = parts.into_iter().map(|part| part.into_iter().enumerate());
    let mut all: Vec<(usize, RequestRecord)> = numbered.flatten().collect();
    all.sort_by(|(turn, one), (other_turn, other)| {
        one.at_s.total_cmp(&other.at_s).then(turn.cmp(other_turn))
    });
    all.into_iter().map(|(_, record)| record).collect()
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    /// These arrivals, a trace CSV.
    Trace(&'a Path),
    /// The requests of users of a SURGE preset, in a closed loop.
    Users {
        /// The preset.
        surge: &'static str,
        /// How many.
        users: u64,
        /// For how long, in seconds.
        seconds: u64,
        /// The seed of their behaviour.
        seed: u64,
    },
}

/// Starts the generator at `place` against the server of that setup. The lab's terminal shows its
/// progress, and its summary is kept beside the records.
///
/// # Errors
/// If it cannot be started.
pub fn start(
    testbed: &Testbed,
    place: &Place,
    server: &ServerSetup,
    load: &LoadSetup<'_>,
) -> Result<Generator, TestbedError> {
    let of = load.processes;
    let start_part = |number: u32| {
        let (records, part) = match of {
            1 => (load.records.to_owned(), None),
            _ => {
                let records = load.records.with_extension(format!("part-{number}.csv"));
                (records, Some(format!("{number}/{of}")))
            }
        };
        let arguments = arguments(testbed, server, load, &records, part);
        let log = Log::Progress(summary_file(&records));
        let process = Process::start(testbed, place, testbed.program(), &arguments, &log)?;
        Ok((process, records))
    };
    let parts = (1..=of)
        .map(start_part)
        .collect::<Result<_, TestbedError>>()?;
    Ok(Generator {
        parts,
        records: load.records.to_owned(),
    })
}

fn arguments(
    testbed: &Testbed,
    server: &ServerSetup,
    load: &LoadSetup<'_>,
    records: &Path,
    part: Option<String>,
) -> Vec<String> {
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
    add("--out", records.display().to_string());
    if let Some(part) = part {
        add("--part", part);
    }
    add("--drain", load.drain_s.to_string());
    if let Some(requests) = load.requests_per_connection {
        add("--requests-per-connection", requests.to_string());
    }
    if let Some(codings) = server.source.codings() {
        add("--accept-encoding", codings.to_owned());
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
        add("--tls-ca", certificate_file(testbed).display().to_string());
    }
    if server.speech.http3 {
        arguments.push("--http3".into());
    } else if server.speech.http2 {
        arguments.push("--http2".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_together_in_the_order_of_the_whole() {
        let record = |number: u32| {
            // The third and the fourth at the same time.
            let at_s = f64::from(number.min(2));
            RequestRecord::finished(at_s, &format!("/{number}"), 1, 1.0)
        };
        let part = |numbers: &[u32]| numbers.iter().map(|number| record(*number)).collect();
        let all = together(vec![part(&[0, 2]), part(&[1, 3])]);
        let paths: Vec<&str> = all.iter().map(|record| record.path.as_str()).collect();
        assert_eq!(paths, ["/0", "/1", "/2", "/3"]);
    }
}
