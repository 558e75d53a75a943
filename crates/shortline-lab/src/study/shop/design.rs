//! The design of an experiment with the bookstore, as data.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shortline_bookstore::{Kind, Locking, Statements};

use super::{Door, Load, ShopNameError};
use crate::study::kept::packed;

/// The file with all runs.
pub const RESULTS: &str = "bookstore.json";
/// The default seconds that count.
const SECONDS: u64 = 20;
/// The default number of seeds.
const SEEDS: u64 = 3;
/// The design of an experiment with the bookstore.
#[derive(Clone, Debug)]
pub struct Design {
    /// Who keeps conflicting interactions apart.
    pub locking: Locking,
    /// How the shop sends its statements.
    pub statements: Statements,
    /// The stages, in turn.
    pub stages: Vec<Stage>,
}

/// The runs on one database.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The database.
    pub database: Kind,
    /// The factor of 002's times.
    pub factor: f64,
    /// The capacity that was found for it, in milliseconds of estimated service.
    pub capacity_ms: u32,
    /// The length of a phase of the open loop ([`Pace`]).
    pub phase_interactions: u32,
    /// The shop's number of connections in the open loop.
    pub open_connections: u32,
    /// How many of them are used from the beginning ([`Pace`]).
    pub warm_connections: u32,
    /// The steps, in turn.
    pub steps: Vec<Step>,
}

/// A load, and the doors that it is run with.
#[derive(Clone, Debug)]
pub struct Step {
    /// Who comes.
    pub load: Load,
    /// The doors (what is before the database), in turn.
    pub doors: Vec<Door>,
    /// The length of its counted time, in multiples of the others'.
    pub times: u64,
    /// Whether it is run with each seed, or only with the first.
    pub is_repeated: bool,
}

/// A design with the command line's options.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The design.
    pub design: Design,
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

    /// The design with only the given databases and doors, and with the given seconds and seeds, if any.
    ///
    /// # Errors
    /// If a name is neither a door's nor that of a database of the design.
    pub fn trial(
        &self,
        names: &[String],
        seconds: Option<u64>,
        seeds: Option<u64>,
    ) -> Result<Trial, ShopNameError> {
        let of = |name: &String| {
            self.stages
                .iter()
                .find(|stage| stage.database.to_string() == *name)
        };
        let databases: Vec<Kind> = names
            .iter()
            .filter_map(of)
            .map(|stage| stage.database)
            .collect();
        let doors = names.iter().filter(|name| of(name).is_none());
        let mut design = self.clone();
        design
            .stages
            .retain(|stage| databases.is_empty() || databases.contains(&stage.database));
        Ok(Trial {
            design,
            doors: doors.map(|name| name.parse()).collect::<Result<_, _>>()?,
            seconds: seconds.unwrap_or(SECONDS),
            seeds: seeds.unwrap_or(SEEDS),
        })
    }
}

/// Everything that decides a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The database.
    pub database: Kind,
    /// The door before it.
    pub door: Door,
    /// Who comes.
    pub load: Load,
    /// The visitors' seed.
    pub seed: u64,
    /// The counted time, in seconds.
    pub seconds: u64,
    /// The calibrated capacity, in milliseconds of estimated service.
    pub capacity_ms: u32,
}

impl Run {
    /// The file of its records in a folder of results.
    pub fn records_file(&self, folder: &Path) -> PathBuf {
        let Self {
            database,
            door,
            load,
            seed,
            ..
        } = self;
        let name = format!("{database}-{door}-{load}-{seed}.csv");
        packed(folder.join("records").join(name))
    }
}

impl Trial {
    /// The runs on a database, in turn.
    pub fn runs<'a>(&'a self, stage: &'a Stage) -> impl Iterator<Item = Run> + 'a {
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
            statements: Statements::Prepared,
            stages: vec![Stage {
                database: Kind::Postgres,
                factor: 0.1,
                capacity_ms: 40,
                phase_interactions: 100,
                open_connections: 30,
                warm_connections: 30,
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
        assert_eq!(runs_of(&["postgres".into(), "fifo".into()]).len(), 3);
        assert!(design().trial(&["nginx".into()], None, None).is_err());
    }

    /// 002's five runs of ten minutes on its one database.
    #[test]
    fn a_database_can_be_run_alone() {
        let mut both = design();
        both.stages.push(Stage {
            database: Kind::MariaDb,
            ..both.stages[0].clone()
        });
        let databases = |names: &[String]| -> Vec<Kind> {
            let trial = both.trial(names, Some(600), Some(5)).unwrap();
            trial
                .design
                .stages
                .iter()
                .map(|stage| stage.database)
                .collect()
        };
        assert_eq!(databases(&[]), [Kind::Postgres, Kind::MariaDb]);
        assert_eq!(databases(&["mariadb".into()]), [Kind::MariaDb]);
        assert!(design().trial(&["mariadb".into()], None, None).is_err());
    }
}
