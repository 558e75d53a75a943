//! One request from its start to its record: tries, patience and the end of the run.

use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::connect::Connector;
use super::exchange::Observed;
use super::http1::Http1;
use super::http2::Http2;
use super::progress::Progress;
use super::{LoadOptions, Protocol};
use crate::record::{Failure, RequestRecord};
use crate::trace::Request;

/// What all requests of a run share.
pub(super) struct Shared {
    schedule: Vec<Request>,
    /// When the run's clock starts; set once, before the first request.
    begin: OnceLock<Instant>,
    client: Client,
    abort_after: Option<Duration>,
    retries: u32,
    pub(super) progress: Progress,
    stopped: watch::Receiver<bool>,
    /// Records with their place in the schedule, in the order they ended.
    records: Mutex<Vec<(usize, RequestRecord)>>,
}

enum Client {
    Http1(Arc<Http1>),
    Http2(Arc<Http2>),
}

impl Shared {
    pub(super) fn new(
        options: &LoadOptions,
        schedule: Vec<Request>,
        connector: Connector,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        Self {
            records: Mutex::new(Vec::with_capacity(schedule.len())),
            schedule,
            begin: OnceLock::new(),
            client: Client::new(options, connector),
            abort_after: options.abort_after,
            retries: options.retries,
            progress: Progress::default(),
            stopped,
        }
    }

    pub(super) fn begin(&self, at: Instant) {
        self.begin.get_or_init(|| at);
    }

    pub(super) fn len(&self) -> usize {
        self.schedule.len()
    }

    pub(super) fn intended_start(&self, index: usize) -> Instant {
        let begin = self
            .begin
            .get()
            .expect("invariant: the run has begun before its requests");
        *begin + Duration::from_nanos(self.schedule[index].at_ns)
    }

    /// How long the schedule is.
    pub(super) fn length(&self) -> Duration {
        Duration::from_nanos(self.schedule.last().map_or(0, |last| last.at_ns))
    }

    /// How long the run goes already.
    pub(super) fn elapsed(&self) -> Duration {
        self.begin.get().map_or(Duration::ZERO, |begin| {
            Instant::now().saturating_duration_since(*begin)
        })
    }

    /// A receiver that turns true when the run is over.
    pub(super) fn stopped(&self) -> watch::Receiver<bool> {
        self.stopped.clone()
    }

    /// The records so far, in the order of the schedule.
    pub(super) fn take_records(&self) -> Vec<RequestRecord> {
        let mut records = std::mem::take(&mut *self.records.lock());
        records.sort_unstable_by_key(|(index, _)| *index);
        records.into_iter().map(|(_, record)| record).collect()
    }
}

impl Client {
    fn new(options: &LoadOptions, connector: Connector) -> Self {
        let authority = options.target.authority();
        let uses_max = options.requests_per_connection;
        match options.protocol {
            Protocol::Http1 => {
                let host = HeaderValue::from_str(authority)
                    .expect("invariant: an authority is printable ASCII");
                let uses_max = uses_max.unwrap_or(NonZeroU32::MIN);
                Self::Http1(Arc::new(Http1::new(connector, host, uses_max)))
            }
            Protocol::Http2 => {
                let origin = options.target.to_string();
                let http2 = Http2::new(connector, origin, options.connections, uses_max);
                Self::Http2(Arc::new(http2))
            }
        }
    }

    async fn fetch(&self, request: &Request, seen: &mut Observed) -> Result<(), Failure> {
        match self {
            Self::Http1(client) => client.fetch(&request.path, request.bytes, seen).await,
            Self::Http2(client) => client.fetch(&request.path, request.bytes, seen).await,
        }
    }
}

/// Makes one request and records what became of it.
pub(super) async fn visit(shared: &Shared, index: usize) {
    let request = &shared.schedule[index];
    let mut seen = Observed::new(shared.intended_start(index));
    let lag_s = seen.elapsed_s();
    shared.progress.sent();
    let result = all_tries(shared, request, &mut seen).await;
    let response_time_s = seen.elapsed_s();
    shared.progress.done(response_time_s, result.is_ok());
    let record = RequestRecord {
        at_s: request.at_ns as f64 / 1e9,
        path: request.path.clone(),
        size: request.bytes,
        received: seen.received,
        tries: seen.tries,
        lag_s,
        connect_s: seen.connect_s,
        first_byte_s: seen.first_byte_s,
        response_time_s,
        failure: result.err(),
    };
    shared.records.lock().push((index, record));
}

async fn all_tries(shared: &Shared, request: &Request, seen: &mut Observed) -> Result<(), Failure> {
    let mut stopped = shared.stopped();
    let tries = async {
        for _ in 0..shared.retries {
            match one_try(shared, request, seen).await {
                Err(Failure::Timeout) => {}
                result => return result,
            }
        }
        one_try(shared, request, seen).await
    };
    tokio::select! {
        result = tries => result,
        _ = stopped.wait_for(|stopped| *stopped) => Err(Failure::Unfinished),
    }
}

/// Fetches the request unless patience runs out first.
async fn one_try(shared: &Shared, request: &Request, seen: &mut Observed) -> Result<(), Failure> {
    seen.begin_try();
    let fetch = shared.client.fetch(request, seen);
    match shared.abort_after {
        None => fetch.await,
        Some(patience) => tokio::time::timeout(patience, fetch)
            .await
            .unwrap_or(Err(Failure::Timeout)),
    }
}
