//! Bytes on their way to one side. They are written at once, and kept only if the socket does not take them.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use super::Stream;

/// The most bytes of one read. So an outbox holds at most these, plus the gate's own messages.
pub const SCRATCH_BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice());
}

/// Lends `work` the thread's buffer to read into. Bytes that are to outlive the call must be copied.
///
/// # Panics
/// When called from within `work`, since each thread has one buffer.
pub fn with_scratch<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| work(scratch))
}

/// The bytes that one side has not taken yet.
#[derive(Debug, Default)]
pub struct Outbox {
    kept: Vec<u8>,
    written: usize,
    /// Whether the TLS session holds bytes that the socket has not taken.
    unflushed: bool,
}

impl Outbox {
    /// Whether the socket has taken everything.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && !self.unflushed
    }

    /// Writes the bytes that `stream` takes now and keeps the rest.
    ///
    /// # Errors
    /// Those of the socket. The bytes are then lost.
    pub fn send(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut Stream,
        bytes: &[u8],
    ) -> io::Result<()> {
        let mut at = 0;
        while self.kept.is_empty() && at < bytes.len() {
            match Pin::new(&mut *stream).poll_write(context, &bytes[at..]) {
                Poll::Ready(taken) => at += nonzero(taken?)?,
                Poll::Pending => break,
            }
        }
        self.kept.extend_from_slice(&bytes[at..]);
        if stream.is_buffered() && self.kept.is_empty() {
            self.unflushed = Pin::new(stream).poll_flush(context)?.is_pending();
        }
        Ok(())
    }

    /// Writes the kept bytes. Ready when the socket has taken all of them. The memory is then freed.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn poll_flush(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut Stream,
    ) -> Poll<io::Result<()>> {
        while self.written < self.kept.len() {
            let rest = &self.kept[self.written..];
            let taken = ready!(Pin::new(&mut *stream).poll_write(context, rest))?;
            self.written += nonzero(taken)?;
            self.unflushed = stream.is_buffered();
        }
        if !self.kept.is_empty() {
            self.kept = Vec::new();
            self.written = 0;
        }
        if self.unflushed {
            ready!(Pin::new(stream).poll_flush(context))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }
}

/// A write of 0 bytes is an error, since the socket will never take the bytes.
fn nonzero(taken: usize) -> io::Result<usize> {
    if taken == 0 {
        return Err(io::ErrorKind::WriteZero.into());
    }
    Ok(taken)
}
