//! The interface of the kinds of experiments. Each kind is a module that implements it.

use std::path::Path;

use shortline_sched::units::Rate;
use shortline_testbed::server::Server;
use shortline_testbed::{Testbed, guest};

use crate::LabError;
use crate::study::design::{Experiment, Kind, SEEDS_MAX, Throughput};
use crate::study::figures::Figures;
use crate::study::plan::Plan;
use crate::study::point::SECONDS_MAX;
use crate::study::shop::Outcome;

/// The work that remains once everything has been checked.
pub type Job = Box<dyn FnOnce(&Testbed) -> Result<(), LabError> + Send>;

/// A kind of experiment.
pub trait Study {
    /// How long it takes, in words.
    fn length(&self) -> String;

    /// Whether it needs a bed: namespaces with an uplink between them.
    fn has_bed(&self) -> bool {
        false
    }

    /// Whether a guest may run it (`--bed uml` and `--bed virtual`).
    fn runs_in_guests(&self) -> bool {
        self.has_bed()
    }

    /// The memory of a guest that runs it, in MiB.
    fn guest_memory_mib(&self) -> u32 {
        guest::MEMORY_MIB
    }

    /// Whether its uplink's rate may be chosen.
    fn has_rate(&self) -> bool {
        false
    }

    /// The job that makes the runs that are not kept yet.
    ///
    /// # Errors
    /// If the options ask for something that it cannot do.
    fn job(&self, id: &str, asked: &Choices) -> Result<Job, LabError>;

    /// Whether one of its folders has anything to report on.
    ///
    /// # Errors
    /// If the folder's content is wrong.
    fn has_results(&self, folder: &Path) -> Result<bool, LabError>;

    /// Reports on the results in the folder, and writes its page if it has one.
    ///
    /// # Errors
    /// If the folder's content is not that of the job.
    fn report(&self, experiment: &Experiment, folder: &Path) -> Result<Findings, LabError>;
}

impl Kind {
    /// What it is asked.
    pub fn study(&self) -> &dyn Study {
        match self {
            Self::Uplink(design) => design,
            Self::Adversary(surface) => surface,
            Self::Throughput => &Throughput,
            Self::Versus(versus) => versus,
            Self::Memory(memory) => memory,
            Self::Bookstore(design) => design,
            Self::Application(design) => design,
        }
    }
}

/// The report on the results of an experiment.
pub struct Findings {
    /// The report as text.
    pub text: String,
    /// How many of its runs are void.
    pub void_runs: usize,
    /// The same as data, if others draw or judge it.
    pub data: Data,
}

/// Results as data.
pub enum Data {
    /// Of runs over an uplink: the plan and the figures.
    Uplink(Plan, Figures),
    /// Of runs with the bookstore.
    Shop(Vec<Outcome>),
    /// Only text.
    Text,
}

/// The command line's options within their limits.
pub struct Choices {
    /// How long arrivals (or a measurement) last.
    pub seconds: Option<u64>,
    /// How many seeds (or rounds).
    pub seeds: Option<u64>,
    /// The names of servers, or of what is before a database.
    pub names: Vec<String>,
    /// The uplink's rate.
    pub rate: Option<Rate>,
}

impl Choices {
    /// Checks the numbers.
    ///
    /// # Errors
    /// The first number that is outside its limits.
    pub fn new(
        seconds: Option<u64>,
        seeds: Option<u64>,
        names: Vec<String>,
        rate: Option<Rate>,
    ) -> Result<Self, LabError> {
        let within = |what, value: Option<u64>, high| match value {
            Some(value) if !(1..=high).contains(&value) => Err(LabError::OutOfRange {
                what,
                value,
                low: 1,
                high,
            }),
            _ => Ok(value),
        };
        Ok(Self {
            seconds: within("--seconds", seconds, SECONDS_MAX)?,
            seeds: within("--seeds", seeds, SEEDS_MAX)?,
            names,
            rate,
        })
    }

    /// The servers of these names.
    ///
    /// # Errors
    /// The first unknown name.
    pub fn servers(&self) -> Result<Vec<Server>, LabError> {
        let servers = self.names.iter().map(|name| name.parse());
        Ok(servers.collect::<Result<_, _>>()?)
    }
}
