//! Requests copied to another server, whose responses nobody gets (nginx's `mirror`): to try a new version with real requests.
//!
//! A copy never slows or fails the request that it is of. It is sent by a task of its own, once the request's body has passed by whole;
//! until then the bytes are copied as the backend takes them. It is dropped, and counted, where as many are under way as may, or the
//! body is too long. So the memory is `in_flight_max` times `body_bytes_max` at most. A request that breaks off is not sent on.
//!
//! Copies are drawn by a hash of their number, not each n-th: requests that alternate would else be of one sort. Upgrades are not
//! copied, and neither are requests that a cache answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, TE, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Uri};
use http_body_util::BodyExt;
use serde::Serialize;
use shortline_tls::TlsError;
use tokio::time::timeout;

use super::choice::{Wish, name_of};
use super::error::ProxyError;
use super::exchange::{self, Answer};
use super::options::UpstreamOptions;
use super::pool::Caller;
use super::trail::{Addressee, Trail};
use super::upload::RequestBody;
use super::upstream::Upstream;

/// Bytes of a response that are read so that its connection can be kept.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// Where copies go, and how many.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorOptions {
    /// The server.
    pub upstream: UpstreamOptions,
    /// The part of the requests that is copied, from 0 to 1.
    pub share: f64,
    /// The longest body of a request that is copied.
    pub body_bytes_max: usize,
    /// The most copies at a time.
    pub in_flight_max: usize,
    /// Time until a copy is answered, and for the rest of its response.
    pub time_max: Duration,
}

/// The copies of a route's requests; see the module's text.
pub struct Mirror {
    options: MirrorOptions,
    upstream: Arc<Upstream>,
    drawn: AtomicU64,
    in_flight: AtomicUsize,
    answered_total: AtomicU64,
    failed_total: AtomicU64,
    dropped_total: AtomicU64,
}

/// A mirror at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct MirrorSnapshot {
    /// Copies under way.
    pub in_flight: usize,
    /// Copies that were answered, whatever the answer.
    pub answered_total: u64,
    /// Copies that were sent, or should have been, and not answered.
    pub failed_total: u64,
    /// Copies that were not sent: too many were under way, their bodies were too long, or the request broke off.
    pub dropped_total: u64,
}

/// A copy that is being made.
pub struct Copying {
    place: Place,
    caller: Caller,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: BytesMut,
}

/// A place among those under way.
struct Place(Arc<Mirror>);

impl Mirror {
    /// Opens the server. Must be called inside a runtime.
    ///
    /// # Errors
    /// As [`Upstream::open`].
    pub fn open(options: MirrorOptions) -> Result<Arc<Self>, TlsError> {
        Ok(Arc::new(Self {
            upstream: Upstream::open(options.upstream.clone())?,
            options,
            drawn: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            answered_total: AtomicU64::new(0),
            failed_total: AtomicU64::new(0),
            dropped_total: AtomicU64::new(0),
        }))
    }

    /// The server.
    pub fn upstream(&self) -> &Arc<Upstream> {
        &self.upstream
    }

    /// Its state now.
    pub fn snapshot(&self) -> MirrorSnapshot {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MirrorSnapshot {
            in_flight: self.in_flight.load(Ordering::Relaxed),
            answered_total: count(&self.answered_total),
            failed_total: count(&self.failed_total),
            dropped_total: count(&self.dropped_total),
        }
    }

    /// Begins a copy of a request as its backend gets it, if it is one of those that are copied. `body_bytes` is `None` if only
    /// the end of the body tells its length.
    pub fn begin(
        self: &Arc<Self>,
        caller: Caller,
        head: &Parts,
        body_bytes: Option<u64>,
    ) -> Option<Copying> {
        if head.headers.contains_key(UPGRADE) || !self.draws() {
            return None;
        }
        let bytes_max = self.options.body_bytes_max as u64;
        let place = match body_bytes {
            Some(bytes) if bytes > bytes_max => None,
            _ => Place::take(self),
        };
        let Some(place) = place else {
            self.dropped_total.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        Some(Copying {
            place,
            caller,
            method: head.method.clone(),
            uri: head.uri.clone(),
            headers: head.headers.clone(),
            body: BytesMut::new(),
        })
    }

    /// Whether the next request is one of those that are copied.
    fn draws(&self) -> bool {
        let number = self.drawn.fetch_add(1, Ordering::Relaxed);
        is_drawn(number, self.options.share)
    }
}

fn is_drawn(number: u64, share: f64) -> bool {
    share >= 1.0 || (name_of(number) as f64) < share * 2_f64.powi(64)
}

impl Place {
    fn take(mirror: &Arc<Mirror>) -> Option<Self> {
        let another = |taken| (taken < mirror.options.in_flight_max).then_some(taken + 1);
        let order = Ordering::Relaxed;
        let taken = mirror.in_flight.fetch_update(order, order, another);
        taken.is_ok().then(|| Self(Arc::clone(mirror)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Copying {
    /// Copies a piece of the body. `None`: it is too long.
    pub fn push(mut self, piece: &[u8]) -> Option<Self> {
        if self.body.len() + piece.len() > self.place.0.options.body_bytes_max {
            self.is_dropped();
            return None;
        }
        self.body.extend_from_slice(piece);
        Some(self)
    }

    /// The request has broken off, or is too long.
    pub fn is_dropped(self) {
        let dropped = &self.place.0.dropped_total;
        dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// The request is whole. Must be called inside a runtime.
    pub fn send(self) {
        let Self {
            place,
            caller,
            method,
            uri,
            mut headers,
            body,
        } = self;
        for name in [CONNECTION, EXPECT, TE, TRANSFER_ENCODING] {
            headers.remove(name);
        }
        if !body.is_empty() {
            headers.insert(CONTENT_LENGTH, body.len().into());
        }
        tokio::spawn(async move {
            let mut request = Box::new(Request::new(RequestBody::whole(body.freeze())));
            *request.method_mut() = method;
            *request.uri_mut() = uri;
            *request.headers_mut() = headers;
            place.0.exchange(caller, request).await;
        });
    }
}

impl Mirror {
    async fn exchange(&self, caller: Caller, request: Box<Request<RequestBody>>) {
        let mut trail = Trail::begin(None);
        let (upstream, wish) = (&self.upstream, Wish::default());
        let asking = exchange::exchange(upstream, &caller, wish, request, &mut trail);
        let time_max = self.options.time_max;
        let answered = timeout(time_max, asking).await;
        let late = |_elapsed| {
            Err(ProxyError::Late {
                backend: self.label(),
            })
        };
        match answered.unwrap_or_else(late) {
            Ok(answer) => {
                self.answered_total.fetch_add(1, Ordering::Relaxed);
                // Late or not: nobody wants it.
                let _ = timeout(time_max, pass_over(answer)).await;
            }
            Err(error) => {
                self.failed_total.fetch_add(1, Ordering::Relaxed);
                let addressee = Addressee {
                    label: "mirror",
                    upstream,
                };
                trail.log_failed(addressee, &error);
            }
        }
    }

    fn label(&self) -> String {
        let mut addresses = self.options.upstream.addresses();
        addresses
            .next()
            .map(ToString::to_string)
            .unwrap_or_default()
    }
}

/// Reads a response for nobody, if it is short. Else its connection is closed.
async fn pass_over(answer: Answer) {
    let Answer { response, ending } = answer;
    let mut body = response.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += match frame {
            Ok(frame) => frame.data_ref().map_or(0, Bytes::len),
            Err(_) => return,
        };
        if bytes > RESPONSE_BYTES_MAX {
            return;
        }
    }
    ending.complete();
    ending.keep_connection().await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::UpstreamAddress;
    use super::*;
    use crate::proxy_header::Ends;

    fn mirror(share: f64) -> Arc<Mirror> {
        let nobody = UpstreamAddress::Tcp {
            host: "127.0.0.1".to_owned(),
            port: 1,
        };
        let options = MirrorOptions {
            upstream: UpstreamOptions {
                backends: vec![nobody.into()],
                ..UpstreamOptions::default()
            },
            share,
            body_bytes_max: 10,
            in_flight_max: 2,
            time_max: Duration::from_secs(1),
        };
        Mirror::open(options).unwrap()
    }

    fn begun(mirror: &Arc<Mirror>, body_bytes: Option<u64>) -> Option<Copying> {
        let end = |port| std::net::SocketAddr::from(([192, 0, 2, 1], port));
        let caller = Caller {
            worker: 0,
            client: 0,
            ends: Ends {
                client: end(1),
                proxy: end(2),
            },
        };
        let (head, ()) = Request::new(()).into_parts();
        mirror.begin(caller, &head, body_bytes)
    }

    #[test]
    fn the_share_that_is_asked_for_is_drawn() {
        for (share, expected) in [(0.0, 0), (0.1, 1000), (0.5, 5000), (1.0, 10_000)] {
            let drawn = (0..10_000)
                .filter(|number| is_drawn(*number, share))
                .count();
            assert!(drawn.abs_diff(expected) <= 200, "{drawn} of {expected}");
            // Neither of two sorts that alternate is left out.
            let even = (0..10_000).filter(|number| number % 2 == 0 && is_drawn(*number, share));
            assert!(even.count().abs_diff(expected / 2) <= 150);
        }
    }

    #[tokio::test]
    async fn what_is_too_much_or_too_long_is_dropped_and_counted() {
        let mirror = mirror(1.0);
        let first = begun(&mirror, None).unwrap();
        let second = begun(&mirror, Some(10)).unwrap();
        assert!(begun(&mirror, Some(0)).is_none(), "two are under way");
        assert!(first.push(b"1234567890").unwrap().push(b"1").is_none());
        assert!(begun(&mirror, Some(11)).is_none(), "too long");
        second.is_dropped();
        let now = mirror.snapshot();
        assert_eq!(
            (now.in_flight, now.dropped_total, now.failed_total),
            (0, 4, 0)
        );
        let none = super::tests::mirror(0.0);
        assert!(begun(&none, Some(0)).is_none());
        assert_eq!(none.snapshot().dropped_total, 0);
    }
}
