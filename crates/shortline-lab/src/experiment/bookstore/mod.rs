//! 002's experiments: the bookstore on a private database, with and without a gate before it.
//!
//! ```text
//! browsers, application, gate: one processor      database: the other
//! ```
//!
//! So the database is the bottleneck (002, 5), on a machine with two processors at least; the shares
//! of both are in each result. The database is filled once for all runs with it: what they order is
//! little beside what is there. Runs with all doors follow each other at each load, seed by seed, so
//! that what drifts hits all of them.
//!
//! Departures from 002: all times of visitors are scaled (see `load`), and runs are shorter (it had a
//! warm-up of 100 s, runs of 600 s and five of each; `--seconds` and `--seeds` for more).

mod check;
mod counters;
mod door;
mod drawings;
mod figures;
mod load;
mod outcome;
mod page;
mod tables;
mod visit;
mod watch;

use std::path::Path;

use serde::{Deserialize, Serialize};
use shortline_bookstore::bed::{Bed, Sizing};
use shortline_bookstore::population::{Population, Scale, populate};
use shortline_bookstore::{Kind, Locking};

use super::catalogue::Experiment;
use super::plan::write_json;
use crate::LabError;
use crate::lab::Lab;

pub use check::{Check, Measure};
pub use door::Door;
pub use load::{Load, Pace};
pub use outcome::Outcome;

/// The file with all runs.
pub const RESULTS: &str = "bookstore.json";
/// How long they come after that, if not said.
const SECONDS: u64 = 20;
/// How many times what is repeated is run, if not said.
const SEEDS: u64 = 3;
/// The seed of what is in the shop.
const POPULATION_SEED: u64 = 1;
/// The whole database fits, as 002's did (5.1).
const BUFFER_MIB: u32 = 1024;
/// Connections to the database at most: 002's servlets had one each, 345 in overload (Table 2). The open loop needs
/// more: who waits for a connection is in order of arrival, whatever the gate's is.
pub const DATABASE_CONNECTIONS_MAX: u32 = 1000;

/// What an experiment with the bookstore runs, as data.
#[derive(Clone, Debug)]
pub struct Design {
    /// Who keeps conflicting interactions apart.
    pub locking: Locking,
    /// What is run on which database, in turn.
    pub stages: Vec<Stage>,
}

/// What is run on a database.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Which one.
    pub database: Kind,
    /// What 002's times are multiplied by.
    pub factor: f64,
    /// The capacity that was found for it, in milliseconds of estimated service.
    pub capacity_ms: u32,
    /// How long a phase of the open loop is ([`Pace`]).
    pub phase_interactions: u32,
    /// How many connections the shop has there.
    pub open_connections: u32,
    /// In turn.
    pub steps: Vec<Step>,
}

/// Who comes, and what is before the database then.
#[derive(Clone, Debug)]
pub struct Step {
    /// Who comes.
    pub load: Load,
    /// What is before the database, in turn.
    pub doors: Vec<Door>,
    /// How many times as long it counts as others.
    pub times: u64,
    /// Whether it is run with each seed, or with the first alone.
    pub is_repeated: bool,
}

/// A design with what the command line said.
#[derive(Clone, Debug)]
pub struct Trial {
    design: Design,
    doors: Vec<Door>,
    seconds: u64,
    seeds: u64,
}

impl Design {
    /// How long it takes.
    pub fn length(&self) -> String {
        let trial = Trial {
            design: self.clone(),
            doors: Vec::new(),
            seconds: SECONDS,
            seeds: SEEDS,
        };
        let runs: Vec<Run> = self
            .stages
            .iter()
            .flat_map(|stage| trial.runs(stage).collect::<Vec<_>>())
            .collect();
        let seconds: u64 = runs
            .iter()
            .map(|run| run.seconds + run.load.warm_up().as_secs())
            .sum();
        let (count, minutes) = (runs.len(), seconds.div_ceil(60));
        format!("{count} runs, {minutes} min and filling the databases")
    }

    /// The design, with some of its doors, other seconds and seeds if these are said.
    ///
    /// # Errors
    /// If a name is no door's.
    pub fn trial(
        &self,
        doors: &[String],
        seconds: Option<u64>,
        seeds: Option<u64>,
    ) -> Result<Trial, LabError> {
        let doors = doors.iter().map(|name| name.parse());
        Ok(Trial {
            design: self.clone(),
            doors: doors.collect::<Result<_, _>>()?,
            seconds: seconds.unwrap_or(SECONDS),
            seeds: seeds.unwrap_or(SEEDS),
        })
    }
}

/// What decides a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The database.
    pub database: Kind,
    /// What is before it.
    pub door: Door,
    /// Who comes.
    pub load: Load,
    /// The visitors' seed.
    pub seed: u64,
    /// How long is counted, in seconds.
    pub seconds: u64,
    /// The calibrated capacity, in milliseconds of estimated service.
    pub capacity_ms: u32,
}

/// Runs what is not kept yet; a database that is not installed is left out, with a line.
///
/// # Errors
/// If a server cannot be started, or nothing can be kept.
pub fn run(lab: &Lab, trial: &Trial) -> Result<(), LabError> {
    let path = lab.out().join(RESULTS);
    let mut kept = if path.exists() {
        outcome::read(lab.out())?
    } else {
        Vec::new()
    };
    let processors = visit::share_processors();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| visit::failed("the run", &error))?;
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
            eprintln!("bookstore: {database} is left out: {missing}");
            continue;
        }
        let bed = runtime.block_on(fill(database, processors))?;
        for run in wanted {
            eprintln!(
                "bookstore: {database}, {}, {}, seed {}",
                run.door, run.load, run.seed
            );
            let visit = visit::Visit {
                lab,
                bed: &bed,
                pace: Pace {
                    locking: trial.design.locking,
                    factor: stage.factor,
                    phase_interactions: stage.phase_interactions,
                    open_connections: stage.open_connections,
                },
                capacity_per_s: outcome::capacity_per_s(&kept, database, run.load),
                connections_max: if run.load.is_open() {
                    stage.open_connections
                } else {
                    DATABASE_CONNECTIONS_MAX
                },
            };
            kept.push(visit.run(&runtime, run)?);
            write_json(&path, &kept)?;
        }
    }
    Ok(())
}

/// Writes the page on what `folder` keeps, with its data beside it, and returns the same as text.
///
/// # Errors
/// If the results are missing or wrong, or the page cannot be written.
pub fn report(folder: &Path, experiment: &Experiment) -> Result<(String, Vec<Outcome>), LabError> {
    let all = outcome::read(folder)?;
    let path = page::write(folder, experiment, &all)?;
    let text = tables::text(&all);
    Ok((format!("{text}\npage: {}\n", path.display()), all))
}

impl Trial {
    fn runs<'a>(&'a self, stage: &'a Stage) -> impl Iterator<Item = Run> + 'a {
        let wanted = |door: &&Door| self.doors.is_empty() || self.doors.contains(door);
        let step_runs = move |step: &'a Step, seed| {
            let doors = step.doors.iter().filter(wanted);
            doors.map(move |&door| Run {
                database: stage.database,
                door,
                load: step.load,
                seed,
                seconds: step.times * self.seconds,
                capacity_ms: stage.capacity_ms,
            })
        };
        (1..=self.seeds).flat_map(move |seed| {
            let steps = stage.steps.iter();
            steps
                .filter(move |step| seed == 1 || step.is_repeated)
                .flat_map(move |step| step_runs(step, seed))
        })
    }
}

async fn fill(database: Kind, processor: Option<u32>) -> Result<Bed, LabError> {
    let sizing = Sizing {
        processor,
        connections_max: DATABASE_CONNECTIONS_MAX + 20,
        buffer_mib: BUFFER_MIB,
    };
    let bed = Bed::start(database, sizing)
        .await
        .map_err(|error| visit::failed("the database", &error))?;
    let population = Population {
        scale: Scale::PAPER,
        seed: POPULATION_SEED,
    };
    let filled = populate(bed.database(), population)
        .await
        .map_err(|error| visit::failed("filling the database", &error))?;
    eprintln!(
        "bookstore: {database} holds {} rows after {:.0} s",
        filled.rows,
        filled.took.as_secs_f64()
    );
    Ok(bed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn design() -> Design {
        let step = |browsers, is_repeated| Step {
            load: Load::Browsers(browsers),
            doors: vec![Door::None, Door::FIFO],
            times: 2,
            is_repeated,
        };
        Design {
            locking: Locking::Application,
            stages: vec![Stage {
                database: Kind::Postgres,
                factor: 0.1,
                capacity_ms: 40,
                phase_interactions: 100,
                open_connections: 30,
                steps: vec![step(10, false), step(20, true)],
            }],
        }
    }

    #[test]
    fn a_trial_runs_every_door_at_every_load_and_repeats_some() {
        let runs_of = |doors: &[String]| {
            let trial = design().trial(doors, Some(7), Some(2)).unwrap();
            trial.runs(&trial.design.stages[0]).collect::<Vec<Run>>()
        };
        let runs = runs_of(&[]);
        assert_eq!(runs.len(), 6);
        assert!(runs.iter().all(|run| run.seconds == 14));
        assert_eq!(runs[1].door, Door::FIFO);
        assert_eq!((runs[5].seed, runs[5].load), (2, Load::Browsers(20)));
        assert_eq!(runs_of(&["fifo".into()]).len(), 3);
        assert!(design().trial(&["nginx".into()], None, None).is_err());
    }
}
