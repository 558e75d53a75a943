//! The body of a response in HTTP/1.1, read as it is asked for. With its last byte the connection takes another request.
//!
//! A connection that ends before its body does is an error, so that nothing cut short looks whole. Only a body that goes to the end of
//! the connection cannot be told from one that was cut.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use shortline_base::pipe::Filled;
use tokio::task::AbortHandle;

use super::head::Extent;
use super::{Failure, Http1, Switched};
use crate::chunked::Chunked;
use crate::message::chunks::{Chunks, Taken};
use crate::piped::Piped;

/// A body. Dropped before its end, it ends the connection.
pub struct Http1Body {
    connection: Http1,
    left: Left,
    /// Whether the connection may take another request afterwards.
    keeps: bool,
    /// What still writes the request.
    sending: Option<AbortHandle>,
}

/// What is still to come.
enum Left {
    Length(u64),
    Chunks(Box<Chunks>),
    /// All to the end of the connection.
    Rest,
    Nothing,
}

impl Http1Body {
    /// The body that follows a head.
    pub fn new(
        connection: Http1,
        extent: Extent,
        keeps: bool,
        sending: Option<AbortHandle>,
    ) -> Self {
        let left = match extent {
            Extent::Length(0) => Left::Nothing,
            Extent::Length(bytes) => Left::Length(bytes),
            Extent::Rest => Left::Rest,
            Extent::Chunks => {
                let wire = connection.0.lock();
                let limits = (wire.head_bytes_max, wire.fields_max);
                Left::Chunks(Box::new(Chunks::new(Chunked::of_backend(), limits)))
            }
        };
        let body = Self {
            connection,
            left,
            keeps,
            sending,
        };
        if let Left::Nothing = body.left {
            body.connection.ends(keeps);
        }
        body
    }

    /// The connection, for another protocol.
    pub fn switch(self) -> Option<Switched> {
        self.connection.switch()
    }

    /// How many bytes are to come that can be moved within the kernel: all after those that were read with the head.
    pub fn movable_bytes(&self) -> Option<u64> {
        let Left::Length(left) = self.left else {
            return None;
        };
        let wire = self.connection.0.lock();
        wire.socket.as_ref()?.source()?;
        left.checked_sub(wire.input.len() as u64)
    }

    /// Whether some of it was read and not taken.
    pub fn was_read(&self) -> bool {
        !self.connection.0.lock().input.is_empty()
    }

    /// Moves up to `bytes_max` bytes of it into a pipe. Nothing of it may have been read and not taken.
    ///
    /// # Errors
    /// As those of a frame.
    pub fn poll_move(
        &mut self,
        piped: &Piped,
        bytes_max: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<Filled, super::BodyError>> {
        let Left::Length(left) = &mut self.left else {
            return Poll::Ready(Err(Failure::CutShort.into()));
        };
        let bytes_max = usize::try_from(*left).map_or(bytes_max, |left| left.min(bytes_max));
        let moved = self
            .connection
            .0
            .lock()
            .poll_move(piped, bytes_max, context);
        let filled = ready!(moved).map_err(Failure::from)?;
        match filled {
            Filled::Bytes(0) => return Poll::Ready(Err(Failure::CutShort.into())),
            Filled::Bytes(bytes) => *left -= bytes as u64,
            Filled::Full | Filled::Refused => {}
        }
        if *left == 0 {
            self.ends();
        }
        Poll::Ready(Ok(filled))
    }

    fn ends(&mut self) {
        self.left = Left::Nothing;
        self.connection.ends(self.keeps);
    }

    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Frame<Bytes>>, Failure>> {
        let mut wire = self.connection.0.lock();
        match &mut self.left {
            Left::Nothing => Poll::Ready(Ok(None)),
            Left::Rest => {
                let bytes = ready!(wire.poll_bytes(u64::MAX, context))?;
                drop(wire);
                if bytes.is_empty() {
                    self.ends();
                    return Poll::Ready(Ok(None));
                }
                Poll::Ready(Ok(Some(Frame::data(bytes))))
            }
            Left::Length(left) => {
                let bytes = ready!(wire.poll_bytes(*left, context))?;
                drop(wire);
                if bytes.is_empty() {
                    return Poll::Ready(Err(Failure::CutShort));
                }
                *left -= bytes.len() as u64;
                if *left == 0 {
                    self.ends();
                }
                Poll::Ready(Ok(Some(Frame::data(bytes))))
            }
            Left::Chunks(chunks) => {
                let next = loop {
                    match chunks.take(&mut wire.input)? {
                        Some(Taken::Frame(frame)) => break Some(frame),
                        Some(Taken::End) => break None,
                        None if ready!(wire.poll_read(context))? == 0 => {
                            return Poll::Ready(Err(Failure::CutShort));
                        }
                        None => {}
                    }
                };
                drop(wire);
                if next.as_ref().is_none_or(Frame::is_trailers) {
                    self.ends();
                }
                Poll::Ready(Ok(next))
            }
        }
    }
}

impl Body for Http1Body {
    type Data = Bytes;
    type Error = super::BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        let next = ready!(this.poll_next(context));
        Poll::Ready(next.map_err(Into::into).transpose())
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.left, Left::Nothing)
    }

    fn size_hint(&self) -> SizeHint {
        match self.left {
            Left::Length(bytes) => SizeHint::with_exact(bytes),
            Left::Nothing => SizeHint::with_exact(0),
            Left::Chunks(_) | Left::Rest => SizeHint::default(),
        }
    }
}

impl Drop for Http1Body {
    fn drop(&mut self) {
        if let Some(sending) = self.sending.take() {
            sending.abort();
        }
        if !self.is_end_stream() {
            self.connection.ends(false);
        }
    }
}
