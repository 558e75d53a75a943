//! From a request to a response that may start. The request's site decides what the response is, and the link
//! decides when it starts. HTTP/1.1, HTTP/2 and HTTP/3 share this code.

mod asked;
mod cached;
mod decide;
mod limits;

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
use shortline_link::{JobHandle, Length};

use crate::account::Account;
use crate::compress::Passing;
use crate::context::Connection;
use crate::files::Plan;
use crate::identity::X_REQUEST_ID;
use crate::outgoing::{Framing, Outgoing};
use crate::place::Place;
use crate::proxy::head::says;
use crate::proxy::{Received, Switched};
use crate::shared_fields::SharedFields;
use decide::Decided;
pub use limits::Presence;

/// Bytes of `HTTP/1.1 200 OK`, the `date` field and the blank line.
const HEAD_BYTES_BASE: usize = 17 + 37 + 2;
/// The header and tag of a TLS record, and the byte of its content type (RFC 8446 5.2).
const TLS_RECORD_BYTES: u32 = 22;
/// The header of an HTTP/2 frame (RFC 9113 4.1).
const HTTP2_FRAME_BYTES: u32 = 9;
/// HPACK leaves about a quarter of our heads' text.
const HPACK_DIVISOR: usize = 4;
/// QPACK without its dynamic table leaves about half.
const QPACK_DIVISOR: usize = 2;
/// The header of an HTTP/3 frame of up to 16 KiB (RFC 9114 7.1).
const HTTP3_FRAME_BYTES: u32 = 3;

/// The size, line ends and the like of an HTTP/1.1 chunk (RFC 9112 7.1).
const HTTP1_CHUNK_BYTES: u32 = 8;

/// A response whose first quantum is granted.
pub struct Started {
    /// Its status.
    pub status: StatusCode,
    /// Its header fields, without the date.
    pub headers: SharedFields,
    /// Its body, which waits for its turns.
    pub outgoing: Box<Outgoing>,
    /// What takes over the connection afterwards.
    pub tunnel: Option<Box<Tunnel>>,
}

/// A backend that has switched protocols.
pub struct Tunnel {
    /// Its connection.
    pub backend: Switched,
    /// How long both sides may be silent.
    pub idle_time_max: Duration,
}

/// A request whose response is not decided yet.
struct Undecided {
    version: Version,
    method: Method,
    closes: bool,
    /// Clients are told that HTTP/3 is there.
    announces: bool,
    account: Account,
}

/// A response up to its first grant. Most are decided at once and then need no task of their own.
pub struct Responding {
    waiting: Option<Box<Waiting>>,
    /// A decided response that waits for its turn.
    started: Option<Started>,
    /// What is left of the request's body. Dropping it before the answer is ready would close the
    /// connection.
    body: Option<Received>,
}

/// A request whose response is not submitted to the link yet.
struct Waiting {
    /// What it waits for: its response is decided, or the bytes of that are in memory.
    decided: Pin<Box<dyn Future<Output = Decided> + Send>>,
    asked: Undecided,
    /// Its bytes are being read already.
    reads: bool,
}

/// Decides the response to a request and waits until it may start.
pub fn respond(
    connection: &Arc<Connection>,
    mut head: Parts,
    body: Received,
    mut place: Place,
) -> Responding {
    let mut account = Account::open(connection, &head, place.site());
    account.presence = limits::enter(connection, &mut place, &mut head);
    if let Place::At(spot) = &mut place {
        spot.change_target(&mut head);
    }
    let decided = decide::now(connection, &place, &head, &body, account.begun_ns());
    let is_told = decided.is_none() || connection.settings.tells_request_id;
    account.identify(&head.headers, is_told);
    let asked = Undecided {
        version: head.version,
        method: head.method.clone(),
        closes: asks_to_close(head.version, &head.headers)
            || head.version == Version::HTTP_11 && connection.server.is_retiring(),
        announces: place.is_open_to_all(connection),
        account,
    };
    match decided {
        Some(decided) => {
            let mut responding = Responding {
                waiting: None,
                started: None,
                body: Some(body),
            };
            responding.begin(asked, decided);
            responding
        }
        None => {
            let now_ns = asked.account.begun_ns();
            let client = asked.account.client().name;
            let identity = asked.account.identity().cloned();
            let asks = Box::new(decide::Asks {
                client,
                identity,
                certificate: None,
                now_ns,
                passing: Passing::AsIs,
            });
            let (place, head) = (Box::new(place), Box::new(head));
            let deciding = decide::later(Arc::clone(connection), place, asks, head, body);
            let waiting = Waiting {
                decided: Box::pin(deciding),
                asked,
                reads: false,
            };
            Responding {
                waiting: Some(Box::new(waiting)),
                started: None,
                body: None,
            }
        }
    }
}

impl Responding {
    /// Submits the response to the link as soon as its first bytes are in memory. One that asked for its turn
    /// before would give it back, and wait for another while a larger one has the link.
    fn begin(&mut self, asked: Undecided, decided: Decided) {
        let Some((file, offset, length)) = decided.content.unread() else {
            self.started = Some(asked.begin(decided));
            return;
        };
        let read = asked
            .account
            .read(file, offset, length, decided.content.bytes());
        let decided = async move {
            // An error shows up again when the response is sent. It then ends only that.
            let _ = read.await;
            decided
        };
        self.waiting = Some(Box::new(Waiting {
            decided: Box::pin(decided),
            asked,
            reads: true,
        }));
    }
}

impl Future for Responding {
    type Output = io::Result<Started>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        while let Some(mut waiting) = self.waiting.take() {
            let Poll::Ready(decided) = waiting.decided.as_mut().poll(context) else {
                self.waiting = Some(waiting);
                return Poll::Pending;
            };
            let Waiting { asked, reads, .. } = *waiting;
            if reads {
                self.started = Some(asked.begin(decided));
            } else {
                self.begin(asked, decided);
            }
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
            announces,
            mut account,
        } = self;
        if closes && decided.tunnel.is_none() {
            // Added later, these 19 bytes would have no room in the first quantum and make a segment of their own:
            // 80 bytes more per response on the link.
            let close = HeaderValue::from_static("close");
            decided.headers.change().insert(header::CONNECTION, close);
        }
        if let Some(announcement) = &account.connection().announcement
            && announces
        {
            let field = decided.headers.change().entry(header::ALT_SVC);
            field.or_insert_with(|| announcement.clone());
        }
        if let Some(identity) = account.identity()
            && account.connection().settings.tells_request_id
        {
            let field = identity.id.field();
            decided.headers.change().insert(X_REQUEST_ID, field);
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
            connection.server.report_full(&full, account.identity());
            // Better to answer at once than to wait forever.
            let answer = Plan::text(StatusCode::SERVICE_UNAVAILABLE, &method);
            let closes = says(&decided.headers, &header::CONNECTION, b"close");
            decided = if closes { closing(answer) } else { answer }.into();
            JobHandle::unscheduled()
        });
        // What is held back says nothing about the order.
        if job.is_scheduled() && decided.bandwidth.is_none() {
            let bytes = body_bytes.map(|bytes| bytes + u64::from(framing.head_bytes));
            account.enters_link(client, bytes);
        }
        let at_backend = decided.at_backend.take();
        account.decided(decided.status.as_u16(), &decided.headers, at_backend);
        Started {
            status: decided.status,
            headers: decided.headers,
            outgoing: Box::new(Outgoing::new(
                job,
                decided.content,
                framing,
                decided.bandwidth,
                account,
            )),
            tunnel: decided.tunnel,
        }
    }
}

/// The target as it is looked up and logged.
pub fn target(head: &Parts) -> &str {
    head.uri
        .path_and_query()
        .map_or("*", |path_and_query| path_and_query.as_str())
}

/// Whether the client wants the connection closed after this response (RFC 9112 9.6).
fn asks_to_close(version: Version, headers: &HeaderMap) -> bool {
    version == Version::HTTP_11 && says(headers, &header::CONNECTION, b"close")
}

fn framing(
    connection: &Connection,
    version: Version,
    headers: &SharedFields,
    body_bytes: Option<u64>,
) -> Framing {
    let head_bytes = headers.text_bytes() + HEAD_BYTES_BASE;
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
        // QUIC's packets have what TLS has in its records.
        Version::HTTP_3 => Framing {
            head_bytes: (head_bytes / QPACK_DIVISOR) as u32 + HTTP3_FRAME_BYTES,
            chunk_bytes: HTTP3_FRAME_BYTES,
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

/// The answer to a malformed request. Nothing after it can be trusted to be a request.
fn refusal(status: StatusCode, head: &Parts, why: &dyn Display) -> Plan {
    closing(Plan::explained(status, &head.method, why))
}

/// An answer after which the connection closes.
fn closing(mut plan: Plan) -> Plan {
    let close = HeaderValue::from_static("close");
    plan.headers.change().insert(header::CONNECTION, close);
    plan
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
