//! HTTP/1.1 with clients (RFC 9112): one request at a time, and its response. The head of a response is not written before its
//! first grant, and each grant carries one piece of the body. A connection that stays idle keeps only its socket.
//!
//! | module | does |
//! |---|---|
//! | `head` | reads a request's head, and writes a response's |
//! | `wire` | the connection: what was read and not used, what waits to be written, what is left of a request's body |
//! | `body` | a request's body, for whoever reads it, perhaps in another task |
//!
//! A request is read once the response before it has left. A client that closes its sending side counts as gone: its
//! response is aborted. Departure from RFC 9112, 9.3.2: so a client that pipelines gets its responses in order, but none is
//! decided before the one ahead of it has left.

pub mod body;
pub mod head;
pub mod wire;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::context::Connection;
use crate::files::{Plan, PlanBody, Segment};
use crate::outgoing::Outgoing;
use crate::place;
use crate::proxy::{self, Received};
use crate::respond::{Responding, Started, Tunnel, respond};
use crate::watch::Order;
pub use body::Body;
use head::{Form, Framing, Head, Refusal};
use wire::{Broken, Rest, Wire};

/// The most requests answered in one poll. Then other connections have their turn.
const REQUESTS_MAX: u32 = 16;
/// The most writes of a response in one poll, for the same reason: a fast client has always room for more.
const WRITES_MAX: u32 = 16;
/// Bytes of a request that nobody reads, read and dropped as the connection ends. If they stayed unread when the socket closes,
/// the client would lose the answer.
const PASSED_OVER_BYTES_MAX: u64 = 64 * 1024;
/// For so long.
const PASSED_OVER_TIME_MAX: Duration = Duration::from_secs(2);

/// The connection once its parser is gone.
pub(crate) enum After<S> {
    /// The connection is over.
    Closed,
    /// The connection may bring another request, of which nothing has been read.
    Open(S),
}

/// Answers requests until the connection closes or has been idle for a while.
pub(crate) async fn serve<S>(connection: &Arc<Connection>, stream: S, before: Bytes) -> After<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut session = Session::new(connection, stream, before);
    let ended = poll_fn(|context| match connection.watch.order(context) {
        Order::Close => Poll::Ready(Ok(End::Gone)),
        order => session.poll(order, context),
    })
    .await;
    let left = session.take();
    match (ended, left) {
        (Err(error), left) => {
            connection.server.count_connection_error(&error);
            if let (Broken::Refused(_), Some((stream, _))) = (error, left) {
                close(connection, stream, true).await;
            }
            After::Closed
        }
        (Ok(End::Gone), _) | (_, None) => After::Closed,
        (Ok(End::Idle), Some((stream, _))) => After::Open(stream),
        (Ok(End::Done { leaves_body }), Some((stream, _))) => {
            close(connection, stream, leaves_body).await;
            After::Closed
        }
        (Ok(End::Tunnel(tunnel)), Some((stream, before))) => {
            proxy::tunnel(connection, stream, before.freeze(), *tunnel).await;
            After::Closed
        }
    }
}

/// Ends the stream after the last response, so that the client sees the response as complete. What the client still
/// sends of a request that nobody reads is read and dropped for a while.
async fn close<S>(connection: &Connection, mut stream: S, leaves_body: bool)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut closing = pin!(async {
        // A client that has already gone needs no goodbye.
        if stream.shutdown().await.is_ok() && leaves_body {
            let mut rest = stream.take(PASSED_OVER_BYTES_MAX);
            let passing = async { tokio::io::copy(&mut rest, &mut tokio::io::sink()).await };
            let _ = tokio::time::timeout(PASSED_OVER_TIME_MAX, passing).await;
        }
    });
    poll_fn(|context| match connection.watch.order(context) {
        Order::Close => Poll::Ready(()),
        Order::None | Order::Park | Order::Drain => closing.as_mut().poll(context),
    })
    .await;
}

/// How a connection's requests end, if not by an error.
enum End {
    /// There will be no other.
    Done {
        /// Whether something of the last may still come.
        leaves_body: bool,
    },
    /// The connection has been idle for a while.
    Idle,
    /// Another protocol takes over.
    Tunnel(Box<Tunnel>),
    /// The connection is to end at once.
    Gone,
}

/// A connection with its requests.
struct Session<S> {
    connection: Arc<Connection>,
    wire: Arc<Mutex<Wire<S>>>,
    step: Step,
    /// Whether the connection may bring another request.
    keeps: bool,
}

/// What comes next.
enum Step {
    /// A head.
    Head,
    /// A response whose first grant is still to come.
    Start(Responding, Form),
    /// More of a response.
    Body(Box<Outgoing>, Framing),
    /// The last bytes of a response leave.
    End(Option<Box<Tunnel>>),
    /// What is left of a request's body.
    Rest,
    /// The last bytes before the connection ends, as the request was none.
    Refused(Refusal),
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Session<S> {
    fn new(connection: &Arc<Connection>, stream: S, before: Bytes) -> Self {
        let limits = &connection.settings.limits;
        let limits = (limits.header_bytes_max, limits.header_fields_max);
        Self {
            connection: Arc::clone(connection),
            wire: Arc::new(Mutex::new(Wire::new(stream, before, limits))),
            step: Step::Head,
            keeps: true,
        }
    }

    fn poll(&mut self, order: Order, context: &mut Context<'_>) -> Poll<Result<End, Broken>> {
        self.keeps &= order != Order::Drain;
        let mut requests = 0;
        loop {
            if let Step::Head = self.step {
                if requests == REQUESTS_MAX {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                requests += 1;
            }
            if let Some(end) = ready!(self.poll_step(order, context))? {
                return Poll::Ready(Ok(end));
            }
        }
    }

    /// Ready once the next step may follow, or with the end of the connection.
    fn poll_step(
        &mut self,
        order: Order,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<End>, Broken>> {
        let polled = match &mut self.step {
            Step::Head => return self.poll_head(order, context),
            Step::Rest => return self.poll_rest(context),
            Step::Refused(refusal) => {
                ready!(self.wire.lock().poll_write(context))?;
                return Poll::Ready(Err((*refusal).into()));
            }
            Step::Start(responding, form) => {
                let form = *form;
                let polled = Pin::new(responding).poll(context)?;
                polled.map(|started| self.start(started, form))
            }
            Step::Body(..) => self.poll_body(context)?,
            Step::End(tunnel) => {
                let polled = self.wire.lock().poll_write(context)?;
                if polled.is_ready() {
                    let tunnel = tunnel.take();
                    self.step = Step::Rest;
                    return Poll::Ready(Ok(tunnel.map(End::Tunnel)));
                }
                polled
            }
        };
        if polled.is_pending() {
            self.wire.lock().look(context)?;
            return Poll::Pending;
        }
        Poll::Ready(Ok(None))
    }

    fn poll_head(
        &mut self,
        order: Order,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<End>, Broken>> {
        let mut wire = self.wire.lock();
        let polled = wire.poll_head(context);
        let is_idle = polled.is_pending() && wire.input.is_empty();
        drop(wire);
        let done = End::Done { leaves_body: false };
        match polled {
            Poll::Pending if is_idle && !self.keeps => return Poll::Ready(Ok(Some(done))),
            Poll::Pending if is_idle && order == Order::Park => {
                return Poll::Ready(Ok(Some(End::Idle)));
            }
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(None)) => return Poll::Ready(Ok(Some(done))),
            Poll::Ready(Ok(Some(head))) => self.begin(head),
            Poll::Ready(Err(Broken::Refused(refusal))) => self.refuse(refusal),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
        }
        Poll::Ready(Ok(None))
    }

    /// Begins with a request.
    fn begin(&mut self, head: Head) {
        let request = self.wire.lock().body_begins(&head);
        let has_body = head.extent != head::Extent::Length(0);
        let body = match has_body {
            true => Body::of(Arc::clone(&self.wire) as Arc<dyn body::Source>, request),
            false => Body::none(),
        };
        self.keeps &= head.keeps;
        let form = Form::of(&head.parts);
        let place = place::find(&self.connection, &head.parts);
        let body = Received::Http1(body);
        let responding = respond(&self.connection, head.parts, body, place);
        self.step = Step::Start(responding, form);
    }

    /// Writes a response's head.
    fn start(&mut self, started: Started, form: Form) {
        let Started {
            status,
            headers,
            outgoing,
            tunnel,
        } = started;
        let body = match outgoing.remaining_bytes() {
            _ if outgoing.is_complete() => head::Body::Empty,
            Some(bytes) => head::Body::Length(bytes),
            None => head::Body::Unknown,
        };
        // The body was too long, or did not come: no more of it is waited for.
        let is_refused =
            [StatusCode::REQUEST_TIMEOUT, StatusCode::PAYLOAD_TOO_LARGE].contains(&status);
        let passed_bytes_max = self.passed_bytes_max();
        let mut wire = self.wire.lock();
        self.keeps &= match wire.rest_now() {
            Rest::Nothing | Rest::Read => true,
            Rest::Bytes(bytes) => bytes <= passed_bytes_max && !is_refused,
            Rest::Unknown => false,
        };
        wire.response_begins();
        let text = wire.output.text();
        let framing = head::write(text, status, &headers, (form, body), &mut self.keeps);
        drop(wire);
        self.step = match body {
            _ if framing == Framing::None => Step::End(tunnel),
            head::Body::Empty => Step::End(tunnel),
            head::Body::Length(_) | head::Body::Unknown => Step::Body(outgoing, framing),
        };
    }

    /// Answers what is no request.
    fn refuse(&mut self, refusal: Refusal) {
        let plan = Plan::explained(refusal.status(), &Method::GET, &refusal);
        let segments = match plan.body {
            PlanBody::Segments(segments) => segments,
            PlanBody::Empty => Vec::new(),
        };
        let bytes = segments.iter().map(Segment::len).sum();
        self.keeps = false;
        let mut wire = self.wire.lock();
        let form = (Form::unknown(), head::Body::Length(bytes));
        let text = wire.output.text();
        head::write(text, plan.status, &plan.headers, form, &mut self.keeps);
        for segment in segments {
            if let Segment::Bytes(bytes) = segment {
                wire.output.push(bytes);
            }
        }
        drop(wire);
        self.step = Step::Refused(refusal);
    }

    /// Takes what is granted of a response and writes it. Ready once all is handed over.
    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let Step::Body(outgoing, framing) = &mut self.step else {
            return Poll::Ready(Ok(()));
        };
        for _ in 0..WRITES_MAX {
            let is_pending = loop {
                if outgoing.is_complete() || self.wire.lock().output.is_full() {
                    break false;
                }
                match outgoing.poll_frame(context, u32::MAX) {
                    Poll::Pending => break true,
                    Poll::Ready(None) => {}
                    Poll::Ready(Some(Ok(frame))) => {
                        framing.push(frame, &mut self.wire.lock().output);
                    }
                    Poll::Ready(Some(Err(error))) => {
                        // If only the end of the stream tells the length, a normal end would look complete.
                        self.connection.watch.reset();
                        return Poll::Ready(Err(error.into()));
                    }
                }
            };
            if outgoing.is_complete() {
                framing.end(&mut self.wire.lock().output);
                self.step = Step::End(None);
                return Poll::Ready(Ok(()));
            }
            ready!(self.wire.lock().poll_write(context))?;
            if is_pending {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Ready once the next request may follow, or with the end of the connection.
    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<End>, Broken>> {
        let passed_bytes_max = self.passed_bytes_max();
        let mut wire = self.wire.lock();
        let leaves_body = match wire.rest(context) {
            Rest::Read => return Poll::Pending,
            Rest::Nothing => false,
            Rest::Bytes(bytes) if self.keeps && bytes <= passed_bytes_max => {
                ready!(wire.poll_pass(context))?;
                false
            }
            Rest::Bytes(_) | Rest::Unknown => true,
        };
        drop(wire);
        self.step = Step::Head;
        let ends = leaves_body || !self.keeps;
        Poll::Ready(Ok(ends.then_some(End::Done { leaves_body })))
    }

    /// So much of a body that nobody wants is passed over, for the next request's sake.
    fn passed_bytes_max(&self) -> u64 {
        self.connection.settings.limits.header_bytes_max as u64
    }
}

impl<S> Session<S> {
    /// The stream, and what was read of it and not used. Whoever still reads a body gets no more.
    fn take(self) -> Option<(S, BytesMut)> {
        let mut wire = self.wire.lock();
        let stream = wire.stream.take();
        let input = std::mem::take(&mut wire.input);
        stream.map(|stream| (stream, input))
    }
}

impl<S> Drop for Session<S> {
    fn drop(&mut self) {
        // Whatever answers may hold a request's body.
        self.step = Step::Head;
        self.wire.lock().end();
    }
}
