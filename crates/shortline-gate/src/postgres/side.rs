//! One side of a session: its socket, what it has not taken yet, and where in its messages it is.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use super::frame::Scanner;
use crate::relay::{Outbox, Stream};

/// See the module's text. Errors of a socket are no more than its end, in the direction they are of.
#[derive(Debug)]
pub struct Side {
    stream: Stream,
    outbox: Outbox,
    /// Where in the messages that come from it.
    pub scanner: Scanner,
    /// Nothing more comes from it.
    pub is_ended: bool,
    /// It takes nothing more.
    pub is_broken: bool,
}

impl Side {
    /// A side at the beginning of its messages.
    pub fn new(stream: Stream, message_bytes_max: u32) -> Self {
        Self {
            stream,
            outbox: Outbox::default(),
            scanner: Scanner::new(message_bytes_max),
            is_ended: false,
            is_broken: false,
        }
    }

    /// Its socket alone.
    pub fn into_stream(self) -> Stream {
        self.stream
    }

    /// Whether it has taken everything, or never will.
    pub fn has_taken_all(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Sends `bytes`, or keeps what it does not take now.
    pub fn send(&mut self, context: &mut Context<'_>, bytes: &[u8]) {
        if self.is_broken || bytes.is_empty() {
            return;
        }
        if self.outbox.send(context, &mut self.stream, bytes).is_err() {
            self.give_up();
        }
    }

    /// Ready when it has taken everything, or never will.
    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.is_broken && ready!(self.outbox.poll_flush(context, &mut self.stream)).is_err() {
            self.give_up();
        }
        Poll::Ready(())
    }

    /// The next bytes, into the front of `bytes`; 0 at its end.
    pub fn poll_read(&mut self, context: &mut Context<'_>, bytes: &mut [u8]) -> Poll<usize> {
        let read = ready!(self.stream.poll_read_some(context, bytes)).unwrap_or(0);
        self.is_ended = read == 0;
        Poll::Ready(read)
    }

    /// Says that nothing more will be sent.
    pub fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // An error means that it has gone already.
        Pin::new(&mut self.stream)
            .poll_shutdown(context)
            .map(|_| ())
    }

    fn give_up(&mut self) {
        self.is_broken = true;
        self.outbox = Outbox::default();
    }
}
