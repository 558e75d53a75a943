//! Who holds a connection: the one who reads and writes its socket ([`Server`]), and for each request whoever answers
//! it ([`Answer`]) and whoever reads its body ([`Body`]), perhaps on another thread.
//!
//! A stream is reset when nobody holds what its client still waits for, or still sends.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderMap, HeaderValue};
use http::request::Parts;
use http_body::Frame;
use parking_lot::Mutex;

use crate::connection::{Connection, Limits, Room};
use crate::error::{ConnectionError, Reason, StreamOver};

/// The most pieces of one write.
const SLICES_MAX: usize = 64;
/// With more answers to write, nothing is read: a client that does not take them gets no more.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The server's side of a connection. Dropping it ends all streams.
pub struct Server(Arc<Mutex<Connection>>);

/// A request as it came.
pub struct Request {
    /// Its head.
    pub head: Parts,
    /// Its body.
    pub body: Body,
    /// What answers it.
    pub answer: Answer,
}

/// Sends the response to a request. Dropping it before the end resets the stream.
pub struct Answer(Held);

/// The body of a request. What is read of it is given back to the client's window.
pub struct Body(Option<Held>);

struct Held {
    connection: Arc<Mutex<Connection>>,
    key: usize,
}

impl Server {
    /// A connection whose client is about to send its preface.
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(Connection::new(limits))))
    }

    /// Whether what comes may be read now.
    pub fn may_read(&self) -> bool {
        self.0.lock().output.copied_bytes() < ANSWER_BYTES_MAX
    }

    /// Takes what has been read.
    ///
    /// # Errors
    /// The client has done what ends the connection, and is told so.
    pub fn receive(&self, bytes: &[u8]) -> Result<(), ConnectionError> {
        let mut connection = self.0.lock();
        let received = connection.receive(bytes);
        received.inspect_err(|error| connection.fail(*error))
    }

    /// The next request.
    pub fn next_request(&self) -> Option<Request> {
        let mut connection = self.0.lock();
        let (key, head) = connection.next_request()?;
        let stream = connection.streams.get_mut(key);
        let has_body = !stream.is_read();
        (stream.has_answer, stream.has_body) = (true, has_body);
        let held = || Held {
            connection: Arc::clone(&self.0),
            key,
        };
        Some(Request {
            head,
            body: Body(has_body.then(held)),
            answer: Answer(held()),
        })
    }

    /// Tells the client that the connection ends when what is under way is answered. Cheap when told again.
    pub fn end_gracefully(&self) {
        self.0.lock().end_gracefully();
    }

    /// Whether it has ended, but for what is to be written.
    pub fn has_ended(&self) -> bool {
        self.0.lock().has_ended()
    }

    /// Writes what there is to write, with `write`. Pending: the socket takes no more. Otherwise `waker` is woken
    /// when there is more.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn poll_write(
        &self,
        waker: &Waker,
        mut write: impl FnMut(&[IoSlice<'_>]) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<()>> {
        let mut connection = self.0.lock();
        connection.writer = None;
        while !connection.output.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let filled = connection.output.fill(&mut slices);
            let written = ready!(write(&slices[..filled]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            connection.output.advance(written);
        }
        connection.writer = Some(waker.clone());
        Poll::Ready(Ok(()))
    }

    /// Wakes the next stream that waits for the output, if there is room. Whether it did.
    pub fn wake_next(&self) -> bool {
        self.0.lock().wake_next()
    }

    /// From now on it is written again without being woken.
    pub fn begin(&self) {
        self.0.lock().writer = None;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.lock().close();
    }
}

impl Answer {
    /// Says that the client should send the body that it holds back.
    ///
    /// # Errors
    /// The stream is over.
    pub fn go_on(&self) -> Result<(), StreamOver> {
        self.0.with(|connection, key| {
            connection.send_head(key, StatusCode::CONTINUE, None, None, false)
        })
    }

    /// Sends the response's head, with a date if there is none among the fields.
    ///
    /// # Errors
    /// The stream is over.
    pub fn send_head(
        &self,
        status: StatusCode,
        fields: &HeaderMap,
        date: Option<&dyn Fn() -> HeaderValue>,
        is_end: bool,
    ) -> Result<(), StreamOver> {
        self.0
            .with(|connection, key| connection.send_head(key, status, Some(fields), date, is_end))
    }

    /// How much data may be sent.
    ///
    /// # Errors
    /// The stream is over.
    pub fn room(&self) -> Result<Room, StreamOver> {
        self.0.connection.lock().room(self.0.key)
    }

    /// Ready when some of the output has left, and it is this stream's turn.
    pub async fn output(&self) -> Result<(), StreamOver> {
        self.0.connection.lock().queue(self.0.key);
        poll_fn(|context| {
            let mut connection = self.0.connection.lock();
            let stream = connection.streams.get_mut(self.0.key);
            if let Some(reason) = stream.over {
                return Poll::Ready(Err(StreamOver(reason)));
            }
            if stream.is_queued {
                wait(&mut stream.waiting, context);
                return Poll::Pending;
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Sends data, for which there must be room.
    ///
    /// # Errors
    /// The stream is over.
    pub fn send_data(&self, data: Bytes, is_end: bool) -> Result<(), StreamOver> {
        self.0
            .with(|connection, key| connection.send_data(key, data, is_end))
    }

    /// Sends trailers, and ends the stream.
    ///
    /// # Errors
    /// The stream is over.
    pub fn send_trailers(&self, trailers: &HeaderMap) -> Result<(), StreamOver> {
        self.0
            .with(|connection, key| connection.send_trailers(key, trailers))
    }

    /// Resets the stream, if it is not over.
    pub fn reset(&self, reason: Reason) {
        self.0.with(|connection, key| connection.reset(key, reason));
    }

    /// Ready when the stream is reset, by whom ever.
    pub fn poll_reset(&self, context: &mut Context<'_>) -> Poll<StreamOver> {
        let mut connection = self.0.connection.lock();
        let stream = connection.streams.get_mut(self.0.key);
        match stream.over {
            Some(reason) => Poll::Ready(StreamOver(reason)),
            None => {
                wait(&mut stream.waiting, context);
                Poll::Pending
            }
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.0.with(|connection, key| {
            let stream = connection.streams.get_mut(key);
            stream.has_answer = false;
            if !stream.sent_all {
                connection.reset(key, Reason::CANCEL);
            } else if !stream.received_all && !stream.has_body {
                // RFC 9113 8.1: the client may stop sending.
                connection.reset(key, Reason::NO_ERROR);
            } else {
                connection.streams.settle(key);
            }
        });
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = StreamOver;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamOver>>> {
        let Some(held) = &self.0 else {
            return Poll::Ready(None);
        };
        held.with(|connection, key| {
            let stream = connection.streams.get_mut(key);
            if let Some(reason) = stream.over {
                return Poll::Ready(Some(Err(StreamOver(reason))));
            }
            if let Some(data) = stream.incoming.data.pop_front() {
                connection.read(data.len() as u32);
                connection.read_of(key, data.len() as u32);
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            if stream.received_all {
                let trailers = stream.incoming.trailers.take();
                return Poll::Ready(trailers.map(Frame::trailers).map(Ok));
            }
            wait(&mut stream.incoming.waiting, context);
            Poll::Pending
        })
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|held| {
            let connection = held.connection.lock();
            connection.streams.get(held.key).is_read()
        })
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let Some(held) = self.0.take() else {
            return;
        };
        held.with(|connection, key| {
            connection.give_back_unread(key);
            let stream = connection.streams.get_mut(key);
            stream.has_body = false;
            if stream.sent_all && !stream.received_all {
                connection.reset(key, Reason::NO_ERROR);
            } else {
                connection.streams.settle(key);
            }
        });
    }
}

impl Held {
    fn with<T>(&self, act: impl FnOnce(&mut Connection, usize) -> T) -> T {
        let mut connection = self.connection.lock();
        let result = act(&mut connection, self.key);
        connection.wake_writer();
        result
    }
}

fn wait(waiting: &mut Option<Waker>, context: &Context<'_>) {
    if !waiting
        .as_ref()
        .is_some_and(|waker| waker.will_wake(context.waker()))
    {
        *waiting = Some(context.waker().clone());
    }
}
