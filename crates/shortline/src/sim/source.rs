//! Where `shortline sim` takes its arrivals from.

use std::fmt;
use std::path::PathBuf;

use shortline_load::input::name_of;
use shortline_load::workload::{Schedule, Workload};
use shortline_scenario::{
    self as scenario, JOBS_USUAL, Random, Requests, TraceFile, Traffic, trace_options,
};
use shortline_sim::Phases;
use shortline_sim::arrivals::Gaps;
use shortline_sim::dist::Distribution;

use super::Args;
use super::sizes::Sizes;
use shortline_command::CommandError;

/// Where the requests come from.
#[derive(Debug, clap::Args)]
pub struct Source {
    /// Trace of the requests: CSV `seconds,path,bytes`, a log in Common or Combined Log Format, or
    /// World Cup 98 records, each optionally packed with gzip; - is standard input. Unreadable
    /// lines are skipped and counted
    #[arg(long, value_name = "F", conflicts_with_all = ["workload", "dist"])]
    trace: Option<PathBuf>,

    /// Generated requests: w1 to w10 (Table I of paper 000), 1.4 (a constant load) or
    /// 25s@0.2,25s@1.2, on a site like the World Cup's or another, as in nasa:w1. Sites: world-cup,
    /// nasa, surge-001, surge-003, surge-004
    #[arg(long, value_name = "[SITE:]S")]
    workload: Option<Workload>,

    // The forms of a distribution are listed only once, beside their parser.
    #[arg(long, value_name = "D", help = format!(
        "Sizes in bytes on the link: {}, or trace:F for those of a trace; with --load, \
         --schedule or --workload",
        Distribution::FORMS
    ))]
    dist: Option<Sizes>,

    /// Steady load, above 0 and below 1
    #[arg(
        long,
        value_name = "RHO",
        requires = "dist",
        conflicts_with_all = ["trace", "workload", "schedule", "seconds"],
        allow_negative_numbers = true
    )]
    load: Option<f64>,

    /// Alternating load: seconds of low and of high load, then the two loads
    #[arg(
        long,
        value_name = "LOW_S,HIGH_S,LOW,HIGH",
        requires = "dist",
        conflicts_with_all = ["trace", "workload"],
        allow_hyphen_values = true
    )]
    schedule: Option<Phases>,

    /// How long a workload or schedule lasts, in seconds [default: 100]
    #[arg(
        long,
        value_name = "S",
        conflicts_with = "trace",
        value_parser = clap::value_parser!(u32).range(1..=86_400)
    )]
    seconds: Option<u32>,

    /// Jobs to count in each replication of a steady load, after the warm-up
    /// [default: 500000]
    #[arg(long, value_name = "N", requires = "load", value_parser = clap::value_parser!(u64).range(1..))]
    jobs: Option<u64>,

    /// Jobs in the system at the start, before any arrives
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        requires = "dist",
        conflicts_with = "trace"
    )]
    preload: u64,

    /// C² (squared coefficient of variation) of the times between arrivals; 1 is Poisson
    #[arg(
        long,
        value_name = "C2",
        default_value_t = 1.0,
        requires = "dist",
        conflicts_with = "trace",
        allow_negative_numbers = true
    )]
    arrivals_c2: f64,
}

impl Args {
    /// Where the jobs come from.
    ///
    /// # Errors
    /// Flags that say nothing, or that do not fit each other; a trace of sizes that cannot be read.
    pub fn scenario_source(&self) -> Result<scenario::Source, CommandError> {
        let source = &self.source;
        match (&source.trace, &source.workload, &source.dist) {
            (Some(path), ..) => Ok(scenario::Source::Trace(TraceFile {
                path: path.clone(),
                options: trace_options(self.seed),
                wire: self.wire(),
            })),
            (None, Some(workload), None) => Ok(scenario::Source::Requests(Requests {
                workload: workload.clone(),
                seconds: source.seconds(),
                wire: self.wire(),
            })),
            (None, _, Some(sizes)) => source.random(sizes, self).map(scenario::Source::Random),
            (None, None, None) => Err(CommandError::usage(
                "no requests: one of --trace F, --workload NAME and --dist D is needed",
            )),
        }
    }
}

impl Source {
    /// The steady load, if it is one.
    pub fn load(&self) -> Option<f64> {
        self.load
    }

    fn random(&self, sizes: &Sizes, args: &Args) -> Result<Random, CommandError> {
        let sizes = sizes.distribution(args)?;
        let phases = match (self.schedule, &self.workload) {
            (None, Some(workload)) => Some(scenario::phases(workload).map_err(|error| {
                CommandError::Usage(format!("--dist with --workload: {error}"))
            })?),
            (given, _) => given,
        };
        let traffic = match (self.load, phases) {
            (Some(load), _) => Traffic::Steady {
                load,
                jobs: self.jobs.unwrap_or(JOBS_USUAL),
            },
            (None, Some(phases)) => Traffic::Alternating {
                phases,
                seconds: self.seconds(),
            },
            (None, None) => {
                return Err(CommandError::usage(
                    "--dist: needs --load, --schedule or --workload beside it",
                ));
            }
        };
        Ok(Random {
            sizes,
            traffic,
            gaps: Gaps::new(self.arrivals_c2).map_err(CommandError::usage)?,
            preloaded: self.preload,
        })
    }

    fn seconds(&self) -> u32 {
        self.seconds.unwrap_or(100)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.trace {
            return write!(f, "{}", name_of(path).display());
        }
        let sizes = match &self.dist {
            Some(Sizes::Named(sizes)) => format!("{sizes} "),
            Some(Sizes::Trace(path)) => format!("sizes of {} ", name_of(path).display()),
            None => String::new(),
        };
        match (self.load, self.schedule, &self.workload) {
            (Some(load), ..) => write!(f, "{sizes}at load {load}"),
            (_, Some(phases), _) => write!(f, "{sizes}at {phases}"),
            (.., Some(workload)) if sizes.is_empty() => write!(f, "{workload}"),
            (.., Some(workload)) => write!(f, "{sizes}at {workload}"),
            _ => f.write_str(sizes.trim()),
        }
    }
}

/// The phases of a workload, in seconds.
///
/// # Errors
/// None for those of Table I.
pub fn phases_of(schedule: &Schedule) -> Result<Phases, CommandError> {
    Phases::new(
        schedule.low_s,
        schedule.high_s,
        schedule.low_load,
        schedule.high_load,
    )
    .map_err(CommandError::usage)
}
