//! From a request to a response that may start: the site decides what it is, the link decides
//! when. The same for HTTP/1.1 and HTTP/2.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;

use http::header::{self, HeaderValue};
use http::{HeaderMap, Request, StatusCode, Version};
use shortline_link::JobHandle;

use crate::account::{Account, RequestFacts};
use crate::connection::Connection;
use crate::outgoing::{Framing, Outgoing};
use crate::site::{Plan, PlanBody, RequestHead};

/// Bytes of `HTTP/1.1 200 OK`, the `date` field and the blank line.
const HEAD_BYTES_BASE: usize = 17 + 37 + 2;
/// Header and tag of a TLS record, and the byte of its content type (RFC 8446 5.2).
const TLS_RECORD_BYTES: u32 = 22;
/// Header of an HTTP/2 frame (RFC 9113 4.1).
const HTTP2_FRAME_BYTES: u32 = 9;
/// Our heads as HPACK leaves them, about a quarter of their text.
const HPACK_DIVISOR: usize = 4;

/// A response whose first quantum is granted.
pub struct Started {
    /// Its status.
    pub status: StatusCode,
    /// Its header fields, without the date.
    pub headers: HeaderMap,
    /// Its body, and the turns it waits for.
    pub outgoing: Outgoing,
}

/// Decides the response to `request` and waits until it may start.
pub async fn respond<B>(connection: &Arc<Connection>, request: &Request<B>) -> io::Result<Started> {
    let target = request
        .uri()
        .path_and_query()
        .map_or("*", |path_and_query| path_and_query.as_str());
    let mut account = Account::open(
        connection,
        &RequestFacts {
            method: request.method(),
            target,
            version: request.version(),
            headers: request.headers(),
        },
    );
    let mut plan = plan(connection, request, target).await;
    if asks_to_close(request.version(), request.headers()) {
        // hyper would add it later, 19 bytes that the first quantum had no room for: they made a
        // segment of their own, 80 bytes a response on the link.
        let close = HeaderValue::from_static("close");
        plan.headers.insert(header::CONNECTION, close);
    }
    let framing = framing(connection, request.version(), &plan.headers);
    let job_bytes = plan.body.len() + u64::from(framing.head_bytes);
    let transport = connection.watch.transport();
    let submitted = connection.settings.link.submit(transport, job_bytes);
    let job = submitted.unwrap_or_else(|_full| {
        // Better an answer at once than a wait without end.
        plan = Plan::text(StatusCode::SERVICE_UNAVAILABLE, request.method());
        JobHandle::unscheduled()
    });
    let Plan {
        status,
        headers,
        body,
    } = plan;
    account.set_status(status.as_u16());
    let body_bytes = body.len();
    let mut outgoing = Outgoing::new(job, body, framing, account);
    poll_fn(|context| outgoing.poll_start(context)).await?;
    if body_bytes == 0 {
        outgoing.hand_over_head();
    }
    Ok(Started {
        status,
        headers,
        outgoing,
    })
}

async fn plan<B>(connection: &Connection, request: &Request<B>, target: &str) -> Plan {
    if !names_one_host(request) {
        return bad_request();
    }
    let head = RequestHead {
        method: request.method(),
        target,
        headers: request.headers(),
    };
    connection.settings.site.respond(&head).await
}

/// RFC 9112 3.2: exactly one `Host` field in HTTP/1.1; HTTP/2 has `:authority` instead.
/// Nothing else is made of it: every host gets the same files, and redirects are relative.
fn names_one_host<B>(request: &Request<B>) -> bool {
    let mut fields = request.headers().get_all(header::HOST).iter();
    let first = fields.next();
    let missing = first.is_none() && request.version() == Version::HTTP_11;
    if missing || fields.next().is_some() {
        return false;
    }
    request.uri().authority().is_some() || first.is_none_or(|host| host.to_str().is_ok())
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

fn framing(connection: &Connection, version: Version, headers: &HeaderMap) -> Framing {
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
            chunk_bytes: record_bytes,
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
