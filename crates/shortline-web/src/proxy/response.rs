//! A response's body as its backend's protocol gives it.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::fastcgi;
use super::http1::Http1Body;
use super::http2::StreamBody;

/// What broke a response off.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// A response's body; see the module's text.
pub enum ResponseBody {
    /// HTTP/1.1.
    Http1(Http1Body),
    /// HTTP/2.
    Http2(Box<StreamBody>),
    /// FastCGI.
    FastCgi(fastcgi::Body),
}

impl ResponseBody {
    /// The body whose bytes can be moved within the kernel, if so many of them are to come.
    pub fn movable(&mut self, bytes_min: usize) -> Option<&mut Http1Body> {
        let Self::Http1(body) = self else {
            return None;
        };
        let is_long = body.movable_bytes()? >= bytes_min as u64;
        is_long.then_some(body)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Http1(body) => Pin::new(body).poll_frame(context),
            Self::Http2(body) => body.poll_frame(context).map_err(Into::into),
            Self::FastCgi(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_end_stream(),
            Self::Http2(body) => body.is_end_stream(),
            Self::FastCgi(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(body) => body.size_hint(),
            Self::Http2(body) => body.size_hint(),
            Self::FastCgi(body) => body.size_hint(),
        }
    }
}
