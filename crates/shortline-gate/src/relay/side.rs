//! One side of a session: its socket, and the bytes that it has not taken yet. In a pooled session the backend's
//! side has a socket only while a connection is lent to it.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Outbox, Stream};

/// The longest time for a peer to read the last message.
pub const LINGER_TIME_MAX: Duration = Duration::from_secs(2);
/// The most bytes that are read from it in that time.
const LINGER_BYTES_MAX: u64 = 1024 * 1024;

/// A side. An error of its socket counts as its end, in that direction.
#[derive(Debug)]
pub struct Side {
    /// `None` while no connection is lent to it.
    stream: Option<Stream>,
    /// Whether it has a connection that was not polled yet.
    is_unpolled: bool,
    outbox: Outbox,
    /// Whether nothing more comes from it.
    pub is_ended: bool,
    /// Whether it takes nothing more.
    pub is_broken: bool,
    /// Whether the direction to it is shut down, or is being. It ends as soon as it notices.
    is_shut: bool,
}

impl Side {
    /// A side with this connection.
    pub fn new(stream: Stream) -> Self {
        Self {
            stream: Some(stream),
            ..Self::detached()
        }
    }

    /// A side without a connection.
    pub fn detached() -> Self {
        Self {
            stream: None,
            is_unpolled: false,
            outbox: Outbox::default(),
            is_ended: false,
            is_broken: false,
            is_shut: false,
        }
    }

    /// Lends it a connection.
    pub fn attach(&mut self, stream: Stream) {
        *self = Self {
            is_unpolled: true,
            ..Self::new(stream)
        };
    }

    /// Whether a connection was attached since the last call. The task must then read from it. Otherwise nothing
    /// wakes the task when bytes come.
    pub fn take_attached(&mut self) -> bool {
        std::mem::take(&mut self.is_unpolled)
    }

    /// Takes its connection away. Returns it if it can serve another session.
    pub fn detach(&mut self) -> Option<Stream> {
        let is_whole = !self.is_ended && !self.is_broken && !self.is_shut && self.outbox.is_empty();
        let stream = self.stream.take().filter(|_| is_whole);
        *self = Self::detached();
        stream
    }

    /// Whether its socket can be handed to another process: the kernel's, without TLS.
    pub fn is_movable(&self) -> bool {
        self.stream.as_ref().is_some_and(Stream::is_movable)
    }

    /// Its socket once more. `None` if there is none, or no descriptor is left.
    pub fn copy_socket(&self) -> Option<OwnedFd> {
        self.stream.as_ref()?.copy_socket()
    }

    /// Whether it has taken everything, or never will.
    pub fn has_taken_all(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Sends `bytes`, and keeps those that it does not take now.
    pub fn send(&mut self, context: &mut Context<'_>, bytes: &[u8]) {
        if self.is_broken || bytes.is_empty() {
            return;
        }
        let stream = self.stream.as_mut();
        let stream = stream.expect("invariant: nothing is sent to a side without a connection");
        if self.outbox.send(context, stream, bytes).is_err() {
            self.give_up();
        }
    }

    /// Ready when it has taken everything, or never will.
    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(stream) = self.stream.as_mut()
            && !self.is_broken
            && ready!(self.outbox.poll_flush(context, stream)).is_err()
        {
            self.give_up();
        }
        Poll::Ready(())
    }

    /// Reads the next bytes into the front of `bytes`. Returns 0 at the end.
    pub fn poll_read(&mut self, context: &mut Context<'_>, bytes: &mut [u8]) -> Poll<usize> {
        // `attach` leads to another poll.
        let Some(stream) = self.stream.as_mut() else {
            return Poll::Pending;
        };
        let read = ready!(stream.poll_read_some(context, bytes)).unwrap_or(0);
        self.is_ended = read == 0;
        Poll::Ready(read)
    }

    /// Shuts down the direction to it.
    pub fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(stream) = self.stream.as_mut() else {
            return Poll::Ready(());
        };
        self.is_shut = true;
        // An error means that it has gone.
        Pin::new(stream).poll_shutdown(context).map(|_| ())
    }

    /// Ends the connection with `last_words`, which may be empty. To make sure that they arrive, it reads what the
    /// peer still sends. Otherwise the kernel's reset could overtake them.
    pub async fn close(mut self, last_words: &[u8]) {
        if self.is_broken {
            return;
        }
        let closing = async {
            poll_fn(|context| {
                self.send(context, last_words);
                Poll::Ready(())
            })
            .await;
            poll_fn(|context| self.poll_flush(context)).await;
            match self.stream.as_mut() {
                Some(stream) => lingering_close(stream).await,
                None => Ok(()),
            }
        };
        // The connection ends either way.
        let _ = tokio::time::timeout(LINGER_TIME_MAX, closing).await;
    }

    fn give_up(&mut self) {
        self.is_broken = true;
        self.outbox = Outbox::default();
    }
}

/// Shuts down the direction to the peer, and reads what it still sends, up to 1 MiB.
///
/// # Errors
/// Those of the socket.
pub async fn lingering_close(stream: &mut Stream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut rest = stream.take(LINGER_BYTES_MAX);
    tokio::io::copy(&mut rest, &mut tokio::io::sink())
        .await
        .map(|_| ())
}
