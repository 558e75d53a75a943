//! What became of each request, and the result CSV:
//! `at,path,size,received,ok,tries,lag,connect,first_byte,response_time,error`. If the run has
//! sources, the column `source` follows, the address a request came from. In a closed loop `user`
//! and `request` follow: their numbers, by which two runs of a seed join.
//!
//! All times are seconds with six places. `at` counts from the start of the run. `lag`, `connect`,
//! `first_byte` and `response_time` count from the request's **intended** start, so a late start
//! makes no server look better. What never happened is left empty. `connect` is when a connection
//! (with its TLS handshake) was ready, `first_byte` when the response's head was there, both of the
//! last try.

mod csv;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

pub use csv::{
    PACKED, RecordError, RecordProblem, read_records, read_records_from, write_records,
    write_records_as, write_records_to,
};

/// One request and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestRecord {
    /// Intended start, in seconds after the start of the run.
    pub at_s: f64,
    /// The request target.
    pub path: String,
    /// The size that was expected, in bytes.
    pub size: u64,
    /// Body bytes received in the last try.
    pub received: u64,
    /// How often it was sent or tried; 1 unless retried.
    pub tries: u32,
    /// How late it really started, in seconds.
    pub lag_s: f64,
    /// When a connection was ready, in seconds after the intended start.
    pub connect_s: Option<f64>,
    /// When the response's head was there, in seconds after the intended start.
    pub first_byte_s: Option<f64>,
    /// When the last byte was there, or it failed, in seconds after the intended start.
    pub response_time_s: f64,
    /// Why it failed; `None` if it did not.
    pub failure: Option<Failure>,
    /// The address it came from; `None` where the system chose.
    pub source: Option<IpAddr>,
    /// Whose request it is in a closed loop; `None` in an open one.
    pub turn: Option<Turn>,
}

/// A request's place in the closed loop, the same in each run of a seed. Both count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Turn {
    /// The user.
    pub user: u64,
    /// Which of the user's requests.
    pub request: u64,
}

impl RequestRecord {
    /// A request that got its response on time at the first try, and of which nothing more is
    /// known. Times are in seconds, `at_s` after the start of the run and `response_time_s` after
    /// that.
    pub fn finished(at_s: f64, path: &str, size: u64, response_time_s: f64) -> Self {
        Self {
            at_s,
            path: path.to_owned(),
            size,
            received: size,
            tries: 1,
            lag_s: 0.0,
            connect_s: None,
            first_byte_s: None,
            response_time_s,
            failure: None,
            source: None,
            turn: None,
        }
    }

    /// Whether the whole response came as it should.
    pub fn ok(&self) -> bool {
        self.failure.is_none()
    }
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Failure {
    /// No connection could be made: refused, unreachable, out of ports.
    Connect,
    /// The TLS handshake failed or agreed on another protocol.
    Tls,
    /// The connection or stream was reset or closed before a response began, or reset in it.
    Reset,
    /// The user's patience ended (`--abort-after`), in every try.
    Timeout,
    /// A status other than 200.
    Status(u16),
    /// Fewer body bytes than the server promised or the trace expects.
    Short,
    /// What came was not HTTP.
    Protocol,
    /// Not finished when the run ended; its time is the time until then.
    Unfinished,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect => f.write_str("connect"),
            Self::Tls => f.write_str("tls"),
            Self::Reset => f.write_str("reset"),
            Self::Timeout => f.write_str("timeout"),
            Self::Status(code) => write!(f, "status-{code}"),
            Self::Short => f.write_str("short"),
            Self::Protocol => f.write_str("protocol"),
            Self::Unfinished => f.write_str("unfinished"),
        }
    }
}

impl FromStr for Failure {
    type Err = UnknownFailure;

    fn from_str(name: &str) -> Result<Self, UnknownFailure> {
        let status = |name: &str| Some(Self::Status(name.strip_prefix("status-")?.parse().ok()?));
        match name {
            "connect" => Ok(Self::Connect),
            "tls" => Ok(Self::Tls),
            "reset" => Ok(Self::Reset),
            "timeout" => Ok(Self::Timeout),
            "short" => Ok(Self::Short),
            "protocol" => Ok(Self::Protocol),
            "unfinished" => Ok(Self::Unfinished),
            _ => status(name).ok_or(UnknownFailure),
        }
    }
}

impl Serialize for Failure {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A word that names no [`Failure`].
#[derive(Debug, Error, PartialEq, Eq)]
#[error("want connect, tls, reset, timeout, status-NNN, short, protocol or unfinished")]
pub struct UnknownFailure;
