//! `shortline sim`: what each policy would do with a trace's arrivals, or with random ones.
//!
//! A request of a trace or workload becomes a job of as many bytes as the link carries for it
//! ([`shortline_sim::wire`]). With `--dist`, sizes are already bytes on the link. All policies get
//! exactly the same arrivals. The table relates every mean to that under `srpt`, whether or not it
//! was asked for: it is the optimum, except under settings that disturb it. With
//! `--backend-capacity` the reference is the result without a gate. Times are in seconds in JSON
//! and CSV.

mod csv;
mod plot;
mod sizes;
mod source;
mod table;

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::str::FromStr;

use shortline_scenario::{self as scenario, Scenario, ScenarioError};
use shortline_sched::admission::Capacity;
use shortline_sched::dispatch::Rule;
use shortline_sched::units::{Rate, Size, Span};
use shortline_sched::{Aging, Growing, Policy, PolicyError, Urgency};
use shortline_sim::results::PolicyResult;
use shortline_sim::trust::Doubt;
use shortline_sim::wire::WireModel;
use shortline_sim::{
    Backend, ClientClass, Dispatch, Greedy, Impatience, SimError, Simulation, Thrash, UserGroup,
};

pub use self::source::phases_of;

use self::source::Source;
use shortline_command::CommandError;
use shortline_command::output::{
    check_one_on_standard_output, check_plot_file, check_writable, print_beside, results_json,
};

/// Flags of `shortline sim`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Source,

    /// Rate of the link, such as 10mbit
    #[arg(long)]
    rate: Rate,

    /// Policies to compare, separated by commas: srpt (the optimum), fair, fifo, sjf, psjf,
    /// bands (or bands:CUTOFF,... or bands:N), quickfix (or quickfix:SIZE), las, fsp, boost,
    /// gittins, shares; by round trip time, with --clients: swift, fcf, srrt, stert
    #[arg(long, value_name = "NAME,...", default_value = "srpt,fair")]
    policy: Policies,

    /// Serve overdue jobs first: a job is overdue X times its service time after its arrival
    #[arg(long, value_name = "X", conflicts_with = "growing")]
    aging: Option<Aging>,

    /// Raise priority with age: after X times its service time a job has the highest priority
    #[arg(long, value_name = "X")]
    growing: Option<Growing>,

    /// The number of servers of that rate. A job uses at most one; fsp needs exactly one
    #[arg(long, value_name = "K", default_value = "1")]
    servers: NonZeroU32,

    /// Give each server a queue of its own, and choose one at a job's arrival: round-robin, fewest-jobs or least-work
    #[arg(long, value_name = "RULE", conflicts_with_all = ["backend_capacity", "clients"])]
    dispatch: Option<Rule>,

    /// Keep servers' work of each size within G of another's where a server is chosen (guardrails); 1 is the tightest
    #[arg(long, value_name = "G", requires_all = ["dispatch", "load"], allow_negative_numbers = true)]
    guardrails: Option<f64>,

    /// Put a gate in front of servers that share: it admits this much estimated service at once (a
    /// time, auto or off). Policies fifo, sjf (with --aging), and fair for no gate
    #[arg(long, value_name = "TIME|auto|off", conflicts_with_all = ["clients", "growing"])]
    backend_capacity: Option<Capacity>,

    /// Lose the share FALL of the throughput for each job at once beyond KNEE, such as 20:0.02
    #[arg(long, value_name = "KNEE:FALL", requires = "backend_capacity")]
    backend_thrash: Option<Thrash>,

    /// Classes of clients by rate, round trip time and share, such as
    /// 56kbit/200ms*0.3,10mbit/20ms*0.7
    #[arg(long, value_name = "RATE/RTT*SHARE,...", value_delimiter = ',')]
    clients: Vec<ClientClass>,

    /// Users, all equally active, and how many clients they are if some share an address, such as
    /// 20,100/1 [default: each request is its own client]
    #[arg(long, value_name = "N[/CLIENTS],...", value_delimiter = ',')]
    users: Vec<UserGroup>,

    /// Add a client that always waits for N responses of this size, such as 64*1KB
    #[arg(long, value_name = "N*SIZE", conflicts_with = "backend_capacity")]
    greedy: Option<Greedy>,

    /// What a client may get in a row before it stands back (policy shares); with 0 none stands
    /// back
    #[arg(long, value_name = "SIZE", default_value = "128KiB")]
    burst: Size,

    /// Time from an arrival until its service can begin
    #[arg(long, value_name = "TIME", default_value = "0ms")]
    start_delay: Span,

    /// Work of every job in addition to its bytes
    #[arg(long, value_name = "TIME", default_value = "0ms")]
    setup: Span,

    /// Policies see size estimates with log-normal error: size * exp(SIGMA Z)
    #[arg(
        long,
        value_name = "SIGMA",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    estimate_sigma: f64,

    /// Time after which users give up and ask again
    #[arg(long, value_name = "TIME")]
    abort_after: Option<Span>,

    /// How many times a user asks again
    #[arg(long, value_name = "N", default_value_t = 0, requires = "abort_after")]
    retries: u32,

    /// The length of a turn where jobs take turns (bands, quickfix)
    #[arg(long, value_name = "SIZE", default_value = "4344")]
    quantum: Size,

    /// Seed of the random numbers. A trace with whole seconds spreads the requests of a second at
    /// random with a seed, evenly without one [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Jobs at the start that are not counted [default: a tenth of --jobs and all of
    /// --preload for a steady load, else 0]
    #[arg(long, value_name = "JOBS")]
    warmup: Option<u64>,

    /// Number of runs, each with other random numbers, on all cores [default: 4 with --dist, else
    /// 1]
    #[arg(long, value_name = "N", conflicts_with = "trace")]
    replications: Option<NonZeroU32>,

    /// Confidence of the intervals
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.99,
        allow_negative_numbers = true
    )]
    confidence: f64,

    /// Skip the starvation stretch against processor sharing, which is slow to compute
    #[arg(long)]
    no_stretch: bool,

    /// The most jobs in the system at once
    #[arg(long, value_name = "JOBS", default_value_t = 100_000_000)]
    jobs_in_system_max: usize,

    /// Print JSON, times in seconds
    #[arg(long)]
    json: bool,

    /// Write means, means by size, and the number in the system over time as CSV. With - they go to
    /// standard output and the table to standard error
    #[arg(long, value_name = "F.csv")]
    csv: Option<PathBuf>,

    /// Draw the results as SVG or as a page, by the file's ending. With - the SVG goes to standard
    /// output and the table to standard error
    #[arg(long, value_name = "F.svg|F.html")]
    plot: Option<PathBuf>,

    /// Bytes of body in a full packet
    #[arg(long, value_name = "BYTES", default_value_t = WireModel::default().segment_bytes)]
    wire_segment: NonZeroU64,

    /// Bytes the link carries for each packet of a response in addition to its body
    #[arg(long, value_name = "BYTES", default_value_t = WireModel::default().per_packet_bytes)]
    wire_per_packet: u64,

    /// Bytes the link carries for each request in addition to its body's packets: handshake,
    /// acknowledgements, head
    #[arg(long, value_name = "BYTES", default_value_t = WireModel::default().per_request_bytes)]
    wire_per_request: u64,
}

/// Policies separated by commas.
#[derive(Clone, Debug)]
struct Policies(Vec<Policy>);

impl FromStr for Policies {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        Policy::list(text).map(Self)
    }
}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line.
pub fn run(args: Args) -> Result<(), CommandError> {
    args.check_files()?;
    let asked = args.policy.0.len();
    let (results, warnings) = args.results()?;
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    if let Some(path) = &args.csv {
        csv::write(path, &results[..asked])?;
    }
    if let Some(path) = &args.plot {
        plot::draw(path, &args.title(), &results[..asked])?;
    }
    let text = if args.json {
        results_json(&results[..asked], &warnings)?
    } else {
        table::table(
            &args.title(),
            &results,
            asked,
            args.reference(),
            &args.users,
        )
    };
    print_beside(&[args.csv.as_deref(), args.plot.as_deref()], &text)
}

impl Args {
    /// Checks that the files written at the end can be written.
    fn check_files(&self) -> Result<(), CommandError> {
        let files = [
            ("--csv", self.csv.as_deref()),
            ("--plot", self.plot.as_deref()),
        ];
        check_one_on_standard_output(self.json, &files)?;
        if let Some(path) = &self.csv {
            check_writable("--csv", path)?;
        }
        self.plot.as_deref().map_or(Ok(()), check_plot_file)
    }

    /// The results of the policies asked for, in that order, then the reference that the table
    /// needs. Also the reasons, if any, why they should not be trusted.
    fn results(&self) -> Result<(Vec<PolicyResult>, Vec<String>), CommandError> {
        let mut policies = self.policy.0.clone();
        let (reference, _) = self.reference();
        if !self.json && !policies.contains(&reference) {
            policies.push(reference);
        }
        let source = self.scenario_source()?;
        let simulation = self.simulation(policies, &source);
        let scenario =
            Scenario::new(source, simulation, self.warmup).map_err(|error| match error {
                ScenarioError::Trace(_) | ScenarioError::Sizes { .. } => {
                    CommandError::failure(error)
                }
                ScenarioError::TooManyRequests { .. } => CommandError::Usage(format!("--{error}")),
                _ => CommandError::usage(error),
            })?;
        let ran = scenario.run(self.replications, self.policy.0.len(), |_| ());
        let outcome = ran.map_err(|error| match error {
            SimError::Range { .. } | SimError::NoClients { .. } | SimError::FspServers { .. } => {
                CommandError::usage(error)
            }
            _ => CommandError::failure(error),
        })?;
        for line in &outcome.left_out {
            tracing::warn!("{line}");
        }
        let warnings = outcome.doubts.iter().map(Doubt::to_string).collect();
        Ok((outcome.results, warnings))
    }

    fn simulation(&self, policies: Vec<Policy>, source: &scenario::Source) -> Simulation {
        Simulation {
            urgency: self.urgency(),
            servers: self.servers,
            dispatch: self.dispatch.map(|rule| Dispatch {
                rule,
                guardrails: self.guardrails.zip(self.source.load()),
            }),
            backend: self.backend(),
            clients: self.clients.clone(),
            users: self.users.clone(),
            greedy: self.greedy.map(|greedy| Greedy {
                size: Size::from_bytes(source.bytes_on_the_link(greedy.size.bytes())),
                ..greedy
            }),
            burst_bytes: self.burst.bytes(),
            start_delay: self.start_delay.duration(),
            setup: self.setup.duration(),
            estimate_sigma: self.estimate_sigma,
            impatience: self.abort_after.map(|after| Impatience {
                after: after.duration(),
                retries: self.retries,
            }),
            quantum_bytes: self.quantum.bytes(),
            stretch: !self.no_stretch,
            jobs_in_system_max: self.jobs_in_system_max,
            confidence: self.confidence,
            seed: self.seed.unwrap_or(1),
            ..Simulation::new(policies, self.rate.bps())
        }
    }

    /// The policy that the table relates every mean to, and its name.
    fn reference(&self) -> (Policy, &'static str) {
        if self.backend_capacity.is_some() {
            (Policy::Fair, "x no gate")
        } else if self.srpt_is_optimum() {
            (Policy::Srpt, "x optimum")
        } else {
            (Policy::Srpt, "x srpt")
        }
    }

    fn backend(&self) -> Option<Backend> {
        Some(Backend {
            capacity: self.backend_capacity?,
            thrash: self.backend_thrash,
        })
    }

    /// Whether no order of service has a smaller mean than `srpt`: on one server, which every job
    /// can use whole, with exact sizes, and if nothing disturbs the order.
    fn srpt_is_optimum(&self) -> bool {
        self.servers == NonZeroU32::MIN
            && self.clients.is_empty()
            && self.greedy.is_none()
            && self.estimate_sigma == 0.0
            && self.abort_after.is_none()
            && self.urgency() == Urgency::None
    }

    fn urgency(&self) -> Urgency {
        match (self.aging, self.growing) {
            (Some(aging), _) => Urgency::Aging(aging),
            (None, Some(growing)) => Urgency::Growing(growing),
            (None, None) => Urgency::None,
        }
    }

    fn wire(&self) -> WireModel {
        WireModel {
            per_packet_bytes: self.wire_per_packet,
            segment_bytes: self.wire_segment,
            per_request_bytes: self.wire_per_request,
        }
    }

    fn title(&self) -> String {
        let servers = match self.servers.get() {
            1 => String::new(),
            servers => format!("{servers} servers of "),
        };
        let dispatch = self.dispatch.map_or(String::new(), |rule| {
            let guarded = self
                .guardrails
                .map(|tightness| format!(" with guardrails of {tightness}"));
            format!(", a queue each by {rule}{}", guarded.unwrap_or_default())
        });
        let greedy = self.greedy.map_or(String::new(), |greedy| {
            format!(", beside one client that always waits for {greedy}")
        });
        format!("{}, {servers}{}{dispatch}{greedy}", self.source, self.rate)
    }
}

#[cfg(test)]
mod tests;
