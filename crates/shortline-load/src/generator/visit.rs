//! One request from its start to its record: tries, patience and the end of the run.

use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::connect::Connector;
use super::exchange::Observed;
use super::http1::Http1;
use super::http2::Http2;
use super::http3::Http3;
use super::multiplexed::{Multiplexed, Sharing};
use super::progress::Progress;
use super::sources::source_of;
use super::{LoadError, LoadOptions, Protocol, Target, Work};
use crate::record::{Failure, RequestRecord, Turn};
use crate::trace::Request;

/// What all requests of a run share.
pub(super) struct Shared {
    /// When the run's clock starts; set once, before the first request.
    begin: OnceLock<Instant>,
    length: Duration,
    abort_after: Option<Duration>,
    retries: u32,
    pub(super) progress: Progress,
    stopped: watch::Receiver<bool>,
    /// Records with their place in the order of all, in the order they ended.
    records: Mutex<Vec<(u64, RequestRecord)>>,
}

/// Makes clients for one server, all in one way.
pub(super) struct ClientSetup {
    /// One for each source address, at least one.
    connectors: Vec<Arc<Connector>>,
    /// The sources' shares; none where the system chooses the address.
    shares: Vec<f64>,
    target: Target,
    accept_encoding: Option<HeaderValue>,
    protocol: Protocol,
    requests_per_connection: Option<NonZeroU32>,
    connections: NonZeroUsize,
}

/// Connections and how to ask over them.
#[derive(Clone)]
pub(super) struct Client {
    kind: ClientKind,
    /// The source address, if there is one.
    source: Option<IpAddr>,
}

#[derive(Clone)]
enum ClientKind {
    /// HTTP/1.1.
    Http1(Arc<Http1>),
    /// HTTP/2.
    Http2(Arc<Multiplexed<Http2>>),
    /// HTTP/3.
    Http3(Arc<Multiplexed<Http3>>),
}

impl Shared {
    /// For a run of that length, from the first start to the last.
    pub(super) fn new(
        options: &LoadOptions,
        length: Duration,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        Self {
            records: Mutex::default(),
            begin: OnceLock::new(),
            length,
            abort_after: options.abort_after,
            retries: options.retries,
            progress: Progress::default(),
            stopped,
        }
    }

    pub(super) fn begin(&self, at: Instant) {
        self.begin.get_or_init(|| at);
    }

    /// The instant of a time of the run.
    pub(super) fn instant(&self, at_ns: u64) -> Instant {
        let begin = self
            .begin
            .get()
            .expect("invariant: the run has begun before its requests");
        *begin + Duration::from_nanos(at_ns)
    }

    /// How long the run is, from the first start to the last.
    pub(super) fn length(&self) -> Duration {
        self.length
    }

    /// How long the run has lasted.
    pub(super) fn elapsed(&self) -> Duration {
        self.begin.get().map_or(Duration::ZERO, |begin| {
            Instant::now().saturating_duration_since(*begin)
        })
    }

    /// A receiver that turns true when the run is over.
    pub(super) fn stopped(&self) -> watch::Receiver<bool> {
        self.stopped.clone()
    }

    /// The records so far, in their order.
    pub(super) fn take_records(&self) -> Vec<RequestRecord> {
        let mut records = std::mem::take(&mut *self.records.lock());
        records.sort_by_key(|(order, _)| *order);
        records.into_iter().map(|(_, record)| record).collect()
    }
}

impl ClientSetup {
    pub(super) async fn new(options: &LoadOptions) -> Result<Self, LoadError> {
        let connector = Connector::new(options).await?;
        if options.protocol == Protocol::Http3 {
            // What is wrong with it is wrong with all.
            Http3::new(&connector)?;
        }
        let sources = options.sources.iter();
        let mut connectors: Vec<Arc<Connector>> = sources
            .map(|source| Arc::new(connector.from(source.address)))
            .collect();
        if connectors.is_empty() {
            connectors.push(Arc::new(connector));
        }
        Ok(Self {
            connectors,
            shares: options.sources.iter().map(|source| source.share).collect(),
            target: options.target.clone(),
            accept_encoding: options.accept_encoding.clone(),
            protocol: options.protocol,
            requests_per_connection: options.requests_per_connection,
            connections: match options.work {
                Work::Open(_) => options.connections,
                // A browser has one.
                Work::Users(_) => NonZeroUsize::MIN,
            },
        })
    }

    /// The source of request or user number `index`.
    pub(super) fn source_of(&self, index: u64) -> usize {
        source_of(index, self.shares.iter().copied())
    }

    /// A client for each source.
    pub(super) fn clients(&self) -> Vec<Client> {
        (0..self.connectors.len())
            .map(|source| self.client(source))
            .collect()
    }

    /// A client of that source with connections of its own.
    pub(super) fn client(&self, source: usize) -> Client {
        let connector = Arc::clone(&self.connectors[source]);
        let uses_max = self.requests_per_connection;
        let codings = self.accept_encoding.clone();
        let source = connector.source();
        let sharing = || Sharing {
            origin: self.target.to_string(),
            accept_encoding: codings.clone(),
            connections: self.connections,
            uses_max,
        };
        let kind = match self.protocol {
            Protocol::Http1 => {
                let host = HeaderValue::from_str(self.target.authority())
                    .expect("invariant: an authority is printable ASCII");
                let uses_max = uses_max.unwrap_or(NonZeroU32::MIN);
                ClientKind::Http1(Arc::new(Http1::new(
                    connector,
                    host,
                    codings.clone(),
                    uses_max,
                )))
            }
            Protocol::Http2 => {
                ClientKind::Http2(Arc::new(Multiplexed::new(Http2(connector), sharing())))
            }
            Protocol::Http3 => {
                let http3 = Http3::new(&connector);
                let http3 = http3.expect("invariant: it was looked at before");
                ClientKind::Http3(Arc::new(Multiplexed::new(http3, sharing())))
            }
        };
        Client { kind, source }
    }
}

impl Client {
    /// Whether an HTTP/1.1 connection serves more than one request.
    pub(super) fn keeps_connections(&self) -> bool {
        match &self.kind {
            ClientKind::Http1(client) => client.keeps_connections(),
            ClientKind::Http2(_) | ClientKind::Http3(_) => false,
        }
    }

    async fn fetch(&self, request: &Request, seen: &mut Observed) -> Result<(), Failure> {
        let (path, bytes) = (&request.path, request.bytes);
        match &self.kind {
            ClientKind::Http1(client) => client.fetch(path, bytes, seen).await,
            ClientKind::Http2(client) => client.fetch(path, bytes, seen).await,
            ClientKind::Http3(client) => client.fetch(path, bytes, seen).await,
        }
    }
}

/// Makes one request whose time has come, and records what became of it; `order` is its place among
/// all records, `turn` whose it is in a closed loop.
pub(super) async fn visit(
    shared: &Shared,
    client: &Client,
    request: &Request,
    order: u64,
    turn: Option<Turn>,
) {
    let mut seen = Observed::new(shared.instant(request.at_ns));
    let lag_s = seen.elapsed_s();
    shared.progress.sent();
    let result = all_tries(shared, client, request, &mut seen).await;
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
        source: client.source,
        turn,
    };
    shared.records.lock().push((order, record));
}

async fn all_tries(
    shared: &Shared,
    client: &Client,
    request: &Request,
    seen: &mut Observed,
) -> Result<(), Failure> {
    let mut stopped = shared.stopped();
    let tries = async {
        for _ in 0..shared.retries {
            match one_try(shared, client, request, seen).await {
                Err(Failure::Timeout) => {}
                result => return result,
            }
        }
        one_try(shared, client, request, seen).await
    };
    tokio::select! {
        result = tries => result,
        _ = stopped.wait_for(|stopped| *stopped) => Err(Failure::Unfinished),
    }
}

/// Fetches the request unless patience runs out first.
async fn one_try(
    shared: &Shared,
    client: &Client,
    request: &Request,
    seen: &mut Observed,
) -> Result<(), Failure> {
    seen.begin_try();
    let fetch = client.fetch(request, seen);
    match shared.abort_after {
        None => fetch.await,
        Some(patience) => tokio::time::timeout(patience, fetch)
            .await
            .unwrap_or(Err(Failure::Timeout)),
    }
}
