//! A client's socket below a protocol. It reads and writes. It tells the link when everything
//! handed over is in the kernel, and the watch when bytes move. If the kernel has a copy of a piece
//! of a file, the socket sends that copy instead of writing the piece ([`KernelCopy`]). In the place of a promise it sends what
//! was promised ([`crate::piped`]).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use shortline_base::socket::{ReceiveHalf, SendHalf};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::files::{KERNEL_COPY_BYTES_MIN, KernelCopy};
use crate::piped::is_promise;
use crate::watch::Watch;
use crate::write_through::write_through;

/// The socket. It shares its sending half with the link, which asks the kernel about it.
pub struct ClientSocket {
    receiving: ReceiveHalf,
    watch: Arc<Watch>,
}

impl ClientSocket {
    /// The socket of `watch`'s connection.
    pub fn new(receiving: ReceiveHalf, watch: Arc<Watch>) -> Self {
        Self { receiving, watch }
    }

    fn sending(&self) -> &dyn SendHalf {
        self.watch.transport().socket()
    }

    /// The first of `slices` of which the kernel has a copy.
    fn piece_in_kernel(&self, slices: &[io::IoSlice<'_>]) -> Option<Piece> {
        let long = |slice: &io::IoSlice<'_>| slice.len() >= KERNEL_COPY_BYTES_MIN;
        let index = slices.iter().position(long)?;
        let copy = self.watch.take_copy()?;
        let offset = copy.offset_of(&slices[index])?;
        Some(Piece {
            copy,
            index,
            offset,
        })
    }

    /// Writes the slices before a promise, then what was promised. The slices after it are left for the next write.
    fn poll_promised(
        &self,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
        index: usize,
    ) -> Poll<io::Result<usize>> {
        let offered = slices.iter().map(|slice| slice.len()).sum();
        let Some(piped) = self.watch.piped() else {
            return Poll::Ready(Err(io::Error::other("a promise without its pipe")));
        };
        let (before, rest) = slices.split_at(index);
        self.poll_written(context, offered, || {
            piped.send(self.sending(), before, rest[0].len())
        })
    }

    fn poll_written(
        &self,
        context: &mut Context<'_>,
        offered: usize,
        write: impl Fn() -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            match write() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let ready = self.sending().poll_write_ready(context)?;
                    if ready.is_pending() {
                        self.watch.transport().blocked();
                        return Poll::Pending;
                    }
                }
                Ok(written) => {
                    self.watch.bytes_written();
                    if written == offered {
                        self.watch.transport().drained();
                    }
                    return Poll::Ready(Ok(written));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.receiving).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.watch.bytes_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(index) = slices.iter().position(|slice| is_promise(slice)) {
            return self.poll_promised(context, slices, index);
        }
        let offered = slices.iter().map(|slice| slice.len()).sum();
        let Some(piece) = self.piece_in_kernel(slices) else {
            return self.poll_written(context, offered, || self.sending().try_write(slices));
        };
        let sent = self.poll_written(context, offered, || piece.send(self.sending(), slices));
        let left = match sent {
            Poll::Pending => offered,
            Poll::Ready(Ok(sent)) => offered - sent,
            Poll::Ready(Err(_)) => 0,
        };
        if left >= KERNEL_COPY_BYTES_MIN {
            self.watch.offer_copy(&piece.copy);
        }
        sent
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.sending().shutdown())
    }
}

/// A slice to be sent from the kernel's copy.
struct Piece {
    copy: Arc<KernelCopy>,
    /// Its index among the slices to be written.
    index: usize,
    /// Its offset in the file.
    offset: u64,
}

impl Piece {
    /// Writes the slices before the piece, then sends it. The slices after it are left for the next
    /// write.
    fn send(&self, socket: &dyn SendHalf, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let (before, rest) = slices.split_at(self.index);
        self.copy.send(socket, before, self.offset, rest[0].len())
    }
}

/// A stream of which some bytes were already read. They are read again first.
pub struct Rewound<S> {
    before: Bytes,
    stream: S,
}

impl<S> Rewound<S> {
    /// Reads `before`, then `stream`.
    pub fn new(before: Bytes, stream: S) -> Self {
        Self { before, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.before.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let length = self.before.len().min(buffer.remaining());
        buffer.put_slice(&self.before[..length]);
        self.before.advance(length);
        if self.before.is_empty() {
            self.before = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

write_through!(Rewound<S>);
