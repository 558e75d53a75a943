//! A request on its way to the backend: the head, then the body as fast as the backend takes it, with its length or in chunks
//! (RFC 9112, 6 and 7.1).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::TRANSFER_ENCODING;
use http::{HeaderMap, Request};
use http_body::Body;

use super::super::response::BodyError;
use super::super::sender::Unsent;
use super::super::upload::RequestBody;
use super::Http1;
use super::head;
use crate::message::head::announced;
use crate::message::output::Output;

/// A request that is being written.
pub struct Sending {
    request: Box<Request<RequestBody>>,
    framing: Framing,
    /// What the socket has not taken yet.
    output: Output,
    /// Whether something was taken of the body.
    has_taken: bool,
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
        let mut output = Output::default();
        *output.text() = head::write(&request);
        Self {
            output,
            is_read: framing == Framing::Length(0),
            framing,
            request,
            has_taken: false,
        }
    }

    /// Why it has no answer. The request goes with it.
    pub fn unsent(self, error: BodyError) -> Box<Unsent> {
        Box::new(Unsent {
            request: Some(self.request),
            has_begun: self.has_taken || self.output.has_written(),
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
        while !self.is_read && !self.output.is_full() {
            let frame = ready!(Pin::new(self.request.body_mut()).poll_frame(context));
            self.has_taken = true;
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
                self.output.push(data);
                if *left == 0 && self.request.body().is_end_stream() {
                    self.is_read = true;
                }
            }
            Framing::Chunks => self.output.push_chunk(data),
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
                let announced = announced(self.request.headers());
                self.output
                    .end_chunks(&trailers.unwrap_or_default(), &announced);
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
        self.output.poll_write(Pin::new(socket), context)
    }
}

fn client(error: impl Into<BodyError>) -> SendError {
    SendError::Client(Some(error.into()))
}
