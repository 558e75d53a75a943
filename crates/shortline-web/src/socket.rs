//! A client's socket under a protocol: reads and writes, and tells the link when everything
//! handed over is in the kernel and the watch when bytes move.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use crate::watch::Watch;

/// The socket; its sending half is shared with the link, which asks the kernel about it.
pub struct ClientSocket {
    receiving: OwnedReadHalf,
    watch: Arc<Watch>,
}

impl ClientSocket {
    /// The socket of `watch`'s connection.
    pub fn new(receiving: OwnedReadHalf, watch: Arc<Watch>) -> Self {
        Self { receiving, watch }
    }

    fn sending(&self) -> &TcpStream {
        self.watch.transport().socket()
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
        self.poll_written(context, bytes.len(), || self.sending().try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let offered = slices.iter().map(|slice| slice.len()).sum();
        self.poll_written(context, offered, || {
            self.sending().try_write_vectored(slices)
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = socket2::SockRef::from(self.sending()).shutdown(std::net::Shutdown::Write);
        Poll::Ready(shut)
    }
}

/// A stream of which some bytes were read before it was handed on: they are read again first.
pub struct Rewound<S> {
    before: Bytes,
    stream: S,
}

impl<S> Rewound<S> {
    /// `before`, then what `stream` reads.
    pub fn new(before: Bytes, stream: S) -> Self {
        Self { before, stream }
    }

    /// The stream, without what was read before.
    pub fn into_stream(self) -> S {
        self.stream
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

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
