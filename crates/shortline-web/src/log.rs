//! What the access log gets to know of every response.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

/// One response, finished or not.
#[derive(Clone, Debug)]
pub struct AccessRecord {
    /// The client.
    pub peer: IpAddr,
    /// The request's method.
    pub method: String,
    /// The request's target as received, path and query.
    pub target: String,
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`.
    pub version: &'static str,
    /// The response's status.
    pub status: u16,
    /// Body bytes handed to the connection.
    pub body_bytes: u64,
    /// The `Referer` field.
    pub referer: Option<String>,
    /// The `User-Agent` field.
    pub user_agent: Option<String>,
    /// From the complete request to the first grant.
    pub wait: Duration,
    /// From the first grant until the last byte was handed over or the response was given up.
    pub send: Duration,
    /// When the request was complete.
    pub time: SystemTime,
    /// Whether the whole response was handed over.
    pub complete: bool,
}

/// Receives a record of every response. It must not block: responses wait for it.
pub trait AccessLog: Send + Sync {
    /// Called when a response has ended.
    fn log(&self, record: AccessRecord);
}
