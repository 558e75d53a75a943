//! A gate before a web application beside others that hold requests back: HAProxy's queue, Envoy's adaptive
//! concurrency, Netflix' gradient.
//!
//! ```text
//! generator --HTTP--> door (a process, or nothing) --HTTP--> application (a model: `backend`)
//! ```
//!
//! Generator and application run in this process. The application computes nothing: it answers when its model
//! says so. So both take little of the processors, and the door's own costs do not slow the application down.
//! For each seed the doors follow each other, so that a drift of the machine affects all of them.

mod backend;
mod door;
mod gradient;
mod report;

use std::fs;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shortline_load::{LoadOptions, RequestRecord, Target};
use shortline_testbed::{Testbed, TestbedError};

use self::backend::Backend;
use self::gradient::Gradient;
use super::study::{Choices, Data, Findings, Job, Study};
use crate::LabError;
use crate::study::application::{Design, Door};
use crate::study::design::Experiment;
use crate::study::kept::packed;
use crate::study::plan::{read_json, write_json};
use crate::study::stats::mean;

/// The file with all results.
const RESULTS: &str = "application.json";
/// Requests that are under way when the last has come get this long.
const DRAIN: Duration = Duration::from_secs(120);
/// A connection serves so many requests before the generator closes it.
const REQUESTS_PER_CONNECTION: NonZeroU32 = NonZeroU32::new(100_000).expect("above 0");

/// A run's results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Outcome {
    door: Door,
    seed: u64,
    /// Requests that came.
    requests: u64,
    /// Of these, those that got a whole response.
    done: u64,
    /// The response times of these, in seconds.
    mean_s: f64,
    p99_s: f64,
    /// Of the longest type.
    longest_mean_s: f64,
    longest_done: u64,
    longest_requests: u64,
    /// From the first request to the last response, in seconds.
    took_s: f64,
    /// How late the generator started requests, in the mean.
    late_mean_s: f64,
}

impl Study for Design {
    fn length(&self) -> String {
        Self::length(self)
    }

    fn job(&self, _id: &str, asked: &Choices) -> Result<Job, LabError> {
        let mut design = self.clone();
        if !asked.names.is_empty() {
            let doors = asked.names.iter().map(|name| {
                name.parse()
                    .map_err(|error| LabError::failed("--servers", &error))
            });
            design.doors = doors.collect::<Result<_, _>>()?;
        }
        if let Some(seconds) = asked.seconds {
            design.length = Duration::from_secs(seconds);
        }
        let seeds = asked.seeds.unwrap_or(1);
        Ok(Box::new(move |testbed| run(testbed, &design, seeds)))
    }

    fn has_results(&self, folder: &Path) -> Result<bool, LabError> {
        Ok(folder.join(RESULTS).exists())
    }

    fn report(&self, _experiment: &Experiment, folder: &Path) -> Result<Findings, LabError> {
        let outcomes: Vec<Outcome> = read_json(&folder.join(RESULTS))?;
        Ok(Findings {
            text: report::text(self, &outcomes),
            void_runs: 0,
            data: Data::Text,
        })
    }
}

/// Makes the runs that are not kept yet. Leaves out a door that is not installed, with a line.
///
/// # Errors
/// If a door cannot be started, or results cannot be written.
fn run(testbed: &Testbed, design: &Design, seeds: u64) -> Result<(), LabError> {
    let path = testbed.out().join(RESULTS);
    let mut kept: Vec<Outcome> = if path.exists() {
        read_json(&path)?
    } else {
        Vec::new()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| LabError::failed("the run", &error))?;
    for seed in 1..=seeds {
        for &door in &design.doors {
            if kept
                .iter()
                .any(|kept| (kept.door, kept.seed) == (door, seed))
            {
                continue;
            }
            tracing::info!("application: {door}, seed {seed}");
            match runtime.block_on(visit(testbed, design, door, seed)) {
                Ok(outcome) => kept.push(outcome),
                Err(LabError::Testbed(missing @ TestbedError::ToolMissing { .. })) => {
                    tracing::warn!("application: {door} is left out: {missing}");
                }
                Err(error) => return Err(error),
            }
            write_json(&path, &kept)?;
        }
    }
    Ok(())
}

/// One run: application, door and requests.
async fn visit(
    testbed: &Testbed,
    design: &Design,
    door: Door,
    seed: u64,
) -> Result<Outcome, LabError> {
    let limit = (door == Door::Gradient).then(Gradient::default);
    let backend = Backend::start(design.model.clone(), limit)
        .await
        .map_err(|error| LabError::failed("the application", &error))?;
    let opened = door::open(testbed, door, backend.address())?;
    let address = opened
        .as_ref()
        .map_or(backend.address(), door::Opened::address);
    let records = load(address, design, seed).await?;
    drop(opened);
    keep_records(testbed, door, seed, &records)?;
    Ok(Outcome::of(design, door, seed, &records))
}

async fn load(
    address: SocketAddr,
    design: &Design,
    seed: u64,
) -> Result<Vec<RequestRecord>, LabError> {
    let failed = |error: &dyn std::fmt::Display| LabError::failed("the generator", error);
    let target: Target = format!("http://{address}")
        .parse()
        .map_err(|error| failed(&error))?;
    let options = LoadOptions {
        requests_per_connection: Some(REQUESTS_PER_CONNECTION),
        drain: DRAIN,
        ..LoadOptions::new(target, design.requests(seed))
    };
    let report = shortline_load::run(options)
        .await
        .map_err(|error| failed(&error))?;
    if report.interrupted {
        return Err(failed(&"interrupted"));
    }
    Ok(report.records)
}

fn keep_records(
    testbed: &Testbed,
    door: Door,
    seed: u64,
    records: &[RequestRecord],
) -> Result<(), LabError> {
    let folder = testbed.out().join("records");
    fs::create_dir_all(&folder).map_err(LabError::file(&folder))?;
    let path = packed(folder.join(format!("{door}-{seed}.csv")));
    shortline_load::record::write_records(&path, records)
        .map_err(|error| LabError::failed("keeping the records", &error))
}

impl Outcome {
    fn of(design: &Design, door: Door, seed: u64, records: &[RequestRecord]) -> Self {
        let longest = format!("{}?", design.model.longest().path);
        let is_longest = |record: &&RequestRecord| record.path.starts_with(&longest);
        let done: Vec<&RequestRecord> = records.iter().filter(|record| record.ok()).collect();
        let mut times: Vec<f64> = done.iter().map(|record| record.response_time_s).collect();
        times.sort_unstable_by(f64::total_cmp);
        let long: Vec<&RequestRecord> = done.iter().copied().filter(is_longest).collect();
        let ends = records
            .iter()
            .map(|record| record.at_s + record.response_time_s);
        let late = records.iter().map(|record| record.lag_s);
        Self {
            door,
            seed,
            requests: records.len() as u64,
            done: done.len() as u64,
            mean_s: mean(times.iter().copied()).unwrap_or(0.0),
            p99_s: percentile(&times, 0.99),
            longest_mean_s: mean(long.iter().map(|record| record.response_time_s)).unwrap_or(0.0),
            longest_done: long.len() as u64,
            longest_requests: records.iter().filter(is_longest).count() as u64,
            took_s: ends.fold(0.0, f64::max),
            late_mean_s: mean(late).unwrap_or(0.0),
        }
    }
}

/// A percentile of a sorted sample; 0 of an empty one.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = (share * sorted.len() as f64) as usize;
    let last = sorted.len().saturating_sub(1);
    sorted.get(place.min(last)).copied().unwrap_or(0.0)
}
