//! The body of a response that passes through the kernel only: from a backend's socket or the page cache into a pipe, and from there into
//! the client's socket ([`Pipe`]). To copy it in and out was half of the processor time of a long response.
//!
//! The protocol above gets promises: slices of [`PROMISED`], which nobody reads. Each stands for as many bytes of the pipe. The client's
//! socket knows a promise by its address and sends what it stands for. They come to it in the order in which they were made, as
//! HTTP/1.1 hands them on unread and uncut at the front. TLS, HTTP/2 and compression read what they are given, so none of them may get any.
//!
//! A promise without its pipe is an error that ends the connection. Its own bytes are never sent.
//!
//! A connection has one such response at a time. If the next is there before this one has left, it is copied.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use parking_lot::Mutex;
use shortline_base::disk::{self, NotMoved};
use shortline_base::pipe::{Filled, Pipe, Source};
use shortline_base::socket::SendHalf;

/// The longest promise. What it stands for is copied nowhere, so that it need not be as little as a processor's cache holds: 256 KiB
/// take three quarters of the processor time of 64.
pub const PROMISE_BYTES_MAX: u32 = 256 * 1024;

/// What promises are slices of, for the whole process. Nobody reads or writes it.
static PROMISED: LazyLock<&'static [u8]> =
    LazyLock::new(|| Box::leak(vec![0; PROMISE_BYTES_MAX as usize].into_boxed_slice()));

/// The pipe of one response.
#[derive(Debug)]
pub struct Piped {
    pipe: Pipe,
    state: Mutex<State>,
    pipes: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct State {
    /// In the pipe.
    bytes: usize,
    /// Of these, promised.
    promised_bytes: usize,
    /// Nothing more is promised.
    is_over: bool,
    /// Whether there was no room, and nothing has left since.
    is_full: bool,
    /// Who waits for room.
    filler: Option<Waker>,
}

/// Whether a slice is a promise.
pub fn is_promise(slice: &[u8]) -> bool {
    !slice.is_empty() && PROMISED.as_ptr_range().contains(&slice.as_ptr())
}

impl Piped {
    /// A pipe with room for this many bytes, or what the kernel allows. `None`: there are `pipes_max` of those that `pipes` counts, or the
    /// process has no descriptors left.
    pub fn new(bytes: usize, pipes: &Arc<AtomicUsize>, pipes_max: usize) -> Option<Arc<Self>> {
        let more = |count| (count < pipes_max).then_some(count + 1);
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        pipes.fetch_update(set, fetch, more).ok()?;
        let Ok(pipe) = Pipe::new(bytes) else {
            pipes.fetch_sub(1, Ordering::AcqRel);
            return None;
        };
        Some(Arc::new(Self {
            pipe,
            state: Mutex::default(),
            pipes: Arc::clone(pipes),
        }))
    }

    /// Moves up to `bytes_max` bytes of `source` into the pipe, once there are some. If it is full, [`Self::poll_room`] tells when to try
    /// again.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn poll_fill(
        &self,
        source: &dyn Source,
        bytes_max: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Filled>> {
        // Under the lock, so that nothing leaves between the try and the note that it was in vain.
        let mut state = self.state.lock();
        let is_empty = state.bytes == 0;
        let filled = ready!(self.pipe.poll_fill(source, bytes_max, is_empty, context))?;
        match filled {
            Filled::Bytes(bytes) => state.bytes += bytes,
            Filled::Full => state.is_full = true,
            Filled::Refused => {}
        }
        Poll::Ready(Ok(filled))
    }

    /// Moves up to `bytes_max` bytes of `file` at `offset` into the pipe and promises them, if they are in memory.
    pub fn promise_of_file(
        &self,
        file: impl AsFd,
        offset: u64,
        bytes_max: usize,
    ) -> Result<Bytes, NotMoved> {
        let mut state = self.state.lock();
        let bytes_max = bytes_max.min(PROMISE_BYTES_MAX as usize);
        let bytes = disk::move_at(file, offset, bytes_max, &self.pipe)?;
        state.bytes += bytes;
        Ok(state.promise(bytes))
    }

    /// Ready when something has left since the pipe was full.
    pub fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if !state.is_full {
            return Poll::Ready(());
        }
        state.filler = Some(context.waker().clone());
        Poll::Pending
    }

    /// A promise of up to `bytes_max` bytes that are in the pipe and not promised.
    pub fn promise(&self, bytes_max: usize) -> Bytes {
        let mut state = self.state.lock();
        let unpromised = state.bytes - state.promised_bytes;
        state.promise(bytes_max.min(unpromised).min(PROMISE_BYTES_MAX as usize))
    }

    /// Writes `before` to a socket, then up to `len` promised bytes. Returns how many it took.
    ///
    /// # Errors
    /// As a write to the socket.
    pub fn send(
        &self,
        socket: &dyn SendHalf,
        before: &[IoSlice<'_>],
        len: usize,
    ) -> io::Result<usize> {
        let mut state = self.state.lock();
        if len > state.promised_bytes {
            return Err(io::Error::other(
                "more of a pipe is to be sent than was promised",
            ));
        }
        let before_bytes: usize = before.iter().map(|slice| slice.len()).sum();
        let sent = socket.try_send_pipe(before, self.pipe.front(), len)?;
        let bytes = sent.saturating_sub(before_bytes);
        state.bytes -= bytes;
        state.promised_bytes -= bytes;
        if bytes > 0 {
            state.is_full = false;
            state.filler.take().into_iter().for_each(Waker::wake);
        }
        Ok(sent)
    }

    /// Nothing more will be promised.
    pub fn end(&self) {
        self.state.lock().is_over = true;
    }

    /// Whether nothing is promised any more, and nothing will be.
    pub fn has_ended(&self) -> bool {
        let state = self.state.lock();
        state.is_over && state.promised_bytes == 0
    }
}

impl State {
    /// A promise of `bytes` bytes that are in the pipe.
    fn promise(&mut self, bytes: usize) -> Bytes {
        self.promised_bytes += bytes;
        Bytes::from_static(&PROMISED[..bytes])
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        self.pipes.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_a_promise_is_one() {
        assert!(is_promise(&PROMISED[..1]));
        assert!(is_promise(&PROMISED[PROMISE_BYTES_MAX as usize - 1..]));
        assert!(!is_promise(&PROMISED[..0]));
        assert!(!is_promise(&[0; 8]));
    }

    #[test]
    fn there_are_no_more_pipes_than_allowed() {
        let pipes = Arc::default();
        let first = Piped::new(4096, &pipes, 1).unwrap();
        assert!(Piped::new(4096, &pipes, 1).is_none());
        drop(first);
        assert!(Piped::new(4096, &pipes, 1).is_some());
    }

    #[test]
    fn what_is_not_there_is_not_promised() {
        let piped = Piped::new(4096, &Arc::default(), 1).unwrap();
        assert!(piped.promise(1).is_empty());
        assert!(!piped.has_ended());
        piped.end();
        assert!(piped.has_ended());
    }
}
