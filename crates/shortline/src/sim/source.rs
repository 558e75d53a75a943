//! Where `shortline sim` takes its arrivals from.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use shortline_load::trace::{Spread, TraceOptions, stream_trace};
use shortline_load::workload::{
    FILES_DEFAULT, Schedule, SiteFiles, stream_arrivals, world_cup_like,
};
use shortline_sched::Policy;
use shortline_sim::arrivals::{Gaps, Generated, Job, LoadProfile};
use shortline_sim::dist::Distribution;
use shortline_sim::model::Form;
use shortline_sim::results::PolicyResult;
use shortline_sim::{Phases, SimError, Simulation};

use super::Args;
use crate::error::CommandError;

/// Jobs counted in a replication of a steady load unless said otherwise.
const JOBS_USUAL: u64 = 500_000;
/// The most jobs a workload may be expected to have.
const JOBS_EXPECTED_MAX: f64 = 1e10;

/// Where the requests come from.
#[derive(Debug, clap::Args)]
pub struct Source {
    /// Trace of the requests: CSV `seconds,path,bytes`, a log in Common or Combined Log
    /// Format, or World Cup 98 records
    #[arg(long, value_name = "F", conflicts_with_all = ["workload", "dist"])]
    trace: Option<PathBuf>,

    /// Requests made up after paper 000, Table I: w1 to w10
    #[arg(long, value_name = "NAME", value_parser = Schedule::by_name)]
    workload: Option<Schedule>,

    // The forms of a distribution are listed once, beside their parser.
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

    /// Load that alternates: seconds of low and of high load, then the loads
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

/// Arrivals that are ready to be simulated.
pub struct Arrivals {
    made: Made,
    /// How many are counted; `None` for all.
    pub jobs: Option<u64>,
    /// How many are warm-up unless said otherwise.
    pub warmup_jobs_usual: u64,
    /// How many replications unless said otherwise.
    pub replications_usual: NonZeroU32,
    /// The phases of the load where it alternates, in seconds.
    pub overloads: Option<Phases>,
}

enum Made {
    Trace {
        path: PathBuf,
        options: TraceOptions,
        wire: shortline_sim::wire::WireModel,
    },
    Workload {
        schedule: Schedule,
        site: SiteFiles,
        seconds: u32,
        wire: shortline_sim::wire::WireModel,
    },
    Random(Generated),
}

/// Sizes by name or as a trace has them.
#[derive(Clone, Debug)]
enum Sizes {
    Named(Distribution),
    Trace(PathBuf),
}

impl Source {
    /// Makes the arrivals ready, and refuses what cannot be simulated.
    pub(super) fn arrivals(&self, args: &Args) -> Result<Arrivals, CommandError> {
        match (&self.trace, &self.workload, &self.dist) {
            (Some(path), ..) => Ok(Arrivals::of(Made::Trace {
                path: path.clone(),
                options: trace_options(args.seed),
                wire: args.wire(),
            })),
            (None, Some(schedule), None) => self.workload(schedule, args),
            (None, _, Some(sizes)) => self.random(sizes, args),
            (None, None, None) => Err(CommandError::usage(
                "no requests: one of --trace F, --workload NAME and --dist D is needed",
            )),
        }
    }

    fn workload(&self, schedule: &Schedule, args: &Args) -> Result<Arrivals, CommandError> {
        let site = world_cup_like(FILES_DEFAULT).map_err(CommandError::failure)?;
        let wire = args.wire();
        let files = site.files();
        let total: f64 = files
            .iter()
            .map(|file| wire.wire_bytes(file.bytes) as f64)
            .sum();
        let full_load_jobs_per_s = args.rate.bps() as f64 / 8.0 / (total / files.len() as f64);
        let jobs_expected = schedule.mean_load() * full_load_jobs_per_s * f64::from(self.seconds());
        self.check_expected(jobs_expected, args)?;
        Ok(Arrivals {
            overloads: Some(phases_of(schedule)?),
            ..Arrivals::of(Made::Workload {
                schedule: *schedule,
                site,
                seconds: self.seconds(),
                wire,
            })
        })
    }

    fn random(&self, sizes: &Sizes, args: &Args) -> Result<Arrivals, CommandError> {
        let sizes = sizes.distribution(args)?;
        let overloads = match (self.schedule, &self.workload) {
            (None, Some(schedule)) => Some(phases_of(schedule)?),
            (given, _) => given,
        };
        let profile = match (self.load, overloads) {
            (Some(load), _) => LoadProfile::steady(load).map_err(CommandError::usage)?,
            (None, Some(phases)) => LoadProfile::alternating(phases),
            (None, None) => {
                return Err(CommandError::usage(
                    "--dist: needs --load, --schedule or --workload beside it",
                ));
            }
        };
        let steady = self.load.is_some();
        if steady {
            check_moments(&sizes, &args.policy.0)?;
        }
        let setup_ns = args.setup.duration().as_nanos() as u64;
        let servers = args.servers.get();
        let full_load_jobs_per_s =
            Generated::jobs_per_s(&sizes, args.rate.bps(), servers, setup_ns)
                .map_err(CommandError::usage)?;
        let jobs = steady.then(|| self.jobs.unwrap_or(JOBS_USUAL));
        if !steady {
            let seconds = f64::from(self.seconds());
            self.check_expected(profile.mean_load() * full_load_jobs_per_s * seconds, args)?;
        }
        Ok(Arrivals {
            jobs,
            warmup_jobs_usual: jobs.map_or(0, |jobs| jobs / 10) + self.preload,
            replications_usual: const { NonZeroU32::new(4).expect("invariant: 4 is above 0") },
            overloads,
            ..Arrivals::of(Made::Random(Generated {
                gaps: Gaps::new(self.arrivals_c2).map_err(CommandError::usage)?,
                sizes,
                profile,
                full_load_jobs_per_s,
                preloaded: self.preload,
                end_s: if steady {
                    f64::INFINITY
                } else {
                    f64::from(self.seconds())
                },
            }))
        })
    }

    fn seconds(&self) -> u32 {
        self.seconds.unwrap_or(100)
    }

    fn check_expected(&self, jobs: f64, args: &Args) -> Result<(), CommandError> {
        if jobs > JOBS_EXPECTED_MAX {
            return Err(CommandError::Usage(format!(
                "--seconds {}: at {} that is more than {JOBS_EXPECTED_MAX:e} requests, the limit",
                self.seconds(),
                args.rate
            )));
        }
        Ok(())
    }
}

impl Arrivals {
    /// All arrivals counted, once.
    fn of(made: Made) -> Self {
        Self {
            made,
            jobs: None,
            warmup_jobs_usual: 0,
            replications_usual: NonZeroU32::MIN,
            overloads: None,
        }
    }

    /// Puts them through a simulation.
    pub(super) fn run(
        &self,
        simulation: &Simulation,
        replications: NonZeroU32,
    ) -> Result<Vec<PolicyResult>, CommandError> {
        let rate = shortline_sched::units::Rate::from_bps(simulation.rate_bps);
        let results = match &self.made {
            Made::Trace {
                path,
                options,
                wire,
            } => simulation.run(replications, |_| {
                let requests = stream_trace(path, options).map_err(source_error)?;
                Ok(requests.map(|request| {
                    let request = request.map_err(source_error)?;
                    Ok(Job {
                        at_ns: request.at_ns,
                        bytes: wire.wire_bytes(request.bytes) as f64,
                    })
                }))
            }),
            Made::Workload {
                schedule,
                site,
                seconds,
                wire,
            } => simulation.run(replications, |replication| {
                let length = Duration::from_secs(u64::from(*seconds));
                let seed = simulation.seed.wrapping_add(u64::from(replication));
                let wire_bytes = |body_bytes| wire.wire_bytes(body_bytes);
                let requests = stream_arrivals(schedule, rate, wire_bytes, length, seed, site);
                Ok(requests.map(|(at_ns, file)| {
                    Ok(Job {
                        at_ns,
                        bytes: wire.wire_bytes(file.bytes) as f64,
                    })
                }))
            }),
            Made::Random(generated) => simulation.run(replications, |replication| {
                Ok(generated.jobs(simulation.seed, replication).map(Ok))
            }),
        };
        results.map_err(|error| match error {
            SimError::Range { .. } | SimError::NoClients { .. } | SimError::FspServers { .. } => {
                CommandError::usage(error)
            }
            _ => CommandError::failure(error),
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.trace {
            return write!(f, "{}", path.display());
        }
        let sizes = match &self.dist {
            Some(Sizes::Named(sizes)) => format!("{sizes} "),
            Some(Sizes::Trace(path)) => format!("sizes of {} ", path.display()),
            None => String::new(),
        };
        match (self.load, self.schedule, &self.workload) {
            (Some(load), ..) => write!(f, "{sizes}at load {load}"),
            (_, Some(phases), _) => write!(f, "{sizes}at {phases}"),
            (.., Some(schedule)) if sizes.is_empty() => f.write_str(schedule.name),
            (.., Some(schedule)) => write!(f, "{sizes}at {}", schedule.name),
            _ => f.write_str(sizes.trim()),
        }
    }
}

impl Sizes {
    fn distribution(&self, args: &Args) -> Result<Distribution, CommandError> {
        let path = match self {
            Sizes::Named(sizes) => return Ok(sizes.clone()),
            Sizes::Trace(path) => path,
        };
        let wire = args.wire();
        let requests = stream_trace(path, &trace_options(None)).map_err(CommandError::failure)?;
        let mut failed = None;
        let sizes = requests.map_while(|request| match request {
            Ok(request) => Some(wire.wire_bytes(request.bytes) as f64),
            Err(error) => {
                failed = Some(error);
                None
            }
        });
        let found = Distribution::empirical(sizes);
        match failed {
            Some(error) => Err(CommandError::failure(error)),
            None => {
                found.map_err(|error| CommandError::Failure(format!("{}: {error}", path.display())))
            }
        }
    }
}

impl FromStr for Sizes {
    type Err = shortline_sim::dist::DistError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("trace:") {
            Some(path) => Ok(Sizes::Trace(path.into())),
            None => text.parse().map(Sizes::Named),
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

/// A mean that is infinite cannot be simulated: every run would find another one.
fn check_moments(sizes: &Distribution, policies: &[Policy]) -> Result<(), CommandError> {
    let infinite = |policy: &&Policy| Form::of(**policy).is_some_and(Form::needs_second_moment);
    match policies.iter().find(infinite) {
        Some(policy) if sizes.moment(2).is_infinite() => {
            Err(CommandError::usage(SimError::InfiniteVariance {
                policy: policy.to_string(),
                sizes: sizes.to_string(),
            }))
        }
        _ => Ok(()),
    }
}

/// A trace is read a piece at a time, so it may be of any length.
fn trace_options(seed: Option<u64>) -> TraceOptions {
    TraceOptions {
        requests_max: usize::MAX,
        spread: seed.map_or(Spread::Even, |seed| Spread::Random { seed }),
        ..TraceOptions::default()
    }
}

fn source_error(error: impl ToString) -> SimError {
    SimError::Source(error.to_string())
}
