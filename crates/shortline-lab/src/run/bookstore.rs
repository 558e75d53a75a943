//! 002's experiments: the bookstore on a private database, with and without a gate before it.
//!
//! ```text
//! browsers, application, gate: one processor      database: the other
//! ```
//!
//! So the database is the bottleneck (002, 5) on a machine with two processors at least. Each result has
//! the usage of both processors. Each run has a database of its own, a copy of one that was filled: best
//! sellers are those of the last 3,333 orders, and the visitors' orders have half as many lines as those that it
//! is filled with, so that each minute makes the longest interaction cheaper. At each load the runs with all doors
//! follow each other, seed by seed, so that a drift of the machine affects all of them.
//!
//! Departures from 002: all times of visitors are scaled (see `load`), and runs are shorter. 002 had a
//! warm-up of 100 s, runs of 600 s and five of each; `--seconds` and `--seeds` give more.

mod counters;
mod door;
mod visit;
mod watch;

use std::path::Path;

use shortline_bookstore::Kind;
use shortline_bookstore::bed::{Bed, LaidDown, Sizing};
use shortline_bookstore::population::{Population, Scale, populate};

use shortline_testbed::Testbed;

use super::made_with;
use super::study::{Choices, Data, Findings, Job, Study};
use crate::LabError;
use crate::report::shop;
use crate::study::design::Experiment;
use crate::study::plan::write_json;
use crate::study::shop::outcome::MadeWith;
use crate::study::shop::{Design, Pace, RESULTS, Run, Trial, outcome};

/// The seed of the shop's content.
const POPULATION_SEED: u64 = 1;
/// Enough memory for the whole database, as in 002 (5.1).
const BUFFER_MIB: u32 = 1024;
/// The most connections to the database. 002's servlets had one each, 345 in overload (Table 2). The open loop has
/// more, because interactions that wait for a connection are in order of arrival, whatever the gate's order is.
pub const DATABASE_CONNECTIONS_MAX: u32 = 1000;

impl Study for Design {
    fn length(&self) -> String {
        Self::length(self)
    }

    fn job(&self, _id: &str, asked: &Choices) -> Result<Job, LabError> {
        let trial = self.trial(&asked.names, asked.seconds, asked.seeds)?;
        Ok(Box::new(move |testbed| run(testbed, &trial)))
    }

    fn has_results(&self, folder: &Path) -> Result<bool, LabError> {
        Ok(folder.join(RESULTS).exists())
    }

    fn report(&self, experiment: &Experiment, folder: &Path) -> Result<Findings, LabError> {
        let (text, runs) = shop::report(folder, experiment)?;
        Ok(Findings {
            text,
            void_runs: 0,
            data: Data::Shop(runs),
        })
    }
}

/// Makes the runs that are not kept yet. Leaves out a database that is not installed, with a line.
///
/// # Errors
/// If a server cannot be started, or results cannot be written.
fn run(testbed: &Testbed, trial: &Trial) -> Result<(), LabError> {
    let path = testbed.out().join(RESULTS);
    let mut kept = if path.exists() {
        outcome::read(testbed.out())?
    } else {
        Vec::new()
    };
    let sizing = Sizing {
        processor: visit::share_processors(),
        connections_max: DATABASE_CONNECTIONS_MAX + 20,
        buffer_mib: BUFFER_MIB,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| LabError::failed("the run", &error))?;
    for stage in &trial.design.stages {
        let database = stage.database;
        let wanted: Vec<Run> = trial
            .runs(stage)
            .filter(|run| kept.iter().all(|kept| kept.run != *run))
            .collect();
        if wanted.is_empty() {
            continue;
        }
        if let Err(missing) = Bed::available(database) {
            tracing::warn!("bookstore: {database} is left out: {missing}");
            continue;
        }
        let made_with = made_with(database)?;
        let filled = runtime.block_on(fill(database, sizing))?;
        for run in wanted {
            let bed = runtime
                .block_on(Bed::start_with(&filled, sizing))
                .map_err(|error| LabError::failed("the database", &error))?;
            tracing::info!(
                "bookstore: {database}, {}, {}, seed {}",
                run.door,
                run.load,
                run.seed
            );
            let visit = visit::Visit {
                testbed,
                bed: &bed,
                pace: Pace {
                    locking: trial.design.locking,
                    factor: stage.factor,
                    phase_interactions: stage.phase_interactions,
                    warm_connections: stage.warm_connections,
                },
                statements: trial.design.statements,
                capacity_per_s: outcome::capacity_per_s(&kept, database, run.load, run.seed),
                connections_max: if run.load.is_open() {
                    stage.open_connections
                } else {
                    DATABASE_CONNECTIONS_MAX
                },
                made_with: &made_with,
            };
            kept.push(visit.run(&runtime, run)?);
            write_json(&path, &kept)?;
        }
    }
    Ok(())
}

fn made_with(database: Kind) -> Result<MadeWith, LabError> {
    let version =
        Bed::version(database).map_err(|error| LabError::failed("the database", &error))?;
    Ok(MadeWith {
        commit: made_with::COMMIT.into(),
        kernel: made_with::kernel()?,
        congestion_control: made_with::congestion_control()?,
        database: format!("{database} {version}"),
    })
}

async fn fill(database: Kind, sizing: Sizing) -> Result<LaidDown, LabError> {
    let bed = Bed::start(database, sizing)
        .await
        .map_err(|error| LabError::failed("the database", &error))?;
    let population = Population {
        scale: Scale::PAPER,
        seed: POPULATION_SEED,
    };
    let filled = populate(bed.database(), population)
        .await
        .map_err(|error| LabError::failed("filling the database", &error))?;
    tracing::info!(
        "bookstore: {database} holds {} rows after {:.0} s",
        filled.rows,
        filled.took.as_secs_f64()
    );
    bed.lay_down()
        .await
        .map_err(|error| LabError::failed("the database", &error))
}
