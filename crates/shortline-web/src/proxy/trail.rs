//! How far a request came at its backends. It is logged if the request ends in 502, 503 or 504.
//!
//! A line has the route, the last backend asked, the reason, the request's id, and where the time went: waiting for
//! admission, connecting, until the head of an answer, and in all. The access log gets the same times ([`AtBackend`]).
//! Each route's backends get at
//! most ten lines a second. The next line says how many were left out ([`shortline_base::throttle`]).

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use shortline_base::clock::now_ns;

use super::error::{ProxyError, with_sources};
use super::pool::{Backend, Lease};
use super::upstream::Upstream;
use crate::identity::Identity;
use crate::log::BackendRecord;

/// A request under way; see the module's text.
pub struct Trail {
    identity: Option<Identity>,
    begun_ns: u64,
    /// The time until the request was admitted or refused, if an admission was asked.
    waited: Option<Duration>,
    /// The last backend asked, and since when.
    turned_to: Option<(Arc<Backend>, u64)>,
    /// How long the last connection took, including the wait for a place. Empty if one was kept.
    connected: Option<Duration>,
    /// When the head of an answer came.
    head_ns: Option<u64>,
}

/// Who was asked.
#[derive(Clone, Copy)]
pub struct Addressee<'a> {
    /// What messages call it: the path of a route.
    pub label: &'a str,
    /// The backends.
    pub upstream: &'a Upstream,
}

/// What is logged of a backend's part, when the head of its response is there or it was given up.
pub struct AtBackend {
    backend: Option<Arc<Backend>>,
    admission: Option<Duration>,
    connect: Option<Duration>,
    since_ns: Option<u64>,
    head_ns: u64,
    /// When the last byte of its response came.
    pub ended_ns: Option<u64>,
}

impl AtBackend {
    /// As it is logged.
    pub fn record(self) -> BackendRecord {
        let after = |ns: u64| Some(Duration::from_nanos(ns.saturating_sub(self.since_ns?)));
        BackendRecord {
            head: after(self.head_ns),
            whole: self.ended_ns.and_then(after),
            address: self.backend.map(|backend| backend.address().to_string()),
            admission: self.admission,
            connect: self.connect,
        }
    }
}

impl Trail {
    /// Starts the trail of a request that is complete now.
    pub fn begin(identity: Option<Identity>) -> Self {
        Self {
            identity,
            begun_ns: now_ns(),
            waited: None,
            turned_to: None,
            connected: None,
            head_ns: None,
        }
    }

    /// Notes that it was admitted or refused.
    pub(super) fn asked_to_wait(&mut self) {
        self.waited = Some(since(self.begun_ns));
    }

    /// Notes that this backend is tried.
    pub(super) fn turns_to(&mut self, backend: &Arc<Backend>, now_ns: u64) {
        self.turned_to = Some((Arc::clone(backend), now_ns));
        self.connected = None;
    }

    /// Notes how long a connection took that was asked for then, if it is a new one or there is none.
    pub(super) fn has_connected(
        &mut self,
        connected: &Result<Box<Lease>, ProxyError>,
        begun_ns: u64,
    ) {
        if !connected.as_ref().is_ok_and(|lease| lease.reused) {
            self.connected = Some(since(begun_ns));
        }
    }

    /// Notes that the head of an answer has come.
    pub(super) fn is_answered(&mut self) {
        self.head_ns = Some(now_ns());
    }

    /// Logs that there is no answer, unless that is the client's own fault.
    pub fn log_failed(&self, addressee: Addressee<'_>, error: &ProxyError) {
        let status = error.status();
        if is_backend_failure(status) {
            self.log(addressee, status, &with_sources(error));
        } else {
            tracing::debug!("{}: {error}", addressee.label);
        }
    }

    /// Logs that the answer is a backend's own 502, 503 or 504.
    pub fn log_passed_on(&self, addressee: Addressee<'_>, status: StatusCode) {
        if is_backend_failure(status) {
            self.log(addressee, status, "the backend answers so itself");
        }
    }

    /// What is logged of the backend's part. `ends`: nothing follows the head.
    pub fn at_backend(&self, ends: bool) -> AtBackend {
        let head_ns = self.head_ns.unwrap_or_else(now_ns);
        let turned_to = self.turned_to.as_ref();
        AtBackend {
            backend: turned_to.map(|(backend, _)| Arc::clone(backend)),
            admission: self.waited,
            connect: self.connected,
            since_ns: turned_to.map(|(_, since_ns)| *since_ns),
            head_ns,
            ended_ns: ends.then_some(head_ns),
        }
    }

    fn log(&self, addressee: Addressee<'_>, status: StatusCode, reason: &str) {
        let Some(untold) = addressee.upstream.may_log_failure() else {
            return;
        };
        let backend = self.turned_to.as_ref();
        tracing::warn!(
            route = addressee.label,
            backend = backend.map(|(backend, _)| backend.label()),
            status = status.as_u16(),
            reason,
            wait_ms = self.waited.map(ms),
            connect_ms = self.connected.map(ms),
            backend_ms = backend.map(|(_, since_ns)| ms(since(*since_ns))),
            total_ms = ms(since(self.begun_ns)),
            request_id = self
                .identity
                .as_ref()
                .map(|identity| identity.id.to_string()),
            untold,
            "a request failed"
        );
    }
}

/// Whether a status says that a backend, or the way to it, failed.
fn is_backend_failure(status: StatusCode) -> bool {
    [
        StatusCode::BAD_GATEWAY,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ]
    .contains(&status)
}

fn since(begun_ns: u64) -> Duration {
    Duration::from_nanos(now_ns().saturating_sub(begun_ns))
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn what_is_behind_an_error_is_told_once() {
        let source = io::Error::other("refused");
        let error = ProxyError::Connect {
            backend: "a:1".to_owned(),
            source,
        };
        assert_eq!(with_sources(&error), "cannot connect to a:1: refused");
    }
}
