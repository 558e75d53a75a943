//! HTTP/3 (RFC 9114) on the crates h3 and quinn (QUIC, RFC 9000). A request is answered by the same code as one of HTTP/2: its
//! `place`, `respond`, and a job of the link for each response.
//!
//! A stream asks for a grant only when the client takes data of it, and gives it back where that has changed. What was granted goes
//! to quinn at once; what quinn keeps is bounded (`wire`). quinn sends what was written first first.
//!
//! What a client may do is bounded:
//!
//! | of | by |
//! |---|---|
//! | connections of an address, and in all; handshakes | the same limits and counters as TCP's ([`port`]) |
//! | addresses that are not its own | Retry (RFC 9000, 8.1.2) while many handshakes are under way |
//! | streams at a time; a head | `streams-max`, `header-size-max` |
//! | bytes of a request that nobody reads yet | windows of `STREAM_WINDOW_BYTES` and `CONNECTION_WINDOW_BYTES` |
//! | time | the sweep over all connections, as with TCP (`watch`); QUIC's own idle time is not used |
//! | early data (0-RTT), which others can send again | none is taken |
//! | a change of its address | it stays the client that it was when it connected |

mod body;
pub mod port;
mod streams;
mod wire;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, Stream};
use h3::error::Code;
use h3::server::{RequestResolver, RequestStream};
use http::header::{self, HeaderName};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body::Frame;

use crate::context::Connection;
use crate::http2::date;
use crate::outgoing::Outgoing;
use crate::place;
use crate::proxy::{ContinueWanted, Received};
use crate::respond::{Started, respond};
use crate::watch::Order;
use body::{Receiver, RequestData, Rest};
use streams::{Answering, Carrier, Gone, Pipe, Quic, SendStream};
use wire::Wire;

/// The end of a connection in order (RFC 9114, 8.1).
const NO_ERROR: u32 = 0x100;
/// The end of one that asks too much.
const EXCESSIVE_LOAD: u32 = 0x107;
/// What a client may send of one request's body before anybody reads it.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// The same of all bodies of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 512 * 1024;
/// A client has a control stream and two of QPACK, and may open some more of which nobody knows the kind (RFC 9114, 6.2).
const CLIENT_STREAMS_MAX: u32 = 8;
/// Fields that are of HTTP/1.1 connections alone (RFC 9114, 4.2).
const NOT_IN_HTTP_3: [HeaderName; 5] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

type StreamTask = Pin<Box<dyn Future<Output = ()> + Send>>;
type Http3 = h3::server::Connection<Quic, Bytes>;
type Resolver = RequestResolver<Quic, Bytes>;
type Sender = RequestStream<SendStream, Bytes>;

/// What a connection does next.
enum Next {
    Request(Box<Resolver>),
    /// It is to finish: the client hears of it.
    Goodbye,
    /// It has done so.
    Finished,
    Ended,
    Failed(h3::error::ConnectionError),
}

/// Answers requests until the connection closes.
async fn serve(connection: Arc<Connection>, quic: quinn::Connection, wire: Arc<Wire>) {
    connection.watch.set_multiplexed();
    let limits = &connection.settings.limits;
    let carrier = Carrier::new(wire, Arc::clone(&connection.watch), limits.header_bytes_max);
    let mut builder = h3::server::builder();
    builder
        .max_field_section_size(limits.header_bytes_max as u64)
        .send_grease(false);
    let building = Box::pin(builder.build(Quic::new(quic, Arc::clone(&carrier))));
    let mut http3 = match connection.watch.obeying(building).await {
        Some(Ok(http3)) => http3,
        Some(Err(error)) => return connection.server.count_connection_error(&error),
        None => return,
    };
    let mut streams: FuturesUnordered<StreamTask> = FuturesUnordered::new();
    let mut said_goodbye = false;
    loop {
        let next = poll_fn(|context| {
            // Streams first: the connection sends right after what they hand over.
            while let Poll::Ready(Some(())) = Pin::new(&mut streams).poll_next(context) {}
            match connection.watch.order(context) {
                Order::Close => return Poll::Ready(Next::Ended),
                Order::Drain if !said_goodbye => return Poll::Ready(Next::Goodbye),
                Order::None | Order::Park if connection.server.is_retiring() && !said_goodbye => {
                    return Poll::Ready(Next::Goodbye);
                }
                Order::None | Order::Park | Order::Drain => {}
            }
            if said_goodbye && carrier.answers() == 0 {
                return Poll::Ready(Next::Finished);
            }
            pin!(http3.accept())
                .poll(context)
                .map(|accepted| match accepted {
                    Ok(Some(resolver)) => Next::Request(Box::new(resolver)),
                    Ok(None) => Next::Ended,
                    Err(error) => Next::Failed(error),
                })
        });
        match next.await {
            Next::Request(resolver) => {
                if let Some(pipe) = carrier.take_accepted() {
                    let exchange = Exchange {
                        connection: Arc::clone(&connection),
                        carrier: Arc::clone(&carrier),
                        pipe,
                        gone: None,
                        answering: Some(carrier.begin_answer()),
                    };
                    streams.push(Box::pin(exchange.answer(*resolver)));
                }
            }
            Next::Goodbye => {
                said_goodbye = true;
                say_goodbye(&connection, &carrier, &mut http3, &mut streams).await;
            }
            Next::Finished => return all_arrived(&connection, &carrier).await,
            Next::Ended => return,
            Next::Failed(error) => {
                if !error.is_h3_no_error() {
                    connection.server.count_connection_error(&error);
                }
                return;
            }
        }
    }
}

/// Tells the client that it may send requests from the one after the last again. Responses go on meanwhile, and requests wait.
/// It is written to its end: a frame that is left half written would hold back all responses of the connection. If the client takes not
/// even this, the end of the connection tells it.
async fn say_goodbye(
    connection: &Connection,
    carrier: &Carrier,
    http3: &mut Http3,
    streams: &mut FuturesUnordered<StreamTask>,
) {
    let mut saying = pin!(http3.shutdown(1));
    poll_fn(|context| {
        while let Poll::Ready(Some(())) = Pin::new(&mut *streams).poll_next(context) {}
        // What went wrong is told to who accepts.
        let is_said = saying.as_mut().poll(context).is_ready();
        let must_end = connection.watch.order(context) == Order::Close;
        match is_said || must_end || carrier.answers() == 0 {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

/// Waits until the client has everything: QUIC drops what is under way when a connection is closed.
async fn all_arrived(connection: &Connection, carrier: &Carrier) {
    poll_fn(|context| {
        carrier.wire.wait(context);
        let must_end = connection.watch.order(context) == Order::Close;
        match must_end || carrier.wire.is_still() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

/// A request and its response.
struct Exchange {
    connection: Arc<Connection>,
    carrier: Arc<Carrier>,
    pipe: Arc<Pipe>,
    /// Ready when the client wants no more. Made when somebody waits.
    gone: Option<Gone>,
    /// Until it is answered.
    answering: Option<Answering>,
}

/// Why a response does not end as it should.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the client has given the request up")]
    GivenUp,
    #[error("the client takes nothing")]
    Stalled,
    #[error("{0}")]
    Stream(#[from] h3::error::StreamError),
    #[error("{0}")]
    Content(#[from] io::Error),
}

impl Exchange {
    async fn answer(mut self, resolver: Resolver) {
        let Some((head, mut sender, receiver)) = self.request(resolver).await else {
            if self.carrier.has_no_head() {
                self.connection.watch.reset();
            }
            return;
        };
        let (body, rest) = body_of(&head, receiver, &self.pipe).await;
        let Some(body) = body else {
            rest.stop(Code::H3_MESSAGE_ERROR);
            return sender.stop_stream(Code::H3_MESSAGE_ERROR);
        };
        if let Err(error) = self.respond(head, body, &mut sender).await {
            tracing::debug!("HTTP/3 stream ended early: {error}");
            sender.stop_stream(match error {
                Broken::GivenUp | Broken::Stalled => Code::H3_REQUEST_CANCELLED,
                Broken::Stream(_) | Broken::Content(_) => Code::H3_INTERNAL_ERROR,
            });
            // What was granted may never have been written.
            self.carrier.settle();
        }
        drop(self.answering.take());
        let time_max = self.connection.settings.limits.header_time_max;
        rest.pass_over(time_max).await;
    }

    /// The request's head, if it comes whole and in time.
    async fn request(&self, resolver: Resolver) -> Option<(Parts, Sender, Receiver)> {
        let mut resolving = Box::pin(resolver.resolve_request());
        // Nearly all heads come in one packet, and then no timer is needed.
        let resolved = match (&mut resolving).now_or_never() {
            Some(resolved) => resolved,
            None => {
                let time_max = self.connection.settings.limits.header_time_max;
                tokio::time::timeout(time_max, resolving).await.ok()?
            }
        };
        self.pipe.handed_on();
        let (request, stream) = resolved
            .inspect_err(|error| tracing::debug!("HTTP/3 request refused: {error}"))
            .ok()?;
        let (sender, receiver) = stream.split();
        Some((request.into_parts().0, sender, receiver))
    }

    /// Answers a request.
    async fn respond(
        &mut self,
        head: Parts,
        body: RequestData,
        sender: &mut Sender,
    ) -> Result<(), Broken> {
        let connection = Arc::clone(&self.connection);
        let place = place::find(&connection, &head);
        let continue_wanted = ContinueWanted::default();
        let received = Received::Streamed(Box::pin(body), continue_wanted.clone());
        let mut responding = pin!(respond(&connection, head, received, place));
        let mut go_on = pin!(continue_wanted.wanted().fuse());
        let started = loop {
            let next = poll_fn(|context| {
                if go_on.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Ok(None));
                }
                self.poll(context, |context| responding.as_mut().poll(context))
                    .map_ok(Some)
            });
            match next.await? {
                Some(started) => break started?,
                None => {
                    let mut interim = Response::new(());
                    *interim.status_mut() = StatusCode::CONTINUE;
                    sender.send_response(interim).await?;
                }
            }
        };
        self.send(started, sender).await
    }

    async fn send(&mut self, started: Started, sender: &mut Sender) -> Result<(), Broken> {
        let Started {
            status,
            headers,
            mut outgoing,
            tunnel: _,
        } = started;
        let response = multiplexed_head(status, headers.into_map());
        sender.send_response(response).await?;
        while !outgoing.is_complete() {
            // Data needs the client's window; the end of a stream does not.
            let bytes = self.window(&mut outgoing).await?;
            let next = |context: &mut Context<'_>| outgoing.poll_frame(context, bytes.unwrap_or(0));
            let frame = self.wait(next).await?.transpose()?;
            match frame.map(Frame::into_data) {
                Some(Ok(chunk)) => {
                    let sending = self.connection.watch.sending(sender.send_data(chunk));
                    sending.await.ok_or(Broken::Stalled)??;
                }
                Some(Err(frame)) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    sender.send_trailers(trailers).await?;
                }
                None => {}
            }
        }
        sender.finish().await?;
        Ok(())
    }

    /// Waits until the response has a grant and the client takes data. Returns how many bytes are granted. `None`: only
    /// the end of the stream is left to send.
    async fn window(&mut self, outgoing: &mut Outgoing) -> Result<Option<u32>, Broken> {
        loop {
            let granted_bytes = self.wait(|context| outgoing.poll_ready(context)).await??;
            if granted_bytes.is_none() {
                return Ok(None);
            }
            let (pipe, carrier) = (Arc::clone(&self.pipe), Arc::clone(&self.carrier));
            let writable = |context: &mut Context<'_>| pipe.poll_writable(&carrier, context);
            let now = poll_fn(|context| Poll::Ready(writable(context)));
            match now.await {
                Poll::Ready(Ok(())) => return Ok(granted_bytes),
                Poll::Ready(Err(_)) => return Err(Broken::GivenUp),
                Poll::Pending => {}
            }
            outgoing.decline();
            let connection = Arc::clone(&self.connection);
            let _noted = connection.watch.window_closed();
            let opened = poll_fn(|context| {
                carrier.wire.wait(context);
                writable(context)
            });
            let opened = connection.watch.sending(opened).await;
            opened
                .ok_or(Broken::Stalled)?
                .map_err(|_| Broken::GivenUp)?;
        }
    }

    /// The result of `work`, unless the client gives the request up before.
    async fn wait<T>(
        &mut self,
        mut work: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, Broken> {
        poll_fn(|context| self.poll(context, &mut work)).await
    }

    fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        work: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Broken>> {
        if let Poll::Ready(done) = work(context) {
            return Poll::Ready(Ok(done));
        }
        let pipe = &self.pipe;
        let gone = self.gone.get_or_insert_with(|| pipe.gone());
        ready!(gone.as_mut().poll(context));
        Poll::Ready(Err(Broken::GivenUp))
    }
}

/// A request's body with what has come of it, and what nobody will have read of it. No body: the request is malformed.
async fn body_of(
    head: &Parts,
    receiver: Receiver,
    pipe: &Arc<Pipe>,
) -> (Option<RequestData>, Rest) {
    let length = match body::length(head) {
        Ok(length) if is_well_formed(&head.headers) => length,
        _ => return (None, Rest::of(receiver)),
    };
    let rest = Rest::default();
    let mut body = RequestData::new(receiver, length, Arc::clone(pipe), rest.clone());
    let looked = poll_fn(|context| Poll::Ready(body.look(context))).await;
    (looked.is_ok().then_some(body), rest)
}

/// Whether the head has no field that is of HTTP/1.1's connections (RFC 9114, 4.2).
fn is_well_formed(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TE).iter();
    let of_connections = NOT_IN_HTTP_3.iter().any(|name| headers.contains_key(name));
    !of_connections && codings.all(|value| value.as_bytes().eq_ignore_ascii_case(b"trailers"))
}

/// A response's head as HTTP/3 has it: without what is of a connection, and with the date.
fn multiplexed_head(status: StatusCode, headers: HeaderMap) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response.headers_mut().remove(header::CONNECTION);
    response
        .headers_mut()
        .entry(header::DATE)
        .or_insert_with(date);
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn fields_of_connections_are_malformed() {
        let with = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            is_well_formed(&headers)
        };
        assert!(with("accept", "*/*") && with("te", "trailers"));
        for (name, value) in [
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("keep-alive", "5"),
            ("proxy-connection", "close"),
            ("te", "gzip"),
        ] {
            assert!(!with(name, value), "{name}");
        }
    }
}
