//! What `shortline load` requests: a trace, or files and requests generated from the papers'
//! numbers, open loop at a load on the uplink or closed loop by users.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use shortline_load::Work;
use shortline_load::trace::{Request, Spread, TraceOptions};
use shortline_load::workload::{LoadSchedule, SiteName, SurgePreset, arrivals, reschedule};
use shortline_sched::units::Rate;
use shortline_sim::wire::WireModel;

use super::seconds;
use crate::trace;
use shortline_command::CommandError;

/// The default length of a generated workload, as in `shortline sim`.
const LENGTH_USUAL: Duration = Duration::from_secs(100);
/// The default seed of a generated workload.
const SEED_USUAL: u64 = 1;

/// Flags that say what to request and when.
#[derive(Debug, clap::Args)]
pub(super) struct Source {
    /// What to request and when: CSV lines `seconds,path,bytes` (header optional), a log in Common
    /// or Combined Log Format, or World Cup 98 binary records, each optionally packed with gzip.
    /// The content decides which it is; - is standard input. Unreadable lines are skipped and
    /// counted
    #[arg(long, value_name = "FILE", conflicts_with_all = ["surge", "twin"])]
    trace: Option<PathBuf>,

    /// Request SURGE's files as in paper 001, 003 or 004: surge-001, surge-003 (the default name),
    /// surge-004. Needs --users, or --schedule and --uplink
    #[arg(
        long,
        value_name = "PRESET",
        num_args = 0..=1,
        default_missing_value = "surge-003",
        conflicts_with = "twin"
    )]
    surge: Option<SurgePreset>,

    /// Request files like those in a log of paper 000: world-cup or nasa. Needs --schedule and
    /// --uplink
    #[arg(long, value_name = "NAME")]
    twin: Option<SiteName>,

    /// Write the files of --surge or --twin to this folder, for a server to serve, and request
    /// nothing
    #[arg(long, value_name = "DIR", conflicts_with_all = ["target", "trace"])]
    pub(super) write_site: Option<PathBuf>,

    /// Closed loop: this many SURGE users. Each fetches a page, rests, and fetches the next, over
    /// two connections at a time, or over one persistent connection with --requests-per-connection
    /// above 1
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["trace", "open", "schedule", "speed", "in_flight_max"]
    )]
    users: Option<NonZeroU64>,

    /// Open loop: requests start whatever the server does (always, except with --users)
    #[arg(long)]
    open: bool,

    /// The load over time, where 1 is the whole uplink: w1 to w10 (Table I of paper 000), 1.4
    /// (constant), or 25s@0.2,25s@1.2 (in turn). A trace's times are scaled to it
    #[arg(long, value_name = "S", requires = "uplink")]
    schedule: Option<LoadSchedule>,

    /// The uplink's rate: a load of 1 in bytes on the wire, and the base of the slowdown. Without
    /// it the base is the least time measured for a response of the same size or larger
    #[arg(long, value_name = "RATE", alias = "rate")]
    pub(super) uplink: Option<Rate>,

    /// Speed up the trace's arrivals by this factor
    #[arg(
        long,
        value_name = "X",
        default_value_t = 1.0,
        allow_negative_numbers = true,
        conflicts_with_all = ["surge", "twin", "schedule"]
    )]
    pub(super) speed: f64,

    /// Leave out requests that would start later than this [default: no limit for a trace, else 100
    /// s]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) seconds: Option<Duration>,

    /// Seed of the generated requests. In a trace with whole seconds (logs, World Cup) it spreads
    /// the arrivals of a second at random; without a seed they are spread evenly [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl Source {
    /// What to request.
    pub(super) fn work(&self) -> Result<Work, CommandError> {
        if let Some(trace) = &self.trace {
            return self.replayed(trace);
        }
        let site = self.site()?;
        let seed = self.seed();
        if let Some(count) = self.users {
            return Ok(Work::Users(Arc::new(site.users(count, seed))));
        }
        let (Some(schedule), Some(uplink)) = (&self.schedule, self.uplink) else {
            return Err(CommandError::Usage(format!(
                "{site} without a load: want --users N (closed loop), or --schedule S and \
                 --uplink RATE (open loop)"
            )));
        };
        let length = self.seconds.unwrap_or(LENGTH_USUAL);
        let requests = arrivals(schedule, uplink, wire_bytes, length, seed, &site.site());
        if requests.is_empty() {
            return Err(CommandError::Usage(format!(
                "--schedule {schedule}: no request in {} s at {uplink}: want more load or time",
                length.as_secs_f64()
            )));
        }
        log(&requests, uplink, length);
        Ok(requests.into())
    }

    /// The seed of the generated requests.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(SEED_USUAL)
    }

    /// The latest start of a request. Later ones are left out.
    pub(super) fn length(&self) -> Option<Duration> {
        match self.trace {
            Some(_) => self.seconds,
            None => Some(self.seconds.unwrap_or(LENGTH_USUAL)),
        }
    }

    /// The site to request.
    ///
    /// # Errors
    /// Bad usage if none is named.
    pub(super) fn site(&self) -> Result<SiteName, CommandError> {
        let surge = self.surge.map(SiteName::Surge);
        surge.or(self.twin).ok_or_else(|| {
            CommandError::usage("no workload: want --trace FILE, --surge or --twin NAME")
        })
    }

    fn replayed(&self, path: &std::path::Path) -> Result<Work, CommandError> {
        let options = TraceOptions {
            spread: self
                .seed
                .map_or(Spread::Even, |seed| Spread::Random { seed }),
            ..TraceOptions::default()
        };
        let requests = trace::requests(path, &options)
            .and_then(Iterator::collect)
            .map_err(CommandError::failure)?;
        Ok(self.scaled(requests).into())
    }

    /// The trace, scaled to the load if one is given.
    fn scaled(&self, requests: Vec<Request>) -> Vec<Request> {
        match (&self.schedule, self.uplink) {
            (Some(schedule), Some(uplink)) => {
                let length = self.seconds.unwrap_or(Duration::MAX);
                reschedule(requests, schedule, uplink, wire_bytes, length)
            }
            _ => requests,
        }
    }
}

/// Logs to standard error what was generated. Where the time is short for the largest files, the load
/// is not quite the one asked for.
fn log(requests: &[Request], uplink: Rate, length: Duration) {
    let bytes: f64 = requests.iter().map(|r| wire_bytes(r.bytes) as f64).sum();
    let load = bytes * 8.0 / uplink.bps() as f64 / length.as_secs_f64();
    tracing::info!(
        "{} requests in {} s ask for {load:.3} of {uplink} in the mean",
        requests.len(),
        length.as_secs_f64(),
    );
}

/// The bytes the link carries for a body of this many bytes.
pub(super) fn wire_bytes(body_bytes: u64) -> u64 {
    WireModel::default().wire_bytes(body_bytes)
}
