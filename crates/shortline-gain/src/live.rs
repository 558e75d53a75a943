//! The busiest minute of the logs once more, for real: what theory expects of it beside what a server gives.
//!
//! For each of [`SERVERS`] a server of ours runs in this process, on loopback, paced at the link's rate and in that order. The
//! load generator asks it for what visitors asked for in that minute, at the same times, each from an address of its own. Files
//! are made up: as long as those of the log, without content. All begins with an empty link, as does the prediction.
//!
//! - **The last piece.** Loopback hands over at once what the server grants. On a link the last piece of a response takes its
//!   time, too, which is added to what was measured.
//! - **The machine.** Theory knows no processors and no connections. What a request for nothing takes, measured before, is added
//!   to what it expects.
//! - **Turns.** A server's fair sharing goes round in turns of a packet or a few, which the smallest responses notice. So do those
//!   expected here; in the other tables it is fluid.
//! - **The load.** The prediction counts what the replay's link carried for a request ([`WireModel::calibrate`]), not what
//!   the visitors' link did.
//!
//! Limits: [`LENGTH_S`], [`REQUESTS_MAX`], [`RATES`]; what has not ended after twice the length and half a minute is left out of
//! both. Nothing is sent anywhere but to loopback. The folder of files ends with the run, and the server with the process.

mod compare;
mod site;
mod target;
mod window;

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Serialize;
use shortline_load::generator::{self, LoadError, LoadOptions, SourceAddress};
use shortline_load::record::RequestRecord;
use shortline_load::summary::Summary;
use shortline_load::trace::Request;
use shortline_sched::units::Rate;
use shortline_sim::wire::WireModel;
use tokio::runtime::Runtime;

use crate::past::Past;
use crate::waits::{SERVERS, Server, Waits};
use crate::{GainError, words};
use compare::compare;
pub(crate) use compare::off;
use site::MadeUp;
use target::Running;
use window::Window;

/// How long a replay may be, in seconds.
pub const LENGTH_S: RangeInclusive<u64> = 1..=300;
/// The most requests of a replay. Of a busier minute only the beginning is replayed.
pub const REQUESTS_MAX: usize = 20_000;
/// The rates that are replayed, in bits per second. A faster link would show this machine's limits instead of its own.
pub const RATES: RangeInclusive<u64> = 100_000..=1_000_000_000;
/// The mean of fewer responses is shown but does not count.
pub const MEANS_MIN: u64 = 20;
/// So is their 99th percentile, on the other side of which are five.
pub const PERCENTILES_MIN: u64 = 500;

/// Requests for nothing, one after the other, that show what a request takes on this machine.
const IDLE_REQUESTS: u64 = 20;
/// They are at least this far apart.
const IDLE_GAP: Duration = Duration::from_millis(20);
/// Bytes of the link that one of them may take.
const IDLE_BYTES: u64 = 1_500;
/// How many addresses of 127.0.0.0/8 the requests come from, so that each is a client of its own.
const CLIENTS: usize = 2_000;
/// How long beyond twice its length a replay may take.
const GRACE: Duration = Duration::from_secs(30);
/// What a request with more in flight waits for. A descriptor each for the generator and the server.
const IN_FLIGHT_MAX: usize = 16_000;

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Live {
    /// When the minute began, in seconds since 1970.
    pub from_unix_s: u32,
    /// How long it is.
    pub length_s: f64,
    /// How many responses were replayed and are compared.
    pub responses: u64,
    /// Their bodies' bytes.
    pub bytes: u64,
    /// The classes of size that have any.
    pub classes: Vec<LiveClass>,
    /// What did not become part of it, a line each.
    pub notes: Vec<String>,
    /// Why it says nothing of the prediction, if so: this machine was too busy.
    pub doubts: Vec<String>,
}

/// The responses of some sizes.
#[derive(Clone, Debug, Serialize)]
pub struct LiveClass {
    /// Which sizes.
    pub name: &'static str,
    /// How many.
    pub responses: u64,
    /// What theory expects under each of [`SERVERS`].
    pub predicted: [Waits; 3],
    /// What the replay gave.
    pub replayed: [Waits; 3],
}

/// Why there is no replay.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The rate cannot be shown on this machine.
    #[error(
        "--live replays links of {} to {}, not of {}: give --uplink such a rate, or leave --live out",
        words::rate(*RATES.start()), words::rate(*RATES.end()), words::rate(*bps)
    )]
    Rate {
        /// The rate in bits per second.
        bps: u64,
    },
    /// The made-up files cannot be written or served.
    #[error("--live: the files in {}: {why} (TMPDIR names another folder)", std::env::temp_dir().display())]
    Files {
        /// Why.
        why: String,
    },
    /// The server cannot run.
    #[error("--live: no server on loopback: {0}")]
    Server(String),
    /// The load generator cannot run.
    #[error("--live: {0}")]
    Load(#[from] LoadError),
    /// Somebody ended it.
    #[error("--live: interrupted; without --live the answer is there at once")]
    Interrupted,
    /// No response came.
    #[error(
        "--live: of {requests} requests under {server} none had its response: want an idle machine"
    )]
    Nothing {
        /// How many there were.
        requests: usize,
        /// Under which order.
        server: Server,
    },
}

/// What one server gave.
struct Replayed {
    records: Vec<RequestRecord>,
    /// The link's bytes for a response.
    wire: WireModel,
    /// What a request for nothing takes, in seconds.
    idle_s: f64,
    /// Why the run does not count, if it does not.
    void: Option<String>,
}

impl Past {
    /// Replays the busiest `length` under each order. `begun` hears of each before it begins.
    ///
    /// # Errors
    /// [`LiveError`]; a temporary file that cannot be read.
    pub fn replay(
        &self,
        rate: Rate,
        length: Duration,
        begun: impl FnMut(Server),
        progress: bool,
    ) -> Result<Live, GainError> {
        if !RATES.contains(&rate.bps()) {
            return Err(LiveError::Rate { bps: rate.bps() }.into());
        }
        let window = self.window(length.as_secs().clamp(*LENGTH_S.start(), *LENGTH_S.end()))?;
        Ok(replay(&window, rate, begun, progress)?)
    }
}

fn replay(
    window: &Window,
    rate: Rate,
    mut begun: impl FnMut(Server),
    progress: bool,
) -> Result<Live, LiveError> {
    raise_open_files();
    let site = MadeUp::new(window.sizes()).map_err(|error| LiveError::Files {
        why: error.to_string(),
    })?;
    let requests = window.requests(&site);
    let runtime = Runtime::new().map_err(|error| LiveError::Server(error.to_string()))?;
    let mut all = Vec::new();
    for server in SERVERS {
        begun(server);
        all.push(one(
            &runtime, server, rate, &site, &requests, window, progress,
        )?);
    }
    runtime.shutdown_timeout(Duration::from_secs(5));
    compare(window, rate, &all)
}

fn one(
    runtime: &Runtime,
    server: Server,
    rate: Rate,
    site: &MadeUp,
    requests: &[Request],
    window: &Window,
    progress: bool,
) -> Result<Replayed, LiveError> {
    let running = Running::start(runtime.handle(), server, rate, site.root())?;
    let load = |requests: Vec<Request>, drain, progress| {
        let options = LoadOptions {
            sources: clients(),
            in_flight_max: in_flight_max(),
            drain,
            progress,
            ..LoadOptions::new(running.target(), requests)
        };
        runtime.block_on(until_interrupted(options))
    };
    let idle = load(idle_requests(rate, site), GRACE, false)?;
    let before = running.wire_bytes();
    let records = load(
        requests.to_vec(),
        window.deadline() - window.length(),
        progress,
    )?;
    let received: Vec<u64> = records.iter().map(|record| record.received).collect();
    if records.iter().all(|record| !record.ok()) {
        return Err(LiveError::Nothing {
            requests: records.len(),
            server,
        });
    }
    let carried = running.wire_bytes().saturating_sub(before);
    let wire = WireModel {
        segment_bytes: running.quantum_bytes(),
        ..WireModel::default()
    };
    Ok(Replayed {
        void: Summary::of(&records, None, false).and_then(|summary| summary.void),
        // If the server stopped counting before the last acknowledgement, the usual cost stands in.
        wire: wire.calibrate(&received, carried).unwrap_or(wire),
        idle_s: median(idle.iter().map(|record| record.response_time_s)),
        records,
    })
}

/// An interrupt or SIGTERM ends it, and what it made is removed.
async fn until_interrupted(options: LoadOptions) -> Result<Vec<RequestRecord>, LiveError> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut term = signal(SignalKind::terminate()).map_err(LoadError::Signal)?;
    tokio::select! {
        report = generator::run(options) => match report? {
            report if report.interrupted => Err(LiveError::Interrupted),
            report => Ok(report.records),
        },
        _ = term.recv() => Err(LiveError::Interrupted),
    }
}

fn idle_requests(rate: Rate, site: &MadeUp) -> Vec<Request> {
    let link_ns = IDLE_BYTES * 8_000_000_000 / rate.bps();
    let gap_ns = link_ns.max(IDLE_GAP.as_nanos() as u64);
    let request = |number: u64| Request {
        at_ns: number * gap_ns,
        path: site.nothing(),
        bytes: 0,
    };
    (0..IDLE_REQUESTS).map(request).collect()
}

fn clients() -> Vec<SourceAddress> {
    let client = |number: usize| SourceAddress {
        address: std::net::Ipv4Addr::new(127, 1, (number >> 8) as u8, number as u8).into(),
        share: 1.0,
    };
    (0..CLIENTS).map(client).collect()
}

/// The limit on open files becomes the highest that this process may have.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // If that is refused, fewer requests are in flight.
    let _ = setrlimit(Resource::Nofile, raised);
}

fn in_flight_max() -> Option<std::num::NonZeroUsize> {
    use rustix::process::{Resource, getrlimit};
    const BESIDE: u64 = 1_000;
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let half = limit.saturating_sub(BESIDE) / 2;
    let most = usize::try_from(half).unwrap_or(usize::MAX);
    std::num::NonZeroUsize::new(most.clamp(1, IN_FLIGHT_MAX))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
