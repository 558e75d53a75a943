//! Gathers small writes within one poll of a connection. h2 writes and flushes frame by frame. Below it each frame would be a TLS record
//! and a system call, which with many small responses at a time is most of the work. Gathered they fill records of 16 KB, and one call
//! takes several.
//!
//! Whoever polls h2 says when a poll begins ([`Gathering::begin`]). From then on a flush does nothing, until the end of the
//! poll: if something is held then ([`Gathering::end`]), h2 is polled once more, and flushes it. So at most [`GATHERED_BYTES_MAX`]
//! are held, within one poll, and longer only while the socket is full. The link has granted them, and hears that they have left
//! from the socket, as of what h2 holds itself. What is large passes as it is, behind what was gathered.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes gathered: four TLS records.
const GATHERED_BYTES_MAX: usize = 64 * 1024;
/// A write of as many bytes passes as it is: to copy them would cost more than it saves.
const LARGE_BYTES: usize = 16 * 1024;

thread_local! {
    /// The buffer of the connection that is being polled. An idle one has none.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A connection whose writes are gathered.
pub struct Gathered<S> {
    stream: S,
    buffer: Vec<u8>,
    /// How much of the buffer is written.
    written: usize,
    gathering: Gathering,
}

/// What the code that polls a connection shares with it. The default: nothing is held beyond a flush.
#[derive(Clone, Default)]
pub struct Gathering(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// A flush may wait.
    is_lazy: AtomicBool,
    /// A flush has waited.
    is_due: AtomicBool,
}

impl Gathering {
    /// From now on a flush may wait.
    pub fn begin(&self) {
        self.0.is_lazy.store(true, Ordering::Relaxed);
    }

    /// From now on it may not. Whether one has waited.
    pub fn end(&self) -> bool {
        self.0.is_lazy.store(false, Ordering::Relaxed);
        self.0.is_due.swap(false, Ordering::Relaxed)
    }
}

impl<S> Gathered<S> {
    /// Gathers what is written to `stream`, as `gathering` says.
    pub fn new(stream: S, gathering: Gathering) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
            written: 0,
            gathering,
        }
    }

    fn gather(&mut self, slices: &[IoSlice<'_>]) -> usize {
        if self.buffer.capacity() == 0 {
            self.buffer = SPARE.take();
            self.buffer.reserve(GATHERED_BYTES_MAX);
        }
        let before = self.buffer.len();
        for slice in slices {
            let room = GATHERED_BYTES_MAX - self.buffer.len();
            self.buffer
                .extend_from_slice(&slice[..slice.len().min(room)]);
        }
        self.buffer.len() - before
    }

    /// All of the buffer is written.
    fn gives_back(&mut self) {
        self.written = 0;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        SPARE.set(buffer);
    }
}

impl<S: AsyncWrite + Unpin> Gathered<S> {
    fn poll_buffer(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.buffer.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while self.written < self.buffer.len() {
            let left = &self.buffer[self.written..];
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, left))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        self.gives_back();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathered<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        let is_full = this.buffer.len() + bytes > GATHERED_BYTES_MAX;
        if bytes >= LARGE_BYTES || is_full {
            ready!(this.poll_buffer(context))?;
        }
        if bytes >= LARGE_BYTES {
            return Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        }
        Poll::Ready(Ok(this.gather(slices)))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shared = &this.gathering.0;
        if shared.is_lazy.load(Ordering::Relaxed) {
            shared.is_due.store(true, Ordering::Relaxed);
            return Poll::Ready(Ok(()));
        }
        ready!(this.poll_buffer(context))?;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_buffer(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::task::Waker;

    /// Takes so many bytes of a write, in turn; 0 stands for a full socket.
    #[derive(Default)]
    struct Socket {
        takes: Vec<usize>,
        turn: usize,
        writes: Vec<Vec<u8>>,
    }

    impl AsyncWrite for Socket {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let turn = self.turn;
            self.turn += 1;
            let takes = self.takes.get(turn % self.takes.len().max(1)).copied();
            let takes = takes.unwrap_or(usize::MAX).min(bytes.len());
            if takes == 0 {
                return Poll::Pending;
            }
            self.writes.push(bytes[..takes].to_vec());
            Poll::Ready(Ok(takes))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn context() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    #[test]
    fn small_writes_leave_in_one_and_an_idle_connection_holds_nothing() {
        let gathering = Gathering::default();
        let mut gathered = Gathered::new(Socket::default(), gathering.clone());
        gathering.begin();
        for _ in 0..3 {
            let written = Pin::new(&mut gathered).poll_write(&mut context(), b"abc");
            assert!(matches!(written, Poll::Ready(Ok(3))));
            assert!(
                Pin::new(&mut gathered)
                    .poll_flush(&mut context())
                    .is_ready()
            );
        }
        assert!(gathered.stream.writes.is_empty());
        assert!(gathering.end() && !gathering.end());
        assert!(
            Pin::new(&mut gathered)
                .poll_flush(&mut context())
                .is_ready()
        );
        assert_eq!(gathered.stream.writes, [b"abcabcabc"]);
        assert_eq!(gathered.buffer.capacity(), 0);
    }

    proptest! {
        /// Whatever is written in whatever pieces to whatever socket: it arrives, in order, and little is held.
        #[test]
        fn all_of_it_arrives_in_its_order(
            sizes in proptest::collection::vec(prop_oneof![1usize..200, 1usize..40_000], 1..60),
            flushes in proptest::collection::vec(any::<bool>(), 60),
            takes in proptest::collection::vec(prop_oneof![Just(0usize), 1usize..3000, Just(usize::MAX)], 1..9),
        ) {
            prop_assume!(takes.iter().any(|takes| *takes > 0));
            let gathering = Gathering::default();
            let mut gathered = Gathered::new(Socket { takes, ..Socket::default() }, gathering.clone());
            let mut sent = Vec::new();
            for (size, flush) in sizes.iter().zip(flushes) {
                let bytes: Vec<u8> = (0..*size).map(|at| (at + sent.len()) as u8).collect();
                let mut left = &bytes[..];
                while !left.is_empty() {
                    let slices = [IoSlice::new(&left[..left.len() / 2]), IoSlice::new(&left[left.len() / 2..])];
                    let written = Pin::new(&mut gathered).poll_write_vectored(&mut context(), &slices);
                    if let Poll::Ready(written) = written {
                        left = &left[written.unwrap()..];
                    }
                    prop_assert!(gathered.buffer.len() <= GATHERED_BYTES_MAX);
                }
                sent.extend_from_slice(&bytes);
                gathering.begin();
                prop_assert!(Pin::new(&mut gathered).poll_flush(&mut context()).is_ready());
                prop_assert!(gathering.end());
                if flush {
                    while Pin::new(&mut gathered).poll_flush(&mut context()).is_pending() {}
                    prop_assert_eq!(&gathered.stream.writes.concat(), &sent);
                }
            }
            while Pin::new(&mut gathered).poll_flush(&mut context()).is_pending() {}
            prop_assert_eq!(gathered.stream.writes.concat(), sent);
        }
    }
}
