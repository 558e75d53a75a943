//! The `shortline` command: its subcommands, exit codes and error output.
//!
//! Exit codes: 0 success, 2 bad usage, 3 a void run, 1 anything else. An error is one line on
//! standard error that begins with `shortline: `.
#![forbid(unsafe_code)]

mod elsewhere;
mod file;
mod gain;
mod gate;
#[cfg(test)]
mod generated;
mod handover;
mod history;
mod lab;
mod load;
mod model;
mod page;
mod serve;
mod sim;
mod trace;
mod uplink;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use shortline_command::{Ended, exit_code, log, parse};

/// It returns memory to the system when connections become idle, unlike the C library's, and takes
/// less time for the small pieces of a request.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Serves files, shortest remaining response first; queues in front of databases, shortest request
/// first.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  shortline serve /srv/www --uplink 100mbit
  shortline serve /srv/www --listen 0.0.0.0:443 --tls-cert site.crt --tls-key site.key
  shortline gain /var/log/nginx/access.log* --uplink 100mbit
  shortline load --target http://127.0.0.1:8080 --trace day.csv --out results.csv
  shortline sim --trace day.csv --rate 10mbit --policy fair,srpt
  shortline model --dist exp:1 --load 0.9 --policy fair,srpt
  shortline lab run demo --out demo
  shortline gate postgres --listen 127.0.0.1:6432 --upstream 127.0.0.1:5432

Each command has its own --help.

Exit codes:
  0 success   1 failure   2 bad usage   3 done, but the run is void: load and lab run say why";

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the files below a folder
    Serve(Box<serve::Args>),
    /// Send the requests of a trace or a generated workload to a server and report response times
    Load(Box<load::Args>),
    /// Install, remove or show the kernel's priority bands on an interface
    Uplink(Box<uplink::Args>),
    /// Compare servers and policies in experiments
    Lab(lab::Args),
    /// Simulate what policies would do with a trace or with random arrivals
    Sim(Box<sim::Args>),
    /// Say what visitors would have gained, from your own access log, or a database's from its log
    Gain(Box<gain::Args>),
    /// Compute what theory expects of a queue
    Model(Box<model::Args>),
    /// Run a gate in front of a database or an application, so that it does the shortest requests
    /// first
    Gate(Box<gate::Args>),
}

fn main() -> ExitCode {
    exit_code(parse::<Cli>(elsewhere::meant).and_then(|cli| run(cli.command)))
}

/// What says something while a command is at work that ends by itself.
const TOOLS: [&str; 3] = ["shortline", "shortline_load", "shortline_gain"];

fn run(command: Command) -> Result<(), Ended> {
    if !matches!(command, Command::Serve(_) | Command::Gate(_)) {
        log::start_for_tools(&TOOLS);
    }
    let result = match command {
        Command::Serve(args) => serve::run(*args),
        Command::Load(args) => load::run(*args),
        Command::Uplink(args) => uplink::run(*args),
        Command::Lab(args) => lab::run(&args),
        Command::Sim(args) => sim::run(*args),
        Command::Gain(args) => gain::run(*args),
        Command::Model(args) => model::run(*args),
        Command::Gate(args) => gate::run(*args),
    };
    result.map_err(Ended::Error)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::CommandFactory;
    use shortline_command::in_one_line;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_documentation_names_every_option() {
        let configuration = include_str!("../../../docs/configuration.md");
        let simulation = include_str!("../../../docs/lab/simulate.md");
        let workloads = include_str!("../../../docs/lab/workloads.md");
        let gain = include_str!("../../../docs/gain.md");
        let gate = include_str!("../../../docs/gate.md");
        let cli = Cli::command();
        for (name, page) in [
            ("serve", configuration),
            ("uplink install", configuration),
            ("sim", simulation),
            ("model", simulation),
            ("gain", gain),
            ("load", workloads),
            ("gate", gate),
        ] {
            let mut words = name.split(' ');
            let command = words.try_fold(&cli, |command, word| command.find_subcommand(word));
            let command = command.unwrap();
            for option in command.get_arguments().filter_map(clap::Arg::get_long) {
                assert!(page.contains(&format!("`--{option}")), "{name} --{option}");
            }
        }
    }

    #[test]
    fn a_clap_error_becomes_one_line() {
        let error = Cli::try_parse_from(["shortline", "serve", "--polcy", "srpt"]).unwrap_err();
        let line = in_one_line(&error);
        assert!(!line.contains('\n'), "{line}");
        assert!(
            line.contains("--polcy") && line.contains("--policy"),
            "{line}"
        );
    }
}
