//! How far a request came at its backends. It is logged if the request ends in 502, 503 or 504.
//!
//! A line has the route, the last backend asked, the reason, and where the time went: waiting for
//! admission, connecting, until the head of an answer, and in all. Each route's backends get at
//! most ten lines a second. The next line says how many were left out ([`crate::throttle`]).

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use super::error::{ProxyError, with_sources};
use super::pool::Backend;
use super::routes::Route;

/// A request under way; see the module's text.
pub struct Trail {
    begun: Instant,
    /// The time until the request was admitted or refused, if an admission was asked.
    waited: Option<Duration>,
    /// The last backend asked, and since when.
    turned_to: Option<(Arc<Backend>, Instant)>,
    /// How long the last connection took, including the wait for a place. Empty if one was kept.
    connected: Option<Duration>,
}

impl Trail {
    /// Starts the trail of a request that is complete now.
    pub fn begin() -> Self {
        Self {
            begun: Instant::now(),
            waited: None,
            turned_to: None,
            connected: None,
        }
    }

    /// Notes that it was admitted or refused.
    pub(super) fn asked_to_wait(&mut self) {
        self.waited = Some(self.begun.elapsed());
    }

    /// Notes that this backend is tried.
    pub(super) fn turns_to(&mut self, backend: &Arc<Backend>) {
        self.turned_to = Some((Arc::clone(backend), Instant::now()));
        self.connected = None;
    }

    /// Notes that a new connection was made, or failed.
    pub(super) fn has_connected(&mut self, took: Duration) {
        self.connected = Some(took);
    }

    /// Logs that there is no answer, unless that is the client's own fault.
    pub fn log_failed(&self, route: &Route, error: &ProxyError) {
        let status = error.status();
        if is_backend_failure(status) {
            self.log(route, status, &with_sources(error));
        } else {
            tracing::debug!("{}: {error}", route.path);
        }
    }

    /// Logs that the answer is a backend's own 502, 503 or 504.
    pub fn log_passed_on(&self, route: &Route, status: StatusCode) {
        if is_backend_failure(status) {
            self.log(route, status, "the backend answers so itself");
        }
    }

    fn log(&self, route: &Route, status: StatusCode, reason: &str) {
        let Some(untold) = route.upstream.may_log_failure() else {
            return;
        };
        let backend = self.turned_to.as_ref();
        tracing::warn!(
            route = route.path,
            backend = backend.map(|(backend, _)| backend.address().to_string()),
            status = status.as_u16(),
            reason,
            wait_ms = self.waited.map(ms),
            connect_ms = self.connected.map(ms),
            backend_ms = backend.map(|(_, since)| ms(since.elapsed())),
            total_ms = ms(self.begun.elapsed()),
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
