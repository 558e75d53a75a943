//! A client's connection as both sides of its tasks see it: who answers its requests, and who reads the body of one, which may
//! be another task. What was read and not used, and what waits to be written, are here.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;

use super::head::{self, Extent, Head, Refusal};
use crate::chunked::Chunked;
use crate::message::chunks::{Chunks, ChunksError, Taken};
use crate::message::memory::Memory;
use crate::message::output::Output;

/// What is read at once while a head is awaited. It is on the stack: a connection that waits must not hold a buffer.
const HEAD_READ_BYTES: usize = 4 * 1024;
/// What is read at once of a body, at first and at most.
const BODY_READ_BYTES: usize = 8 * 1024;
const BODY_READ_BYTES_MAX: usize = 64 * 1024;
/// What a client that waits for it is told before its body is read.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Why a connection ends, if not in order.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The client has gone while a response was under way.
    #[error("the client closed the connection before its response was complete")]
    Gone,
    /// Within a request.
    #[error("the connection ended within a request")]
    CutShort,
    /// Its server has ended it.
    #[error("the connection is over")]
    Over,
    /// It is no request.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The chunks of a request's body.
    #[error("{0}")]
    Chunks(#[from] ChunksError),
    /// The socket, or TLS.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}

/// A connection; see the module's text.
pub struct Wire<S> {
    /// `None`: it is over.
    pub stream: Option<S>,
    /// Read, and not used yet.
    pub input: BytesMut,
    /// So much of it is no whole head.
    looked_bytes: usize,
    memory: Memory,
    /// Waits to be written.
    pub output: Output,
    /// The number of the last request. Whoever still holds the body of one before has nothing to do with this one's.
    request: u64,
    left: Left,
    /// Whether whoever might read the request's body no longer will.
    is_abandoned: bool,
    expecting: Expecting,
    read_bytes: usize,
    /// The task that reads the body.
    body_reader: Option<Waker>,
    /// The task that answers, if it waits for the body's end.
    answerer: Option<Waker>,
    limits: (usize, usize),
}

/// What is left of a request's body.
enum Left {
    Nothing,
    Length(u64),
    Chunks(Box<Chunks>),
    /// Nobody knows where the next request would begin.
    Unknown,
}

/// Whether the client is told to send its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expecting {
    /// It needs not to be.
    Nothing,
    /// As soon as somebody reads it.
    Wanted,
    /// It is being told.
    Saying,
    /// It was answered instead, and may have left the body out.
    Untold,
}

/// What is left of a request's body, for who does not read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing: another request may follow.
    Nothing,
    /// Somebody still reads it.
    Read,
    /// So many bytes that nobody reads.
    Bytes(u64),
    /// More than can be told.
    Unknown,
}

impl<S> Wire<S> {
    /// A connection of which this was read already. Heads have at most so many bytes and fields.
    pub fn new(stream: S, before: Bytes, limits: (usize, usize)) -> Self {
        Self {
            stream: Some(stream),
            input: before.into(),
            looked_bytes: 0,
            memory: Memory::default(),
            output: Output::default(),
            request: 0,
            left: Left::Nothing,
            is_abandoned: true,
            expecting: Expecting::Nothing,
            read_bytes: BODY_READ_BYTES,
            body_reader: None,
            answerer: None,
            limits,
        }
    }

    /// The connection ends, whoever still reads a body.
    pub fn end(&mut self) {
        self.stream = None;
        self.left = Left::Unknown;
        self.body_reader.take().into_iter().for_each(Waker::wake);
    }

    /// A head was taken, and its body may follow. Returns the request's number.
    pub fn body_begins(&mut self, head: &Head) -> u64 {
        self.request += 1;
        self.left = match head.extent {
            Extent::Length(0) => Left::Nothing,
            Extent::Length(bytes) => Left::Length(bytes),
            Extent::Chunks => Left::Chunks(Box::new(Chunks::new(Chunked::default(), self.limits))),
        };
        self.is_abandoned = false;
        self.expecting = match head.expects {
            true => Expecting::Wanted,
            false => Expecting::Nothing,
        };
        self.request
    }

    /// A response begins: it is too late to tell the client to go on.
    pub fn response_begins(&mut self) {
        self.expecting = match self.expecting {
            Expecting::Wanted => Expecting::Untold,
            _ => Expecting::Nothing,
        };
    }

    /// Nobody reads that request's body any more.
    pub fn abandon(&mut self, request: u64) {
        if request == self.request {
            self.is_abandoned = true;
            self.answerer.take().into_iter().for_each(Waker::wake);
        }
    }

    /// The number of bytes that are left of that request's body, if its head told it.
    pub fn left_bytes(&self, request: u64) -> Option<u64> {
        match self.left {
            _ if request != self.request => Some(0),
            Left::Nothing => Some(0),
            Left::Length(bytes) => Some(bytes),
            Left::Chunks(_) | Left::Unknown => None,
        }
    }

    /// The same as [`Self::rest_now`]. Wakes the task once that changes by others.
    pub fn rest(&mut self, context: &Context<'_>) -> Rest {
        let rest = self.rest_now();
        if rest == Rest::Read {
            self.answerer = Some(context.waker().clone());
        }
        rest
    }

    /// What is left of the body for who answers.
    pub fn rest_now(&self) -> Rest {
        let is_untold = matches!(self.expecting, Expecting::Wanted | Expecting::Untold);
        match self.left {
            Left::Nothing => Rest::Nothing,
            Left::Length(_) | Left::Chunks(_) if !self.is_abandoned => Rest::Read,
            Left::Length(bytes) if !is_untold => Rest::Bytes(bytes),
            Left::Length(_) | Left::Chunks(_) | Left::Unknown => Rest::Unknown,
        }
    }

    fn body_ends(&mut self, left: Left) {
        self.left = left;
        self.answerer.take().into_iter().for_each(Waker::wake);
    }

    /// Takes the next head of what was read. `None`: it is not whole.
    fn take_head(&mut self) -> Result<Option<Head>, Refusal> {
        // A head ends with a line: a client that sends byte by byte must not have each looked at from the beginning.
        let has_line = self.input[self.looked_bytes..].contains(&b'\n');
        if !has_line && self.input.len() < self.limits.0 {
            self.looked_bytes = self.input.len();
            return Ok(None);
        }
        let head = head::read(&mut self.input, self.limits, &mut self.memory)?;
        self.looked_bytes = match head {
            None => self.input.len(),
            Some(_) => 0,
        };
        Ok(head)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// The next request's head. `None`: the client sends no more.
    ///
    /// # Errors
    /// [`Broken`]
    pub fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Head>, Broken>> {
        loop {
            if let Some(head) = self.take_head()? {
                return Poll::Ready(Ok(Some(head)));
            }
            if ready!(self.poll_read(context))? == 0 {
                return Poll::Ready(match self.input.is_empty() {
                    true => Ok(None),
                    false => Err(Broken::CutShort),
                });
            }
        }
    }

    /// Whether the client is still there, as far as that can be seen without reading more than it has sent ahead.
    ///
    /// # Errors
    /// [`Broken::Gone`]
    pub fn look(&mut self, context: &mut Context<'_>) -> Result<(), Broken> {
        if self.rest(context) != Rest::Nothing || !self.input.is_empty() {
            return Ok(());
        }
        match self.poll_read(context)? {
            Poll::Ready(0) => Err(Broken::Gone),
            Poll::Ready(_) | Poll::Pending => Ok(()),
        }
    }

    /// Passes over what is left of a body of known length.
    ///
    /// # Errors
    /// [`Broken`]
    pub fn poll_pass(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        while let Left::Length(left) = &mut self.left {
            let bytes = usize::try_from(*left).unwrap_or(usize::MAX);
            let bytes = bytes.min(self.input.len());
            bytes::Buf::advance(&mut self.input, bytes);
            *left -= bytes as u64;
            if *left == 0 {
                self.left = Left::Nothing;
            } else if ready!(self.poll_read(context))? == 0 {
                return Poll::Ready(Err(Broken::CutShort));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The next piece of that request's body.
    ///
    /// # Errors
    /// [`Broken`]
    pub fn poll_frame(
        &mut self,
        request: u64,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if request != self.request {
            return Poll::Ready(None);
        }
        let polled = self.poll_next(context);
        match &polled {
            Poll::Pending => self.body_reader = Some(context.waker().clone()),
            Poll::Ready(Some(Err(_))) => self.body_ends(Left::Unknown),
            Poll::Ready(_) => {}
        }
        polled
    }

    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        ready!(self.poll_tell(context))?;
        loop {
            match &mut self.left {
                Left::Nothing => return Poll::Ready(None),
                Left::Unknown => return Poll::Ready(Some(Err(Broken::Over))),
                Left::Length(left) => {
                    let bytes = usize::try_from(*left).unwrap_or(usize::MAX);
                    let bytes = self.input.split_to(bytes.min(self.input.len()));
                    if !bytes.is_empty() {
                        *left -= bytes.len() as u64;
                        if *left == 0 {
                            self.body_ends(Left::Nothing);
                        }
                        return Poll::Ready(Some(Ok(Frame::data(bytes.freeze()))));
                    }
                }
                Left::Chunks(chunks) => match chunks.take(&mut self.input) {
                    Err(error) => return Poll::Ready(Some(Err(error.into()))),
                    Ok(Some(Taken::End)) => self.body_ends(Left::Nothing),
                    Ok(Some(Taken::Frame(frame))) => {
                        if frame.is_trailers() {
                            self.body_ends(Left::Nothing);
                        }
                        return Poll::Ready(Some(Ok(frame)));
                    }
                    Ok(None) => {}
                },
            }
            if !matches!(self.left, Left::Nothing) && ready!(self.poll_read_body(context))? == 0 {
                return Poll::Ready(Some(Err(Broken::CutShort)));
            }
        }
    }

    /// Tells the client to go on, if it waits for that.
    fn poll_tell(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.expecting {
            Expecting::Nothing | Expecting::Untold => return Poll::Ready(Ok(())),
            Expecting::Wanted => {
                self.expecting = Expecting::Saying;
                self.output.text().extend_from_slice(CONTINUE);
            }
            Expecting::Saying => {}
        }
        ready!(self.poll_write(context))?;
        self.expecting = Expecting::Nothing;
        Poll::Ready(Ok(()))
    }

    /// Writes what waits to be. Ready once nothing does.
    ///
    /// # Errors
    /// As the stream's.
    pub fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Some(stream) => self.output.poll_write(Pin::new(stream), context),
        }
    }

    /// Reads as much as a head has as a rule. Ready with the number of bytes, 0 at the end of the stream.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Ok(0));
        };
        let mut space = [MaybeUninit::uninit(); HEAD_READ_BYTES];
        let mut buffer = ReadBuf::uninit(&mut space);
        ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
        let read = buffer.filled();
        self.input.extend_from_slice(read);
        Poll::Ready(Ok(read.len()))
    }

    fn poll_read_body(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Ok(0));
        };
        self.input.reserve(self.read_bytes);
        let read = ready!(poll_read_buf(Pin::new(stream), context, &mut self.input))?;
        // A client that fills the buffer has more.
        if read >= self.read_bytes {
            self.read_bytes = (2 * self.read_bytes).min(BODY_READ_BYTES_MAX);
        }
        Poll::Ready(Ok(read))
    }
}

#[cfg(test)]
mod tests;
