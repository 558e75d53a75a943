//! The body of an HTTP/3 request: data, then trailers (RFC 9114, 4.1). Nothing is read that nobody asks for, so that the client
//! sends as fast as the backend takes.
//!
//! A body that is longer or shorter than `Content-Length` says is malformed (RFC 9114, 4.1.2). h3 does not look.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use h3::error::Code;
use h3::server::RequestStream;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;

use super::streams::{Pipe, RecvStream};

/// The receiving half of a request.
pub type Receiver = RequestStream<RecvStream, Bytes>;

/// The most bytes of a body that are read and dropped after the answer. The client is told to stop a longer one.
const DROPPED_BYTES_MAX: usize = 64 * 1024;

/// The body of a request, as far as it has not been read.
pub struct RequestData {
    /// Always there until it is dropped.
    stream: Option<Receiver>,
    pipe: Arc<Pipe>,
    rest: Rest,
    /// Bytes that are still to come, if the head says how many.
    left_bytes: Option<u64>,
    /// What was read to see whether there is any.
    first: Option<Bytes>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Data,
    Trailers,
    Ended,
}

/// `Content-Length` is no length, or not that of the body.
pub struct BadLength;

impl RequestData {
    /// A body of this length, if its head says one.
    pub fn new(stream: Receiver, length: Option<u64>, pipe: Arc<Pipe>, rest: Rest) -> Self {
        Self {
            stream: Some(stream),
            pipe,
            rest,
            left_bytes: length,
            first: None,
            state: State::Data,
        }
    }

    /// Reads what has come already: most requests have no body, and it is known at once.
    ///
    /// # Errors
    /// [`BadLength`]: there is none, and there should be.
    pub fn look(&mut self, context: &mut Context<'_>) -> Result<(), BadLength> {
        match self.poll_data(context) {
            Poll::Ready(Ok(Some(data))) => self.first = Some(data),
            Poll::Ready(Ok(None)) if self.left_bytes.unwrap_or(0) > 0 => return Err(BadLength),
            // An error is told again to who asks.
            Poll::Ready(Ok(None) | Err(_)) | Poll::Pending => {}
        }
        Ok(())
    }

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, String>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Ok(None));
        };
        let data = ready!(stream.poll_recv_data(context));
        self.pipe.handed_on();
        let Some(mut data) = data.map_err(|error| error.to_string())? else {
            self.state = State::Trailers;
            return Poll::Ready(Ok(None));
        };
        Poll::Ready(Ok(Some(data.copy_to_bytes(data.remaining()))))
    }

    /// Counts what comes against what was said.
    fn count(&mut self, bytes: u64) -> Result<(), String> {
        match &mut self.left_bytes {
            None => Ok(()),
            Some(left) => match left.checked_sub(bytes) {
                Some(rest) => {
                    *left = rest;
                    Ok(())
                }
                None => Err("the body is longer than Content-Length says".to_owned()),
            },
        }
    }

    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Frame<Bytes>>, String>> {
        if self.state == State::Data {
            let data = match self.first.take() {
                Some(data) => Some(data),
                None => ready!(self.poll_data(context))?,
            };
            if let Some(data) = data {
                self.count(data.len() as u64)?;
                return Poll::Ready(Ok(Some(Frame::data(data))));
            }
        }
        if self.state == State::Ended {
            return Poll::Ready(Ok(None));
        }
        if self.left_bytes.is_some_and(|left| left > 0) {
            return Poll::Ready(Err(
                "the body is shorter than Content-Length says".to_owned()
            ));
        }
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Ok(None));
        };
        let trailers = ready!(stream.poll_recv_trailers(context));
        let trailers = trailers.map_err(|error| error.to_string())?;
        self.state = State::Ended;
        Poll::Ready(Ok(trailers.map(Frame::trailers)))
    }
}

/// The length that a head says.
///
/// # Errors
/// [`BadLength`]
pub fn length(head: &Parts) -> Result<Option<u64>, BadLength> {
    let mut said = head.headers.get_all(CONTENT_LENGTH).iter();
    let Some(length) = said.next() else {
        return Ok(None);
    };
    let text = length.to_str().map_err(|_| BadLength)?;
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || said.next().is_some() {
        return Err(BadLength);
    }
    text.parse().map(Some).map_err(|_| BadLength)
}

impl Body for RequestData {
    type Data = Bytes;
    type Error = String;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, String>>> {
        self.poll_next(context).map(Result::transpose)
    }

    fn is_end_stream(&self) -> bool {
        self.state != State::Data && self.first.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match (self.is_end_stream(), self.left_bytes) {
            (true, _) => SizeHint::with_exact(0),
            (false, Some(left)) => SizeHint::with_exact(left),
            (false, None) => SizeHint::default(),
        }
    }
}

/// What nobody wants is left to who answers the request.
impl Drop for RequestData {
    fn drop(&mut self) {
        if self.state == State::Data {
            *self.rest.0.lock() = self.stream.take();
        }
    }
}

/// The rest of a body that was not read to its end.
///
/// Many clients send the end of a request that has no body in a packet of its own. A client that is told to stop just then may take
/// its request for failed. So the end is waited for after the answer, a while.
#[derive(Clone, Default)]
pub struct Rest(Arc<Mutex<Option<Receiver>>>);

impl Rest {
    /// A body of which nothing is read.
    pub fn of(stream: Receiver) -> Self {
        Self(Arc::new(Mutex::new(Some(stream))))
    }

    /// Tells the client to stop, for this reason.
    pub fn stop(self, code: Code) {
        if let Some(mut stream) = self.0.lock().take() {
            stream.stop_sending(code);
        }
    }

    /// Reads and drops what is left, or tells the client to stop (RFC 9114, 4.1).
    pub async fn pass_over(self, time_max: Duration) {
        let Some(mut stream) = self.0.lock().take() else {
            return;
        };
        let ended = match pass_over(&mut stream).now_or_never() {
            Some(ended) => Ok(ended),
            None => tokio::time::timeout(time_max, pass_over(&mut stream)).await,
        };
        if ended != Ok(true) {
            stream.stop_sending(Code::H3_NO_ERROR);
        }
    }
}

/// Reads to the end. Whether that has come.
async fn pass_over(stream: &mut Receiver) -> bool {
    let mut left_bytes = DROPPED_BYTES_MAX;
    loop {
        match stream.recv_data().await {
            Ok(Some(data)) if data.remaining() > left_bytes => return false,
            Ok(Some(data)) => left_bytes -= data.remaining(),
            // Nothing more comes of a stream that is broken.
            Ok(None) | Err(_) => return true,
        }
    }
}
