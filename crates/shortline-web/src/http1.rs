//! HTTP/1.1 on hyper: one response at a time. Its head is not written before its first grant, and
//! each grant carries one body frame. A connection that stays idle drops hyper's state (10,000 of
//! them would hold 100 MB) and keeps only its socket.
//!
//! hyper reads the connection through `reading`, which checks chunked bodies against their grammar.
//!
//! A client that closes its sending side counts as gone: its response is aborted.

mod reading;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::context::Connection;
use crate::outgoing::Outgoing;
use crate::place;
use crate::proxy::{self, Received};
use crate::respond::{Responding, Tunnel, respond};
use crate::watch::Order;
use reading::{Messages, Reading};

/// So many fields hyper allows by itself (`a_request_has_a_hundred_fields_at_most` notices if that changes).
const HYPER_FIELDS_MAX: usize = 100;

/// The connection once its parser is gone.
pub enum After<S> {
    /// The connection is over.
    Closed,
    /// The connection may bring another request. These bytes of it have already been read.
    Open(S, Bytes),
}

/// What the code that answers a connection's requests shares with the code that reads them.
#[derive(Default)]
struct Known {
    messages: Messages,
    /// What takes over the connection after the answer.
    tunnel: Mutex<Option<Box<Tunnel>>>,
}

impl AsRef<Messages> for Arc<Known> {
    fn as_ref(&self) -> &Messages {
        &self.messages
    }
}

/// Answers requests until the connection closes or has been idle for a while.
pub async fn serve<S>(connection: &Arc<Connection>, stream: S, before: Bytes) -> After<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = &connection.settings.limits;
    let known: Arc<Known> = Arc::default();
    let service = service_fn({
        let (connection, known) = (Arc::clone(connection), Arc::clone(&known));
        move |request: Request<Incoming>| {
            let (head, body) = request.into_parts();
            let place = place::find(&connection, &head);
            known.messages.body(body.size_hint().exact());
            Answer {
                responding: respond(&connection, head, Received::Http1(body), place),
                known: Arc::clone(&known),
            }
        }
    });
    let reading = Reading::new(before, stream, Arc::clone(&known));
    let mut builder = http1::Builder::new();
    builder.max_buf_size(limits.header_bytes_max.max(8192));
    // Told a number, even its own, hyper fills memory for so many fields at each request.
    if limits.header_fields_max != HYPER_FIELDS_MAX {
        builder.max_headers(limits.header_fields_max);
    }
    let mut driver = Box::new(builder.serve_connection(TokioIo::new(reading), service));
    let watch = &connection.watch;
    let mut parking = false;
    let ended = poll_fn(|context| {
        match watch.order(context) {
            Order::None => {}
            Order::Close => return Poll::Ready(None),
            Order::Drain => {
                parking = false;
                Pin::new(&mut *driver).graceful_shutdown();
            }
            Order::Park => {
                parking = true;
                Pin::new(&mut *driver).graceful_shutdown();
            }
        }
        driver.poll_without_shutdown(context).map(Some)
    })
    .await;
    match ended {
        None => After::Closed,
        Some(Err(error)) => {
            connection.server.count_connection_error(&error);
            After::Closed
        }
        Some(Ok(())) => {
            let parts = driver.into_parts();
            let (too_early, stream) = parts.io.into_inner().into_parts();
            // A copy, so that no part keeps the whole buffer alive.
            let left = || Bytes::from([parts.read_buf, too_early].concat());
            let tunnel = known.tunnel.lock().take();
            if let Some(tunnel) = tunnel {
                proxy::tunnel(connection, stream, left(), *tunnel).await;
                After::Closed
            } else if parking {
                After::Open(stream, left())
            } else {
                close(stream).await;
                After::Closed
            }
        }
    }
}

/// Ends the stream after the last response, so that the client sees the response as complete.
async fn close<S: AsyncWrite + Unpin>(mut stream: S) {
    // A client that has already gone needs no goodbye.
    let _ = poll_fn(|context| Pin::new(&mut stream).poll_shutdown(context)).await;
}

/// The response to one request, as hyper takes it.
struct Answer {
    responding: Responding,
    known: Arc<Known>,
}

impl Future for Answer {
    type Output = io::Result<Response<ScheduledBody>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let started = ready!(Pin::new(&mut self.responding).poll(context))?;
        if started.tunnel.is_some() {
            *self.known.tunnel.lock() = started.tunnel;
        }
        let mut response = Response::new(ScheduledBody(started.outgoing));
        *response.status_mut() = started.status;
        *response.headers_mut() = started.headers;
        Poll::Ready(Ok(response))
    }
}

/// A body that yields one frame a grant.
struct ScheduledBody(Box<Outgoing>);

impl Body for ScheduledBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let polled = self.0.poll_frame(context, u32::MAX);
        if let Poll::Ready(Some(Err(_))) = polled {
            // If only the end of the stream tells the length, a normal end would look complete.
            self.0.account.connection().watch.reset();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_complete()
    }

    fn size_hint(&self) -> SizeHint {
        self.0
            .remaining_bytes()
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
