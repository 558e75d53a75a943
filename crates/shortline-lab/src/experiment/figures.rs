//! From kept records and counters to the figures of the table.
//!
//! A request that failed counts with the time until it did. The largest 1 % are chosen
//! by size, for the bound as for the servers.

use std::path::Path;

use serde::Serialize;
use shortline_load::record::RequestRecord;
use shortline_load::summary::Summary;
use shortline_sched::Policy;
use shortline_sim::wire::WireModel;

use super::kept::{Kept, KeptRun};
use super::plan::Plan;
use crate::LabError;
use crate::table::time;

/// How many failed requests the report lists for a server; the records hold all.
const FAILURES_LISTED: usize = 5;

/// All figures of an experiment, kept as `summary.json`.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// One for each seed.
    pub seeds: Vec<SeedFigures>,
}

/// The figures of one seed.
#[derive(Debug, Serialize)]
pub struct SeedFigures {
    /// The seed.
    pub seed: u64,
    /// Wire bytes of a request beside its body and the heads of its packets.
    pub per_request_bytes: u64,
    /// Fluid SRPT.
    pub optimum: BoundFigures,
    /// Fluid processor sharing.
    pub fair: BoundFigures,
    /// The servers, in the order they ran.
    pub runs: Vec<RunFigures>,
}

/// What a fluid link would have done.
#[derive(Debug, Serialize)]
pub struct BoundFigures {
    /// Mean response time, in seconds.
    pub mean_s: f64,
    /// Its median.
    pub p50_s: f64,
    /// Its 99th percentile.
    pub p99_s: f64,
    /// The mean of the largest 1 % of the requests, in seconds.
    pub largest_mean_s: f64,
}

/// What one server did.
#[derive(Debug, Serialize)]
pub struct RunFigures {
    /// Its name.
    pub server: String,
    /// The generator's whole summary.
    pub summary: Summary,
    /// Mean response time over the optimum's.
    pub over_optimum: f64,
    /// Mean response time of the largest 1 % over that of the optimum's largest 1 %.
    pub largest_over_optimum: f64,
    /// Wire bytes of a request beside its body and the heads of its packets.
    pub per_request_bytes: Option<u64>,
    /// What the link carried.
    pub wire_bytes: u64,
    /// What it carried in the overloads.
    pub overload_wire_bytes: u64,
    /// That over what `off` made it carry; nothing without `off`.
    pub overload_over_off: Option<f64>,
    /// Packets dropped at the uplink.
    pub drops: u64,
    /// Some of the failed requests, with the time until they failed.
    pub failed: Vec<String>,
}

/// What is drawn: a name and its records, the bounds' first.
pub type Series = Vec<(String, Vec<RequestRecord>)>;

impl Figures {
    /// The figures of the results in `folder`.
    ///
    /// # Errors
    /// If a kept file is missing or wrong.
    pub fn of(folder: &Path, plan: &Plan) -> Result<Self, LabError> {
        let seeds = plan
            .seeds
            .iter()
            .map(|seed| SeedFigures::of(folder, plan, *seed));
        Ok(Self {
            seeds: seeds.collect::<Result<_, _>>()?,
        })
    }

    /// Records of the first seed for the plot: fluid PS, the optimum, each server.
    ///
    /// # Errors
    /// If a kept file is missing or wrong.
    pub fn first_seed_series(&self, folder: &Path, plan: &Plan) -> Result<Series, LabError> {
        let Some(first) = self.seeds.first() else {
            return Ok(Series::new());
        };
        let kept = Kept::read(folder, plan, first.seed)?;
        let model = with_per_request(first.per_request_bytes);
        let mut series = vec![
            (
                "fluid PS".to_owned(),
                kept.bound(plan, model, Policy::Fair)?,
            ),
            ("optimum".to_owned(), kept.bound(plan, model, Policy::Srpt)?),
        ];
        series.extend(kept.runs.into_iter().map(|run| (run.server, run.records)));
        Ok(series)
    }
}

impl SeedFigures {
    fn of(folder: &Path, plan: &Plan, seed: u64) -> Result<Self, LabError> {
        let kept = Kept::read(folder, plan, seed)?;
        let per_request_bytes = kept.lowest_per_request_bytes();
        let model = with_per_request(per_request_bytes);
        let optimum = BoundFigures::of(&kept.bound(plan, model, Policy::Srpt)?)?;
        let fair = BoundFigures::of(&kept.bound(plan, model, Policy::Fair)?)?;
        let off_bytes = kept
            .runs
            .iter()
            .find(|run| run.server == "off")
            .map(|run| run.overload_bytes(plan));
        let runs = kept
            .runs
            .iter()
            .map(|run| RunFigures::of(run, plan, &optimum, off_bytes));
        Ok(Self {
            seed,
            per_request_bytes,
            runs: runs.collect::<Result<_, _>>()?,
            optimum,
            fair,
        })
    }
}

impl BoundFigures {
    fn of(records: &[RequestRecord]) -> Result<Self, LabError> {
        let Summary {
            response_time,
            largest,
            ..
        } = summary(records)?;
        Ok(Self {
            mean_s: response_time.mean,
            p50_s: response_time.p50,
            p99_s: response_time.p99,
            largest_mean_s: largest.response_time.mean,
        })
    }
}

fn summary(records: &[RequestRecord]) -> Result<Summary, LabError> {
    let none =
        || LabError::Workload("no requests: run longer (--seconds) or faster (--rate)".into());
    Summary::of(records, None, false).ok_or_else(none)
}

fn with_per_request(per_request_bytes: u64) -> WireModel {
    WireModel {
        per_request_bytes,
        ..WireModel::default()
    }
}

impl RunFigures {
    fn of(
        run: &KeptRun,
        plan: &Plan,
        optimum: &BoundFigures,
        off_bytes: Option<f64>,
    ) -> Result<Self, LabError> {
        let summary = summary(&run.records)?;
        let overload_bytes = run.overload_bytes(plan);
        let over_off = off_bytes
            .filter(|off| *off > 0.0)
            .map(|off| overload_bytes / off);
        Ok(Self {
            server: run.server.clone(),
            over_optimum: summary.response_time.mean / optimum.mean_s,
            largest_over_optimum: summary.largest.response_time.mean / optimum.largest_mean_s,
            per_request_bytes: run.per_request_bytes(),
            wire_bytes: run.carried.total.bytes,
            overload_wire_bytes: overload_bytes as u64,
            overload_over_off: over_off,
            drops: run.carried.total.drops,
            failed: failed(run),
            summary,
        })
    }
}

fn failed(run: &KeptRun) -> Vec<String> {
    let failed = run.records.iter().filter_map(|record| {
        let failure = record.failure?;
        let until = time(record.response_time_s);
        Some(format!(
            "{:.3} s {} ({} bytes): {failure} after {until}",
            record.at_s, record.path, record.size
        ))
    });
    failed.take(FAILURES_LISTED).collect()
}
