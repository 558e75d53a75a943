//! The body of a request, read from the connection by whoever asks for it.
//!
//! A body that is dropped before its end is passed over if it is short; otherwise its connection ends with the response.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};

use super::wire::{Broken, Wire};

/// A body.
pub struct Body {
    /// `None`: there is none.
    source: Option<Arc<dyn Source>>,
    request: u64,
}

/// A connection, whatever is below it. `request` is the number of the one whose body it is.
pub trait Source: Send + Sync {
    /// The next piece.
    fn poll_frame(
        &self,
        request: u64,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>>;
    /// The bytes that are left, if the head told how many there are.
    fn left_bytes(&self, request: u64) -> Option<u64>;
    /// Nobody will ask any more.
    fn abandon(&self, request: u64);
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Source for Mutex<Wire<S>> {
    fn poll_frame(
        &self,
        request: u64,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.lock().poll_frame(request, context)
    }

    fn left_bytes(&self, request: u64) -> Option<u64> {
        self.lock().left_bytes(request)
    }

    fn abandon(&self, request: u64) {
        self.lock().abandon(request);
    }
}

impl Body {
    /// No body.
    pub fn none() -> Self {
        Self {
            source: None,
            request: 0,
        }
    }

    /// The body of that request of a connection.
    pub fn of(source: Arc<dyn Source>, request: u64) -> Self {
        Self {
            source: Some(source),
            request,
        }
    }

    /// The bytes that are left, if the head told how many there are.
    fn left_bytes(&self) -> Option<u64> {
        match &self.source {
            None => Some(0),
            Some(source) => source.left_bytes(self.request),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match &self.source {
            None => Poll::Ready(None),
            Some(source) => source.poll_frame(self.request, context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left_bytes() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left_bytes()
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(source) = &self.source {
            source.abandon(self.request);
        }
    }
}
