//! 002's experiments: the bookstore on a private database, with and without a gate before it.
//!
//! ```text
//! browsers, application, gate: one processor      database: the other
//! ```
//!
//! So the database is the bottleneck (002, 5), on a machine with two processors at least; the shares
//! of both are in each result. The database is filled once for all runs with it: what they order is
//! little beside what is there.
//!
//! Departures from 002: thinking and session times are shorter (see `load`), so that fewer browsers make
//! the same load; runs are shorter (`--seconds` for longer ones).

mod door;
mod load;
mod results;
mod visit;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use shortline_bookstore::bed::{Bed, Sizing};
use shortline_bookstore::population::{Population, Scale, populate};
use shortline_bookstore::{Kind, Locking};

use super::plan::{read_json, write_json};
use crate::LabError;
use crate::lab::Lab;

pub use door::Door;
pub use load::Load;
pub use results::report;

/// The file with all runs.
pub const RESULTS: &str = "bookstore.json";
/// How long visitors come before anything counts.
const WARM_UP: Duration = Duration::from_secs(5);
/// How long they come after that, if not said.
const SECONDS: u64 = 40;
/// The seed of what is in the shop.
const POPULATION_SEED: u64 = 1;
/// Connections to the database: 002's servlets had one each, 345 in overload (Table 2).
const DATABASE_CONNECTIONS_MAX: u32 = 400;

/// What an experiment with the bookstore runs, as data.
#[derive(Clone, Debug)]
pub struct Design {
    /// Which databases, in turn.
    pub databases: &'static [Kind],
    /// Who keeps conflicting interactions apart.
    pub locking: Locking,
    /// What is before the database, in turn.
    pub doors: &'static [Door],
    /// Who comes, in turn.
    pub loads: &'static [Load],
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
        let runs = self.databases.len() * self.doors.len() * self.loads.len();
        let seconds = WARM_UP.as_secs() + SECONDS;
        format!("{runs} runs of {seconds} s, and filling the databases")
    }

    /// The design, with other doors, seconds and seeds if these are said.
    ///
    /// # Errors
    /// If a name is no door's.
    pub fn trial(
        &self,
        doors: &[String],
        seconds: Option<u64>,
        seeds: Option<u64>,
    ) -> Result<Trial, LabError> {
        let named: Vec<Door> = doors
            .iter()
            .map(|name| name.parse())
            .collect::<Result<_, _>>()?;
        Ok(Trial {
            design: self.clone(),
            doors: if named.is_empty() {
                self.doors.into()
            } else {
                named
            },
            seconds: seconds.unwrap_or(SECONDS),
            seeds: seeds.unwrap_or(1),
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
}

/// Runs what is not kept yet; a database that is not installed is left out, with a line.
///
/// # Errors
/// If a server cannot be started, or nothing can be kept.
pub fn run(lab: &Lab, trial: &Trial) -> Result<(), LabError> {
    let path = lab.out().join(RESULTS);
    let mut kept: Vec<results::Kept> = if path.exists() {
        read_json(&path)?
    } else {
        Vec::new()
    };
    let processors = visit::share_processors();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| visit::failed("the run", &error))?;
    for &database in trial.design.databases {
        let wanted: Vec<Run> = trial
            .runs(database)
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
                locking: trial.design.locking,
                peak_per_s: results::peak_per_s(&kept, database),
                warm_up: WARM_UP,
                connections_max: DATABASE_CONNECTIONS_MAX,
            };
            kept.push(visit.run(&runtime, run)?);
            write_json(&path, &kept)?;
        }
    }
    Ok(())
}

impl Trial {
    /// The doors side by side, so that what drifts hits all.
    fn runs(&self, database: Kind) -> impl Iterator<Item = Run> {
        let seeds = 1..=self.seeds;
        seeds.flat_map(move |seed| {
            self.design.loads.iter().flat_map(move |&load| {
                self.doors.iter().map(move |&door| Run {
                    database,
                    door,
                    load,
                    seed,
                    seconds: self.seconds,
                })
            })
        })
    }
}

async fn fill(database: Kind, processor: Option<u32>) -> Result<Bed, LabError> {
    let sizing = Sizing {
        processor,
        connections_max: DATABASE_CONNECTIONS_MAX + 20,
        ..Sizing::default()
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

    const DESIGN: Design = Design {
        databases: &Kind::ALL,
        locking: Locking::Application,
        doors: &[Door::None, Door::Fifo],
        loads: &[Load::Browsers(10), Load::Browsers(20)],
    };

    #[test]
    fn a_trial_runs_every_door_at_every_load() {
        let trial = DESIGN.trial(&[], Some(7), Some(2)).unwrap();
        let runs: Vec<Run> = trial.runs(Kind::Postgres).collect();
        assert_eq!(runs.len(), 8);
        assert!(runs.iter().all(|run| run.seconds == 7));
        assert_eq!(runs[1].door, Door::Fifo);
        let named = DESIGN.trial(&["sjf".into()], None, None).unwrap();
        assert_eq!(named.runs(Kind::MariaDb).count(), 2);
        assert!(DESIGN.trial(&["nginx".into()], None, None).is_err());
    }
}
