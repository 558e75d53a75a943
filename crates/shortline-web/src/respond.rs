//! From a request to a response that may start. The request's site decides what the response is, and the link
//! decides when it starts. HTTP/1.1 and HTTP/2 share this code.

use std::fmt::Display;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::{self, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Version};
use hyper::upgrade::Upgraded;
use shortline_link::{JobHandle, Length};

use crate::account::{Account, RequestFacts};
use crate::context::Connection;
use crate::files::{Plan, PlanBody, RequestHead};
use crate::outgoing::{Content, Framing, Outgoing};
use crate::proxy::routes::Route;
use crate::proxy::{self, Proxied, Received, Trail};
use crate::request;
use crate::sites::{self, Site};
use crate::unwanted::{self, Unsound};

/// Bytes of `HTTP/1.1 200 OK`, the `date` field and the blank line.
const HEAD_BYTES_BASE: usize = 17 + 37 + 2;
/// The header and tag of a TLS record, and the byte of its content type (RFC 8446 5.2).
const TLS_RECORD_BYTES: u32 = 22;
/// The header of an HTTP/2 frame (RFC 9113 4.1).
const HTTP2_FRAME_BYTES: u32 = 9;
/// HPACK leaves about a quarter of our heads' text.
const HPACK_DIVISOR: usize = 4;

/// The size, line ends and the like of an HTTP/1.1 chunk (RFC 9112 7.1).
const HTTP1_CHUNK_BYTES: u32 = 8;

/// A response whose first quantum is granted.
pub struct Started {
    /// Its status.
    pub status: StatusCode,
    /// Its header fields, without the date.
    pub headers: HeaderMap,
    /// Its body, which waits for its turns.
    pub outgoing: Outgoing,
    /// What takes over the connection afterwards.
    pub tunnel: Option<Box<Tunnel>>,
}

/// A backend that has switched protocols.
pub struct Tunnel {
    /// Its connection.
    pub backend: Upgraded,
    /// How long both sides may be silent.
    pub idle_time_max: Duration,
}

/// A response that is decided.
struct Decided {
    status: StatusCode,
    headers: HeaderMap,
    content: Content,
    tunnel: Option<Box<Tunnel>>,
}

/// A request whose response is not decided yet.
struct Undecided {
    version: Version,
    method: Method,
    closes: bool,
    account: Account,
}

/// A response up to its first grant. Most are decided at once and then need no task of their own.
pub struct Responding {
    /// What is waited for, and the request that waits.
    deciding: Option<Box<(Deciding, Undecided)>>,
    /// A decided response that waits for its turn.
    started: Option<Started>,
    /// What is left of the request's body. Dropping it before the answer is ready would close the
    /// connection.
    body: Option<Received>,
}

type Deciding = Pin<Box<dyn Future<Output = Decided> + Send>>;

/// Decides the response to a request and waits until it may start.
pub fn respond(connection: &Arc<Connection>, head: Parts, body: Received) -> Responding {
    let account = Account::open(
        connection,
        &RequestFacts {
            method: &head.method,
            target: target(&head),
            version: head.version,
            headers: &head.headers,
        },
    );
    let decided = decide_now(connection, &head, &body, account.begun_ns());
    let asked = Undecided {
        version: head.version,
        method: head.method.clone(),
        closes: asks_to_close(head.version, &head.headers),
        account,
    };
    match decided {
        Some(decided) => Responding {
            deciding: None,
            started: Some(asked.begin(decided)),
            body: Some(body),
        },
        None => {
            let now_ns = asked.account.begun_ns();
            let client = asked.account.client().name;
            let deciding = decide(Arc::clone(connection), client, head, body, now_ns);
            Responding {
                deciding: Some(Box::new((Box::pin(deciding), asked))),
                started: None,
                body: None,
            }
        }
    }
}

impl Future for Responding {
    type Output = io::Result<Started>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(waits) = &mut self.deciding {
            let decided = ready!(waits.0.as_mut().poll(context));
            let asked = self.deciding.take().map(|waits| waits.1);
            self.started = asked.map(|asked| asked.begin(decided));
        }
        let started = self.started.as_mut();
        let started = started.expect("invariant: a future is not asked for after its end");
        ready!(started.outgoing.poll_start(context))?;
        started.outgoing.start();
        drop(self.body.take());
        let started = self.started.take();
        Poll::Ready(Ok(started.expect("invariant: it was there just now")))
    }
}

impl Undecided {
    /// Submits the response to the link.
    fn begin(self, mut decided: Decided) -> Started {
        let Self {
            version,
            method,
            closes,
            mut account,
        } = self;
        if closes && decided.tunnel.is_none() {
            // hyper would add it later. The first quantum had no room for these 19 bytes, so they
            // made a segment of their own: 80 bytes more per response on the link.
            let close = HeaderValue::from_static("close");
            decided.headers.insert(header::CONNECTION, close);
        }
        let client = account.client();
        let connection = account.connection();
        let body_bytes = decided.content.bytes();
        let framing = framing(connection, version, &decided.headers, body_bytes);
        let length = body_bytes.map_or(Length::Unknown, |bytes| {
            Length::Known(bytes + u64::from(framing.head_bytes))
        });
        let transport = connection.watch.transport();
        let submitted = transport.submit(client, length);
        let job = submitted.unwrap_or_else(|full| {
            connection.server.report_full(&full);
            // Better to answer at once than to wait forever.
            decided = Plan::text(StatusCode::SERVICE_UNAVAILABLE, &method).into();
            JobHandle::unscheduled()
        });
        account.set_status(decided.status.as_u16());
        Started {
            status: decided.status,
            headers: decided.headers,
            outgoing: Outgoing::new(job, decided.content, framing, account),
            tunnel: decided.tunnel,
        }
    }
}

/// Whether a backend answers a request, and not a file.
pub fn has_route(connection: &Connection, head: &Parts) -> bool {
    sites::of_request(connection, head).is_ok_and(|site| route(site, head).is_some())
}

fn route<'a>(site: &'a Site, head: &Parts) -> Option<&'a Route> {
    site.routes.find(head.uri.path())
}

fn target(head: &Parts) -> &str {
    head.uri
        .path_and_query()
        .map_or("*", |path_and_query| path_and_query.as_str())
}

/// The answer, if it need not wait for a backend, a disk or the client.
fn decide_now(
    connection: &Connection,
    head: &Parts,
    body: &Received,
    now_ns: u64,
) -> Option<Decided> {
    if let Err(malformed) = request::check(head) {
        return Some(refusal(StatusCode::BAD_REQUEST, head, &malformed).into());
    }
    if matches!(body, Received::Http1(body) if unwanted::has_chunks(head, body)) {
        return None;
    }
    let site = match sites::of_request(connection, head) {
        Ok(site) if route(site, head).is_some() => return None,
        Ok(site) => site,
        Err(refusal) => return Some(refusal.into()),
    };
    let plan = match &site.files {
        Some(files) => files.respond_now(&request_head(head), now_ns)?,
        None => without_files(head),
    };
    Some(Decided::from(plan).of(connection, site))
}

/// The answer of a backend, or of a file that must be looked up on the disk.
async fn decide(
    connection: Arc<Connection>,
    client: u128,
    head: Parts,
    mut body: Received,
    now_ns: u64,
) -> Decided {
    let site = match sites::of_request(&connection, &head) {
        Ok(site) => site,
        Err(refusal) => {
            let unsound = pass_over(&connection, &head, &mut body).await;
            return unsound.unwrap_or(refusal).into();
        }
    };
    if let Some(route) = route(site, &head) {
        let decided = ask_backend(&connection, client, route, head, body).await;
        return decided.of(&connection, site);
    }
    if let Some(refusal) = pass_over(&connection, &head, &mut body).await {
        return refusal.into();
    }
    // `body` is dropped once the answer is ready; see `Responding::body`.
    let plan = match &site.files {
        Some(files) => files.respond(&request_head(&head), now_ns).await,
        None => without_files(&head),
    };
    Decided::from(plan).of(&connection, site)
}

async fn ask_backend(
    connection: &Arc<Connection>,
    client: u128,
    route: &Route,
    head: Parts,
    body: Received,
) -> Decided {
    let method = head.method.clone();
    let mut trail = Trail::begin();
    match proxy::ask(connection, client, route, head, body, &mut trail).await {
        Ok(proxied) => {
            trail.log_passed_on(route, proxied.status);
            Decided::proxied(proxied, route)
        }
        Err(error) => {
            trail.log_failed(route, &error);
            error.plan(&method).into()
        }
    }
}

fn request_head(head: &Parts) -> RequestHead<'_> {
    RequestHead {
        method: &head.method,
        target: target(head),
        headers: &head.headers,
    }
}

impl Decided {
    /// With what a site says in each response.
    fn of(mut self, connection: &Connection, site: &Site) -> Self {
        site.complete(connection.secure, &mut self.headers);
        self
    }

    fn proxied(proxied: Proxied, route: &Route) -> Self {
        Self {
            status: proxied.status,
            headers: proxied.headers,
            content: match proxied.body {
                Some(relayed) => Content::Relayed(relayed),
                None => PlanBody::Empty.into(),
            },
            tunnel: proxied.upgraded.map(|backend| {
                Box::new(Tunnel {
                    backend,
                    idle_time_max: route.upstream.options.tunnel_idle_time_max,
                })
            }),
        }
    }
}

impl From<Plan> for Decided {
    fn from(plan: Plan) -> Self {
        Self {
            status: plan.status,
            headers: plan.headers,
            content: plan.body.into(),
            tunnel: None,
        }
    }
}

/// Reads and drops the chunks of a request for a file. `Some`: they are malformed.
async fn pass_over(connection: &Connection, head: &Parts, body: &mut Received) -> Option<Plan> {
    let Received::Http1(body) = body else {
        return None;
    };
    if !unwanted::has_chunks(head, body) {
        return None;
    }
    let time_max = connection.settings.limits.header_time_max;
    let (status, why) = match unwanted::pass_over_chunks(body, time_max).await {
        Ok(()) => return None,
        Err(Unsound::Malformed) => (StatusCode::BAD_REQUEST, "the body's chunks are malformed"),
        Err(Unsound::Late) => (StatusCode::REQUEST_TIMEOUT, "the body does not come"),
    };
    Some(refusal(status, head, &why))
}

/// The answer if no files are served and no route takes the request: nothing is there, except that
/// the server exists (RFC 9110 9.3.7).
fn without_files(head: &Parts) -> Plan {
    if head.method == Method::OPTIONS && head.uri.path() == "*" {
        return Plan {
            status: StatusCode::NO_CONTENT,
            headers: HeaderMap::new(),
            body: PlanBody::Empty,
        };
    }
    Plan::text(StatusCode::NOT_FOUND, &head.method)
}

/// Whether the client wants the connection closed after this response (RFC 9112 9.6).
fn asks_to_close(version: Version, headers: &HeaderMap) -> bool {
    version == Version::HTTP_11
        && headers
            .get_all(header::CONNECTION)
            .iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
            .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// The answer to a malformed request. Nothing after it can be trusted to be a request.
fn refusal(status: StatusCode, head: &Parts, why: &dyn Display) -> Plan {
    let mut plan = Plan::explained(status, &head.method, why);
    let close = HeaderValue::from_static("close");
    plan.headers.insert(header::CONNECTION, close);
    plan
}

fn framing(
    connection: &Connection,
    version: Version,
    headers: &HeaderMap,
    body_bytes: Option<u64>,
) -> Framing {
    let fields: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let head_bytes = fields + HEAD_BYTES_BASE;
    let record_bytes = if connection.secure {
        TLS_RECORD_BYTES
    } else {
        0
    };
    match version {
        Version::HTTP_2 => Framing {
            head_bytes: (head_bytes / HPACK_DIVISOR) as u32 + HTTP2_FRAME_BYTES,
            chunk_bytes: record_bytes + HTTP2_FRAME_BYTES,
        },
        _ => Framing {
            head_bytes: head_bytes as u32,
            chunk_bytes: record_bytes
                + match body_bytes {
                    Some(_) => 0,
                    None => HTTP1_CHUNK_BYTES,
                },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_is_found_among_the_options_of_http_1_1() {
        let asks = |version, values: &[&'static str]| {
            let values = values.iter().copied().map(HeaderValue::from_static);
            let fields = values.map(|value| (header::CONNECTION, value));
            asks_to_close(version, &fields.collect())
        };
        assert!(asks(Version::HTTP_11, &["close"]));
        assert!(asks(Version::HTTP_11, &["TE, Close"]));
        assert!(asks(Version::HTTP_11, &["te", "upgrade , close"]));
        assert!(!asks(Version::HTTP_11, &["keep-alive", "closed"]));
        assert!(!asks(Version::HTTP_11, &[]));
        assert!(!asks(Version::HTTP_2, &["close"]));
    }
}
