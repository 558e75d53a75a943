//! From a request to a response that may start: the site decides what it is, the link decides
//! when. The same for HTTP/1.1 and HTTP/2.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, StatusCode, Version};
use hyper::upgrade::Upgraded;
use shortline_link::{JobHandle, Length};

use crate::account::{Account, RequestFacts};
use crate::connection::Connection;
use crate::outgoing::{Content, Framing, Outgoing};
use crate::proxy::routes::Route;
use crate::proxy::{self, Proxied, Received};
use crate::site::{Plan, PlanBody, RequestHead};

/// Bytes of `HTTP/1.1 200 OK`, the `date` field and the blank line.
const HEAD_BYTES_BASE: usize = 17 + 37 + 2;
/// Header and tag of a TLS record, and the byte of its content type (RFC 8446 5.2).
const TLS_RECORD_BYTES: u32 = 22;
/// Header of an HTTP/2 frame (RFC 9113 4.1).
const HTTP2_FRAME_BYTES: u32 = 9;
/// Our heads as HPACK leaves them, about a quarter of their text.
const HPACK_DIVISOR: usize = 4;

/// Size, line ends and the like of a chunk in HTTP/1.1 (RFC 9112 7.1).
const HTTP1_CHUNK_BYTES: u32 = 8;

/// A response whose first quantum is granted.
pub struct Started {
    /// Its status.
    pub status: StatusCode,
    /// Its header fields, without the date.
    pub headers: HeaderMap,
    /// Its body, and the turns it waits for.
    pub outgoing: Outgoing,
    /// What takes the connection over afterwards.
    pub tunnel: Option<Tunnel>,
}

/// A backend that has switched protocols.
pub struct Tunnel {
    /// Its connection.
    pub backend: Upgraded,
    /// How long neither side need send anything.
    pub idle_time_max: Duration,
}

/// A response as it was decided.
struct Decided {
    status: StatusCode,
    headers: HeaderMap,
    content: Content,
    tunnel: Option<Tunnel>,
}

/// Decides the response to a request and waits until it may start.
pub async fn respond(
    connection: &Arc<Connection>,
    head: Parts,
    body: Received,
) -> io::Result<Started> {
    let target = target(&head).to_owned();
    let (version, method) = (head.version, head.method.clone());
    let mut account = Account::open(
        connection,
        &RequestFacts {
            method: &method,
            target: &target,
            version,
            headers: &head.headers,
        },
    );
    let closes = asks_to_close(version, &head.headers);
    let mut decided = decide(connection, head, body, &target).await;
    if closes && decided.tunnel.is_none() {
        // hyper would add it later, 19 bytes that the first quantum had no room for: they made a
        // segment of their own, 80 bytes a response on the link.
        let close = HeaderValue::from_static("close");
        decided.headers.insert(header::CONNECTION, close);
    }
    let body_bytes = decided.content.bytes();
    let framing = framing(connection, version, &decided.headers, body_bytes);
    let length = body_bytes.map_or(Length::Unknown, |bytes| {
        Length::Known(bytes + u64::from(framing.head_bytes))
    });
    let transport = connection.watch.transport();
    let submitted = connection.settings.link.submit(transport, length);
    let job = submitted.unwrap_or_else(|_full| {
        // Better an answer at once than a wait without end.
        decided = Plan::text(StatusCode::SERVICE_UNAVAILABLE, &method).into();
        JobHandle::unscheduled()
    });
    let Decided {
        status,
        headers,
        content,
        tunnel,
    } = decided;
    account.set_status(status.as_u16());
    let mut outgoing = Outgoing::new(job, content, framing, account);
    poll_fn(|context| outgoing.poll_start(context)).await?;
    outgoing.start();
    Ok(Started {
        status,
        headers,
        outgoing,
        tunnel,
    })
}

/// The route that answers a request, if it is none for a file.
pub fn route<'a>(connection: &'a Connection, head: &Parts) -> Option<&'a Route> {
    connection.settings.routes.find(head.uri.path())
}

fn target(head: &Parts) -> &str {
    head.uri
        .path_and_query()
        .map_or("*", |path_and_query| path_and_query.as_str())
}

async fn decide(connection: &Connection, head: Parts, body: Received, target: &str) -> Decided {
    if !names_one_host(&head) {
        return bad_request().into();
    }
    let Some(route) = route(connection, &head) else {
        // `body` is dropped with the answer ready: to drop it before would close the connection.
        return plan(connection, &head, target).await.into();
    };
    let method = head.method.clone();
    match proxy::ask(connection, route, head, body).await {
        Ok(proxied) => Decided::proxied(proxied, route),
        Err(error) => {
            tracing::debug!("{}: {error}", route.path);
            error.plan(&method).into()
        }
    }
}

async fn plan(connection: &Connection, head: &Parts, target: &str) -> Plan {
    let request = RequestHead {
        method: &head.method,
        target,
        headers: &head.headers,
    };
    match &connection.settings.site {
        Some(site) => site.respond(&request).await,
        None => Plan::text(StatusCode::NOT_FOUND, &head.method),
    }
}

impl Decided {
    fn proxied(proxied: Proxied, route: &Route) -> Self {
        Self {
            status: proxied.status,
            headers: proxied.headers,
            content: match proxied.body {
                Some(relayed) => Content::Relayed(relayed),
                None => PlanBody::Empty.into(),
            },
            tunnel: proxied.upgraded.map(|backend| Tunnel {
                backend,
                idle_time_max: route.upstream.options.tunnel_idle_time_max,
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

/// RFC 9112 3.2: exactly one `Host` field in HTTP/1.1; HTTP/2 has `:authority` instead.
/// Nothing else is made of it here: every host gets the same files, and redirects are relative.
fn names_one_host(head: &Parts) -> bool {
    let mut fields = head.headers.get_all(header::HOST).iter();
    let first = fields.next();
    let missing = first.is_none() && head.version == Version::HTTP_11;
    if missing || fields.next().is_some() {
        return false;
    }
    head.uri.authority().is_some() || first.is_none_or(|host| host.to_str().is_ok())
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

fn bad_request() -> Plan {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Plan {
        status: StatusCode::BAD_REQUEST,
        headers,
        body: PlanBody::Empty,
    }
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
