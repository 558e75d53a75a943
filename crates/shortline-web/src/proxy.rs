//! The reverse proxy: requests for certain paths go to an application server, and its responses
//! leave through the same uplink as files.
//!
//! | module | decides |
//! |---|---|
//! | [`routes`] | which requests are proxied, and where to |
//! | [`admission`] | when a request may go to its backend: a trait, which the gate implements |
//! | [`upstream`] | several backends for the same requests |
//! | `choice` | which of them gets a request |
//! | `affinity` | what ties a request to one of them |
//! | `condition` | which of them are up |
//! | `resolve` | the addresses of hosts with a name |
//! | [`service`] | the servers that DNS names (SRV) |
//! | `retries` | how often a second one is asked |
//! | `pool` | connections to one backend, kept alive |
//! | [`http1`] | a connection in HTTP/1.1 |
//! | `http2` | requests as streams of a connection in HTTP/2 |
//! | `sender` | connections that carry one request at a time |
//! | [`fastcgi`] | backends that speak FastCGI |
//! | `places` | how many of them a client may use at once |
//! | `tls` | which certificate a backend may show |
//! | [`head`] | header fields in both directions: hop by hop, `Forwarded`, `Host` |
//! | `upload` | the request's body on its way to the backend |
//! | [`mirror`] | copies of requests for another server |
//! | `exchange` | one request and its response: tries, times, what may be tried again |
//! | [`fetch`] | a small answer that is held whole |
//! | `response` | the response's body as the backend's protocol gives it |
//! | `relay` | the response's body, between the backend and the uplink; it is compressed there if its site says so |
//! | `trail` | what is logged of a request that no backend answered well |
//! | `tunnel` | what follows `101 Switching Protocols` |
//!
//! Backends are spoken to in FastCGI, in HTTP/1.1 or in HTTP/2, on the h2 crate's connections, with a pool of our own. The pool of
//! `hyper-util` does not tell whether a connection was used before, and that decides whether a
//! request may be sent again. It also bounds only idle connections.
//!
//! Departures: no `Via` (RFC 9110 7.6.3), since it makes common servers turn off compression.
//! Informational responses other than 100 and 101 are not passed on.

mod address;
pub mod admission;
mod affinity;
mod backend_socket;
mod choice;
mod condition;
mod error;
mod exchange;
pub mod fastcgi;
pub mod fetch;
pub mod head;
pub mod http1;
mod http2;
pub mod mirror;
mod options;
mod places;
mod pool;
mod relay;
mod resolve;
mod response;
mod retries;
pub mod routes;
mod sender;
pub mod service;
mod tls;
mod trail;
mod tunnel;
mod upload;
pub mod upstream;

use std::pin::pin;
use std::sync::Arc;

use http::header::{self, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode, Version};
use http_body::Body;
use shortline_tls::ClientIdentity;

pub use address::{AddressError, Scheme, Service, UpstreamAddress};
pub use affinity::{KeyOf, StickyCookie};
pub use choice::Standing;
pub use condition::HealthOptions;
pub use options::{BackendOptions, HttpVersion, UpstreamOptions};
pub use pool::{BackendSnapshot, Caller};
pub use relay::Relayed;
use relay::Way;
pub use retries::RetryLimit;
pub use trail::{Addressee, AtBackend, Trail};
pub use tunnel::tunnel;
pub use upload::{ContinueWanted, Http2Body, Received, RequestBytesMax};

use crate::compress::Passing;
use crate::compress::encoder::Coder;
use crate::context::Connection;
use crate::response_cache::Recorder;
use crate::watch::Watch;
use admission::{Applicant, Held};
pub use error::ProxyError;
use error::UploadError;
use head::Forwarding;
pub use http1::Switched;
use response::ResponseBody;
use routes::Route;
use upload::{RequestBody, Timer};
use upstream::Upstream;

/// A response from a backend whose head has arrived.
pub struct Proxied {
    /// Its status.
    pub status: StatusCode,
    /// Its header fields, without those of its connection.
    pub headers: HeaderMap,
    /// Its body; `None` if it has none.
    pub body: Option<Relayed>,
    /// The backend's connection after `101 Switching Protocols`.
    pub upgraded: Option<Box<Switched>>,
}

impl Proxied {
    /// Gives a body that is on its way time to arrive.
    async fn settle(&mut self) {
        if let Some(body) = &self.body {
            body.settle().await;
        }
    }
}

/// Asks a backend of `route` for `client`, by its name, and tells it of the client's certificate. Afterwards `trail` says how
/// far that came. A response that may be kept is by `recorder`.
///
/// # Errors
/// `ProxyError`, which decides what the client gets.
pub async fn ask(
    connection: &Connection,
    (client, certificate): (u128, Option<&ClientIdentity>),
    route: &Route,
    (head, body): (Box<Parts>, Received),
    (passing, recorder): (Passing, Option<Box<Recorder>>),
    trail: &mut Trail,
) -> Result<Proxied, ProxyError> {
    head::refuse_ambiguous(&head)?;
    let held = Held::new(match &route.admission {
        Some(admission) => {
            let permit = admission
                .admit(&Applicant {
                    route: &route.path,
                    method: &head.method,
                    host: head::host_name(&head),
                    target: head.uri.path_and_query().map_or("/", |path| path.as_str()),
                    peer: connection.peer,
                    headers: &head.headers,
                })
                .await;
            trail.asked_to_wait();
            Some(permit?)
        }
        None => None,
    });
    let upstream = &route.upstream;
    let forwarding = Forwarding {
        peer: connection.peer,
        secure: connection.secure,
        trust: upstream.options.trust_forwarded,
        certificate,
        last: Some(&connection.introduction),
    };
    let wish = affinity::wish(&upstream.options, &head.headers, || {
        let clients = &connection.settings.clients;
        clients.asks(connection.peer, None, &head.headers).address
    });
    // What a protocol or TLS reads, or another client may get, cannot pass by them.
    let is_plain = head.version < Version::HTTP_2 && !connection.secure && recorder.is_none();
    let method = head.method.clone();
    let upgrade = head::upgrade_asked(&head);
    let caller = connection.caller(client);
    let body = RequestBody::new(body, &head, &held, &upstream.options)?;
    let body = match upstream.options.speak_fastcgi() {
        true => Box::pin(measured(body, upstream)).await?,
        false => body,
    };
    let request = request(route, caller, (head, body), upgrade.as_ref(), &forwarding);
    let answer = exchange::exchange(upstream, &caller, wish, request, trail).await?;
    trail.is_answered();
    let coding = |status, headers: &mut HeaderMap| {
        passing.begin(&connection.settings.streams, &method, status, headers)
    };
    let id = answer.ending.backend().id();
    // Only this client gets the cookie: what the recorder keeps for others has been taken before.
    let cookie = affinity::cookie(&upstream.options, wish, id, connection.secure);
    let watch = is_plain.then_some(&*connection.watch);
    let mut proxied = proxied(answer, &method, upgrade, held, (recorder, coding, watch))?;
    proxied.settle().await;
    if let Some(cookie) = cookie {
        proxied.headers.append(header::SET_COOKIE, cookie);
    }
    Ok(proxied)
}

/// The request as the backend gets it; a mirror gets a copy.
///
/// What an `async fn` has once lent out keeps its room in the future to the end, even when it has moved on. So body and head move through a
/// function that is not async.
fn request(
    route: &Route,
    caller: Caller,
    (head, mut body): (Box<Parts>, RequestBody),
    upgrade: Option<&HeaderValue>,
    forwarding: &Forwarding<'_>,
) -> Box<Request<RequestBody>> {
    let body_bytes = body.size_hint().exact();
    let head = head::to_backend(*head, body_bytes, upgrade, forwarding);
    if let Some(mirror) = &route.mirror {
        body.copy_to(mirror.begin(caller, &head, body_bytes));
    }
    Box::new(Request::from_parts(head, body))
}

/// How a body that nobody changes passes to the client that is watched: through a pipe if the buffer cannot hold all of it.
fn way_of(body: &mut ResponseBody, upstream: &Upstream, watch: Option<&Watch>) -> Way {
    let bytes_min = upstream.options.buffer_bytes_max.saturating_add(1);
    let watch = watch.filter(|_| body.movable(bytes_min).is_some());
    let piped = watch.and_then(|watch| watch.begin_pipe(|| upstream.pipe()));
    piped.map_or(Way::Plain, Way::Piped)
}

/// The body with its length, which FastCGI needs before it (RFC 3875, 4.1.2).
async fn measured(body: RequestBody, upstream: &Upstream) -> Result<RequestBody, UploadError> {
    if body.size_hint().exact().is_some() {
        return Ok(body);
    }
    let options = &upstream.options;
    let upload = Arc::clone(body.upload());
    let all_bytes = upstream.buffered_bytes();
    let measured = body.measured(options.held_bytes_max, all_bytes, options.buffers_bytes_max);
    let measured = upload
        .awaiting(options, &mut Timer::default(), pin!(measured))
        .await;
    measured.unwrap_or(Err(UploadError::Stalled))
}

/// The response as the client gets it. Its body begins to be read.
fn proxied(
    answer: exchange::Answer,
    method: &Method,
    upgrade: Option<HeaderValue>,
    held: Held,
    (recorder, coding, watch): (
        Option<Box<Recorder>>,
        impl FnOnce(StatusCode, &mut HeaderMap) -> Option<Coder>,
        Option<&Watch>,
    ),
) -> Result<Proxied, ProxyError> {
    let exchange::Answer { response, ending } = answer;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let mut headers = response.headers().clone();
        head::strip(&mut headers);
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        let upgrade = upgrade.ok_or(ProxyError::UpgradeUnasked)?;
        let chosen = response.headers().get(header::UPGRADE).cloned();
        headers.insert(header::UPGRADE, chosen.unwrap_or(upgrade));
        let ResponseBody::Http1(body) = response.into_body() else {
            return Err(ProxyError::UpgradeUnasked);
        };
        let upgraded = body.switch().map(Box::new);
        // What follows is not a unit of work: it may last for days.
        held.finish(true);
        return Ok(Proxied {
            status: StatusCode::SWITCHING_PROTOCOLS,
            headers,
            body: None,
            upgraded,
        });
    }
    let (parts, mut body) = response.into_parts();
    let mut headers = head::to_client(parts.headers, &body, method, parts.status);
    let bytes = body.size_hint().exact();
    let recording = recorder.and_then(|recorder| recorder.begin(parts.status, &headers, bytes));
    // What is kept is for all clients, whatever coding they take, so it stays as it is.
    let way = match recording {
        Some(recording) => Way::Recorded(recording.into()),
        None if body.is_end_stream() => Way::Plain,
        None => match coding(parts.status, &mut headers) {
            Some(coder) => Way::Coded(coder.into()),
            None => way_of(&mut body, &ending.upstream, watch),
        },
    };
    Ok(Proxied {
        status: parts.status,
        headers,
        body: relay::begin(body, ending, held, way),
        upgraded: None,
    })
}
