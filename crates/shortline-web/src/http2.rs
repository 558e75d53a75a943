//! HTTP/2 on the h2 crate. Every stream is a job of its own. h2 holds only what was granted, one
//! quantum per connection, so that the scheduler and not h2 decides the order.
//!
//! A stream asks h2 for window only when it has a grant. If there is no window, it declines the
//! grant and withdraws its request. h2 would serve a standing request in its own order. The stream
//! asks again when the connection has moved bytes, since only that can open a window.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, Stream};
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::header::{self, HeaderValue};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Frame;
use shortline_base::clock;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::context::Connection;
use crate::gathered::{Gathered, Gathering};
use crate::outgoing::Outgoing;
use crate::place;
use crate::proxy::{ContinueWanted, Http2Body, Received};
use crate::respond::{Started, respond};
use crate::trailers::{Condemned, Watched};
use crate::unwanted;
use crate::watch::Order;

/// The most bytes that h2 holds of one stream: a grant of a connection that is not scheduled.
const SEND_BUFFER_BYTES_MAX: usize = 256 * 1024;
/// Streams that a client may open and reset before its connection counts as an attack.
const RESETS_PENDING_MAX: usize = 32;

/// A connection that speaks HTTP/2.
pub struct Http2<S> {
    h2: Box<server::Connection<Watched<Gathered<S>>, Bytes>>,
    condemned: Arc<Condemned>,
    gathering: Gathering,
}

/// Exchanges settings with the client. `None`: the connection ended meanwhile.
pub fn begin<S>(connection: &Connection, stream: S) -> impl Future<Output = Option<Http2<S>>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    connection.watch.set_multiplexed();
    let limits = &connection.settings.limits;
    let mut builder = server::Builder::new();
    builder
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(limits.header_bytes_max as u32)
        .max_send_buffer_size(SEND_BUFFER_BYTES_MAX)
        .max_pending_accept_reset_streams(RESETS_PENDING_MAX);
    // Boxed, so that the futures around it stay small (see `connection::serve`).
    let condemned: Arc<Condemned> = Arc::default();
    let gathering = Gathering::default();
    let gathered = Gathered::new(stream, gathering.clone());
    let watched = Watched::new(gathered, Arc::clone(&condemned));
    let handshake = Box::pin(builder.handshake(watched));
    async move {
        match connection.watch.obeying(handshake).await? {
            Ok(h2) => Some(Http2 {
                h2: Box::new(h2),
                condemned,
                gathering,
            }),
            Err(error) => {
                connection.server.count_connection_error(&error);
                None
            }
        }
    }
}

/// Answers requests until the connection closes.
pub async fn serve<S>(connection: Arc<Connection>, http2: Http2<S>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Http2 {
        mut h2,
        condemned,
        gathering,
    } = http2;
    // It keeps each in an allocation of its own.
    let mut streams = FuturesUnordered::new();
    let mut moves_seen = 0;
    let ended = poll_fn(|context| {
        match connection.watch.order(context) {
            Order::None | Order::Park if connection.server.is_retiring() => h2.graceful_shutdown(),
            Order::None | Order::Park => {}
            Order::Close => {
                h2.abrupt_shutdown(Reason::NO_ERROR);
                return Poll::Ready(Ok(()));
            }
            Order::Drain => h2.graceful_shutdown(),
        }
        loop {
            gathering.begin();
            // Streams first: the connection writes right after what they hand over.
            while let Poll::Ready(Some(())) = Pin::new(&mut streams).poll_next(context) {}
            let mut accepted = h2.poll_accept(context);
            if accepted.is_pending() && gathering.end() {
                accepted = h2.poll_accept(context);
            }
            match accepted {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    let exchange = Exchange {
                        connection: Arc::clone(&connection),
                        condemned: Arc::clone(&condemned),
                        stream: request.body().stream_id().as_u32(),
                    };
                    streams.push(exchange.answer(request, respond));
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    connection.watch.transport().flushed();
                    let moves = connection.watch.moves();
                    if moves == moves_seen {
                        return Poll::Pending;
                    }
                    moves_seen = moves;
                    connection.watch.windows_may_be_open();
                }
            }
        }
    })
    .await;
    if let Err(error) = ended {
        connection.server.count_connection_error(&error);
    }
}

/// A request and its response.
struct Exchange {
    connection: Arc<Connection>,
    condemned: Arc<Condemned>,
    stream: u32,
}

impl Exchange {
    async fn answer(self, request: Request<RecvStream>, mut channel: SendResponse<Bytes>) {
        if let Err(reason) = self.respond(request, &mut channel).await {
            let malformed = self.condemned.has(self.stream);
            channel.send_reset(if malformed {
                Reason::PROTOCOL_ERROR
            } else {
                reason
            });
        }
    }

    /// Answers a request. An error resets the stream, unless the client has reset it already.
    async fn respond(
        &self,
        request: Request<RecvStream>,
        channel: &mut SendResponse<Bytes>,
    ) -> Result<(), Reason> {
        let connection = &self.connection;
        let (head, mut body) = request.into_parts();
        let place = place::find(connection, &head);
        if !body.is_end_stream() && !place.has_route(connection, &head) {
            let time_max = connection.settings.limits.header_time_max;
            let passed = unwanted::pass_over_stream(&mut body, time_max).await;
            passed.map_err(|_| Reason::CANCEL)?;
        }
        let continue_wanted = ContinueWanted::default();
        let received = Received::Http2(Http2Body {
            stream: body,
            continue_wanted: continue_wanted.clone(),
            condemned: Arc::clone(&self.condemned),
        });
        let started = {
            let mut work = pin!(respond(connection, head, received, place));
            let mut go_on = pin!(continue_wanted.wanted().fuse());
            poll_fn(|context| {
                // Most need not wait, and then nothing else is asked for.
                if let Poll::Ready(started) = work.as_mut().poll(context) {
                    return Poll::Ready(started.map_err(|error| {
                        tracing::debug!("HTTP/2 stream refused: {error}");
                        Reason::REFUSED_STREAM
                    }));
                }
                if go_on.as_mut().poll(context).is_ready() {
                    let mut interim = Response::new(());
                    *interim.status_mut() = StatusCode::CONTINUE;
                    // It fails only for a stream that is gone.
                    let _ = channel.send_informational(interim);
                }
                // Once the client has reset the stream, dropping the future takes its job out of the queue.
                channel.poll_reset(context).map(|_| Err(Reason::CANCEL))
            })
            .await?
        };
        if self.condemned.has(self.stream) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let sent = send(connection, started, channel).await;
        sent.map_err(|error| {
            tracing::debug!("HTTP/2 stream ended early: {error}");
            Reason::INTERNAL_ERROR
        })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.condemned.forget(self.stream);
    }
}

async fn send(
    connection: &Connection,
    started: Started,
    channel: &mut SendResponse<Bytes>,
) -> io::Result<()> {
    let Started {
        status,
        headers,
        mut outgoing,
        tunnel: _,
    } = started;
    let response = multiplexed_head(status, headers);
    let mut stream = channel
        .send_response(response, outgoing.is_complete())
        .map_err(io::Error::other)?;
    let stream = &mut stream;
    while !outgoing.is_complete() {
        // Data needs window; the end of a stream does not.
        let bytes = window(connection, &mut outgoing, stream).await?;
        let frame = poll_fn(
            |context| match outgoing.poll_frame(context, bytes.unwrap_or(0)) {
                Poll::Pending => poll_reset(stream, context).map(|error| Some(Err(error))),
                frame => frame,
            },
        );
        let end = match frame.await.transpose()?.map(Frame::into_data) {
            Some(Ok(chunk)) => stream.send_data(chunk, outgoing.is_complete()),
            Some(Err(frame)) => stream.send_trailers(frame.into_trailers().unwrap_or_default()),
            None => stream.send_data(Bytes::new(), true),
        };
        end.map_err(io::Error::other)?;
    }
    Ok(())
}

/// Waits until the stream has both a grant and window. Returns how many bytes both cover. `None`:
/// only the end of the stream is left to send.
async fn window(
    connection: &Connection,
    outgoing: &mut Outgoing,
    stream: &mut SendStream<Bytes>,
) -> io::Result<Option<u32>> {
    loop {
        let granted_bytes = poll_fn(|context| match outgoing.poll_ready(context) {
            Poll::Pending => poll_reset(stream, context).map(Err),
            granted => granted,
        })
        .await?;
        let Some(granted_bytes) = granted_bytes else {
            return Ok(None);
        };
        let remaining_bytes = outgoing.remaining_bytes().unwrap_or(u64::MAX);
        let wanted_bytes = remaining_bytes.min(u64::from(granted_bytes));
        stream.reserve_capacity(wanted_bytes as usize);
        let window_bytes = stream.capacity();
        if window_bytes > 0 {
            return Ok(Some(granted_bytes.min(window_bytes as u32)));
        }
        // No move is missed in between.
        let mut look_again = pin!(connection.watch.look_again());
        stream.reserve_capacity(0);
        outgoing.decline();
        if connection.watch.gives_up() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let _window_closed = connection.watch.window_closed();
        poll_fn(|context| match look_again.as_mut().poll(context) {
            Poll::Pending => poll_reset(stream, context).map(Err),
            Poll::Ready(()) => Poll::Ready(Ok(())),
        })
        .await?;
    }
}

/// Ready if the client has reset the stream, or the connection is gone. Whatever is not waiting need not ask: h2 takes
/// nothing for such a stream, and gives it no window.
fn poll_reset(stream: &mut SendStream<Bytes>, context: &mut Context<'_>) -> Poll<io::Error> {
    let reset = stream.poll_reset(context);
    reset.map(|_| io::ErrorKind::ConnectionReset.into())
}

/// A response's head as HTTP/2 and HTTP/3 have it: without what is of a connection, and with the date.
pub fn multiplexed_head(status: StatusCode, headers: HeaderMap) -> Response<()> {
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

/// The field `Date` of a response that has none. It changes once a second.
fn date() -> HeaderValue {
    thread_local! {
        static LAST: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) };
    }
    let now = clock::date();
    let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let second = since_epoch.as_secs();
    LAST.with_borrow_mut(|last| match last {
        Some((of, value)) if *of == second => value.clone(),
        _ => {
            let text = httpdate::fmt_http_date(now);
            let value =
                HeaderValue::from_str(&text).expect("invariant: an HTTP date is visible ASCII");
            *last = Some((second, value.clone()));
            value
        }
    })
}
