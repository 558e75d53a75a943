//! The experiments: what there is ([`all`]), and running one to its end or to a signal.

mod adversary;
pub(crate) mod bookstore;
mod catalogue;
pub(crate) mod claim;
mod conditions;
pub(crate) mod course;
mod course_figures;
pub(crate) mod design;
pub mod environment;
pub(crate) mod figures;
pub(crate) mod groups;
pub(crate) mod headline;
pub(crate) mod kept;
mod memory;
mod neighbour;
pub(crate) mod pass;
pub(crate) mod plan;
pub(crate) mod point;
pub(crate) mod ran;
mod results;
mod site;
pub(crate) mod standing;
mod study;
mod throughput;
mod uplink;
pub(crate) mod uplink_table;
pub(crate) mod verdict;
pub(crate) mod verdicts;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use shortline_sched::Policy;
use shortline_sched::units::Rate;
use tokio::signal::unix::{SignalKind, signal};

pub use self::catalogue::all;
pub use self::design::Experiment;
use self::design::{Design, Kind};
pub use self::pass::report;
use self::plan::Plan;
use self::point::{Point, SECONDS_MAX};
pub use self::study::StudyError;
use crate::LabError;
use shortline_testbed::bed::BedKind;
use shortline_testbed::command;
use shortline_testbed::guest;
use shortline_testbed::server::{OursMode, Server};
use shortline_testbed::{Testbed, TestbedError};

/// The most seeds or rounds.
const SEEDS_MAX: u64 = 100;

/// What points that differ in the initial timeout need.
const SETTABLE_RTO: &str =
    "a kernel whose initial timeout can be set (that of `shortline lab kernel build`)";

/// What to run, as the command line says it.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Which experiment: its id, or a file.
    pub id: String,
    /// Where the results go; `lab-results/ID` if not said.
    pub out: Option<PathBuf>,
    /// How long arrivals (or a measurement) last, in seconds.
    pub seconds: Option<u64>,
    /// The servers, in turn.
    pub servers: Vec<String>,
    /// How many seeds (or rounds).
    pub seeds: Option<u64>,
    /// The uplink's rate.
    pub rate: Option<Rate>,
    /// Which kernel the bed is made in.
    pub bed: BedKind,
}

/// What an experiment says once it was run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The report, text.
    pub text: String,
    /// How many of the runs in it are void.
    pub void_runs: usize,
}

impl Experiment {
    /// What it needs that not every bed has.
    pub(crate) fn needs(&self) -> Option<&'static str> {
        match &self.kind {
            Kind::Uplink(design) => design.needs(),
            Kind::Adversary(_) | Kind::Throughput | Kind::Memory | Kind::Bookstore(_) => None,
        }
    }

    /// Whether it has namespaces with an uplink between them.
    fn has_bed(&self) -> bool {
        match &self.kind {
            Kind::Uplink(design) => !design.on_loopback(),
            Kind::Adversary(_) => true,
            Kind::Throughput | Kind::Memory | Kind::Bookstore(_) => false,
        }
    }

    /// How long it takes, and what it needs that not every bed has.
    fn length(&self) -> String {
        match &self.kind {
            Kind::Uplink(design) => design.length(),
            Kind::Adversary(surface) => adversary::length(*surface),
            Kind::Throughput => throughput::length(),
            Kind::Memory => "about 2 minutes".into(),
            Kind::Bookstore(design) => design.length(),
        }
    }
}

impl Design {
    fn length(&self) -> String {
        let servers = self.servers.len();
        let seconds: u64 = self.points.iter().map(|point| point.seconds).sum();
        let length = match &self.points[..] {
            [point] => format!(
                "{servers} servers, {} s each and what is left then",
                point.seconds
            ),
            points => {
                let minutes = (seconds * servers as u64).div_ceil(60);
                let points = points.len();
                format!("{points} points, {servers} servers, {minutes} min and what is left then")
            }
        };
        match self.needs() {
            Some(needs) => format!("{length}; needs {needs}"),
            None => length,
        }
    }

    /// What a bed only notes of other experiments must be had where it is all that points differ in.
    fn needs(&self) -> Option<&'static str> {
        let only_in_rto = |pair: &[Point]| {
            let (one, mut other) = (
                &pair[0].setup.environment,
                pair[1].setup.environment.clone(),
            );
            let rto = std::mem::replace(&mut other.system.initial_rto, one.system.initial_rto);
            rto != one.system.initial_rto && other == *one
        };
        self.points
            .windows(2)
            .any(only_in_rto)
            .then_some(SETTABLE_RTO)
    }

    /// The plan of what the command line changes.
    fn plan(&self, id: &str, options: &Checked) -> Result<Plan, LabError> {
        let servers: Vec<String> = match &options.servers[..] {
            [] => self.servers.clone(),
            named => named.iter().map(ToString::to_string).collect(),
        };
        for server in &servers {
            self.check_server(id, server.parse()?)?;
        }
        let change = |point: &Point| Point {
            seconds: options.seconds.unwrap_or(point.seconds),
            ..point.clone().at_rate(options.rate.unwrap_or(point.rate))
        };
        Ok(Plan {
            experiment: id.into(),
            points: self.points.iter().map(change).collect(),
            servers,
            seeds: (1..=options.seeds.unwrap_or(1)).collect(),
        })
    }

    fn check_server(&self, experiment: &str, server: Server) -> Result<(), LabError> {
        let ours = matches!(
            server,
            Server::Ours(OursMode::Paced(_) | OursMode::PacedAging(..))
        );
        if self.on_loopback() && !ours {
            let policies: Vec<String> = Policy::ALL.iter().map(ToString::to_string).collect();
            return Err(LabError::ServerNotInExperiment {
                experiment: experiment.into(),
                server: server.to_string(),
                allowed: format!("ours by policy: {}", policies.join(", ")),
            });
        }
        Ok(())
    }

    fn on_loopback(&self) -> bool {
        self.points.iter().all(|point| point.setup.loopback)
    }
}

/// All experiments, a line for each figure and table they are behind: the experiment's id,
/// which figure, what it claims, how long it takes.
pub fn list() -> String {
    let experiments = all();
    let lines: Vec<(&str, &str, String)> = experiments
        .iter()
        .flat_map(|experiment| {
            let length = experiment.length();
            let line = move |figure: &'static claim::Figure| {
                (
                    &*experiment.id,
                    &*figure.name,
                    format!("{} ({length})", figure.claim),
                )
            };
            experiment.figures.iter().map(line)
        })
        .collect();
    let width = |of: fn(&(&str, &str, String)) -> usize| lines.iter().map(of).max().unwrap_or(0);
    let (id_width, name_width) = (width(|line| line.0.len()), width(|line| line.1.len()));
    lines
        .iter()
        .map(|(id, name, about)| format!("{id:<id_width$}  {name:<name_width$}  {about}\n"))
        .collect()
}

/// Runs an experiment and returns its report. What is kept whole in the results' folder is
/// not run again. SIGINT and SIGTERM end it; whatever it made but results is gone in any case
/// when this returns.
///
/// # Errors
/// A wrong option, a missing tool or privilege, a server or generator that fails.
pub fn run(options: &RunOptions) -> Result<Report, LabError> {
    let (experiment, own) = named(&options.id)?;
    let prepared = prepare(&experiment, options)?;
    let id = experiment.id;
    let default_out = || Path::new("lab-results").join(&id);
    let out = options.out.clone().unwrap_or_else(default_out);
    if prepared.needs_root && !rustix::process::geteuid().is_root() {
        return Err(LabError::NotRoot(id));
    }
    let testbed = Testbed::open(&out)?;
    let janitor = Arc::clone(testbed.janitor());
    let result = until_signal(move || {
        results::write_name(testbed.out(), &id, own.as_deref())?;
        (prepared.job)(&testbed)
    });
    janitor.clean_up();
    result.map_err(|error| with_what_is_kept(error, &out))?;
    let told = results::report(&out)?;
    Ok(Report {
        text: told.text,
        void_runs: told.void_runs,
    })
}

/// The text of a study's file in the catalogue, which a person copies to make one's own of it.
///
/// # Errors
/// If no study has that name.
pub fn show(id: &str) -> Result<&'static str, LabError> {
    catalogue::text_of(id).ok_or_else(|| LabError::UnknownExperiment(id.into()))
}

/// An experiment of the catalogue, or that of a file with the file's text.
fn named(name: &str) -> Result<(Experiment, Option<String>), LabError> {
    if !study::is_file(name) {
        return Ok((Experiment::by_id(name)?, None));
    }
    let (experiment, text) = study::read(Path::new(name), |id| catalogue::text_of(id).is_some())?;
    Ok((experiment, Some(text)))
}

/// The error, and what is kept in spite of it.
fn with_what_is_kept(error: LabError, out: &Path) -> LabError {
    let Ok(plan) = Plan::read(out) else {
        return error;
    };
    if error.is_usage() {
        return error;
    }
    match kept::whole_runs(out, &plan) {
        0 => error,
        kept => LabError::CutShort {
            source: Box::new(error),
            kept,
            all: plan.runs(),
            path: out.into(),
        },
    }
}

/// The command line's options within their limits.
struct Checked {
    seconds: Option<u64>,
    seeds: Option<u64>,
    servers: Vec<Server>,
    rate: Option<Rate>,
}

/// An experiment that can be run.
struct Prepared {
    needs_root: bool,
    job: Job,
}

type Job = Box<dyn FnOnce(&Testbed) -> Result<(), LabError> + Send>;

/// Checks all options before anything is made.
fn prepare(experiment: &Experiment, options: &RunOptions) -> Result<Prepared, LabError> {
    let id = &experiment.id;
    let checked = check(experiment, options)?;
    if !matches!(experiment.kind, Kind::Uplink(_)) && options.rate.is_some() {
        return Err(LabError::NoRate(id.clone()));
    }
    if !experiment.has_bed() && options.bed != BedKind::Native {
        return Err(LabError::NoBed(id.clone()));
    }
    let without_root = |job| Prepared {
        needs_root: false,
        job,
    };
    match &experiment.kind {
        Kind::Uplink(design) => {
            let plan = design.plan(id, &checked)?;
            if let Some(needs) = design.needs()
                && !options.bed.sets_initial_rto()?
            {
                return Err(LabError::Needs {
                    experiment: id.clone(),
                    needs,
                });
            }
            if let Some(time) = options.bed.guest_time() {
                return Ok(without_root(in_guest(time, options)));
            }
            let needs_root = experiment.has_bed();
            if needs_root {
                command::find("ip", "iproute2")?;
            }
            let job: Job = Box::new(move |testbed| uplink::run(testbed, &plan));
            Ok(Prepared { needs_root, job })
        }
        Kind::Adversary(surface) => {
            if let Some(time) = options.bed.guest_time() {
                return Ok(without_root(in_guest(time, options)));
            }
            command::find("ip", "iproute2")?;
            let setup =
                adversary::Setup::new(*surface, checked.seconds, checked.seeds, &checked.servers);
            Ok(Prepared {
                needs_root: true,
                job: Box::new(move |testbed| adversary::run(testbed, &setup)),
            })
        }
        Kind::Throughput => {
            let setup = throughput::Setup::new(checked.seconds, checked.seeds, &checked.servers)?;
            Ok(without_root(Box::new(move |testbed| {
                throughput::run(testbed, &setup)
            })))
        }
        Kind::Memory => {
            let servers = memory::servers(&checked.servers)?;
            Ok(without_root(Box::new(move |testbed| {
                memory::run(testbed, &servers)
            })))
        }
        Kind::Bookstore(design) => {
            let trial = design.trial(&options.servers, checked.seconds, checked.seeds)?;
            Ok(without_root(Box::new(move |testbed| {
                bookstore::run(testbed, &trial)
            })))
        }
    }
}

/// The same experiment on a guest's native bed.
fn in_guest(time: guest::Time, options: &RunOptions) -> Job {
    let options = options.clone();
    Box::new(move |testbed| {
        results::write_bed(testbed.out(), options.bed)?;
        guest::run(testbed, time, &guest_words(testbed, &options)?)?;
        Ok(())
    })
}

fn guest_words(testbed: &Testbed, options: &RunOptions) -> Result<Vec<String>, LabError> {
    let list = |values: &[String]| Some(values.join(",")).filter(|list| !list.is_empty());
    let flags = [
        ("--out", Some(testbed.out().display().to_string())),
        ("--seconds", options.seconds.map(|value| value.to_string())),
        ("--seeds", options.seeds.map(|value| value.to_string())),
        ("--rate", options.rate.map(|value| value.to_string())),
        ("--servers", list(&options.servers)),
    ];
    let program = testbed.program().display().to_string();
    let id = match study::is_file(&options.id) {
        // The guest has this machine's files, but not its folder.
        true => std::path::absolute(&options.id).map_err(LabError::file(Path::new(&options.id)))?,
        false => PathBuf::from(&options.id),
    };
    let command = [
        program,
        "lab".into(),
        "run".into(),
        id.display().to_string(),
    ];
    let given = flags
        .into_iter()
        .filter_map(|(name, value)| Some([name.to_owned(), value?]));
    Ok(command.into_iter().chain(given.flatten()).collect())
}

fn check(experiment: &Experiment, options: &RunOptions) -> Result<Checked, LabError> {
    let within = |what, value: Option<u64>, high| match value {
        Some(value) if !(1..=high).contains(&value) => Err(LabError::OutOfRange {
            what,
            value,
            low: 1,
            high,
        }),
        _ => Ok(value),
    };
    // What is before the bookstore's database are no servers.
    let servers = match experiment.kind {
        Kind::Bookstore(_) => &[],
        _ => &options.servers[..],
    };
    let servers = servers.iter().map(|name| name.parse());
    Ok(Checked {
        seconds: within("--seconds", options.seconds, SECONDS_MAX)?,
        seeds: within("--seeds", options.seeds, SEEDS_MAX)?,
        servers: servers.collect::<Result<_, _>>()?,
        rate: options.rate,
    })
}

/// Runs `job` on a thread of its own until it ends or SIGINT or SIGTERM comes. After a
/// signal the janitor takes away the job's processes under it.
fn until_signal(
    job: impl FnOnce() -> Result<(), LabError> + Send + 'static,
) -> Result<(), LabError> {
    let cannot = |error: std::io::Error| LabError::failed("waiting for signals", &error);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(cannot)?;
    let (done, ended) = tokio::sync::oneshot::channel();
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
        std::thread::spawn(move || done.send(job()));
        tokio::select! {
            result = ended => result.unwrap_or(Err(TestbedError::Interrupted.into())),
            _ = interrupt.recv() => Err(TestbedError::Interrupted.into()),
            _ = terminate.recv() => Err(TestbedError::Interrupted.into()),
        }
    })
}

#[cfg(test)]
mod tests;
