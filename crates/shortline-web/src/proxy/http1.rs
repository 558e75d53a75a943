//! HTTP/1.1 with a backend (RFC 9112), one request at a time on a connection, in the task that wants the response.
//!
//! A connection needs no task of its own: who sends the request writes it, reads the head of the response and then its body. Only
//! a request's body that goes on when the head has come gets one. On hyper's client each request passed two channels and a task,
//! which was a fifth of the work of a proxied request of 1 KB.
//!
//! | module | does |
//! |---|---|
//! | `head` | writes a request's head, and reads a response's |
//! | `body` | reads a response's body: by length, in chunks, or to the end of the connection |
//! | `sending` | writes a request, its body as fast as the backend takes it |
//!
//! What is read is bounded: a head by `response_head_bytes_max` and `response_fields_max`, a body by what is asked for, `READ_BYTES_MAX`
//! at a time. Bytes that nobody has asked for end the connection.
//!
//! Source: RFC 9112; where it leaves a choice, as hyper 1.12 does. Departure: a response that comes
//! before the request was written whole is passed on even if the rest cannot be written any more.

mod body;
pub mod head;
mod sending;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use http::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use shortline_base::pipe::Filled;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;

use super::backend_socket::BackendSocket;
use super::options::UpstreamOptions;
use super::response::{BodyError, ResponseBody};
use super::sender::Unsent;
use super::upload::RequestBody;
use crate::message::chunks::ChunksError;
use crate::message::head::HeadError;
use crate::message::memory::Memory;
use crate::piped::Piped;
use crate::socket::Rewound;
pub use body::Http1Body;
use head::Head;
use sending::{SendError, Sending};

/// What is read at once, at first and at most.
const READ_BYTES: usize = 8 * 1024;
const READ_BYTES_MAX: usize = 256 * 1024;

/// A connection after `101 Switching Protocols`: what it had sent already, then itself.
pub type Switched = Rewound<BackendSocket>;

/// A connection.
#[derive(Clone)]
pub struct Http1(Arc<Mutex<Wire>>);

/// Why there is no response, or why it breaks off.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the connection was closed")]
    Closed,
    #[error("the connection ended before the response")]
    NoResponse,
    #[error("the connection ended within the response")]
    CutShort,
    #[error("{0}")]
    Head(#[from] HeadError),
    #[error("{0}")]
    Chunks(#[from] ChunksError),
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}

/// The connection and what is known of it.
struct Wire {
    /// `None`: it speaks another protocol now.
    socket: Option<BackendSocket>,
    /// Read, and not used yet.
    input: BytesMut,
    read_bytes: usize,
    state: State,
    /// Whether a task still writes the request.
    writes: bool,
    head_bytes_max: usize,
    fields_max: usize,
    memory: Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It takes a request.
    Idle,
    Busy,
    /// It never takes one again.
    Over,
}

impl Http1 {
    /// A new connection.
    pub fn new(socket: BackendSocket, options: &UpstreamOptions) -> Self {
        Self(Arc::new(Mutex::new(Wire {
            socket: Some(socket),
            input: BytesMut::new(),
            read_bytes: READ_BYTES,
            state: State::Idle,
            writes: false,
            head_bytes_max: options.response_head_bytes_max,
            fields_max: options.response_fields_max,
            memory: Memory::default(),
        })))
    }

    /// Whether it takes a request now. Looks whether the backend has closed it.
    pub fn is_ready(&self) -> bool {
        let mut wire = self.0.lock();
        wire.look();
        wire.state == State::Idle
    }

    /// Whether it never takes one again.
    pub fn is_closed(&self) -> bool {
        let mut wire = self.0.lock();
        wire.look();
        wire.state == State::Over
    }

    /// Sends a request, and waits for the head of its response. Dropping the future ends the connection.
    ///
    /// # Errors
    /// `Unsent`
    pub async fn send(
        &self,
        request: Box<Request<RequestBody>>,
    ) -> Result<Response<ResponseBody>, Box<Unsent>> {
        if !self.begin() {
            return Err(Unsent::whole(request, Failure::Closed));
        }
        let mut busy = Busy(Some(self));
        let upload = Arc::clone(request.body().upload());
        let method = request.method().clone();
        let mut sending = Sending::new(request);
        let mut written = Poll::Pending;
        let head = poll_fn(|context| {
            if written.is_pending() {
                written = sending.poll(self, context);
            }
            if let Poll::Ready(Err(SendError::Client(error))) = &mut written
                && let Some(error) = error.take()
            {
                return Poll::Ready(Err(error));
            }
            let head = loop {
                let polled = self.0.lock().poll_head(&method, context);
                match ready!(polled) {
                    Ok(head) if head.status == StatusCode::CONTINUE => upload.go_on(),
                    Ok(head) if head.is_interim() => {}
                    head => break head,
                }
            };
            Poll::Ready(head.map_err(|failure| {
                match (&mut written, failure) {
                    // What broke it shows at the write first.
                    (
                        Poll::Ready(Err(SendError::Backend(error))),
                        failure @ Failure::NoResponse,
                    ) => error
                        .take()
                        .map_or(failure.into(), |error| Failure::Io(error).into()),
                    (_, failure) => failure.into(),
                }
            }))
        });
        let head = match head.await {
            Ok(head) => head,
            Err(error) => return Err(sending.unsent(error)),
        };
        let task = match written {
            Poll::Ready(_) => None,
            Poll::Pending => Some(self.goes_on_sending(sending)),
        };
        busy.0 = None;
        Ok(self.response(head, task))
    }

    /// Claims the connection for a request.
    fn begin(&self) -> bool {
        let mut wire = self.0.lock();
        wire.look();
        if wire.state != State::Idle {
            return false;
        }
        wire.state = State::Busy;
        true
    }

    /// Writes the rest of a request whose response has begun.
    fn goes_on_sending(&self, mut sending: Sending) -> tokio::task::AbortHandle {
        self.0.lock().writes = true;
        let connection = self.clone();
        let task = tokio::spawn(async move {
            // A backend that has answered may not want the rest.
            let written = poll_fn(|context| sending.poll(&connection, context)).await;
            let mut wire = connection.0.lock();
            wire.writes = false;
            if written.is_err() {
                wire.state = State::Over;
            }
        });
        task.abort_handle()
    }

    fn response(
        &self,
        head: Head,
        task: Option<tokio::task::AbortHandle>,
    ) -> Response<ResponseBody> {
        let mut response = Response::new(());
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        *response.version_mut() = head.version;
        let body = Http1Body::new(self.clone(), head.extent, head.keeps, task);
        response.map(|()| ResponseBody::Http1(body))
    }

    /// A response has ended. `keeps`: the connection may take another request.
    fn ends(&self, keeps: bool) {
        let mut wire = self.0.lock();
        let is_reusable = keeps && !wire.writes && wire.input.is_empty();
        wire.state = match wire.state {
            State::Busy if is_reusable => State::Idle,
            _ => State::Over,
        };
    }

    /// The connection, for another protocol. `None`: it has been taken already.
    fn switch(&self) -> Option<Switched> {
        let mut wire = self.0.lock();
        wire.state = State::Over;
        let before = wire.input.split().freeze();
        wire.socket
            .take()
            .map(|socket| Rewound::new(before, socket))
    }
}

/// A request under way. Dropped before the response has begun, it ends the connection.
struct Busy<'a>(Option<&'a Http1>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.0 {
            connection.0.lock().state = State::Over;
        }
    }
}

impl Wire {
    /// Ends an idle connection that the backend has closed, or on which it sends what nobody asked for.
    fn look(&mut self) {
        if self.state != State::Idle {
            return;
        }
        let mut byte = [0];
        let mut context = Context::from_waker(Waker::noop());
        let Some(socket) = &mut self.socket else {
            self.state = State::Over;
            return;
        };
        let read = Pin::new(socket).poll_read(&mut context, &mut ReadBuf::new(&mut byte));
        if read.is_ready() {
            self.state = State::Over;
        }
    }

    /// The next head: of the response, or an interim one.
    fn poll_head(
        &mut self,
        method: &Method,
        context: &mut Context<'_>,
    ) -> Poll<Result<Head, Failure>> {
        loop {
            if let Some(head) = self.head(method)? {
                return Poll::Ready(Ok(head));
            }
            if ready!(self.poll_read(context))? == 0 {
                return Poll::Ready(Err(Failure::NoResponse));
            }
        }
    }

    fn head(&mut self, method: &Method) -> Result<Option<Head>, HeadError> {
        let limits = (self.head_bytes_max, self.fields_max);
        head::read(&mut self.input, method, limits, &mut self.memory)
    }

    /// Reads more. Ready with the number of bytes, 0 at the end of the connection.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(socket) = &mut self.socket else {
            return Poll::Ready(Ok(0));
        };
        self.input.reserve(self.read_bytes);
        let read = ready!(poll_read_buf(Pin::new(socket), context, &mut self.input))?;
        // A backend that fills the buffer has more.
        if read >= self.read_bytes {
            self.read_bytes = (2 * self.read_bytes).min(READ_BYTES_MAX);
        }
        Poll::Ready(Ok(read))
    }

    /// Moves up to `bytes_max` bytes of what comes into a pipe, past what was read.
    fn poll_move(
        &mut self,
        piped: &Piped,
        bytes_max: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Filled>> {
        let source = self.socket.as_ref().and_then(BackendSocket::source);
        let Some(source) = source else {
            return Poll::Ready(Ok(Filled::Refused));
        };
        // The next head, too, is to come with little of what can be moved.
        self.read_bytes = READ_BYTES;
        piped.poll_fill(source, bytes_max, context)
    }

    /// Up to `bytes_max` bytes of what has come, or comes. Empty at the end of the connection.
    fn poll_bytes(&mut self, bytes_max: u64, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        if self.input.is_empty() && ready!(self.poll_read(context))? == 0 {
            return Poll::Ready(Ok(Bytes::new()));
        }
        let bytes = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let bytes = bytes.min(self.input.len());
        Poll::Ready(Ok(self.input.split_to(bytes).freeze()))
    }
}

#[cfg(test)]
mod tests;
