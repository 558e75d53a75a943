//! Where `shortline sim` takes its arrivals from.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use shortline_load::trace::{Spread, TraceOptions, name_of};
use shortline_load::workload::{Schedule, SiteFiles, SiteName, Workload, stream_arrivals};
use shortline_sched::Policy;
use shortline_sim::arrivals::{Gaps, Generated, Job, LoadProfile};
use shortline_sim::dist::Distribution;
use shortline_sim::model::Form;
use shortline_sim::results::PolicyResult;
use shortline_sim::trust::{Doubt, Run, doubts};
use shortline_sim::{Phases, SimError, Simulation};

use super::Args;
use super::sizes::Sizes;
use crate::trace;
use shortline_command::CommandError;

/// The default number of jobs counted in a replication of a steady load.
const JOBS_USUAL: u64 = 500_000;
/// The most jobs that a workload may be expected to have.
const JOBS_EXPECTED_MAX: f64 = 1e10;

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

/// Arrivals that are ready to be simulated.
pub struct Arrivals {
    made: Made,
    /// The number of jobs counted; `None` for all.
    pub jobs: Option<u64>,
    /// The default number of warm-up jobs.
    pub warmup_jobs_usual: u64,
    /// The default number of replications.
    pub replications_usual: NonZeroU32,
    /// The phases of an alternating load, in seconds.
    pub overloads: Option<Phases>,
}

enum Made {
    Trace {
        path: PathBuf,
        options: TraceOptions,
        wire: shortline_sim::wire::WireModel,
    },
    Workload {
        workload: Workload,
        site: SiteFiles,
        seconds: u32,
        wire: shortline_sim::wire::WireModel,
    },
    Random(Generated),
}

impl Source {
    /// The steady load, if it is one.
    pub fn load(&self) -> Option<f64> {
        self.load
    }

    /// Prepares the arrivals, and refuses what cannot be simulated.
    pub(super) fn arrivals(&self, args: &Args) -> Result<Arrivals, CommandError> {
        match (&self.trace, &self.workload, &self.dist) {
            (Some(path), ..) => Ok(Arrivals::of(Made::Trace {
                path: path.clone(),
                options: trace_options(args.seed),
                wire: args.wire(),
            })),
            (None, Some(workload), None) => self.workload(workload, args),
            (None, _, Some(sizes)) => self.random(sizes, args),
            (None, None, None) => Err(CommandError::usage(
                "no requests: one of --trace F, --workload NAME and --dist D is needed",
            )),
        }
    }

    /// The bytes the link carries for a response of this many bytes.
    pub(super) fn bytes_on_the_link(&self, bytes: u64, args: &Args) -> u64 {
        match self.dist {
            Some(_) => bytes,
            None => args.wire().wire_bytes(bytes),
        }
    }

    fn workload(&self, workload: &Workload, args: &Args) -> Result<Arrivals, CommandError> {
        let site = workload.site.site();
        let wire = args.wire();
        let mean_bytes = site.mean_wire_bytes(|body_bytes| wire.wire_bytes(body_bytes));
        let full_load_jobs_per_s = args.rate.bps() as f64 / 8.0 / mean_bytes;
        let load = workload.schedule.mean_load();
        self.check_expected(
            load * full_load_jobs_per_s * f64::from(self.seconds()),
            args,
        )?;
        Ok(Arrivals {
            overloads: alternating(workload),
            ..Arrivals::of(Made::Workload {
                workload: workload.clone(),
                site,
                seconds: self.seconds(),
                wire,
            })
        })
    }

    fn random(&self, sizes: &Sizes, args: &Args) -> Result<Arrivals, CommandError> {
        let sizes = sizes.distribution(args)?;
        let overloads = match (self.schedule, &self.workload) {
            (None, Some(workload)) => Some(phases_beside_sizes(workload)?),
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
    /// Counts all arrivals, in one replication.
    fn of(made: Made) -> Self {
        Self {
            made,
            jobs: None,
            warmup_jobs_usual: 0,
            replications_usual: NonZeroU32::MIN,
            overloads: None,
        }
    }

    /// Reasons not to trust the result, as far as the arrivals show.
    pub(super) fn doubts(&self, replications: NonZeroU32) -> Vec<Doubt> {
        let Made::Random(generated) = &self.made else {
            return Vec::new();
        };
        let steady_load = self.jobs.map(|_| generated.profile.mean_load());
        let jobs_expected =
            generated.profile.mean_load() * generated.full_load_jobs_per_s * generated.end_s;
        let run = Run {
            sizes: &generated.sizes,
            load: steady_load,
            arrivals_c2: generated.gaps.c2(),
            jobs: self.jobs.map_or(jobs_expected, |jobs| jobs as f64),
            replications: replications.get(),
        };
        doubts(&run)
    }

    /// Runs them through a simulation.
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
                let requests = trace::requests(path, options).map_err(source_error)?;
                Ok(requests.map(|request| {
                    let request = request.map_err(source_error)?;
                    Ok(Job {
                        at_ns: request.at_ns,
                        bytes: wire.wire_bytes(request.bytes) as f64,
                    })
                }))
            }),
            Made::Workload {
                workload,
                site,
                seconds,
                wire,
            } => simulation.run(replications, |replication| {
                let length = Duration::from_secs(u64::from(*seconds));
                let seed = simulation.seed.wrapping_add(u64::from(replication));
                let wire_bytes = |body_bytes| wire.wire_bytes(body_bytes);
                let requests =
                    stream_arrivals(&workload.schedule, rate, wire_bytes, length, seed, site);
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

/// The phases of a workload that alternates between low and high and has a mean below 1.
fn alternating(workload: &Workload) -> Option<Phases> {
    match workload.schedule.phases() {
        [low, high] => Phases::new(low.length_s, high.length_s, low.load, high.load).ok(),
        _ => None,
    }
}

/// The same for a workload whose sizes are given separately.
fn phases_beside_sizes(workload: &Workload) -> Result<Phases, CommandError> {
    let phases = alternating(workload).filter(|_| workload.site == SiteName::WorldCup);
    phases.ok_or_else(|| {
        CommandError::Usage(format!(
            "--workload {workload}: with --dist want no site and two phases, the low load \
             first, the mean load below 1"
        ))
    })
}

/// Refuses an infinite mean. It cannot be simulated: every run would find another value.
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

/// A trace is read piece by piece, so it may be of any length.
pub(super) fn trace_options(seed: Option<u64>) -> TraceOptions {
    TraceOptions {
        requests_max: usize::MAX,
        spread: seed.map_or(Spread::Even, |seed| Spread::Random { seed }),
        ..TraceOptions::default()
    }
}

fn source_error(error: impl ToString) -> SimError {
    SimError::Source(error.to_string())
}
