//! HTTP/2. Every stream is a job of its own. Its bytes are handed over as they are granted and leave in that order, since
//! [`shortline_http2`] has none of its own. It holds what was granted and has not left yet, one quantum per connection.
//!
//! A stream takes window only when it has a grant. If there is none, it declines the grant, and asks
//! again when the connection has moved bytes, since only that can open a window.
//!
//! Within one poll all is read that has come, then all is written that was answered: with many small responses at a
//! time, system calls and TLS records are most of the work.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, Stream};
use http::header::{self, HeaderValue};
use http::request::Parts;
use http_body::{Body as _, Frame};
use shortline_base::clock;
use shortline_http2::{Answer, Body, Limits, Reason, Request, Room, Server, StreamOver};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::context::Connection;
use crate::outgoing::Outgoing;
use crate::place;
use crate::proxy::{ContinueWanted, Http2Body, Received};
use crate::respond::{Started, respond};
use crate::unwanted;
use crate::watch::Order;

/// Streams that a client may open and reset before its connection counts as an attack.
const RESETS_MAX: u32 = 32;
/// The size of a read: two frames of the longest, or two TLS records.
const READ_BYTES: usize = 32 * 1024;
/// The most reads within a poll. Then others have their turn.
const READS_MAX: u32 = 4;

/// Answers requests until the connection closes.
pub async fn serve<S>(connection: Arc<Connection>, mut stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    connection.watch.set_multiplexed();
    let limits = &connection.settings.limits;
    let server = Server::new(Limits {
        streams_max: limits.streams_max,
        header_bytes_max: limits.header_bytes_max,
        resets_max: RESETS_MAX,
    });
    let answered = answer_all(&connection, &server, &mut stream).await;
    let ended = match answered {
        Ok(End::Gone) => return,
        Ok(End::Done) => Ok(()),
        Err(error) => Err(error),
    };
    let closed = close(&connection, &server, &mut stream).await;
    if let Err(error) = ended.and(closed) {
        connection.server.count_connection_error(&error);
    }
}

/// How a connection ends, if not by an error.
enum End {
    /// All is answered. What is left to write is to be written.
    Done,
    /// The client has gone, or is to go at once.
    Gone,
}

async fn answer_all<S>(
    connection: &Arc<Connection>,
    server: &Server,
    stream: &mut S,
) -> io::Result<End>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let watch = &connection.watch;
    let mut exchanges = FuturesUnordered::new();
    let mut moves_seen = 0;
    poll_fn(|context| {
        server.begin();
        match watch.order(context) {
            Order::None | Order::Park if connection.server.is_retiring() => server.end_gracefully(),
            Order::None | Order::Park => {}
            Order::Close => return Poll::Ready(Ok(End::Gone)),
            Order::Drain => server.end_gracefully(),
        }
        let mut reads_left = READS_MAX;
        loop {
            while let Poll::Ready(Some(())) = Pin::new(&mut exchanges).poll_next(context) {}
            if reads_left > 0
                && server.may_read()
                && let Poll::Ready(read) = poll_read(server, stream, context)
            {
                if !read? {
                    return Poll::Ready(Ok(End::Gone));
                }
                while let Some(request) = server.next_request() {
                    let mut exchange = Box::pin(exchange(Arc::clone(connection), request));
                    // Most need not wait, and then they take no place among those that do.
                    if exchange.as_mut().poll(context).is_pending() {
                        exchanges.push(exchange);
                    }
                }
                reads_left -= 1;
                continue;
            }
            match poll_write(server, stream, context) {
                Poll::Ready(written) => written?,
                Poll::Pending => {
                    // A client may send all it has before it takes anything.
                    if reads_left == 0 {
                        context.waker().wake_by_ref();
                    }
                    return Poll::Pending;
                }
            }
            if server.has_ended() {
                return Poll::Ready(Ok(End::Done));
            }
            if server.wake_next() {
                continue;
            }
            watch.transport().flushed();
            let moves = watch.moves();
            if moves == moves_seen {
                return Poll::Pending;
            }
            moves_seen = moves;
            watch.windows_may_be_open();
            if reads_left == 0 {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    })
    .await
}

/// Reads what has come. `false`: the client sends no more.
fn poll_read<S: AsyncRead + Unpin>(
    server: &Server,
    stream: &mut S,
    context: &mut Context<'_>,
) -> Poll<io::Result<bool>> {
    // On the stack of this call only: a connection that waits must not hold a buffer.
    let mut space = [MaybeUninit::uninit(); READ_BYTES];
    let mut buffer = ReadBuf::uninit(&mut space);
    ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
    let read = buffer.filled();
    let received = server.receive(read).map_err(io::Error::other);
    Poll::Ready(received.map(|()| !read.is_empty()))
}

/// Writes all there is.
fn poll_write<S: AsyncWrite + Unpin>(
    server: &Server,
    stream: &mut S,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let waker = context.waker().clone();
    ready!(server.poll_write(&waker, |slices| {
        Pin::new(&mut *stream).poll_write_vectored(context, slices)
    }))?;
    Pin::new(stream).poll_flush(context)
}

/// Writes what is left, such as why the connection ends, and ends it in order.
async fn close<S>(connection: &Connection, server: &Server, stream: &mut S) -> io::Result<()>
where
    S: AsyncWrite + Unpin,
{
    poll_fn(|context| {
        if connection.watch.order(context) == Order::Close {
            return Poll::Ready(Ok(()));
        }
        ready!(poll_write(server, stream, context))?;
        Pin::new(&mut *stream).poll_shutdown(context)
    })
    .await
}

/// A request and its response.
async fn exchange(connection: Arc<Connection>, request: Request) {
    let Request { head, body, answer } = request;
    if let Err(reason) = respond_to(&connection, head, body, &answer).await {
        answer.reset(reason);
    }
}

/// Answers a request. An error resets the stream, unless that is over already.
async fn respond_to(
    connection: &Arc<Connection>,
    head: Parts,
    mut body: Body,
    answer: &Answer,
) -> Result<(), Reason> {
    let place = place::find(connection, &head);
    if !body.is_end_stream() && !place.has_route(connection, &head) {
        let time_max = connection.settings.limits.header_time_max;
        let passed = unwanted::pass_over(&mut body, time_max).await;
        passed.map_err(|_| Reason::CANCEL)?;
    }
    let continue_wanted = ContinueWanted::default();
    let received = Received::Http2(Http2Body {
        stream: body,
        continue_wanted: continue_wanted.clone(),
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
                // It fails only for a stream that is over.
                let _ = answer.go_on();
            }
            // Once the client has reset the stream, dropping the future takes its job out of the queue.
            answer.poll_reset(context).map(|_| Err(Reason::CANCEL))
        })
        .await?
    };
    let sent = send(connection, started, answer).await;
    sent.map_err(|error| {
        tracing::debug!("HTTP/2 stream ended early: {error}");
        Reason::INTERNAL_ERROR
    })
}

async fn send(connection: &Connection, started: Started, answer: &Answer) -> io::Result<()> {
    let Started {
        status,
        headers,
        mut outgoing,
        tunnel: _,
    } = started;
    let date = (!headers.contains_key(header::DATE)).then(date);
    answer
        .send_head(status, &headers, date.as_ref(), outgoing.is_complete())
        .map_err(over)?;
    while !outgoing.is_complete() {
        // Data needs window; the end of a stream does not.
        let bytes = window(connection, &mut outgoing, answer).await?;
        let frame = poll_fn(
            |context| match outgoing.poll_frame(context, bytes.unwrap_or(0)) {
                Poll::Pending => answer
                    .poll_reset(context)
                    .map(|error| Some(Err(over(error)))),
                frame => frame,
            },
        );
        let end = match frame.await.transpose()?.map(Frame::into_data) {
            Some(Ok(chunk)) => answer.send_data(chunk, outgoing.is_complete()),
            Some(Err(frame)) => answer.send_trailers(&frame.into_trailers().unwrap_or_default()),
            None => answer.send_data(Bytes::new(), true),
        };
        end.map_err(over)?;
    }
    Ok(())
}

/// Waits until the stream has both a grant and window. Returns how many bytes both cover. `None`:
/// only the end of the stream is left to send.
async fn window(
    connection: &Connection,
    outgoing: &mut Outgoing,
    answer: &Answer,
) -> io::Result<Option<u32>> {
    loop {
        let granted_bytes = poll_fn(|context| match outgoing.poll_ready(context) {
            Poll::Pending => answer.poll_reset(context).map(|error| Err(over(error))),
            granted => granted,
        })
        .await?;
        let Some(granted_bytes) = granted_bytes else {
            return Ok(None);
        };
        match answer.room().map_err(over)? {
            Room::Bytes(bytes) => return Ok(Some(granted_bytes.min(bytes))),
            Room::NoOutput => {
                outgoing.decline();
                answer.output().await.map_err(over)?;
                continue;
            }
            Room::NoWindow => {}
        }
        // No move is missed in between.
        let mut look_again = pin!(connection.watch.look_again());
        outgoing.decline();
        if connection.watch.gives_up() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let _window_closed = connection.watch.window_closed();
        poll_fn(|context| match look_again.as_mut().poll(context) {
            Poll::Pending => answer.poll_reset(context).map(|error| Err(over(error))),
            Poll::Ready(()) => Poll::Ready(Ok(())),
        })
        .await?;
    }
}

fn over(error: StreamOver) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

/// The field `Date` of a response that has none. It changes once a second.
pub fn date() -> HeaderValue {
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
