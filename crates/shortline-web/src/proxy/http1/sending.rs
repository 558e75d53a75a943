//! A request on its way to the backend: the head, then the body as fast as the backend takes it, with its length or in chunks
//! (RFC 9112, 6 and 7.1).

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::header::{CONTENT_LENGTH, HeaderName, TRAILER, TRANSFER_ENCODING};
use http::{HeaderMap, Request};
use http_body::Body;
use tokio::io::AsyncWrite;

use super::super::response::BodyError;
use super::super::sender::Unsent;
use super::super::upload::RequestBody;
use super::Http1;
use super::head;

/// The most pieces written at a time.
const PIECES_MAX: usize = 16;

/// A request that is being written.
pub struct Sending {
    request: Box<Request<RequestBody>>,
    framing: Framing,
    /// What the socket has not taken yet.
    queue: VecDeque<Bytes>,
    /// Whether something was written, or taken of the body.
    has_begun: bool,
    is_read: bool,
}

/// How a body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// So many bytes are still to come.
    Length(u64),
    Chunks,
}

/// Why a request was not written whole.
pub enum SendError {
    /// Its body broke off, or is not what its head says. Nothing is to be waited for any more.
    Client(Option<BodyError>),
    /// The backend takes no more. It may have answered.
    Backend(Option<io::Error>),
}

impl Sending {
    /// Nothing is written yet.
    pub fn new(request: Box<Request<RequestBody>>) -> Self {
        let framing = match request.headers().contains_key(TRANSFER_ENCODING) {
            true => Framing::Chunks,
            false => Framing::Length(request.body().size_hint().exact().unwrap_or(0)),
        };
        Self {
            queue: [head::write(&request)].into(),
            is_read: framing == Framing::Length(0),
            framing,
            request,
            has_begun: false,
        }
    }

    /// Why it has no answer. The request goes with it.
    pub fn unsent(self, error: BodyError) -> Box<Unsent> {
        Box::new(Unsent {
            request: Some(self.request),
            has_begun: self.has_begun,
            error,
        })
    }

    /// Writes on. Ready once all is written, or once that cannot be any more.
    pub fn poll(
        &mut self,
        connection: &Http1,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), SendError>> {
        loop {
            // A body that is at hand leaves with the head.
            let body = self.poll_body(context).map(Result::err);
            if let Poll::Ready(Some(error)) = body {
                return Poll::Ready(Err(error));
            }
            ready!(self.poll_write(connection, context))
                .map_err(|error| SendError::Backend(Some(error)))?;
            if self.is_read {
                return Poll::Ready(Ok(()));
            }
            if body.is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Takes of the body what is at hand, as long as little is queued. Pending: nothing is.
    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        while !self.is_read && self.queue.len() < PIECES_MAX {
            let frame = ready!(Pin::new(self.request.body_mut()).poll_frame(context));
            self.has_begun = true;
            match frame.transpose().map_err(client)? {
                None => self.end(None)?,
                Some(frame) => match frame.into_data() {
                    Ok(data) => self.push(data)?,
                    Err(frame) => self.end(frame.into_trailers().ok())?,
                },
            }
        }
        Poll::Ready(Ok(()))
    }

    fn push(&mut self, data: Bytes) -> Result<(), SendError> {
        if data.is_empty() {
            return Ok(());
        }
        match &mut self.framing {
            Framing::Length(left) => {
                *left = left
                    .checked_sub(data.len() as u64)
                    .ok_or_else(|| client("the request's body is longer than its length"))?;
                self.queue.push_back(data);
                if *left == 0 && self.request.body().is_end_stream() {
                    self.is_read = true;
                }
            }
            Framing::Chunks => {
                self.queue.push_back(format!("{:x}\r\n", data.len()).into());
                self.queue.push_back(data);
                self.queue.push_back(Bytes::from_static(b"\r\n"));
            }
        }
        Ok(())
    }

    /// The body has ended.
    fn end(&mut self, trailers: Option<HeaderMap>) -> Result<(), SendError> {
        self.is_read = true;
        match self.framing {
            Framing::Length(0) => Ok(()),
            Framing::Length(_) => Err(client("the request's body is shorter than its length")),
            Framing::Chunks => {
                let mut text = b"0\r\n".to_vec();
                let announced = announced(self.request.headers());
                let trailers = trailers.unwrap_or_default();
                let sent = trailers.iter().filter(|(name, _)| announced.contains(name));
                head::write_fields(&mut text, sent);
                text.extend_from_slice(b"\r\n");
                self.queue.push_back(text.into());
                Ok(())
            }
        }
    }

    fn poll_write(
        &mut self,
        connection: &Http1,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut wire = connection.0.lock();
        let Some(socket) = &mut wire.socket else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let mut socket = Pin::new(socket);
        if self.queue.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while let Some(first) = self.queue.front() {
            let written = if self.queue.len() == 1 {
                // A system call that costs less.
                socket.as_mut().poll_write(context, first)
            } else {
                let mut slices = [IoSlice::new(&[]); PIECES_MAX];
                for (slice, piece) in slices.iter_mut().zip(&self.queue) {
                    *slice = IoSlice::new(piece);
                }
                let pieces = self.queue.len().min(PIECES_MAX);
                socket
                    .as_mut()
                    .poll_write_vectored(context, &slices[..pieces])
            };
            let written = ready!(written)?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.has_begun = true;
            self.advance(written);
        }
        socket.poll_flush(context)
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(piece) = self.queue.front_mut() {
            let step = written.min(piece.len());
            piece.advance(step);
            written -= step;
            if !piece.is_empty() {
                return;
            }
            self.queue.pop_front();
        }
    }
}

fn client(error: impl Into<BodyError>) -> SendError {
    SendError::Client(Some(error.into()))
}

/// The trailers that a request's head announces (RFC 9110, 6.6.2). Others are not sent on.
fn announced(headers: &HeaderMap) -> Vec<HeaderName> {
    let named = headers.get_all(TRAILER).iter();
    let names = named.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let names = names.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok());
    let framing = [CONTENT_LENGTH, TRANSFER_ENCODING, TRAILER];
    names.filter(|name| !framing.contains(name)).collect()
}
