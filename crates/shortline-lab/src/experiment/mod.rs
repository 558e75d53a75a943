//! The experiments: what there is ([`ALL`]), and running one to its end or to a signal.

mod figures;
mod kept;
mod memory;
pub(crate) mod plan;
mod throughput;
mod uplink;
mod uplink_table;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shortline_sched::units::Rate;
use tokio::signal::unix::{SignalKind, signal};

use crate::bed::BedKind;
use crate::guest::{self, kernel::Time};
use crate::lab::Lab;
use crate::server::Server;
use crate::{LabError, command};
pub use plan::Variant;

/// The file that tells which experiment wrote a folder.
const NAME_FILE: &str = "experiment.txt";
/// The longest arrivals last, in seconds.
const SECONDS_MAX: u64 = 3600;
/// The most seeds or rounds.
const SEEDS_MAX: u64 = 100;

/// An experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name on the command line.
    pub id: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Response times over a saturated uplink.
    Uplink(Variant),
    /// Work per second of the server's processor time, without a bottleneck.
    Throughput,
    /// Resident memory with idle connections.
    Memory,
}

/// Every experiment.
pub const ALL: [Experiment; 11] = [
    experiment(
        "demo",
        "no root: an overload on loopback, fair and srpt beside the optimum",
        Kind::Uplink(plan::DEMO),
    ),
    experiment(
        "w1",
        "response times in the overload W1 of paper 000 at 10 Mbit/s",
        Kind::Uplink(plan::W1),
    ),
    experiment(
        "w1-k5",
        "W1 with 5 requests per connection",
        Kind::Uplink(plan::W1_K5),
    ),
    experiment("w1-tls", "W1 over TLS 1.3", Kind::Uplink(plan::W1_TLS)),
    experiment(
        "w1-h2",
        "W1 over HTTP/2 by prior knowledge",
        Kind::Uplink(plan::W1_H2),
    ),
    experiment(
        "w1-h2-shared",
        "W1 over 6 HTTP/2 connections that all requests share",
        Kind::Uplink(plan::W1_H2_SHARED),
    ),
    experiment(
        "w1-h2-tls",
        "W1 over HTTP/2 over TLS 1.3",
        Kind::Uplink(plan::W1_H2_TLS),
    ),
    experiment(
        "w1-100mbit",
        "W1 at 100 Mbit/s",
        Kind::Uplink(plan::W1_100MBIT),
    ),
    experiment(
        "w1-slots",
        "W1 where ours is not told the rate",
        Kind::Uplink(plan::W1_SLOTS),
    ),
    experiment(
        "throughput",
        "no root: requests and bytes per second of server processor time",
        Kind::Throughput,
    ),
    experiment(
        "memory",
        "no root: resident memory with 10,000 idle connections",
        Kind::Memory,
    ),
];

const fn experiment(id: &'static str, about: &'static str, kind: Kind) -> Experiment {
    Experiment { id, about, kind }
}

/// What to run, as the command line says it.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Which experiment.
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

impl Experiment {
    fn by_id(id: &str) -> Result<Self, LabError> {
        let found = ALL.into_iter().find(|experiment| experiment.id == id);
        found.ok_or_else(|| LabError::UnknownExperiment(id.into()))
    }

    fn needs_root(&self) -> bool {
        matches!(self.kind, Kind::Uplink(variant) if variant.needs_root())
    }

    fn length(&self) -> String {
        match self.kind {
            Kind::Uplink(variant) => {
                let servers = variant.servers.len();
                format!(
                    "{servers} servers, {} s each and what is left then",
                    variant.seconds
                )
            }
            Kind::Throughput => throughput::length(),
            Kind::Memory => "about 2 minutes".into(),
        }
    }
}

/// All experiments, one line each: id, what it shows, how long it takes.
pub fn list() -> String {
    let width = ALL
        .iter()
        .map(|experiment| experiment.id.len())
        .max()
        .unwrap_or(0);
    let mut list = String::new();
    for experiment in &ALL {
        let Experiment { id, about, .. } = experiment;
        // Writing to a string cannot fail.
        writeln!(list, "{id:<width$}  {about} ({})", experiment.length()).ok();
    }
    list
}

/// Runs an experiment and returns its report. SIGINT and SIGTERM end it; whatever it made
/// is gone in any case when this returns.
///
/// # Errors
/// A wrong option, a missing tool or privilege, a server or generator that fails.
pub fn run(options: &RunOptions) -> Result<String, LabError> {
    let experiment = Experiment::by_id(&options.id)?;
    let job = prepare(&experiment, options)?;
    if options.bed != BedKind::Native && !experiment.needs_root() {
        return Err(LabError::NoBed(experiment.id));
    }
    let here = options.bed == BedKind::Native;
    if here && experiment.needs_root() && !rustix::process::geteuid().is_root() {
        return Err(LabError::NotRoot(experiment.id));
    }
    let default_out = || Path::new("lab-results").join(experiment.id);
    let out = options.out.clone().unwrap_or_else(default_out);
    let lab = Lab::open(&out)?;
    let janitor = Arc::clone(lab.janitor());
    let guest_time = match options.bed {
        BedKind::Native => None,
        BedKind::Uml => Some(Time::Real),
        BedKind::Virtual => Some(Time::Virtual),
    };
    let options = options.clone();
    let result = until_signal(move || {
        let name_file = lab.out().join(NAME_FILE);
        fs::write(&name_file, experiment.id).map_err(LabError::file(&name_file))?;
        match guest_time {
            None => job(&lab),
            Some(time) => guest::run(&lab, time, &guest_words(&lab, &options)),
        }
    });
    janitor.clean_up();
    result?;
    report(&out)
}

/// The command that does the same on the guest's native bed.
fn guest_words(lab: &Lab, options: &RunOptions) -> Vec<String> {
    let mut words: Vec<String> = vec![
        lab.program().display().to_string(),
        "lab".into(),
        "run".into(),
        options.id.clone(),
        "--out".into(),
        lab.out().display().to_string(),
    ];
    let mut option = |name: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| [name.into(), value]));
    };
    option(
        "--seconds",
        options.seconds.map(|seconds| seconds.to_string()),
    );
    option("--seeds", options.seeds.map(|seeds| seeds.to_string()));
    option("--rate", options.rate.map(|rate| rate.to_string()));
    let servers = Some(options.servers.join(",")).filter(|servers| !servers.is_empty());
    option("--servers", servers);
    words
}

/// Prints again what the results in `folder` say.
///
/// # Errors
/// If the folder does not hold what `lab run` keeps.
pub fn report(folder: &Path) -> Result<String, LabError> {
    let name_file = folder.join(NAME_FILE);
    let id = fs::read_to_string(&name_file).map_err(LabError::file(&name_file))?;
    let experiment = Experiment::by_id(id.trim()).map_err(LabError::kept(&name_file))?;
    let text = match experiment.kind {
        Kind::Uplink(_) => uplink::report(folder, experiment.id)?,
        Kind::Throughput => throughput::report(folder)?,
        Kind::Memory => memory::report(folder)?,
    };
    let report_file = folder.join("report.txt");
    fs::write(&report_file, &text).map_err(LabError::file(&report_file))?;
    Ok(text)
}

type Job = Box<dyn FnOnce(&Lab) -> Result<(), LabError> + Send>;

/// Checks all options before anything is made.
fn prepare(experiment: &Experiment, options: &RunOptions) -> Result<Job, LabError> {
    let within = |what, value: Option<u64>, high| match value {
        Some(value) if !(1..=high).contains(&value) => Err(LabError::OutOfRange {
            what,
            value,
            low: 1,
            high,
        }),
        _ => Ok(value),
    };
    let seconds = within("--seconds", options.seconds, SECONDS_MAX)?;
    let seeds = within("--seeds", options.seeds, SEEDS_MAX)?;
    let servers = options
        .servers
        .iter()
        .map(|name| name.parse())
        .collect::<Result<Vec<Server>, _>>()?;
    if !matches!(experiment.kind, Kind::Uplink(_)) && options.rate.is_some() {
        return Err(LabError::NoRate(experiment.id));
    }
    match experiment.kind {
        Kind::Uplink(variant) => {
            let plan = plan::Plan::new(
                experiment.id,
                &variant,
                seconds,
                seeds,
                servers,
                options.rate,
            )?;
            if variant.needs_root() {
                command::find("ip", "iproute2")?;
            }
            Ok(Box::new(move |lab| uplink::run(lab, &variant, plan)))
        }
        Kind::Throughput => {
            let setup = throughput::Setup::new(seconds, seeds, &servers)?;
            Ok(Box::new(move |lab| throughput::run(lab, &setup)))
        }
        Kind::Memory => {
            let servers = memory::servers(&servers)?;
            Ok(Box::new(move |lab| memory::run(lab, &servers)))
        }
    }
}

/// Runs `job` on a thread of its own until it ends or SIGINT or SIGTERM comes. After a
/// signal the janitor takes away the job's processes under it.
fn until_signal(
    job: impl FnOnce() -> Result<(), LabError> + Send + 'static,
) -> Result<(), LabError> {
    let cannot = |error: std::io::Error| LabError::Command {
        command: "waiting for signals".into(),
        problem: error.to_string(),
    };
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
            result = ended => result.unwrap_or(Err(LabError::Interrupted)),
            _ = interrupt.recv() => Err(LabError::Interrupted),
            _ = terminate.recv() => Err(LabError::Interrupted),
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn error_of(options: RunOptions) -> LabError {
        run(&options).unwrap_err()
    }

    #[test]
    fn wrong_options_are_refused_before_anything_is_made() {
        let options = |id: &str| RunOptions {
            id: id.into(),
            out: Some("/no/such/place".into()),
            ..RunOptions::default()
        };
        let unknown = error_of(options("w11"));
        assert!(unknown.is_usage() && unknown.to_string().contains("`w11`"));
        let seconds = error_of(RunOptions {
            seconds: Some(0),
            ..options("w1")
        });
        assert_eq!(seconds.to_string(), "--seconds is 0: want 1 to 3600");
        let servers = error_of(RunOptions {
            servers: vec!["iis".into()],
            ..options("w1")
        });
        assert!(servers.is_usage() && servers.to_string().contains("`iis`"));
        let rate = error_of(RunOptions {
            rate: Some(Rate::from_bps(1)),
            ..options("memory")
        });
        assert!(rate.is_usage());
        let root = error_of(RunOptions {
            servers: vec!["nginx".into()],
            ..options("demo")
        });
        assert!(root.is_usage() && root.to_string().contains("`demo` cannot run `nginx`"));
    }

    #[test]
    fn the_list_names_every_experiment_in_a_line() {
        let list = list();
        assert_eq!(list.lines().count(), ALL.len());
        for (line, experiment) in list.lines().zip(&ALL) {
            assert!(line.starts_with(experiment.id), "{line}");
        }
    }
}
