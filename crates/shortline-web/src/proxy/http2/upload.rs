//! A request's body on its way into a stream: as fast as the backend gives window. Its beginning is
//! kept until the response's head has come, so that a request that was refused can be sent again.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::{Body, Frame};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::super::error::UploadError;
use super::super::upload::RequestBody;

/// The most of a body that is kept.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// A body under way. Dropping it ends its stream.
pub struct Sending {
    /// Sends the body, and returns what is left of it when the stream is over.
    task: Option<JoinHandle<RequestBody>>,
    /// A request's body that is empty.
    none: Option<RequestBody>,
    kept: Arc<Mutex<Kept>>,
}

/// What was read of a body.
#[derive(Default)]
struct Kept {
    frames: Vec<Frame<Bytes>>,
    bytes: usize,
    /// It was too much, or nobody needs it.
    dropped: bool,
}

impl Sending {
    /// Begins to send `body`.
    pub fn begin(body: RequestBody, stream: SendStream<Bytes>) -> Self {
        let kept: Arc<Mutex<Kept>> = Arc::default();
        Self {
            task: Some(tokio::spawn(send(body, stream, Arc::clone(&kept)))),
            none: None,
            kept,
        }
    }

    /// There is nothing to send.
    pub fn none(body: RequestBody) -> Self {
        Self {
            task: None,
            none: Some(body),
            kept: Arc::default(),
        }
    }

    /// The request is not sent again: it has an answer.
    pub fn answered(self) -> Self {
        self.kept.lock().drop_all();
        self
    }

    /// The body as it was, once its stream is over. `None` if not all that was read of it is kept.
    pub async fn given_back(mut self) -> Option<RequestBody> {
        let Some(task) = &mut self.task else {
            return self.none.take();
        };
        let mut body = task.await.ok()?;
        let kept = std::mem::take(&mut *self.kept.lock());
        if kept.dropped || body.upload().failure().is_some() {
            return None;
        }
        body.begin_again(kept.frames);
        Some(body)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Kept {
    fn add(&mut self, frame: &Frame<Bytes>) {
        self.bytes += frame.data_ref().map_or(0, Bytes::len);
        if self.bytes > KEPT_BYTES_MAX {
            self.drop_all();
        }
        if self.dropped {
            return;
        }
        let data = frame.data_ref().cloned().map(Frame::data);
        let trailers = || frame.trailers_ref().cloned().map(Frame::trailers);
        self.frames.extend(data.or_else(trailers));
    }

    fn drop_all(&mut self) {
        self.frames = Vec::new();
        self.dropped = true;
    }
}

/// Sends `body`. It ends early when the stream is reset. A body that fails resets the stream.
async fn send(
    mut body: RequestBody,
    mut stream: SendStream<Bytes>,
    kept: Arc<Mutex<Kept>>,
) -> RequestBody {
    loop {
        let frame = match poll_fn(|context| poll_frame(&mut body, &mut stream, context)).await {
            None => return body,
            Some(None) => {
                // These fail only for a stream that is gone.
                let _ = stream.send_data(Bytes::new(), true);
                return body;
            }
            Some(Some(Err(_))) => {
                stream.send_reset(Reason::CANCEL);
                return body;
            }
            Some(Some(Ok(frame))) => frame,
        };
        kept.lock().add(&frame);
        let is_last = body.is_end_stream();
        let sent = match frame.into_data() {
            Ok(data) => send_data(&mut stream, data, is_last).await,
            Err(frame) => frame
                .into_trailers()
                .map_or(Some(()), |trailers| stream.send_trailers(trailers).ok()),
        };
        if sent.is_none() || is_last {
            return body;
        }
    }
}

/// What a body's `poll_frame` gives.
type Polled = Option<Result<Frame<Bytes>, UploadError>>;

/// The next frame of the body, or `None` if the stream was reset.
fn poll_frame(
    body: &mut RequestBody,
    stream: &mut SendStream<Bytes>,
    context: &mut Context<'_>,
) -> Poll<Option<Polled>> {
    if stream.poll_reset(context).is_ready() {
        return Poll::Ready(None);
    }
    Pin::new(body).poll_frame(context).map(Some)
}

/// Sends `data` as the stream's window opens; `None` if the stream is gone. Window is asked for what
/// is at hand only, or one stream could keep the connection's from all others.
async fn send_data(stream: &mut SendStream<Bytes>, mut data: Bytes, is_last: bool) -> Option<()> {
    if data.is_empty() && is_last {
        return stream.send_data(data, true).ok();
    }
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        let capacity = poll_fn(|context| poll_capacity(stream, context)).await?;
        let piece = data.split_to(capacity.min(data.len()));
        stream.send_data(piece, is_last && data.is_empty()).ok()?;
    }
    Some(())
}

fn poll_capacity(stream: &mut SendStream<Bytes>, context: &mut Context<'_>) -> Poll<Option<usize>> {
    while stream.capacity() == 0 {
        match ready!(stream.poll_capacity(context)) {
            Some(Ok(_)) => {}
            None | Some(Err(_)) => return Poll::Ready(None),
        }
    }
    Poll::Ready(Some(stream.capacity()))
}
