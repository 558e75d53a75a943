//! The server's limits. Each is an option with a default that suits a public server.

use std::time::Duration;

/// What one client, and all clients together, may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections in all. Further ones wait in the kernel's backlog. Default 20,000.
    pub connections_max: usize,
    /// Open connections of one address. Further ones are closed at once. Default 4,096.
    pub connections_per_address_max: usize,
    /// Bytes of a request's head; at least 8192 (the parser's buffer). Default 8192.
    pub header_bytes_max: usize,
    /// Header fields of a request. Default 100.
    pub header_fields_max: usize,
    /// Time for a request's head, and for a TLS handshake. Default 20 s.
    pub header_time_max: Duration,
    /// Time a connection may stay open without a request. Default 60 s.
    pub idle_time_max: Duration,
    /// Time a response may make no progress because its client takes nothing. Default 60 s.
    pub stall_time_max: Duration,
    /// HTTP/2 streams of one connection at a time. Default 128.
    pub streams_max: u32,
    /// Files read from disk at the same time. Default 8.
    pub disk_reads_max: usize,
    /// Responses of backends compressed at the same time; further ones leave as they are. Default 64.
    pub compressions_max: usize,
}

/// What one site may take besides. Without a number there is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteLimits {
    /// Bytes of a request's body.
    pub request_bytes_max: Option<u64>,
    /// Requests at a time, from the whole head to the end of the response.
    pub requests_max: Option<usize>,
    /// Time from a request's whole head until its response begins.
    pub request_time_max: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 20_000,
            connections_per_address_max: 4_096,
            header_bytes_max: 8_192,
            header_fields_max: 100,
            header_time_max: Duration::from_secs(20),
            idle_time_max: Duration::from_secs(60),
            stall_time_max: Duration::from_secs(60),
            streams_max: 128,
            disk_reads_max: 8,
            compressions_max: 64,
        }
    }
}
