//! A request's body on its way to the backend. It is pulled from the client only as fast as the
//! backend takes it, so that only the sockets' buffers hold it.
//!
//! - The backend answers `Expect: 100-continue`. Reading from the client would tell it to go on. So
//!   nothing is read until the backend has said so, or has said nothing for a second.
//! - The permit is paused while we wait for the client (`admission`).
//! - A backend that must know the length before (FastCGI) gets a body of unknown length when it has ended. Until then it is held,
//!   within a limit.
//! - The body ends with an error, never as a short body, if it is too large, if the client is
//!   silent for too long, or if the response ends first. The backend's connection then closes.

mod progress;
mod timer;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header;
use http::request::Parts;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::Notify;

use super::admission::{Held, Side};
use super::error::{ProxyError, UploadError};
use super::head::drop_certificate;
use super::mirror::Copying;
use super::options::UpstreamOptions;
use crate::http1;
use progress::Phase;
pub use progress::{Upload, Wait};
pub use timer::Timer;

/// A request's body as its protocol gives it.
pub enum Received {
    /// HTTP/1.1. Reading it tells a client that waits for it to go on.
    Http1(http1::Body),
    /// HTTP/2.
    Http2(Http2Body),
    /// HTTP/3, with what signals that the client should go on.
    Streamed(Streamed, ContinueWanted),
    /// All of it, for a backend that must know the length.
    Whole(Whole),
}

/// A body whose protocol is not known here.
pub type Streamed = Pin<Box<dyn Body<Data = Bytes, Error = String> + Send>>;

impl Received {
    /// No body.
    pub fn none() -> Self {
        Self::Whole(Whole {
            pieces: VecDeque::new(),
            counted_bytes: 0,
            all_bytes: Arc::default(),
        })
    }

    /// Whether it is known that there is none.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_end_stream(),
            Self::Http2(body) => body.stream.is_end_stream(),
            Self::Streamed(body, _) => body.is_end_stream(),
            Self::Whole(whole) => whole.pieces.is_empty(),
        }
    }
}

/// A body that is held, counted as long as it is.
pub struct Whole {
    pieces: VecDeque<Bytes>,
    counted_bytes: usize,
    /// Held bytes of all requests and responses of the upstream.
    all_bytes: Arc<AtomicUsize>,
}

/// A request's body in HTTP/2.
pub struct Http2Body {
    /// Its data and trailers. What is taken of them is given back to the client's window, so that it sends as fast as the
    /// backend takes it.
    pub stream: shortline_http2::Body,
    /// Signals that the client should go on. `None`: there is no more to come.
    pub continue_wanted: Option<ContinueWanted>,
}

/// The most bytes that a request's body may have, besides what its route says. It is among the head's extensions.
#[derive(Clone, Copy, Debug)]
pub struct RequestBytesMax(pub u64);

/// Signals when an HTTP/2 or HTTP/3 client that waits for `100 Continue` should get it.
#[derive(Clone, Default)]
pub struct ContinueWanted(Arc<Notify>);

impl ContinueWanted {
    /// Waits for that signal.
    pub async fn wanted(&self) {
        self.0.notified().await;
    }
}

/// A request's body; see the module's text.
pub struct RequestBody {
    /// What was read before, for a request that is sent again.
    again: VecDeque<Frame<Bytes>>,
    source: Option<Received>,
    length: Option<u64>,
    left_bytes_max: u64,
    bytes_max: u64,
    upload: Arc<Upload>,
    held: Held,
    waits_for_client: bool,
    said_continue: bool,
    /// A copy that is made of it.
    copying: Option<Box<Copying>>,
}

impl RequestBody {
    /// The body of `head`'s request.
    ///
    /// # Errors
    /// The body is too large.
    pub fn new(
        received: Received,
        head: &Parts,
        held: &Held,
        options: &UpstreamOptions,
    ) -> Result<Self, ProxyError> {
        let of_site = head.extensions.get().copied();
        let bytes_max = of_site.map_or(options.request_bytes_max, |RequestBytesMax(bytes)| {
            bytes.min(options.request_bytes_max)
        });
        let length = match &received {
            Received::Http1(body) => body.size_hint().exact(),
            Received::Streamed(body, _) => body.size_hint().exact(),
            Received::Http2(body) if body.stream.is_end_stream() => Some(0),
            Received::Whole(whole) => Some(whole.counted_bytes as u64),
            Received::Http2(..) => head
                .headers
                .get(header::CONTENT_LENGTH)
                .and_then(|value| value.to_str().ok()?.parse().ok()),
        };
        if length.is_some_and(|bytes| bytes > bytes_max) {
            return Err(UploadError::TooLarge { bytes_max }.into());
        }
        let expects = head.headers.get(header::EXPECT);
        let expects =
            expects.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let phase = match length {
            Some(0) => Phase::Ended,
            _ if expects => Phase::AwaitsContinue,
            _ => Phase::Open,
        };
        Ok(Self {
            again: VecDeque::new(),
            source: (length != Some(0)).then_some(received),
            length,
            left_bytes_max: bytes_max,
            bytes_max,
            upload: Upload::new(phase),
            held: held.clone(),
            waits_for_client: false,
            said_continue: !expects,
            copying: None,
        })
    }

    /// The same body with its length: held until its end, at most `bytes_max`, if not `all_bytes_max` of all are.
    ///
    /// # Errors
    /// [`UploadError::Unmeasured`], and what else may end a body.
    pub async fn measured(
        mut self,
        bytes_max: usize,
        all_bytes: &Arc<AtomicUsize>,
        all_bytes_max: usize,
    ) -> Result<Self, UploadError> {
        let mut whole = Whole {
            pieces: VecDeque::new(),
            counted_bytes: 0,
            all_bytes: Arc::clone(all_bytes),
        };
        // Nobody else asks for it.
        self.upload.go_on();
        while let Some(frame) = self.frame().await {
            let Ok(piece) = frame?.into_data() else {
                continue;
            };
            let all = all_bytes.fetch_add(piece.len(), Ordering::Relaxed) + piece.len();
            whole.counted_bytes += piece.len();
            if whole.counted_bytes > bytes_max || all > all_bytes_max {
                return Err(UploadError::Unmeasured { bytes_max });
            }
            whole.pieces.push_back(piece);
        }
        self.length = Some(whole.counted_bytes as u64);
        self.left_bytes_max = self.bytes_max;
        self.source = (whole.counted_bytes > 0).then_some(Received::Whole(whole));
        Ok(self)
    }

    /// No body.
    pub fn none() -> Self {
        Self::whole(Bytes::new())
    }

    /// This body.
    pub fn whole(body: Bytes) -> Self {
        let bytes = body.len() as u64;
        let (phase, pieces) = match bytes {
            0 => (Phase::Ended, None),
            _ => (Phase::Open, Some(body)),
        };
        let source = pieces.map(|piece| {
            Received::Whole(Whole {
                pieces: [piece].into(),
                counted_bytes: 0,
                all_bytes: Arc::default(),
            })
        });
        Self {
            again: VecDeque::new(),
            source,
            length: Some(bytes),
            left_bytes_max: bytes,
            bytes_max: bytes,
            upload: Upload::new(phase),
            held: Held::new(None),
            waits_for_client: false,
            said_continue: true,
            copying: None,
        }
    }

    /// Copies it, if it is to be. A request without a body is copied at once.
    pub fn copy_to(&mut self, copying: Option<Copying>) {
        match copying {
            Some(copying) if self.length == Some(0) => copying.send(),
            copying => self.copying = copying.map(Box::new),
        }
    }

    /// What was read goes into the copy, too.
    fn copy(&mut self, piece: Option<&[u8]>) {
        let copying = self.copying.take();
        match (copying, piece) {
            (Some(copying), None) => copying.send(),
            (Some(copying), Some(piece)) => self.copying = copying.push(piece).map(Box::new),
            (None, _) => {}
        }
    }

    /// What others may know about the body.
    pub fn upload(&self) -> &Arc<Upload> {
        &self.upload
    }

    /// Begins again with what was read of it.
    pub fn begin_again(&mut self, read: Vec<Frame<Bytes>>) {
        self.again = read.into();
    }

    fn poll_source(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        match &mut self.source {
            None => Poll::Ready(None),
            Some(Received::Http1(body)) => Pin::new(body)
                .poll_frame(context)
                .map_err(|error| UploadError::Client(error.to_string())),
            Some(Received::Http2(body)) => {
                if let Some(wanted) = &body.continue_wanted
                    && !std::mem::replace(&mut self.said_continue, true)
                {
                    wanted.0.notify_one();
                }
                Pin::new(&mut body.stream)
                    .poll_frame(context)
                    .map_err(|error| UploadError::Client(error.to_string()))
            }
            Some(Received::Streamed(body, continue_wanted)) => {
                if !std::mem::replace(&mut self.said_continue, true) {
                    continue_wanted.0.notify_one();
                }
                body.as_mut()
                    .poll_frame(context)
                    .map_err(UploadError::Client)
            }
            Some(Received::Whole(whole)) => {
                Poll::Ready(whole.pieces.pop_front().map(Frame::data).map(Ok))
            }
        }
    }

    /// Notes the result of a poll.
    fn note(
        &mut self,
        polled: Option<Result<Frame<Bytes>, UploadError>>,
    ) -> Option<Result<Frame<Bytes>, UploadError>> {
        let polled = match polled {
            Some(Ok(mut frame)) => {
                if let Some(trailers) = frame.trailers_mut() {
                    drop_certificate(trailers);
                }
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                match self.left_bytes_max.checked_sub(bytes) {
                    Some(left) => {
                        self.left_bytes_max = left;
                        if let Some(piece) = frame.data_ref() {
                            self.copy(Some(piece));
                        }
                        Ok(frame)
                    }
                    None => Err(UploadError::TooLarge {
                        bytes_max: self.bytes_max,
                    }),
                }
            }
            Some(Err(error)) => Err(error),
            None => {
                self.upload.end(Phase::Ended);
                self.copy(None);
                return None;
            }
        };
        if let Err(error) = &polled {
            self.upload.end(Phase::Failed(error.clone()));
        } else if self.is_end_stream() {
            self.upload.end(Phase::Ended);
            self.copy(None);
        }
        Some(polled)
    }

    fn wait_for_client(&mut self, waits: bool) {
        if std::mem::replace(&mut self.waits_for_client, waits) != waits {
            self.held.waits(Side::Upload, waits);
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let this = self.get_mut();
        match this.upload.admit(context) {
            Phase::AwaitsContinue => return Poll::Pending,
            Phase::Failed(error) => return Poll::Ready(Some(Err(error))),
            Phase::Open | Phase::Ended => {}
        }
        if let Some(frame) = this.again.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let polled = this.poll_source(context);
        this.upload.moved(polled.is_pending());
        this.wait_for_client(polled.is_pending());
        polled.map(|polled| this.note(polled))
    }

    fn is_end_stream(&self) -> bool {
        if !self.again.is_empty() {
            return false;
        }
        self.source.as_ref().is_none_or(Received::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        self.length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.all_bytes
            .fetch_sub(self.counted_bytes, Ordering::Relaxed);
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.wait_for_client(false);
        if let Some(copying) = self.copying.take() {
            copying.is_dropped();
        }
    }
}
