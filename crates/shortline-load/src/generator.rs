//! The open-loop generator: every request of a trace leaves at its own time, whatever the
//! server does (paper 000, 2.4), over HTTP/1.1 or HTTP/2, with or without TLS.
//!
//! - **Times** count from the intended start. How late each request really started is
//!   recorded ([`crate::record`]) and judged ([`crate::summary`]). Arrivals are driven by a
//!   timerfd: the runtime's own timer is 0.75 ms off at the median.
//! - **Connections**: HTTP/1.1 takes an idle connection that has served fewer than K
//!   requests before it opens a new one (paper 000, 2.4); K is 1 by default. HTTP/2 lays
//!   its streams over a fixed number of connections (`http2.rs`).
//! - **Impatience** (paper 000, 5.1 H): with `abort_after` a try is given up after that
//!   time, its connection or stream closed, and repeated up to `retries` times.
//! - **The end**: after the last start, what is outstanding has `drain` to finish; the
//!   rest counts as failed with the time until then.
//! - **Limits**: at most `in_flight_max` requests at a time. At the limit a request starts
//!   late, which is recorded and makes the run void; it is not dropped, and its response
//!   time still counts from its intended start.

mod connect;
mod exchange;
mod http1;
mod http2;
mod progress;
mod target;
mod visit;

use std::io;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use shortline_link::timer::Alarm;
use thiserror::Error;
use tokio::sync::{Semaphore, watch};

use crate::record::RequestRecord;
use crate::trace::{Request, is_request_target};
pub use target::{Target, TargetError, Trust};
use visit::Shared;

/// Requests in flight at most, if the descriptors allow so many.
const IN_FLIGHT_MAX_DEFAULT: usize = 16_000;
/// Descriptors that are not connections: streams, timers, files, the poller.
const DESCRIPTORS_BESIDE: usize = 64;
/// Between the decision to start and the first request, so that the first is not late.
const HEAD_START: Duration = Duration::from_millis(20);
/// What is told to stop has this long to do so.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// HTTP version of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: by prior knowledge, over TLS by ALPN.
    Http2,
}

/// What to load, with what and how. Start from [`LoadOptions::new`].
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The server.
    pub target: Target,
    /// What is requested and when.
    pub requests: Vec<Request>,
    /// Arrivals come this many times as fast as the trace says. Default 1.
    pub speed: f64,
    /// HTTP version. Default HTTP/1.1.
    pub protocol: Protocol,
    /// Which certificates are trusted; an `https` target needs it.
    pub trust: Option<Trust>,
    /// Requests a connection serves before it is closed. Default: 1 on HTTP/1.1, no limit
    /// on HTTP/2.
    pub requests_per_connection: Option<NonZeroU32>,
    /// HTTP/2 connections the streams are laid over. Default 6. More are opened only when
    /// all have as many streams as the server allows, so that none waits in the client.
    pub connections: NonZeroUsize,
    /// Requests in flight at most. Default: 16,000 or what the limit on open files allows.
    pub in_flight_max: Option<NonZeroUsize>,
    /// A try is given up after this time. Default: never.
    pub abort_after: Option<Duration>,
    /// How often a given-up request is tried again. Default 0.
    pub retries: u32,
    /// Requests that would start later than this are left out. Default: none are.
    pub length: Option<Duration>,
    /// What is outstanding after the last start has this long to finish. Default 60 s.
    pub drain: Duration,
    /// Whether progress is shown on standard error: a bar on a terminal, else lines.
    pub progress: bool,
}

impl LoadOptions {
    /// These requests to this server, everything else by default.
    pub fn new(target: Target, requests: Vec<Request>) -> Self {
        Self {
            target,
            requests,
            speed: 1.0,
            protocol: Protocol::Http1,
            trust: None,
            requests_per_connection: None,
            connections: NonZeroUsize::new(6).expect("invariant: 6 is not 0"),
            in_flight_max: None,
            abort_after: None,
            retries: 0,
            length: None,
            drain: Duration::from_secs(60),
            progress: false,
        }
    }
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// One record for each request made, in the order of the trace.
    pub records: Vec<RequestRecord>,
    /// Whether the run was ended by an interrupt before its schedule.
    pub interrupted: bool,
}

/// A run that could not begin or go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The speed is no speed.
    #[error("speed {0}: want a finite number above 0")]
    Speed(f64),
    /// A path that no trace file could hold.
    #[error("path `{}`: want `/...` of printable ASCII without space, quote or `#`", .0.escape_debug())]
    Path(String),
    /// No request is left to be made.
    #[error("no request starts within {} s: want a longer run or an earlier trace", .0.as_secs_f64())]
    Nothing(Duration),
    /// An encrypted target without a word on whom to trust.
    #[error(
        "target {0}: want the certificates to trust for https (--tls-ca FILE or --tls-insecure)"
    )]
    Untrusted(Target),
    /// A certificate file that cannot be used.
    #[error("{}: {problem}: want certificates in PEM", file.display())]
    Certificates {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The target's name has no address.
    #[error("target {target}: cannot resolve the host: {source}")]
    Resolve {
        /// The target.
        target: Target,
        /// What the resolver says.
        source: io::Error,
    },
    /// The system does not let us open so many connections.
    #[error(
        "{want} requests in flight: the limit on open files allows {allowed}: want fewer or raise `ulimit -n`"
    )]
    Descriptors {
        /// Requests in flight asked for.
        want: usize,
        /// How many the limit allows.
        allowed: usize,
    },
    /// The timer that drives arrivals failed.
    #[error("the timer of the arrivals failed: {0}")]
    Timer(#[source] io::Error),
    /// The system does not tell us of interrupts.
    #[error("cannot listen for interrupts: {0}")]
    Signal(#[source] io::Error),
}

/// Makes every request at its time and returns what became of each. Wants tokio's
/// multi-thread runtime. The first interrupt (SIGINT) ends the run early.
///
/// # Errors
/// [`LoadError`] if the options contradict the system or themselves. A server that fails
/// is no error: its requests are recorded as failed.
pub async fn run(options: LoadOptions) -> Result<LoadReport, LoadError> {
    let schedule = schedule(&options)?;
    let in_flight_max = in_flight_max(options.in_flight_max)?;
    let connector = connect::Connector::new(&options).await?;
    let (stop, stopped) = watch::channel(false);
    let shared = Arc::new(Shared::new(&options, schedule, connector, stopped));
    let display = options
        .progress
        .then(|| tokio::spawn(progress::show(Arc::clone(&shared))));

    // On a worker of the runtime, where the timer's event arrives, not on the caller's thread.
    let slots = Arc::new(Semaphore::new(in_flight_max));
    let mut dispatch = tokio::spawn(dispatch(Arc::clone(&shared), Arc::clone(&slots)));
    let whole = async {
        let dispatched = (&mut dispatch).await;
        let _ = tokio::time::timeout(options.drain, all_back(&slots, in_flight_max)).await;
        dispatched
    };
    let dispatched = tokio::select! {
        dispatched = whole => Some(dispatched.expect("invariant: the dispatcher does not panic")),
        signal = tokio::signal::ctrl_c() => {
            signal.map_err(LoadError::Signal)?;
            None
        }
    };
    dispatch.abort();
    let _ = stop.send(true);
    let _ = tokio::time::timeout(STOP_TIME_MAX, all_back(&slots, in_flight_max)).await;
    if let Some(display) = display {
        let _ = display.await;
    }
    let interrupted = dispatched.is_none();
    dispatched.unwrap_or(Ok(())).map_err(LoadError::Timer)?;
    Ok(LoadReport {
        records: shared.take_records(),
        interrupted,
    })
}

/// The requests at the times they will be made.
fn schedule(options: &LoadOptions) -> Result<Vec<Request>, LoadError> {
    let speed = options.speed;
    if !(speed.is_finite() && speed > 0.0) {
        return Err(LoadError::Speed(speed));
    }
    let length = options.length.unwrap_or(Duration::MAX);
    let mut requests = options.requests.clone();
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
    Ok(requests)
}

/// How many requests may be in flight; raises the soft limit on descriptors as needed.
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

/// Starts every request at its time.
async fn dispatch(shared: Arc<Shared>, slots: Arc<Semaphore>) -> io::Result<()> {
    let alarm = Alarm::new()?;
    shared.begin(Instant::now() + HEAD_START);
    for index in 0..shared.len() {
        sleep_until(&alarm, shared.intended_start(index)).await?;
        let slot = Arc::clone(&slots)
            .acquire_owned()
            .await
            .expect("invariant: the semaphore is never closed");
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            visit::visit(&shared, index).await;
            drop(slot);
        });
    }
    Ok(())
}

async fn sleep_until(alarm: &Alarm, instant: Instant) -> io::Result<()> {
    loop {
        let left = instant.saturating_duration_since(Instant::now());
        if left.is_zero() {
            // Behind, many starts follow each other: the runtime must get its turn.
            tokio::task::consume_budget().await;
            return Ok(());
        }
        alarm.set(left)?;
        alarm.wait().await?;
    }
}

/// Waits until no request is in flight.
async fn all_back(slots: &Semaphore, in_flight_max: usize) {
    let all = u32::try_from(in_flight_max).expect("invariant: descriptors fit into 32 bits");
    let _ = slots.acquire_many(all).await;
}
