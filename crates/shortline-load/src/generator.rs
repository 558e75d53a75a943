//! The generator, over HTTP/1.1 or HTTP/2, with or without TLS, or over HTTP/3. In the open loop (`open.rs`) every
//! request leaves at its own time, whatever the server does (paper 000, 2.4). In the closed loop
//! (`users.rs`) a number of users each ask again after they were answered and have rested (SURGE's
//! user equivalents: 001, 4.2; 004, 4.4.3).
//!
//! - **Times** count from the intended start. How late each request really started is recorded
//!   ([`crate::record`]) and judged ([`crate::summary`]). A timerfd drives arrivals of the open
//!   loop: the runtime's own timer is 0.75 ms off at the median.
//! - **Connections**: HTTP/1.1 takes an idle connection that has served fewer than K requests
//!   before it opens a new one (paper 000, 2.4); K is 1 by default. HTTP/2 and HTTP/3 spread their streams
//!   over a fixed number of connections (`multiplexed.rs`).
//! - **Late starts**: where the generator is behind, it takes what the server has answered before
//!   it starts the next request. So it opens no connection because it is late (`open.rs`). Response
//!   times still count from the intended start.
//! - **Impatience** (paper 000, 5.1 H): with `abort_after` a try is given up after that time, its
//!   connection or stream closed, and repeated up to `retries` times.
//! - **The end**: after the last start, outstanding requests have `drain` to finish. The rest count
//!   as failed with the time until then.
//! - **Limits**: at most `in_flight_max` requests at a time in the open loop, and as many users as
//!   there are descriptors for in the closed one. At the limit an open request starts late, which
//!   is recorded and makes the run void. It is not dropped, and its response time still counts from
//!   its intended start.

mod connect;
mod exchange;
mod http1;
mod http2;
mod http3;
mod multiplexed;
mod open;
mod part;
mod progress;
mod sources;
mod target;
mod users;
mod visit;

use std::io;
use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use shortline_tls::TlsError;
use thiserror::Error;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::record::RequestRecord;
use crate::trace::{Request, is_request_target};
use crate::workload::UserModel;
pub use part::{Part, PartError};
pub use sources::{SourceAddress, SourceAddressError, source_of};
pub use target::{Target, TargetError, Trust};
use visit::{ClientSetup, Shared};

/// The most requests in flight, if there are descriptors for them.
const IN_FLIGHT_MAX_DEFAULT: usize = 16_000;
/// Descriptors that are not connections: streams, timers, files, the poller.
const DESCRIPTORS_BESIDE: usize = 64;
/// Between the decision to start and the first request, so that the first is not late.
const HEAD_START: Duration = Duration::from_millis(20);
/// Tasks have this long to stop.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// HTTP version of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: by prior knowledge, over TLS by ALPN.
    Http2,
    /// HTTP/3: over QUIC, at the UDP port of the same number.
    Http3,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub enum Work {
    /// Open loop: these requests, each at its time.
    Open(Vec<Request>),
    /// Closed loop: these users. Needs a length ([`LoadOptions::length`]).
    Users(Arc<UserModel>),
}

impl From<Vec<Request>> for Work {
    fn from(requests: Vec<Request>) -> Self {
        Self::Open(requests)
    }
}

/// What to load, with what and how. Start from [`LoadOptions::new`].
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The server.
    pub target: Target,
    /// What is requested and when.
    pub work: Work,
    /// How many times as fast as the trace says the open loop's arrivals come. Default 1.
    pub speed: f64,
    /// HTTP version. Default HTTP/1.1.
    pub protocol: Protocol,
    /// Which certificates are trusted; an `https` target needs it.
    pub trust: Option<Trust>,
    /// The codings that requests take (`Accept-Encoding`). Default: none.
    pub accept_encoding: Option<HeaderValue>,
    /// Requests a connection serves before it is closed. Default: 1 on HTTP/1.1, no limit
    /// on HTTP/2.
    pub requests_per_connection: Option<NonZeroU32>,
    /// HTTP/2 connections that the streams share. Default 6. More are opened only when all have as
    /// many streams as the server allows, so that none waits in the client.
    pub connections: NonZeroUsize,
    /// The addresses that requests come from, each with its share. Default: the system's choice.
    pub sources: Vec<SourceAddress>,
    /// The share of the requests or users that this process makes. Default: all.
    pub part: Part,
    /// The most requests in flight. Default: 16,000 or what the limit on open files allows.
    pub in_flight_max: Option<NonZeroUsize>,
    /// A try is given up after this time. Default: never.
    pub abort_after: Option<Duration>,
    /// How often a given-up request is tried again. Default 0.
    pub retries: u32,
    /// Requests that would start later than this are left out. Default: none are. Users need it.
    pub length: Option<Duration>,
    /// Requests outstanding after the last start have this long to finish. Default 60 s.
    pub drain: Duration,
    /// Whether progress is shown on standard error: a bar on a terminal, else lines.
    pub progress: bool,
}

impl LoadOptions {
    /// This work for this server; everything else has its default.
    pub fn new(target: Target, work: impl Into<Work>) -> Self {
        Self {
            target,
            work: work.into(),
            speed: 1.0,
            protocol: Protocol::Http1,
            trust: None,
            accept_encoding: None,
            requests_per_connection: None,
            connections: NonZeroUsize::new(6).expect("invariant: 6 is not 0"),
            sources: Vec::new(),
            part: Part::WHOLE,
            in_flight_max: None,
            abort_after: None,
            retries: 0,
            length: None,
            drain: Duration::from_secs(60),
            progress: false,
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// One record for each request made, in the order of the trace or of their starts.
    pub records: Vec<RequestRecord>,
    /// Whether an interrupt ended the run before its schedule.
    pub interrupted: bool,
}

/// A run that could not begin or continue.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The speed is not a number above 0.
    #[error("speed {0}: want a finite number above 0")]
    Speed(f64),
    /// A path that no trace file could hold.
    #[error("path `{}`: want `/...` of printable ASCII without space, quote or `#`", .0.escape_debug())]
    Path(String),
    /// No request is left to be made.
    #[error("no request starts within {} s: want a longer run or an earlier trace", .0.as_secs_f64())]
    Nothing(Duration),
    /// More parts than there are requests or users.
    #[error("this part has no request and no user: want fewer parts")]
    EmptyPart,
    /// Users without a length of the run.
    #[error("users ask for ever: want a length")]
    Endless,
    /// An encrypted target without certificates to trust.
    #[error(
        "target {0}: want the certificates to trust for https (--tls-ca FILE or --tls-insecure)"
    )]
    Untrusted(Target),
    /// HTTP/3 without TLS.
    #[error("HTTP/3 has TLS always: want an https target")]
    Plain,
    /// A certificate file that cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// An address that cannot reach the target.
    #[error("source {address}: want an address of the same kind as that of {target}")]
    Source {
        /// The address.
        address: IpAddr,
        /// The target.
        target: Target,
    },
    /// The target's name has no address.
    #[error("target {target}: cannot resolve the host: {source}")]
    Resolve {
        /// The target.
        target: Target,
        /// The resolver's error.
        source: io::Error,
    },
    /// The system does not allow so many connections.
    #[error(
        "{want} descriptors for requests in flight or users (4 each): the limit on open files \
         allows {allowed}: want fewer or raise `ulimit -n`"
    )]
    Descriptors {
        /// Descriptors needed: one for each request in flight, four for each user.
        want: usize,
        /// How many the limit allows.
        allowed: usize,
    },
    /// The timer that drives arrivals failed.
    #[error("the timer of the arrivals failed: {0}")]
    Timer(#[source] io::Error),
    /// The system does not report interrupts.
    #[error("cannot listen for interrupts: {0}")]
    Signal(#[source] io::Error),
}

/// Makes every request at its time and returns what became of each. Needs tokio's multi-thread
/// runtime. The first interrupt (SIGINT) ends the run early.
///
/// # Errors
/// [`LoadError`] if the options contradict the system or themselves. A failing server is not an
/// error: its requests are recorded as failed.
pub async fn run(options: LoadOptions) -> Result<LoadReport, LoadError> {
    let plan = Plan::new(&options)?;
    let setup = ClientSetup::new(&options).await?;
    let (stop, stopped) = watch::channel(false);
    let shared = Arc::new(Shared::new(&options, plan.length(), stopped));
    let display = options
        .progress
        .then(|| tokio::spawn(progress::show(Arc::clone(&shared))));

    // On a worker of the runtime, where the timer's event arrives, not on the caller's thread.
    let slots_max = plan.slots();
    let slots = Arc::new(Semaphore::new(slots_max));
    let mut starting = plan.start(Arc::clone(&shared), setup, Arc::clone(&slots));
    let whole = async {
        let started = (&mut starting).await;
        let _ = tokio::time::timeout(options.drain, all_back(&slots, slots_max)).await;
        started
    };
    let started = tokio::select! {
        started = whole => Some(started.expect("invariant: what starts requests does not panic")),
        signal = tokio::signal::ctrl_c() => {
            signal.map_err(LoadError::Signal)?;
            None
        }
    };
    starting.abort();
    let _ = stop.send(true);
    let _ = tokio::time::timeout(STOP_TIME_MAX, all_back(&slots, slots_max)).await;
    if let Some(display) = display {
        let _ = display.await;
    }
    let interrupted = started.is_none();
    started.unwrap_or(Ok(())).map_err(LoadError::Timer)?;
    Ok(LoadReport {
        records: shared.take_records(),
        interrupted,
    })
}

/// Work that is ready to begin.
enum Plan {
    Open {
        /// Each with its number among the requests of all parts.
        schedule: Vec<(u64, Request)>,
        in_flight_max: usize,
    },
    Users {
        /// Their numbers.
        users: Vec<u64>,
        model: Arc<UserModel>,
        length: Duration,
    },
}

impl Plan {
    fn new(options: &LoadOptions) -> Result<Self, LoadError> {
        match &options.work {
            Work::Open(requests) => Ok(Self::Open {
                schedule: schedule(options, requests)?,
                in_flight_max: in_flight_max(options.in_flight_max)?,
            }),
            Work::Users(model) => {
                let users = 0..model.users();
                let users: Vec<u64> = users.filter(|user| options.part.has(*user)).collect();
                let descriptors = NonZeroUsize::new(users.len()).ok_or(LoadError::EmptyPart)?;
                in_flight_max(Some(descriptors.saturating_mul(users::DESCRIPTORS_MAX)))?;
                Ok(Self::Users {
                    users,
                    model: Arc::clone(model),
                    length: options.length.ok_or(LoadError::Endless)?,
                })
            }
        }
    }

    /// From the first start to the last.
    fn length(&self) -> Duration {
        match self {
            Self::Open { schedule, .. } => {
                Duration::from_nanos(schedule.last().map_or(0, |(_, last)| last.at_ns))
            }
            Self::Users { length, .. } => *length,
        }
    }

    /// How much can be under way at a time: requests or users.
    fn slots(&self) -> usize {
        match self {
            Self::Open { in_flight_max, .. } => *in_flight_max,
            Self::Users { users, .. } => users.len(),
        }
    }

    /// Starts everything; the task ends with the last start.
    fn start(
        self,
        shared: Arc<Shared>,
        setup: ClientSetup,
        slots: Arc<Semaphore>,
    ) -> JoinHandle<io::Result<()>> {
        match self {
            Self::Open { schedule, .. } => {
                tokio::spawn(open::start(shared, setup, schedule, slots))
            }
            Self::Users { users, model, .. } => {
                tokio::spawn(users::start(shared, setup, users, model, slots))
            }
        }
    }
}

/// The requests of this part at the times they will be made.
fn schedule(options: &LoadOptions, requests: &[Request]) -> Result<Vec<(u64, Request)>, LoadError> {
    let speed = options.speed;
    if !(speed.is_finite() && speed > 0.0) {
        return Err(LoadError::Speed(speed));
    }
    let length = options.length.unwrap_or(Duration::MAX);
    let mut requests = requests.to_vec();
    for request in &mut requests {
        if !is_request_target(&request.path) {
            return Err(LoadError::Path(request.path.clone()));
        }
        request.at_ns = (request.at_ns as f64 / speed) as u64;
    }
    requests.sort_by_key(|request| request.at_ns);
    requests.retain(|request| u128::from(request.at_ns) < length.as_nanos());
    if requests.is_empty() {
        return Err(LoadError::Nothing(length));
    }
    let numbered = (0..).zip(requests);
    let own: Vec<_> = numbered
        .filter(|(number, _)| options.part.has(*number))
        .collect();
    if own.is_empty() {
        return Err(LoadError::EmptyPart);
    }
    Ok(own)
}

/// How many requests may be in flight. Raises the soft limit on descriptors as needed.
fn in_flight_max(asked: Option<NonZeroUsize>) -> Result<usize, LoadError> {
    let want = asked.map_or(IN_FLIGHT_MAX_DEFAULT, NonZeroUsize::get);
    let mut limit = getrlimit(Resource::Nofile);
    let descriptors = |bound: Option<u64>| bound.map_or(usize::MAX, |bound| bound as usize);
    let needed = want.saturating_add(DESCRIPTORS_BESIDE);
    if descriptors(limit.current) < needed {
        let current = needed.min(descriptors(limit.maximum)) as u64;
        let raised = Rlimit {
            current: Some(current),
            ..limit
        };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            limit.current = Some(current);
        }
    }
    let allowed = descriptors(limit.current).saturating_sub(DESCRIPTORS_BESIDE);
    match asked {
        Some(_) if allowed < want => Err(LoadError::Descriptors { want, allowed }),
        _ => Ok(want.min(allowed).max(1)),
    }
}

/// Waits until nothing is under way.
async fn all_back(slots: &Semaphore, slots_max: usize) {
    let all = u32::try_from(slots_max).expect("invariant: descriptors fit into 32 bits");
    let _ = slots.acquire_many(all).await;
}
