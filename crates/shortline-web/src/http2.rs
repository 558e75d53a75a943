//! HTTP/2. Every stream is a job of its own. Its bytes are handed over as they are granted and leave in that order, since
//! [`shortline_http2`] has none of its own. It holds what was granted and has not left yet, one quantum per connection.
//!
//! A stream takes window only when it has a grant. If there is none, it declines the grant, and asks
//! again when the connection has moved bytes, since only that can open a window.
//!
//! Within one poll all is read that has come, then all is written that was answered: with many small responses at a
//! time, system calls and TLS records are most of the work.

use std::cell::RefCell;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, Stream};
use http::header::HeaderValue;
use http::request::Parts;
use http_body::{Body as _, Frame};
use shortline_base::clock;
use shortline_http2::{Answer, Body, Limits, Reason, Request, Room, Server, StreamOver};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::context::Connection;
use crate::outgoing::Outgoing;
use crate::place::{self, Place};
use crate::proxy::{ContinueWanted, Http2Body, Received};
use crate::respond::{Responding, Started, respond};
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
                    // Most need not wait, and then they have no future, nor a place among those that do.
                    exchanges.extend(begin(connection, request, context));
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

/// What is left of an exchange that waits.
enum Left {
    /// The request's body, which nobody wants, comes before the response.
    Body(Box<(Parts, Body, Place)>),
    /// The response is not decided, or has no grant.
    Response(Responding, Option<ContinueWanted>),
    /// The head is sent.
    Rest(Box<Outgoing>),
}

/// Answers a request as far as that needs no waiting. `Some`: what is left.
fn begin(
    connection: &Arc<Connection>,
    request: Request,
    context: &mut Context<'_>,
) -> Option<impl Future<Output = ()> + Send + use<>> {
    let Request { head, body, answer } = request;
    let left = match begin_response(connection, (head, body), &answer, context) {
        Ok(left) => left?,
        Err(reason) => {
            answer.reset(reason);
            return None;
        }
    };
    let connection = Arc::clone(connection);
    Some(async move {
        if let Err(reason) = finish(&connection, left, &answer).await {
            answer.reset(reason);
        }
    })
}

/// An error resets the stream, unless that is over already.
fn begin_response(
    connection: &Arc<Connection>,
    (head, body): (Parts, Body),
    answer: &Answer,
    context: &mut Context<'_>,
) -> Result<Option<Left>, Reason> {
    let place = place::find(connection, &head);
    if !body.is_end_stream() && !place.has_route(connection, &head) {
        return Ok(Some(Left::Body(Box::new((head, body, place)))));
    }
    let (mut responding, continue_wanted) = respond_to(connection, head, body, place);
    let Poll::Ready(started) = Pin::new(&mut responding).poll(context) else {
        return Ok(Some(Left::Response(responding, continue_wanted)));
    };
    let mut outgoing = send_head(started.map_err(refused)?, answer)?;
    match poll_send(&mut outgoing, answer, context) {
        Poll::Ready(Ok(Sent::All)) => Ok(None),
        Poll::Ready(Err(error)) => Err(ended_early(error)),
        Poll::Ready(Ok(Sent::NoWindow | Sent::NoOutput)) | Poll::Pending => {
            Ok(Some(Left::Rest(outgoing)))
        }
    }
}

fn respond_to(
    connection: &Arc<Connection>,
    head: Parts,
    body: Body,
    place: Place,
) -> (Responding, Option<ContinueWanted>) {
    let continue_wanted = (!body.is_end_stream()).then(ContinueWanted::default);
    let received = Received::Http2(Http2Body {
        stream: body,
        continue_wanted: continue_wanted.clone(),
    });
    (respond(connection, head, received, place), continue_wanted)
}

/// Does what is left of an exchange. An error resets the stream, unless that is over already.
async fn finish(connection: &Arc<Connection>, left: Left, answer: &Answer) -> Result<(), Reason> {
    let outgoing = match left {
        Left::Rest(outgoing) => outgoing,
        Left::Response(responding, continue_wanted) => {
            start(responding, continue_wanted, answer).await?
        }
        Left::Body(asked) => {
            let (head, mut body, place) = *asked;
            let time_max = connection.settings.limits.header_time_max;
            let passed = unwanted::pass_over(&mut body, time_max).await;
            passed.map_err(|_| Reason::CANCEL)?;
            let (responding, continue_wanted) = respond_to(connection, head, body, place);
            start(responding, continue_wanted, answer).await?
        }
    };
    let sent = send(connection, outgoing, answer).await;
    sent.map_err(ended_early)
}

/// Waits for a response, says that the client should go on with its body where that is wanted, and sends the head. Returns what
/// follows.
async fn start(
    mut responding: Responding,
    continue_wanted: Option<ContinueWanted>,
    answer: &Answer,
) -> Result<Box<Outgoing>, Reason> {
    let go_on = async {
        match &continue_wanted {
            Some(wanted) => wanted.wanted().await,
            None => pending().await,
        }
    };
    let mut go_on = pin!(go_on.fuse());
    let started = poll_fn(|context| {
        if let Poll::Ready(started) = Pin::new(&mut responding).poll(context) {
            return Poll::Ready(started.map_err(refused));
        }
        if go_on.as_mut().poll(context).is_ready() {
            // It fails only for a stream that is over.
            let _ = answer.go_on();
        }
        // Once the client has reset the stream, dropping the future takes its job out of the queue.
        answer.poll_reset(context).map(|_| Err(Reason::CANCEL))
    });
    send_head(started.await?, answer)
}

/// Sends the head of a response, and returns what follows.
fn send_head(started: Started, answer: &Answer) -> Result<Box<Outgoing>, Reason> {
    let Started {
        status,
        headers,
        outgoing,
        tunnel: _,
    } = started;
    let sent = answer.send_head(status, &headers, Some(&date), outgoing.is_complete());
    sent.map_err(|error| ended_early(over(error)))?;
    Ok(outgoing)
}

/// How far a response was sent.
enum Sent {
    All,
    /// It has a grant, and the client's window is closed.
    NoWindow,
    /// It has a grant, and enough waits for the socket.
    NoOutput,
}

/// Sends of a response what may leave now. It is pending while it has no grant, or its bytes are not there.
fn poll_send(
    outgoing: &mut Outgoing,
    answer: &Answer,
    context: &mut Context<'_>,
) -> Poll<io::Result<Sent>> {
    while !outgoing.is_complete() {
        let bytes_max = match ready!(outgoing.poll_ready(context))? {
            // Only the end is left. Data needs room; the end of a stream does not.
            None => 0,
            Some(granted_bytes) => match answer.room().map_err(over)? {
                Room::Bytes(bytes) => granted_bytes.min(bytes),
                Room::NoWindow => return Poll::Ready(Ok(Sent::NoWindow)),
                Room::NoOutput => return Poll::Ready(Ok(Sent::NoOutput)),
            },
        };
        let frame = ready!(outgoing.poll_frame(context, bytes_max)).transpose()?;
        let sent = match frame.map(Frame::into_data) {
            Some(Ok(chunk)) => answer.send_data(chunk, outgoing.is_complete()),
            Some(Err(frame)) => answer.send_trailers(&frame.into_trailers().unwrap_or_default()),
            None => answer.send_data(Bytes::new(), true),
        };
        sent.map_err(over)?;
    }
    Poll::Ready(Ok(Sent::All))
}

/// Sends what follows the head, and waits for grants and room.
async fn send(
    connection: &Connection,
    mut outgoing: Box<Outgoing>,
    answer: &Answer,
) -> io::Result<()> {
    loop {
        let sent = poll_fn(|context| match poll_send(&mut outgoing, answer, context) {
            Poll::Pending => answer.poll_reset(context).map(|error| Err(over(error))),
            sent => sent,
        });
        match sent.await? {
            Sent::All => return Ok(()),
            Sent::NoOutput => {
                outgoing.decline();
                answer.output().await.map_err(over)?;
            }
            Sent::NoWindow => window_opens(connection, &mut outgoing, answer).await?,
        }
    }
}

/// Waits until the client's window may be open again.
async fn window_opens(
    connection: &Connection,
    outgoing: &mut Outgoing,
    answer: &Answer,
) -> io::Result<()> {
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
    .await
}

fn refused(error: io::Error) -> Reason {
    tracing::debug!("HTTP/2 stream refused: {error}");
    Reason::REFUSED_STREAM
}

fn ended_early(error: io::Error) -> Reason {
    tracing::debug!("HTTP/2 stream ended early: {error}");
    Reason::INTERNAL_ERROR
}

fn over(error: StreamOver) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

/// The value of `Date` for a response that has none. It changes once a second.
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
