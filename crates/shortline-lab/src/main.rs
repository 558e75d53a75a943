//! `shortline-lab`, which `shortline lab` starts: runs experiments beside nginx and Apache, and reports on them.
#![forbid(unsafe_code)]

mod simulation;

use std::io::{BufReader, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use shortline_command::output::print;
use shortline_command::{CommandError, Ended, Unknown, exit_code, log, parse};
use shortline_lab::{LabError, RunOptions, results_page};
use shortline_sched::units::Rate;
use shortline_testbed::attacker;
use shortline_testbed::bed::BedKind;
use shortline_testbed::guest::kernel;
use shortline_testbed::janitor;
use shortline_testbed::wan::relay;

use simulation::What;

const EXAMPLES: &str = "\
Examples:
  shortline lab run demo --out demo
  sudo shortline lab run w1 --seeds 5 --out w1
  sudo shortline lab run w1 --servers srpt,nginx --seconds 50
  shortline lab show w1 > mine.toml
  sudo shortline lab run mine.toml
  shortline lab report w1
  shortline lab report lab-results";

/// Compares servers and policies in experiments.
#[derive(Debug, Parser)]
#[command(
    name = "shortline lab",
    bin_name = "shortline lab",
    version,
    propagate_version = true
)]
#[command(after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Name every experiment: its figures, what they claim, and how long it takes
    List,
    /// Print the file of a study, to copy and change: `lab show w1 > mine.toml`, then
    /// `lab run mine.toml`
    Show {
        /// Which experiment: `lab list` names them
        experiment: String,
    },
    /// Run an experiment, as far as it is not kept yet, and report on it; exit code 3 if one of its
    /// runs is void
    Run(Run),
    /// Report on kept results again: text, report.html, its data as CSV in report/
    ///
    /// Of a folder whose sub-folders have results, report on each of them, and write what became of
    /// the papers' claims as claims.html and claims.md. Why a claim holds or not is put below it from
    /// why.md in that folder: lines `## FIGURE`, named as `lab list` does, each with paragraphs below.
    Report {
        /// The folder that `lab run` wrote, or one with such folders in it
        folder: PathBuf,
    },
    /// Put two runs of `versus` side by side: kept, now, difference; exit code 1 if a row has lost more
    /// than 5 % of its ratio to the best other server
    Compare {
        /// The folder of the run to compare with
        kept: PathBuf,
        /// The folder of the run that is judged
        now: PathBuf,
    },
    /// Run the server or the gate in simulated worlds, each drawn from a seed, and look after every
    /// event whether everything holds; exit code 1 if it does not
    ///
    /// A world has clients, backends or a database, a disk and a network, and all that can go wrong with
    /// them. A seed goes the same way each time.
    Simulate(Simulate),
    /// Make docs/results/README.md, the README's figures and the drawings of targets from
    /// docs/results/results.toml
    Results {
        /// Write nothing; fail if one of them is not what the entries make
        #[arg(long)]
        check: bool,
        /// The project's folder
        #[arg(long, value_name = "DIR", default_value = ".")]
        root: PathBuf,
    },
    /// The kernel of the beds `uml` and `virtual`
    Kernel {
        #[command(subcommand)]
        command: KernelCommand,
    },
    /// Undo what a lab made, when it ends (the lab starts this itself)
    #[command(hide = true)]
    Janitor,
    /// Emulate the networks of a bed (the lab starts this itself)
    #[command(hide = true)]
    Wan {
        /// What to emulate, JSON
        config: PathBuf,
    },
    /// Attack a server of a bed (the lab starts this itself)
    #[command(hide = true)]
    Attacker {
        /// What to do, JSON
        config: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
enum KernelCommand {
    /// Build it from Debian's linux-source-6.1 into the user's cache; about 5 minutes, once
    Build,
}

#[derive(Debug, clap::Args)]
struct Run {
    /// Which experiment: `lab list` names them; or the file of a study of your own, FILE.toml
    experiment: String,
    /// Where to keep results and report; what is kept there is not run again [default: lab-results/EXPERIMENT]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How long requests arrive, or a measurement takes
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// The servers, in turn: srpt, fair and the other policies (ours, paced),
    /// POLICY-aging-X, kernel-bands and kernel-quickfix (the kernel's bands), writers-POLICY (001's server), slots, off, nginx,
    /// apache; in 002's what is before the database: none, fifo, sjf, sjf-aging-X, or a
    /// database alone
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    servers: Vec<String>,
    /// How many seeds of arrivals, or rounds of a measurement
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// The uplink's rate
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Which kernel has the bed: native (this one, as root), uml (one that runs as a process,
    /// without root), virtual (the same in virtual time, however busy the machine is)
    #[arg(long, value_name = "BED", default_value_t)]
    bed: BedKind,
}

#[derive(Debug, clap::Args)]
struct Simulate {
    /// What lives in the worlds
    #[arg(default_value = "server")]
    what: What,
    /// One seed alone, with a trace of what happens in it
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "seeds", "seconds"])]
    seed: Option<u64>,
    /// The first of many seeds
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// How many seeds; without a number, as many as there is time for
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// How long to go on [default: 60, or until all seeds are done]
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
}

/// The rooms that say something while an experiment goes on. The servers' own log would drown it.
const ROOMS: [&str; 4] = [
    "shortline_lab",
    "shortline_testbed",
    "shortline_load",
    "shortline_bookstore",
];

/// What is to be typed instead of a word.
fn meant(unknown: Unknown<'_>) -> Option<String> {
    if unknown.word == "<EXPERIMENT>" {
        return Some("`shortline lab list` names them, such as demo".to_owned());
    }
    let is_experiment = unknown.command.is_empty() && shortline_lab::show(unknown.word).is_ok();
    is_experiment.then(|| format!("shortline lab run {}", unknown.word))
}

fn main() -> ExitCode {
    log::start_for_tools(&ROOMS);
    let ran = parse::<Cli>(meant).and_then(|cli| run(cli.command).map_err(Ended::Error));
    exit_code(ran)
}

fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::List => print(&shortline_lab::list()),
        Command::Show { experiment } => print(shortline_lab::show(&experiment).map_err(failed)?),
        Command::Run(asked) => run_and_report(&asked.into()),
        Command::Report { folder } => print(&shortline_lab::report(&folder).map_err(failed)?),
        Command::Compare { kept, now } => compare(&kept, &now),
        Command::Simulate(asked) => simulate(&asked),
        Command::Results { check, root } => make_results(&root, check),
        Command::Kernel {
            command: KernelCommand::Build,
        } => {
            let kernel = kernel::build().map_err(|error| failed(error.into()))?;
            print(&format!("{}\n", kernel.display()))
        }
        Command::Janitor => clean_up(),
        Command::Attacker { config } => {
            let report = attacker::run(&config).map_err(|error| failed(error.into()))?;
            print(&format!("{report}\n"))
        }
        Command::Wan { config } => {
            let report = relay::run(&config).map_err(|error| failed(error.into()))?;
            print(&format!("{report}\n"))
        }
    }
}

fn simulate(asked: &Simulate) -> Result<(), CommandError> {
    match asked.seed {
        Some(seed) => simulation::trace(asked.what, seed),
        None => simulation::many(asked.what, asked.from, asked.seeds, asked.seconds),
    }
}

/// Runs an experiment and prints its report. Some of its runs may be void.
fn run_and_report(options: &RunOptions) -> Result<(), CommandError> {
    let report = shortline_lab::run(options).map_err(failed)?;
    print(&report.text)?;
    match report.void_runs {
        0 => Ok(()),
        1 => Err(CommandError::Void("1 run, see the report".into())),
        runs => Err(CommandError::Void(format!("{runs} runs, see the report"))),
    }
}

fn compare(kept: &Path, now: &Path) -> Result<(), CommandError> {
    let found = shortline_lab::compare(kept, now).map_err(|error| failed(error.into()))?;
    print(&found.text)?;
    match found.lost.as_slice() {
        [] => Ok(()),
        lost => Err(CommandError::Failure(lost.join("; "))),
    }
}

/// Makes or checks the pages and drawings of the results.
fn make_results(root: &Path, check: bool) -> Result<(), CommandError> {
    if check {
        return results_page::check(root).map_err(CommandError::failure);
    }
    let changed = results_page::write(root).map_err(CommandError::failure)?;
    let lines = changed.iter().map(|path| format!("{}\n", path.display()));
    print(&lines.collect::<String>())
}

impl From<Run> for RunOptions {
    fn from(run: Run) -> Self {
        Self {
            id: run.experiment,
            out: run.out,
            seconds: run.seconds,
            servers: run.servers,
            seeds: run.seeds,
            rate: run.rate,
            bed: run.bed,
        }
    }
}

fn failed(error: LabError) -> CommandError {
    CommandError::told(error.is_usage(), error)
}

fn clean_up() -> Result<(), CommandError> {
    let left = janitor::clean_up_at_end_of(BufReader::new(stdin()));
    if left.is_empty() {
        Ok(())
    } else {
        Err(CommandError::Failure(format!(
            "could not clean up after the lab: {}",
            left.join("; ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
