//! A connection to a backend that carries one request at a time: it counts what comes, and holds its place in the pool. Where it is a
//! socket and no more, its bytes can be moved within the kernel.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use shortline_base::pipe::Source;
use shortline_base::world::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::places::Place;

/// The connection.
pub struct BackendSocket {
    stream: Dialed,
    received: Arc<AtomicU64>,
    _place: Arc<Mutex<Option<Place>>>,
}

/// What was dialed.
pub enum Dialed {
    /// A socket.
    Tcp(TcpStream),
    /// A socket in the file system.
    Unix(UnixStream),
    /// TLS, or a simulated world's.
    Other(Box<dyn Stream>),
}

impl BackendSocket {
    /// A connection that adds what comes to `received`.
    pub fn new(stream: Dialed, received: Arc<AtomicU64>, place: Arc<Mutex<Option<Place>>>) -> Self {
        Self {
            stream,
            received,
            _place: place,
        }
    }

    /// The socket whose bytes can be moved.
    pub fn source(&self) -> Option<&dyn Source> {
        match &self.stream {
            Dialed::Tcp(socket) => Some(socket),
            Dialed::Unix(socket) => Some(socket),
            Dialed::Other(_) => None,
        }
    }
}

impl AsyncRead for BackendSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let bytes = (buffer.filled().len() - before) as u64;
        self.received.fetch_add(bytes, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

crate::write_through::write_through!(BackendSocket);

/// Calls a method of whatever was dialed.
macro_rules! dialed {
    ($dialed:expr, $stream:ident => $call:expr) => {
        match $dialed {
            Dialed::Tcp($stream) => $call,
            Dialed::Unix($stream) => $call,
            Dialed::Other($stream) => $call,
        }
    };
}

impl AsyncRead for Dialed {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        dialed!(self.get_mut(), stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for Dialed {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        dialed!(self.get_mut(), stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        dialed!(self.get_mut(), stream => Pin::new(stream).poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        dialed!(self, stream => stream.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        dialed!(self.get_mut(), stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        dialed!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(context))
    }
}
