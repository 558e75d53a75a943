//! What an operator configures about backends and the exchanges with them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::uri::PathAndQuery;

use super::address::{AddressError, Service, UpstreamAddress};
use super::affinity::{KeyOf, StickyCookie};
use super::condition::HealthOptions;
use super::retries::RetryLimit;
use crate::proxy_header::Version;

/// The weight of a backend that is given none.
const WEIGHT_DEFAULT: u32 = 1;

/// One of several backends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendOptions {
    /// Where it is.
    pub address: UpstreamAddress,
    /// Its share of the requests, relative to the others'. With 0 it gets only requests that name
    /// it. Default 1.
    pub weight: u32,
    /// Whether it is asked only if no other works. Default: no.
    pub backup: bool,
    /// As [`UpstreamOptions::connections_max`], for this backend.
    pub connections_max: Option<usize>,
    /// What the cookie of a client calls it. Default: a digest of its address.
    pub id: Option<String>,
    /// Among servers of a service: it is asked only if none of a smaller rank works. Default: 0.
    pub rank: u16,
    /// The service that it was found by, if it was (SRV).
    pub service: Option<Service>,
    /// In which version of the PROXY protocol it is told who the client is, before anything else on a connection. Default:
    /// in none.
    pub send_proxy: Option<Version>,
}

impl BackendOptions {
    /// Whether it is a service, whose servers are looked up.
    pub fn is_service(&self) -> bool {
        matches!(self.address, UpstreamAddress::Service(_))
    }
}

impl FromStr for BackendOptions {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        text.parse::<UpstreamAddress>().map(Self::from)
    }
}

impl From<UpstreamAddress> for BackendOptions {
    fn from(address: UpstreamAddress) -> Self {
        Self {
            address,
            weight: WEIGHT_DEFAULT,
            backup: false,
            connections_max: None,
            id: None,
            rank: 0,
            service: None,
            send_proxy: None,
        }
    }
}

/// The version of HTTP that backends are spoken to in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1.
    One,
    /// HTTP/2: with TLS by ALPN, without TLS because it is known (RFC 9113 3.3).
    Two,
    /// What the address says: `h2c://` HTTP/2, `https://` what the backend offers, others HTTP/1.1.
    #[default]
    Auto,
}

/// Backends and the limits of exchanges with them, with sound defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamOptions {
    /// The backends.
    pub backends: Vec<BackendOptions>,
    /// The key of a request, by which it gets its backend. Default: none, the least busy gets it.
    pub hash_by: Option<KeyOf>,
    /// The cookie that keeps a client at its backend. Default: none.
    pub sticky_cookie: Option<StickyCookie>,
    /// How many requests may be tried at another backend.
    pub retries: RetryLimit,
    /// How often hosts with a name are looked up; each of their addresses is then a backend. Default:
    /// for each new connection, as one backend. Of a service, the longest time between two lookups. Default: 5 min.
    pub resolve_every: Option<Duration>,
    /// The name servers that are asked for services. Default: those of the system.
    pub name_servers: Vec<SocketAddr>,
    /// The file (PEM) of the authorities that sign the certificates of TLS backends. `None`: those
    /// of the system. Default: none.
    pub authorities: Option<PathBuf>,
    /// The version of HTTP. Default: by the address.
    pub http: HttpVersion,
    /// Requests under way on one connection of HTTP/2, if the backend allows as many. Default 100.
    pub streams_max: usize,
    /// How often a backend of HTTP/2 that is silent while requests are under way is asked for a sign
    /// of life. Default: never, because servers of gRPC close connections that ask often.
    pub ping_every: Option<Duration>,
    /// Time to get a connection, TLS included, and for a place among `connections_max`. Default 5
    /// s.
    pub connect_time_max: Duration,
    /// Time from a request's last byte to the response's head. Default 60 s.
    pub first_byte_time_max: Duration,
    /// Time a backend may be silent in the middle of a response. Default 60 s.
    pub idle_time_max: Duration,
    /// Time a client may be silent in the middle of its request's body. Default 30 s.
    pub upload_time_max: Duration,
    /// Time a tunnel (after `101 Switching Protocols`) may be silent. Default 10 min.
    pub tunnel_idle_time_max: Duration,
    /// Open connections to one backend, not counting its health check's; with HTTP/2, requests
    /// under way. A client gets another one while it has no more than are free. Default 256.
    pub connections_max: usize,
    /// Connections kept open without a request, out of `connections_max`. Default 128.
    pub idle_connections_max: usize,
    /// Time a connection is kept open without a request. Default 30 s.
    pub idle_connection_time_max: Duration,
    /// Bytes of a request's body, which is never held as a whole. Default 1 GiB.
    pub request_bytes_max: u64,
    /// Bytes of a request's body that are held until its length is known, if a backend must know that before. Default 1
    /// MiB.
    pub held_bytes_max: usize,
    /// Bytes of a response's head; at least 8192. Default 64 KiB.
    pub response_head_bytes_max: usize,
    /// Header fields of a response. Default 100.
    pub response_fields_max: usize,
    /// Bytes of one response that wait for the client; with HTTP/2, the window of its stream as
    /// well. Default 256 KiB.
    pub buffer_bytes_max: usize,
    /// Bytes of all responses together that wait for the client. Beyond it, each response holds
    /// only what was read at once. Default 64 MiB.
    pub buffers_bytes_max: usize,
    /// When a backend counts as up.
    pub health: HealthOptions,
    /// The path of the health check, if there is one. It fails with any answer other than 2xx or
    /// 3xx.
    pub health_path: Option<PathAndQuery>,
    /// The interval of the health check, and the time it has to answer. Default 5 s.
    pub health_every: Duration,
    /// Whether a request's own `Forwarded` and `X-Forwarded-*` are kept. Default: no.
    pub trust_forwarded: bool,
}

impl UpstreamOptions {
    /// Whether the backends speak FastCGI.
    pub fn speak_fastcgi(&self) -> bool {
        self.addresses().any(UpstreamAddress::speaks_fastcgi)
    }

    /// Where the backends are.
    pub fn addresses(&self) -> impl Iterator<Item = &UpstreamAddress> + Clone {
        self.backends.iter().map(|backend| &backend.address)
    }
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            backends: Vec::new(),
            hash_by: None,
            sticky_cookie: None,
            retries: RetryLimit::default(),
            resolve_every: None,
            name_servers: Vec::new(),
            authorities: None,
            http: HttpVersion::Auto,
            streams_max: 100,
            ping_every: None,
            connect_time_max: Duration::from_secs(5),
            first_byte_time_max: Duration::from_secs(60),
            idle_time_max: Duration::from_secs(60),
            upload_time_max: Duration::from_secs(30),
            tunnel_idle_time_max: Duration::from_secs(600),
            connections_max: 256,
            idle_connections_max: 128,
            idle_connection_time_max: Duration::from_secs(30),
            request_bytes_max: 1 << 30,
            held_bytes_max: 1 << 20,
            response_head_bytes_max: 64 * 1024,
            response_fields_max: 100,
            buffer_bytes_max: 256 * 1024,
            buffers_bytes_max: 64 * 1024 * 1024,
            health: HealthOptions::default(),
            health_path: None,
            health_every: Duration::from_secs(5),
            trust_forwarded: false,
        }
    }
}
