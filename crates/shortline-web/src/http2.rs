//! HTTP/2 on the h2 crate: every stream is a job of its own. Only what was granted is inside h2,
//! one quantum a connection, so that the order is the scheduler's and not h2's.
//!
//! A stream asks h2 for window only when it has a grant. If there is none, it declines the grant
//! and gives the claim back: a claim left standing would be served by h2 in its own order. It
//! asks again when the connection has moved bytes, for only that can open a window.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, Stream};
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::header::{self, HeaderValue};
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

use crate::connection::Connection;
use crate::outgoing::Outgoing;
use crate::respond::{Started, respond};
use crate::watch::Order;

/// Bytes h2 may hold of one stream: a grant of a connection that is not scheduled.
const SEND_BUFFER_BYTES_MAX: usize = 256 * 1024;
/// Streams a client may open and reset before its connection is taken for an attack.
const RESETS_PENDING_MAX: usize = 32;

/// Bytes of a request's body that are read and passed over before it is answered.
const REQUEST_BODY_BYTES_MAX: usize = 64 * 1024;

type StreamTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection that speaks HTTP/2.
pub type Http2<S> = Box<server::Connection<S, Bytes>>;

/// Exchanges settings with the client; `None` if the connection ended over it.
pub async fn begin<S>(connection: &Connection, stream: S) -> Option<Http2<S>>
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
    let handshake = builder.handshake(stream);
    match connection.watch.obeying(handshake).await? {
        Ok(h2) => Some(Box::new(h2)),
        Err(error) => {
            connection.server.count_connection_error(&error);
            None
        }
    }
}

/// Answers requests until the connection closes.
pub async fn serve<S>(connection: Arc<Connection>, mut h2: Http2<S>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let moved = Arc::new(Notify::new());
    let mut streams: FuturesUnordered<StreamTask> = FuturesUnordered::new();
    let mut moves_seen = 0;
    let ended = poll_fn(|context| {
        match connection.watch.order(context) {
            Order::None | Order::Park => {}
            Order::Close => {
                h2.abrupt_shutdown(Reason::NO_ERROR);
                return Poll::Ready(Ok(()));
            }
            Order::Drain => h2.graceful_shutdown(),
        }
        loop {
            // Streams first: what they hand over is flushed by the connection right after.
            while let Poll::Ready(Some(())) = Pin::new(&mut streams).poll_next(context) {}
            match h2.poll_accept(context) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    let (connection, moved) = (Arc::clone(&connection), Arc::clone(&moved));
                    streams.push(Box::pin(answer(connection, moved, request, respond)));
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
                    moved.notify_waiters();
                }
            }
        }
    })
    .await;
    if let Err(error) = ended {
        connection.server.count_connection_error(&error);
    }
}

async fn answer(
    connection: Arc<Connection>,
    moved: Arc<Notify>,
    mut request: Request<RecvStream>,
    mut channel: SendResponse<Bytes>,
) {
    if !request.body().is_end_stream() {
        let time_max = connection.settings.limits.header_time_max;
        let passed = tokio::time::timeout(time_max, pass_over(request.body_mut())).await;
        if !matches!(passed, Ok(Ok(()))) {
            channel.send_reset(Reason::CANCEL);
            return;
        }
    }
    let started = {
        let mut work = pin!(respond(&connection, &request));
        poll_fn(|context| match channel.poll_reset(context) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => work.as_mut().poll(context).map(Some),
        })
        .await
    };
    match started {
        // The client has reset the stream: its job has left the queue with the future.
        None => {}
        Some(Ok(started)) => {
            let mut stream = None;
            if let Err(error) = send(&connection, &moved, started, &mut channel, &mut stream).await
            {
                tracing::debug!("HTTP/2 stream ended early: {error}");
                if let Some(stream) = &mut stream {
                    stream.send_reset(Reason::INTERNAL_ERROR);
                }
            }
        }
        Some(Err(error)) => {
            tracing::debug!("HTTP/2 stream refused: {error}");
            channel.send_reset(Reason::REFUSED_STREAM);
        }
    }
}

/// Reads a request's body and trailers, which nobody wants: a malformed one must be an error, and
/// can only be told from a sound one at its end (RFC 9113, 8.1.1).
async fn pass_over(body: &mut RecvStream) -> Result<(), h2::Error> {
    let mut left_bytes = REQUEST_BODY_BYTES_MAX;
    while let Some(data) = body.data().await {
        let bytes = data?.len();
        if bytes > left_bytes {
            // Answered without the rest; the client is told to stop when the stream ends.
            return Ok(());
        }
        left_bytes -= bytes;
        body.flow_control().release_capacity(bytes)?;
    }
    body.trailers().await?;
    Ok(())
}

async fn send(
    connection: &Connection,
    moved: &Notify,
    started: Started,
    channel: &mut SendResponse<Bytes>,
    stream: &mut Option<SendStream<Bytes>>,
) -> io::Result<()> {
    let Started {
        status,
        headers,
        mut outgoing,
    } = started;
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response.headers_mut().remove(header::CONNECTION);
    response.headers_mut().insert(header::DATE, date());
    let empty = outgoing.remaining_bytes() == 0;
    let stream = stream.insert(
        channel
            .send_response(response, empty)
            .map_err(io::Error::other)?,
    );
    while outgoing.remaining_bytes() > 0 {
        let bytes = window(connection, moved, &mut outgoing, stream).await?;
        let chunk = poll_fn(|context| match poll_reset(stream, context) {
            Some(error) => Poll::Ready(Some(Err(error))),
            None => outgoing.poll_chunk(context, bytes),
        });
        if let Some(chunk) = chunk.await {
            let chunk = chunk?;
            let end = outgoing.remaining_bytes() == 0;
            stream.send_data(chunk, end).map_err(io::Error::other)?;
        }
    }
    Ok(())
}

/// Waits until the stream has both a grant and window; how many bytes of it both cover.
async fn window(
    connection: &Connection,
    moved: &Notify,
    outgoing: &mut Outgoing,
    stream: &mut SendStream<Bytes>,
) -> io::Result<u32> {
    loop {
        // Enabled before the look, so that no move is missed in between.
        let mut next_move = pin!(moved.notified());
        next_move.as_mut().enable();
        let granted_bytes = poll_fn(|context| match poll_reset(stream, context) {
            Some(error) => Poll::Ready(Err(error)),
            None => outgoing.poll_ready(context),
        })
        .await?;
        let wanted_bytes = outgoing.remaining_bytes().min(u64::from(granted_bytes));
        stream.reserve_capacity(wanted_bytes as usize);
        let window_bytes = stream.capacity();
        if window_bytes > 0 {
            return Ok(granted_bytes.min(window_bytes as u32));
        }
        stream.reserve_capacity(0);
        outgoing.decline();
        connection.watch.window_closed();
        poll_fn(|context| match poll_reset(stream, context) {
            Some(error) => Poll::Ready(Err(error)),
            None => next_move.as_mut().poll(context).map(Ok),
        })
        .await?;
    }
}

/// The client has reset the stream, or the connection is gone.
fn poll_reset(stream: &mut SendStream<Bytes>, context: &mut Context<'_>) -> Option<io::Error> {
    match stream.poll_reset(context) {
        Poll::Ready(_) => Some(io::ErrorKind::ConnectionReset.into()),
        Poll::Pending => None,
    }
}

fn date() -> HeaderValue {
    let text = httpdate::fmt_http_date(SystemTime::now());
    HeaderValue::from_str(&text).expect("invariant: an HTTP date is visible ASCII")
}
