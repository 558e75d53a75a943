//! What `shortline load` asks for: a trace, or files and requests made from the papers'
//! numbers, open loop at a load on the uplink or closed loop by users.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use shortline_load::Work;
use shortline_load::trace::{Request, Spread, TraceOptions};
use shortline_load::workload::{
    LoadSchedule, SiteName, SurgePreset, UserModel, arrivals, reschedule,
};
use shortline_sched::units::Rate;
use shortline_sim::wire::WireModel;

use super::seconds;
use crate::trace;
use shortline_command::CommandError;
use shortline_command::output::note;

/// How long a made-up workload lasts unless said otherwise, as in `shortline sim`.
const LENGTH_USUAL: Duration = Duration::from_secs(100);
/// The seed of a made-up workload unless said otherwise.
const SEED_USUAL: u64 = 1;

/// Flags that say what is requested and when.
#[derive(Debug, clap::Args)]
pub(super) struct Source {
    /// What to request and when: CSV lines `seconds,path,bytes` (header optional), a log in
    /// Common or Combined Log Format, or World Cup 98 binary records, packed with gzip or not,
    /// told apart by content; - is standard input. Lines that cannot be read are left out and
    /// counted
    #[arg(long, value_name = "FILE", conflicts_with_all = ["surge", "twin"])]
    trace: Option<PathBuf>,

    /// Request SURGE's files, as paper 001, 003 or 004 had them: surge-001, surge-003 (if none
    /// is named), surge-004; with --users, or with --schedule and --uplink
    #[arg(
        long,
        value_name = "PRESET",
        num_args = 0..=1,
        default_missing_value = "surge-003",
        conflicts_with = "twin"
    )]
    surge: Option<SurgePreset>,

    /// Request files like those of a log of paper 000: world-cup or nasa; with --schedule and
    /// --uplink
    #[arg(long, value_name = "NAME")]
    twin: Option<SiteName>,

    /// Write the files of --surge or --twin below this folder for a server to serve, and
    /// request nothing
    #[arg(long, value_name = "DIR", conflicts_with_all = ["target", "trace"])]
    pub(super) write_site: Option<PathBuf>,

    /// Closed loop: so many users of SURGE's, each of whom fetches a page, rests, and fetches
    /// the next. Over two connections at a time; over one that is kept with
    /// --requests-per-connection above 1
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["trace", "open", "schedule", "speed", "in_flight_max"]
    )]
    users: Option<NonZeroUsize>,

    /// Open loop: requests leave whatever the server does (always but with --users)
    #[arg(long)]
    open: bool,

    /// The load over time, 1 being the whole uplink: w1 to w10 (Table I of paper 000), 1.4 (all
    /// the time), or 25s@0.2,25s@1.2 (in turn). A trace's times are scaled to it
    #[arg(long, value_name = "S", requires = "uplink")]
    schedule: Option<LoadSchedule>,

    /// The uplink's rate: what a load of 1 is, in bytes on the wire, and what the slowdown
    /// refers to. Without it slowdown is over the least time measured for a size or larger
    #[arg(long, value_name = "RATE", alias = "rate")]
    pub(super) uplink: Option<Rate>,

    /// Arrivals come this many times as fast as in the trace
    #[arg(
        long,
        value_name = "X",
        default_value_t = 1.0,
        allow_negative_numbers = true,
        conflicts_with_all = ["surge", "twin", "schedule"]
    )]
    pub(super) speed: f64,

    /// Leave out requests that would start later than this [default: of a trace none, else
    /// after 100 s]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) seconds: Option<Duration>,

    /// Seed of what is made up [default: 1]. With a trace that has whole seconds only (logs,
    /// World Cup): spread the arrivals of a second at random, without it evenly
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl Source {
    /// What is to be asked for.
    pub(super) fn work(&self) -> Result<Work, CommandError> {
        if let Some(trace) = &self.trace {
            return self.replayed(trace);
        }
        let site = self.site()?;
        let seed = self.seed();
        if let Some(count) = self.users {
            let model = Arc::new(UserModel::new(site.site(), seed));
            return Ok(Work::Users { count, model });
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

    /// The seed of what is made up.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(SEED_USUAL)
    }

    /// Requests that start later are left out.
    pub(super) fn length(&self) -> Option<Duration> {
        match self.trace {
            Some(_) => self.seconds,
            None => Some(self.seconds.unwrap_or(LENGTH_USUAL)),
        }
    }

    /// The site that is asked.
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

    /// The trace at the load that is wanted, if one is.
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

/// Says on standard error what was made: chance, and files too large to be asked for often, may
/// take its load far from the one that was wanted.
fn log(requests: &[Request], uplink: Rate, length: Duration) {
    let bytes: f64 = requests.iter().map(|r| wire_bytes(r.bytes) as f64).sum();
    let load = bytes * 8.0 / uplink.bps() as f64 / length.as_secs_f64();
    note(&format!(
        "{} requests in {} s ask for {load:.3} of {uplink} in the mean",
        requests.len(),
        length.as_secs_f64(),
    ));
}

/// What the link carries for a body of so many bytes.
pub(super) fn wire_bytes(body_bytes: u64) -> u64 {
    WireModel::default().wire_bytes(body_bytes)
}
