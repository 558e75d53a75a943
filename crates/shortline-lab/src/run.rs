//! Runs an experiment to its end or to a signal, and reports on a folder of results.
//!
//! | part | what it does |
//! |---|---|
//! | `study` | the interface that each kind of experiment implements |
//! | `uplink`, `bookstore`, `application`, `adversary`, `throughput`, `memory` | one kind each |
//! | `listening` | starts a program, and waits until it listens |
//! | `made_with` | the commit and the kernel, for each result |
//! | `folder`, `pass` | a report on a folder of results, and on several of them in one |

mod adversary;
mod application;
mod bookstore;
mod folder;
mod listening;
mod made_with;
mod memory;
pub mod pass;
mod study;
mod throughput;
mod uplink;
mod versus;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use shortline_sched::units::Rate;
use shortline_testbed::bed::BedKind;
use shortline_testbed::{Testbed, TestbedError, command, guest};
use tokio::signal::unix::{SignalKind, signal};

use self::study::{Choices, Job};
use crate::LabError;
use crate::papers::catalogue::{self, UnknownExperiment, all};
use crate::study::claim::Figure;
use crate::study::design::Experiment;
use crate::study::plan::Plan;
use crate::study::{file, kept};

/// What to run, from the command line.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Which experiment: its id, or a file.
    pub id: String,
    /// Where the results go. By default `lab-results/ID`.
    pub out: Option<PathBuf>,
    /// How long arrivals (or a measurement) last, in seconds.
    pub seconds: Option<u64>,
    /// The servers, in turn.
    pub servers: Vec<String>,
    /// How many seeds (or rounds).
    pub seeds: Option<u64>,
    /// The uplink's rate.
    pub rate: Option<Rate>,
    /// The kernel that the bed is made in.
    pub bed: BedKind,
}

/// The report on an experiment that was run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The report, text.
    pub text: String,
    /// How many of the runs in it are void.
    pub void_runs: usize,
}

/// All experiments, with a line for each figure and table that they reproduce: the experiment's id, the
/// figure, its claim, and how long it takes.
pub fn list() -> String {
    let experiments = all();
    let lines: Vec<(&str, &str, String)> = experiments
        .iter()
        .flat_map(|experiment| {
            let length = experiment.kind.study().length();
            let line = move |figure: &'static Figure| {
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

/// Runs an experiment and returns its report. Runs that the results' folder keeps whole are not repeated.
/// SIGINT and SIGTERM end it. When this returns, only the results remain of what it made.
///
/// # Errors
/// If an option is wrong, a tool or privilege is missing, or a server or generator fails.
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
        folder::write_name(testbed.out(), &id, own.as_deref())?;
        (prepared.job)(&testbed)
    });
    janitor.clean_up();
    result.map_err(|error| with_what_is_kept(error, &out))?;
    let (_, told) = folder::report(&out)?;
    Ok(Report {
        text: told.text,
        void_runs: told.void_runs,
    })
}

/// The text of a study's file in the catalogue, for a user to copy and change.
///
/// # Errors
/// If no study has that name.
pub fn show(id: &str) -> Result<&'static str, LabError> {
    catalogue::text_of(id).ok_or_else(|| UnknownExperiment(id.into()).into())
}

/// An experiment of the catalogue, or one from a file with the file's text.
fn named(name: &str) -> Result<(Experiment, Option<String>), LabError> {
    if !file::is_file(name) {
        return Ok((Experiment::by_id(name)?, None));
    }
    let (experiment, text) = file::read(Path::new(name), |id| catalogue::text_of(id).is_some())?;
    Ok((experiment, Some(text)))
}

/// The error, with a note of the runs that are kept.
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

/// An experiment whose options have been checked.
struct Prepared {
    needs_root: bool,
    job: Job,
}

/// Checks all options before anything is made.
fn prepare(experiment: &Experiment, options: &RunOptions) -> Result<Prepared, LabError> {
    let (id, study) = (&experiment.id, experiment.kind.study());
    let servers = options.servers.clone();
    let asked = Choices::new(options.seconds, options.seeds, servers, options.rate)?;
    if !study.has_rate() && options.rate.is_some() {
        return Err(LabError::NoRate(id.clone()));
    }
    if !study.runs_in_guests() && options.bed != BedKind::Native {
        return Err(LabError::NoBed(id.clone()));
    }
    let job = study.job(id, &asked)?;
    if let Some(needs) = experiment.needs()
        && !options.bed.sets_initial_rto()?
    {
        return Err(LabError::Needs {
            experiment: id.clone(),
            needs,
        });
    }
    if let Some(time) = options.bed.guest_time() {
        return Ok(Prepared {
            needs_root: false,
            job: in_guest(time, study.guest_memory_mib(), options),
        });
    }
    let needs_root = study.has_bed();
    if needs_root {
        command::find("ip", "iproute2")?;
    }
    Ok(Prepared { needs_root, job })
}

/// The same experiment on a guest's native bed.
fn in_guest(time: guest::Time, memory_mib: u32, options: &RunOptions) -> Job {
    let options = options.clone();
    Box::new(move |testbed| {
        folder::write_bed(testbed.out(), options.bed)?;
        let words = guest_words(testbed, &options)?;
        guest::run(testbed, time, memory_mib, &words)?;
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
    let id = match file::is_file(&options.id) {
        // The guest has this machine's files, but another working directory.
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

/// Runs `job` on its own thread until it ends, or until SIGINT or SIGTERM arrives. After a signal the
/// janitor ends the job's processes.
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
