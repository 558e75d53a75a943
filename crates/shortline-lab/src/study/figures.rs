//! Computes the figures of tables, plots and claims from kept records and counters.
//!
//! A failed request counts with the time until it failed. The largest 1 % are chosen by size, for the
//! bound as for the servers.
#![deny(clippy::disallowed_methods)]

use std::path::Path;

use serde::Serialize;
use shortline_load::record::RequestRecord;
use shortline_load::summary::{KnownLink, Summary};
use shortline_sched::Policy;
use shortline_sim::wire::WireModel;

use super::KeptError;
use super::by_size::BySize;
use super::course_figures::{self, CourseFigures};
use super::groups::{self, GroupFigures};
use super::kept::{Kept, KeptRun, NoBound};
use super::lines;
use super::offered::Offered;
use super::plan::Plan;
use super::point::Point;
use super::standing::{fair_of, ours_of};
use crate::study::stats::mean;
use shortline_table::time;
use shortline_testbed::instruments::sample::Samples;

/// How many failed requests the report lists for a server. The records have all.
const FAILURES_LISTED: usize = 5;

/// All figures of an experiment, kept as `summary.json`.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// The figures of each point.
    pub points: Vec<PointFigures>,
}

impl Figures {
    /// The number of void runs.
    pub fn void_runs(&self) -> usize {
        let seeds = self.points.iter().flat_map(|point| &point.seeds);
        let runs = seeds.flat_map(|seed| &seed.runs);
        runs.filter(|run| run.summary.void.is_some()).count()
    }
}

/// The figures of a point.
#[derive(Debug, Serialize)]
pub struct PointFigures {
    /// Its name.
    pub label: String,
    /// Its place on the axis.
    pub x: Option<f64>,
    /// The figures of each seed that has a kept run.
    pub seeds: Vec<SeedFigures>,
}

/// The figures of one seed.
#[derive(Debug, Serialize)]
pub struct SeedFigures {
    /// The seed.
    pub seed: u64,
    /// The load that its requests offer. `None` in results of before it was kept.
    pub offered: Option<Offered>,
    /// The figures of a fluid link. `None` where there is no bound.
    pub bounds: Option<Bounds>,
    /// Why there is none.
    pub no_bound: Option<NoBound>,
    /// The servers with kept runs, in the order they ran.
    pub runs: Vec<RunFigures>,
}

/// The figures of a fluid link.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bounds {
    /// Wire bytes of a request beside its body and the heads of its packets.
    pub per_request_bytes: u64,
    /// Fluid SRPT.
    pub optimum: BoundFigures,
    /// Fluid processor sharing.
    pub fair: BoundFigures,
}

/// The figures of a fluid link under one policy.
#[derive(Clone, Copy, Debug, Serialize)]
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

/// The figures of one server.
#[derive(Debug, Serialize)]
pub struct RunFigures {
    /// Its name.
    pub server: String,
    /// The congestion control.
    pub congestion_control: String,
    /// The generator's whole summary.
    pub summary: Summary,
    /// Mean response time over the optimum's.
    pub over_optimum: Option<f64>,
    /// Mean response time of the largest 1 % over that of the optimum's largest 1 %.
    pub largest_over_optimum: Option<f64>,
    /// Mean response time of the requests for the very largest file, in seconds.
    pub biggest_mean_s: f64,
    /// Mean response time of the requests that finished before the last one arrived (000, 4), in seconds.
    pub mean_in_time_s: Option<f64>,
    /// The most requests under way at once.
    pub connections_max: usize,
    /// What happened inside the server's machine. `None` on loopback.
    pub seen: Option<InstrumentFigures>,
    /// The comparison with FAIR, request by request. `None` for FAIR itself.
    pub stretch: Option<Stretch>,
    /// Wire bytes of a request beside its body and the heads of its packets.
    pub per_request_bytes: Option<u64>,
    /// What the link carried.
    pub wire_bytes: u64,
    /// What it carried in the overloads.
    pub overload_wire_bytes: u64,
    /// That over what the link carried with `off`. `None` without `off`.
    pub overload_over_off: Option<f64>,
    /// Packets dropped at the uplink.
    pub drops: u64,
    /// The report of the emulated networks, in one line. `None` without any.
    pub network: Option<String>,
    /// How soon it adapted to changes of the link. `None` without changes.
    pub course: Option<CourseFigures>,
    /// The figures by size and by second, which claims are about.
    pub by_size: BySize,
    /// The figures of each group of clients. Empty if there is one group.
    pub groups: Vec<GroupFigures>,
    /// Some of the failed requests, with the time until they failed.
    pub failed: Vec<String>,
}

/// What happened inside the server's machine, from the instruments (000, 2.5).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct InstrumentFigures {
    /// The most connections at once.
    pub connections_max: f64,
    /// The longest SYN queue.
    pub syn_queue_max: f64,
    /// The longest accept queue.
    pub accept_queue_max: f64,
    /// SYNs, and last packets of handshakes, dropped for want of room.
    pub syn_drops: f64,
    /// When the first was dropped, in seconds after the first sample.
    pub first_syn_drop_s: Option<f64>,
    /// When the last sample was taken.
    pub lasted_s: f64,
    /// Processor time of the server, in seconds.
    pub server_cpu_s: f64,
    /// Processor time of the generator, in seconds.
    pub generator_cpu_s: f64,
}

impl InstrumentFigures {
    fn of(samples: &Samples) -> Option<Self> {
        let max = |name: &str| Some(samples.column(name)?.fold(0.0, f64::max));
        let (times, drops) = (samples.column("at_s")?, samples.column("listen_drops")?);
        let first_drop = times.zip(drops).find(|(_, drops)| *drops > 0.0);
        Some(Self {
            connections_max: max("connections")?,
            syn_queue_max: max("syn_queue")?,
            accept_queue_max: max("accept_queue")?,
            syn_drops: max("listen_drops")?,
            first_syn_drop_s: first_drop.map(|(at_s, _)| at_s),
            lasted_s: max("at_s")?,
            server_cpu_s: max("server_cpu_s")?,
            generator_cpu_s: max("generator_cpu_s")?,
        })
    }
}

/// The starvation stretch of a server's requests (004, 5.3.3).
#[derive(Clone, Debug, Serialize)]
pub struct Stretch {
    /// The server that it is compared with.
    pub over: String,
    /// The share of requests that took longer than under that server.
    pub share_above_1: f64,
    /// The stretch of the largest request.
    pub largest: f64,
}

impl Figures {
    /// The figures of the results in `folder`, as far as runs are kept.
    ///
    /// # Errors
    /// If a kept file is missing or wrong, or no run is kept.
    pub fn of(folder: &Path, plan: &Plan) -> Result<Self, KeptError> {
        let points = plan.points.iter().map(|point| {
            Ok(PointFigures {
                label: point.label.clone(),
                x: point.x,
                seeds: seeds(folder, plan, point)?,
            })
        });
        let points = points.collect::<Result<Vec<PointFigures>, KeptError>>()?;
        if points.iter().all(|point| point.seeds.is_empty()) {
            let problem = "holds no run that came to its end";
            return Err(KeptError::content(folder)(problem));
        }
        Ok(Self { points })
    }
}

fn seeds(folder: &Path, plan: &Plan, point: &Point) -> Result<Vec<SeedFigures>, KeptError> {
    let seeds = plan.seeds.iter().map(|seed| {
        let kept = Kept::read(folder, plan, point, *seed)?;
        let figures = SeedFigures::of(&kept, point, *seed)?;
        Ok((!kept.runs.is_empty()).then_some(figures))
    });
    let seeds = seeds.collect::<Result<Vec<Option<SeedFigures>>, KeptError>>()?;
    Ok(seeds.into_iter().flatten().collect())
}

impl PointFigures {
    /// The congestion control of its runs. `None` if no run is kept.
    pub fn congestion_control(&self) -> Option<String> {
        let mut names: Vec<&str> = Vec::new();
        for run in self.seeds.iter().flat_map(|seed| &seed.runs) {
            if !names.contains(&run.congestion_control.as_str()) {
                names.push(&run.congestion_control);
            }
        }
        (!names.is_empty()).then(|| names.join(" and "))
    }
}

impl SeedFigures {
    fn of(kept: &Kept<'_>, point: &Point, seed: u64) -> Result<Self, KeptError> {
        let model = kept.bound_model();
        let of_model = |model: WireModel| {
            let bound = |policy| BoundFigures::of(&kept.bound(model, policy)?, point, model);
            Ok::<_, KeptError>(Bounds {
                per_request_bytes: model.per_request_bytes,
                optimum: bound(Policy::Srpt)?,
                fair: bound(Policy::Fair)?,
            })
        };
        let bounds = model.ok().map(of_model).transpose()?;
        let usual = || point.wire(kept.lowest_per_request_bytes());
        let beside = Beside::of(kept, point, model.unwrap_or_else(|_| usual()), bounds);
        let runs = kept.runs.iter().map(|run| beside.figures(run));
        Ok(Self {
            seed,
            offered: kept.offered.clone(),
            runs: runs.collect::<Result<_, _>>()?,
            bounds,
            no_bound: model.err(),
        })
    }

    /// Whether its requests offer the load that the study is about.
    pub fn is_load_reached(&self) -> bool {
        self.offered.as_ref().is_none_or(Offered::is_reached)
    }

    /// The run of the server that stands for SRPT.
    pub fn ours(&self) -> Option<&RunFigures> {
        let name = ours_of(self.runs.iter().map(|run| run.server.as_str()))?;
        self.runs.iter().find(|run| run.server == name)
    }

    /// The run of the server that stands for FAIR.
    pub fn fair(&self) -> Option<&RunFigures> {
        let name = fair_of(self.runs.iter().map(|run| run.server.as_str()))?;
        self.runs.iter().find(|run| run.server == name)
    }
}

impl BoundFigures {
    fn of(records: &[RequestRecord], point: &Point, model: WireModel) -> Result<Self, KeptError> {
        let Summary {
            response_time,
            largest,
            ..
        } = summary(records, point, model)?;
        Ok(Self {
            mean_s: response_time.mean,
            p50_s: response_time.p50,
            p99_s: response_time.p99,
            largest_mean_s: largest.response_time.mean,
        })
    }
}

fn summary(
    records: &[RequestRecord],
    point: &Point,
    model: WireModel,
) -> Result<Summary, KeptError> {
    let none =
        || KeptError::Refused("no requests: run longer (--seconds) or faster (--rate)".into());
    let link = KnownLink {
        rate: point.rate,
        wire_bytes: &|body_bytes| model.wire_bytes(body_bytes),
    };
    Summary::of(records, Some(link), false).ok_or_else(none)
}

/// The runs that a run is compared with.
struct Beside<'a> {
    point: &'a Point,
    model: WireModel,
    bounds: Option<Bounds>,
    fair: Option<&'a KeptRun>,
    off_bytes: Option<f64>,
}

impl<'a> Beside<'a> {
    fn of(kept: &'a Kept<'_>, point: &'a Point, model: WireModel, bounds: Option<Bounds>) -> Self {
        let run = |name: &str| kept.runs.iter().find(|run| run.server == name);
        let fair = fair_of(kept.runs.iter().map(|run| run.server.as_str()));
        let off_bytes = run("off").map(|run| run.overload_bytes(point));
        Self {
            point,
            model,
            bounds,
            fair: fair.and_then(run),
            off_bytes: off_bytes.filter(|off| *off > 0.0),
        }
    }

    fn figures(&self, run: &KeptRun) -> Result<RunFigures, KeptError> {
        let summary = summary(&run.records, self.point, self.model)?;
        let overload_bytes = run.overload_bytes(self.point);
        let over = |ours: f64, bound: fn(&Bounds) -> f64| Some(ours / bound(self.bounds.as_ref()?));
        let largest_s = summary.largest.response_time.mean;
        Ok(RunFigures {
            server: run.server.clone(),
            congestion_control: run.carried.congestion_control.clone(),
            over_optimum: over(summary.response_time.mean, |bounds| bounds.optimum.mean_s),
            largest_over_optimum: over(largest_s, |bounds| bounds.optimum.largest_mean_s),
            biggest_mean_s: biggest_mean_s(&run.records),
            mean_in_time_s: mean_in_time_s(&run.records),
            connections_max: connections_max(&run.records),
            seen: run.seen.as_ref().and_then(InstrumentFigures::of),
            stretch: self.stretch(run),
            per_request_bytes: run.per_request_bytes(self.point),
            wire_bytes: run.carried.total.bytes,
            overload_wire_bytes: overload_bytes as u64,
            overload_over_off: self.off_bytes.map(|off| overload_bytes / off),
            drops: run.carried.total.drops,
            network: run.carried.wan.as_ref().map(ToString::to_string),
            course: course_figures::of(self.point, run.seen.as_ref(), run.neighbour.as_deref()),
            by_size: BySize::of(&run.records, run.seen.as_ref()),
            groups: groups::of(&run.records, self.point),
            failed: failed(run),
            summary,
        })
    }

    fn stretch(&self, run: &KeptRun) -> Option<Stretch> {
        let fair = self.fair.filter(|fair| fair.server != run.server)?;
        let all = lines::stretch(&run.records, &fair.records)?;
        let above = all.iter().filter(|(_, stretch)| *stretch > 1.0).count();
        let (_, largest) = all.iter().max_by_key(|(record, _)| record.size)?;
        Some(Stretch {
            over: fair.server.clone(),
            share_above_1: above as f64 / all.len() as f64,
            largest: *largest,
        })
    }
}

impl RunFigures {
    /// The mean response time of a group's finished requests, in seconds.
    pub fn group_mean_finished_s(&self, group: &str) -> Option<f64> {
        let group = self.groups.iter().find(|own| own.name == group)?;
        group.mean_finished_s
    }

    /// Bytes that the link carried, in the overloads if there were any.
    pub fn carried_bytes(&self) -> f64 {
        let bytes = match self.overload_wire_bytes {
            0 => self.wire_bytes,
            bytes => bytes,
        };
        bytes as f64
    }
}

fn biggest_mean_s(records: &[RequestRecord]) -> f64 {
    let biggest = records.iter().map(|record| record.size).max();
    let of = records.iter().filter(|record| Some(record.size) == biggest);
    mean(of.map(|record| record.response_time_s)).unwrap_or_default()
}

fn mean_in_time_s(records: &[RequestRecord]) -> Option<f64> {
    let last_s = records.iter().map(|record| record.at_s).fold(0.0, f64::max);
    let in_time =
        |record: &&RequestRecord| record.ok() && record.at_s + record.response_time_s <= last_s;
    mean(
        records
            .iter()
            .filter(in_time)
            .map(|record| record.response_time_s),
    )
}

fn connections_max(records: &[RequestRecord]) -> usize {
    let under_way = lines::under_way(records);
    under_way
        .iter()
        .map(|(_, count)| *count as usize)
        .max()
        .unwrap_or(0)
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
