//! The limits of a site. They are known once the request's head has named the site.
//!
//! | limit | beyond it the client gets |
//! |---|---|
//! | requests at a time | 503 with `Retry-After` |
//! | bytes of the body | 413; a body of unknown length ends there on its way to the backend |
//! | time until the response begins | 504 |

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::header::{CONTENT_LENGTH, HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{Method, StatusCode};

use super::decide::Decided;
use crate::context::Connection;
use crate::files::Plan;
use crate::identity::Identity;
use crate::limits::SiteLimits;
use crate::place::{Place, Spot};
use crate::proxy::RequestBytesMax;

/// When a refused client may come again.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");

/// A request that counts among those of its site, as long as this is held.
pub struct Presence(Arc<AtomicUsize>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts a request among those of its site, and refuses it beyond the site's limits.
pub fn enter(connection: &Connection, place: &mut Place, head: &mut Parts) -> Option<Presence> {
    let Place::At(spot) = place else {
        return None;
    };
    let limits = &spot.site(connection).limits;
    if *limits == SiteLimits::default() {
        return None;
    }
    if let Some(bytes_max) = limits.request_bytes_max {
        head.extensions.insert(RequestBytesMax(bytes_max));
        if length(head).is_some_and(|bytes| bytes > bytes_max) {
            spot.refuse(Plan::text(StatusCode::PAYLOAD_TOO_LARGE, &head.method));
        }
    }
    let (requests_max, requests) = limits
        .requests_max
        .zip(connection.settings.requests(spot.number()))?;
    let more = |requests| (requests < requests_max).then_some(requests + 1);
    match requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
        Ok(_) => Some(Presence(Arc::clone(requests))),
        Err(_) => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            let mut plan = Plan::text(status, &head.method);
            plan.headers.change().insert(RETRY_AFTER, RETRY_AFTER_S);
            report(connection, spot, status, "requests-max", None);
            spot.refuse(plan);
            None
        }
    }
}

/// How long a request may take, and which it is.
pub struct Deadline {
    time_max: Duration,
    identity: Option<Identity>,
}

impl Deadline {
    /// That of a request to this site. `None`: it has none.
    pub fn of(connection: &Connection, spot: &Spot, identity: Option<&Identity>) -> Option<Self> {
        let time_max = spot.site(connection).limits.request_time_max?;
        let identity = identity.cloned();
        Some(Self { time_max, identity })
    }

    /// The answer, or 504 if it takes longer.
    pub async fn keep(
        self,
        connection: &Connection,
        spot: &Spot,
        method: &Method,
        deciding: Pin<&mut impl Future<Output = Decided>>,
    ) -> Decided {
        match tokio::time::timeout(self.time_max, deciding).await {
            Ok(decided) => decided,
            Err(_elapsed) => {
                let status = StatusCode::GATEWAY_TIMEOUT;
                let identity = self.identity.as_ref();
                report(connection, spot, status, "request-time-max", identity);
                Plan::text(status, method).into()
            }
        }
    }
}

fn report(
    connection: &Connection,
    spot: &Spot,
    status: StatusCode,
    limit: &str,
    identity: Option<&Identity>,
) {
    let site = spot.site(connection).label();
    connection
        .server
        .report_limited(&site, status, limit, identity);
}

fn length(head: &Parts) -> Option<u64> {
    head.headers
        .get(CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}
