//! Bytes on their way to one side: written at once, kept only where the socket does not take them.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use super::Stream;

/// The most that one read takes, in bytes, and so the most that an outbox holds beside what the
/// gate itself says.
pub const SCRATCH_BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice());
}

/// Lends `work` the thread's buffer to read into. What is to outlive the call must be copied.
///
/// # Panics
/// When called from within `work`: there is one buffer a thread.
pub fn with_scratch<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| work(scratch))
}

/// What one side has not taken yet.
#[derive(Debug, Default)]
pub struct Outbox {
    kept: Vec<u8>,
    written: usize,
    /// Bytes are in the TLS session that its socket has not taken.
    unflushed: bool,
}

impl Outbox {
    /// Whether the socket has taken everything.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && !self.unflushed
    }

    /// Writes what `stream` takes now and keeps the rest.
    ///
    /// # Errors
    /// Those of the socket; the bytes are then lost.
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

    /// Writes what is kept. Ready when the socket has taken all of it; the memory is then given back.
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

/// A socket that takes nothing of something will never take it.
fn nonzero(taken: usize) -> io::Result<usize> {
    if taken == 0 {
        return Err(io::ErrorKind::WriteZero.into());
    }
    Ok(taken)
}
