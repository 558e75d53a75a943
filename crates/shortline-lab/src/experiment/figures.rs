//! From kept records and counters to the figures of the table.
//!
//! The bound. A run's device counters say what the link carried: bodies, packet heads,
//! and the rest, which is each request's share of handshakes, acknowledgements and heads.
//! The lowest such share among the servers compared (among those without failures, if
//! there are any) makes the size of every job; with these sizes the very same arrivals are
//! put through the fluid SRPT (the optimum) and the fluid PS at the uplink's rate.
//!
//! A request that failed counts with the time until it did. The largest 1 % are chosen
//! by size, for the bound as for the servers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use shortline_load::record::{RequestRecord, read_records};
use shortline_load::summary::Summary;
use shortline_load::trace::{Request, TraceOptions, read_trace};
use shortline_sched::Policy;
use shortline_sim::wire::WireModel;
use shortline_sim::{Arrival, fluid};

use super::plan::{Plan, read_json};
use super::uplink::{Carried, seed_folder};
use crate::LabError;
use crate::stats::Spread;
use crate::table::{Table, bytes, three_digits, time};

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
            .map(|run| run.figures(plan, &optimum, off_bytes));
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

/// What was kept of a seed.
struct Kept {
    requests: Vec<Request>,
    runs: Vec<KeptRun>,
}

struct KeptRun {
    server: String,
    records: Vec<RequestRecord>,
    carried: Carried,
}

impl Kept {
    fn read(out: &Path, plan: &Plan, seed: u64) -> Result<Self, LabError> {
        let folder = seed_folder(out, seed);
        let trace = folder.join("trace.csv");
        let requests = read_trace(&trace, &TraceOptions::default()).map_err(LabError::workload)?;
        let run = |server: &String| {
            let records =
                read_records(&folder.join(format!("{server}.csv"))).map_err(LabError::workload)?;
            let carried = read_json(&folder.join(format!("{server}.json")))?;
            Ok(KeptRun {
                server: server.clone(),
                records,
                carried,
            })
        };
        let runs = plan
            .servers
            .iter()
            .map(run)
            .collect::<Result<_, LabError>>()?;
        Ok(Self { requests, runs })
    }

    fn lowest_per_request_bytes(&self) -> u64 {
        let without_failures = self
            .runs
            .iter()
            .filter(|run| run.records.iter().all(RequestRecord::ok));
        let lowest = without_failures
            .filter_map(KeptRun::per_request_bytes)
            .min();
        let lowest = lowest.or_else(|| {
            self.runs
                .iter()
                .filter_map(KeptRun::per_request_bytes)
                .min()
        });
        // Without any counters: what is usual.
        lowest.unwrap_or(WireModel::default().per_request_bytes)
    }

    /// The records that a fluid link under `policy` would have left.
    fn bound(
        &self,
        plan: &Plan,
        model: WireModel,
        policy: Policy,
    ) -> Result<Vec<RequestRecord>, LabError> {
        let arrivals: Vec<Arrival> = self
            .requests
            .iter()
            .map(|request| Arrival {
                at_ns: request.at_ns,
                bytes: model.wire_bytes(request.bytes),
            })
            .collect();
        let sojourns_ns = fluid(&arrivals, plan.rate.bps(), policy).map_err(LabError::workload)?;
        let record = |(request, sojourn_ns): (&Request, u64)| RequestRecord {
            at_s: request.at_ns as f64 / 1e9,
            path: request.path.clone(),
            size: request.bytes,
            received: request.bytes,
            tries: 1,
            lag_s: 0.0,
            connect_s: None,
            first_byte_s: None,
            response_time_s: sojourn_ns as f64 / 1e9,
            failure: None,
        };
        Ok(self.requests.iter().zip(sojourns_ns).map(record).collect())
    }
}

impl KeptRun {
    /// Wire bytes of a request beside its body and packets; none if bodies were sent again
    /// and again in vain, so that less was received than the link must have carried.
    fn per_request_bytes(&self) -> Option<u64> {
        let bodies: Vec<u64> = self.records.iter().map(|record| record.received).collect();
        let model = WireModel::default().calibrate(&bodies, self.carried.total.bytes);
        model.ok().map(|model| model.per_request_bytes)
    }

    fn figures(
        &self,
        plan: &Plan,
        optimum: &BoundFigures,
        off_bytes: Option<f64>,
    ) -> Result<RunFigures, LabError> {
        let summary = summary(&self.records)?;
        let overload_bytes = self.overload_bytes(plan);
        let over_off = off_bytes
            .filter(|off| *off > 0.0)
            .map(|off| overload_bytes / off);
        Ok(RunFigures {
            server: self.server.clone(),
            over_optimum: summary.response_time.mean / optimum.mean_s,
            largest_over_optimum: summary.largest.response_time.mean / optimum.largest_mean_s,
            per_request_bytes: self.per_request_bytes(),
            wire_bytes: self.carried.total.bytes,
            overload_wire_bytes: overload_bytes as u64,
            overload_over_off: over_off,
            drops: self.carried.total.drops,
            failed: self.failed(),
            summary,
        })
    }

    fn failed(&self) -> Vec<String> {
        let failed = self.records.iter().filter_map(|record| {
            let failure = record.failure?;
            let until = time(record.response_time_s);
            Some(format!(
                "{:.3} s {} ({} bytes): {failure} after {until}",
                record.at_s, record.path, record.size
            ))
        });
        failed.take(FAILURES_LISTED).collect()
    }

    /// Bytes that the link carried while the schedule was in overload.
    fn overload_bytes(&self, plan: &Plan) -> f64 {
        let begin_s = self.generator_begin_s();
        let until = |at_s: f64| bytes_until(&self.carried.samples, begin_s + at_s);
        plan.overloads_s
            .iter()
            .map(|(begin_s, end_s)| until(*end_s) - until(*begin_s))
            .sum()
    }

    /// When the schedule began, on the samples' clock: the first bytes were sent a moment
    /// after the first arrival.
    fn generator_begin_s(&self) -> f64 {
        let first_at_s = self
            .records
            .iter()
            .map(|record| record.at_s)
            .fold(f64::INFINITY, f64::min);
        let sent = self.carried.samples.iter().find(|(_, bytes)| *bytes > 0);
        sent.map_or(0.0, |(sent_s, _)| (sent_s - first_at_s).max(0.0))
    }
}

/// Bytes carried until `at_s`, between two samples on a straight line.
fn bytes_until(samples: &[(f64, u64)], at_s: f64) -> f64 {
    let next = samples.partition_point(|(sample_s, _)| *sample_s < at_s);
    match (
        next.checked_sub(1).map(|before| samples[before]),
        samples.get(next),
    ) {
        (Some((from_s, from)), Some((to_s, to))) => {
            let share = (at_s - from_s) / (to_s - from_s);
            from as f64 + share * to.abs_diff(from) as f64
        }
        (Some((_, last)), None) => last as f64,
        (None, _) => 0.0,
    }
}

/// The report: a table for each seed, then medians over the seeds, then failures.
pub fn table(plan: &Plan, figures: &Figures) -> String {
    let mut text = head(plan);
    for seed in &figures.seeds {
        // Writing to a string cannot fail.
        writeln!(
            text,
            "\nseed {}, {} bytes a request beside its body:",
            seed.seed, seed.per_request_bytes
        )
        .ok();
        text += &seed_table(seed).to_string();
        text += &notes(seed);
    }
    if figures.seeds.len() > 1 {
        writeln!(
            text,
            "\nmedian of {} seeds (lowest to highest):",
            figures.seeds.len()
        )
        .ok();
        text += &medians(plan, figures).to_string();
    }
    text
}

fn head(plan: &Plan) -> String {
    let protocol = match (plan.tls, plan.http2) {
        (false, false) => "HTTP/1.1",
        (true, false) => "HTTP/1.1 over TLS",
        (false, true) => "HTTP/2 (prior knowledge)",
        (true, true) => "HTTP/2 over TLS",
    };
    let per_connection = match plan.requests_per_connection {
        Some(1) => "a connection per request".to_owned(),
        Some(requests) => format!("{requests} requests per connection"),
        None => "6 connections for all".to_owned(),
    };
    format!(
        "{}: {} for {} s, {protocol}, {per_connection}, {}, Linux {}\n",
        plan.experiment, plan.rate, plan.seconds, plan.congestion_control, plan.kernel
    )
}

fn seed_table(seed: &SeedFigures) -> Table {
    let mut table = Table::new(&[
        "server",
        "mean",
        "x optimum",
        "p50",
        "p99",
        "largest 1 %",
        "x optimum",
        "failed",
        "on wire",
        "overload/off",
        "drops",
        "late",
        "latest",
    ]);
    let bound = |name: &str, bound: &BoundFigures| {
        vec![
            name.to_owned(),
            time(bound.mean_s),
            three_digits(bound.mean_s / seed.optimum.mean_s),
            time(bound.p50_s),
            time(bound.p99_s),
            time(bound.largest_mean_s),
            three_digits(bound.largest_mean_s / seed.optimum.largest_mean_s),
        ]
    };
    table.row(bound("fluid SRPT", &seed.optimum));
    table.row(bound("fluid PS", &seed.fair));
    for run in &seed.runs {
        let summary = &run.summary;
        table.row(vec![
            run.server.clone(),
            time(summary.response_time.mean),
            three_digits(run.over_optimum),
            time(summary.response_time.p50),
            time(summary.response_time.p99),
            time(summary.largest.response_time.mean),
            three_digits(run.largest_over_optimum),
            (summary.requests - summary.finished).to_string(),
            bytes(run.wire_bytes as f64),
            run.overload_over_off
                .map_or("-".into(), |share| format!("{share:.3}")),
            run.drops.to_string(),
            summary.late_starts.to_string(),
            time(summary.lateness.max),
        ]);
    }
    table
}

/// What a reader must know beside the table: void runs and failures.
fn notes(seed: &SeedFigures) -> String {
    let mut notes = String::new();
    for run in &seed.runs {
        if let Some(void) = &run.summary.void {
            writeln!(notes, "{} is VOID: {void}", run.server).ok();
        }
        if run.failed.is_empty() {
            continue;
        }
        let kinds: Vec<String> = run
            .summary
            .failures
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        let finished = run
            .summary
            .response_time_mean_finished_s
            .map_or("-".into(), time);
        writeln!(
            notes,
            "{} failed: {}; mean of the others {finished}; in seed-{}/{}.csv, first:",
            run.server,
            kinds.join(", "),
            seed.seed,
            run.server
        )
        .ok();
        for failed in &run.failed {
            writeln!(notes, "  {failed}").ok();
        }
    }
    notes
}

fn medians(plan: &Plan, figures: &Figures) -> Table {
    let mut table = Table::new(&[
        "server",
        "mean",
        "x optimum",
        "largest 1 % x",
        "overload/off",
        "failed",
        "void",
    ]);
    let mut by_server: BTreeMap<&str, Vec<&RunFigures>> = BTreeMap::new();
    for run in figures.seeds.iter().flat_map(|seed| &seed.runs) {
        by_server.entry(&run.server).or_default().push(run);
    }
    let spread = |values: Vec<f64>, show: fn(f64) -> String| match Spread::of(values) {
        Some(spread) => format!(
            "{} ({} to {})",
            show(spread.median),
            show(spread.low),
            show(spread.high)
        ),
        None => "-".into(),
    };
    let optimum = figures
        .seeds
        .iter()
        .map(|seed| seed.optimum.mean_s)
        .collect();
    table.row(vec!["fluid SRPT".into(), spread(optimum, time)]);
    for server in &plan.servers {
        let runs = by_server
            .get(server.as_str())
            .map_or(&[][..], Vec::as_slice);
        let failed: usize = runs
            .iter()
            .map(|run| run.summary.requests - run.summary.finished)
            .sum();
        table.row(vec![
            server.clone(),
            spread(
                runs.iter()
                    .map(|run| run.summary.response_time.mean)
                    .collect(),
                time,
            ),
            spread(
                runs.iter().map(|run| run.over_optimum).collect(),
                three_digits,
            ),
            spread(
                runs.iter().map(|run| run.largest_over_optimum).collect(),
                three_digits,
            ),
            spread(
                runs.iter()
                    .filter_map(|run| run.overload_over_off)
                    .collect(),
                |share| format!("{share:.3}"),
            ),
            failed.to_string(),
            runs.iter()
                .filter(|run| run.summary.void.is_some())
                .count()
                .to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_between_samples_lie_on_a_straight_line() {
        let samples = [(1.0, 100), (2.0, 300), (3.0, 300)];
        assert_eq!(bytes_until(&samples, 0.5), 0.0);
        assert_eq!(bytes_until(&samples, 1.5), 200.0);
        assert_eq!(bytes_until(&samples, 2.0), 300.0);
        assert_eq!(bytes_until(&samples, 9.0), 300.0);
    }
}
