//! A socket, with TLS or without.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use super::Socket;

/// The first keep-alive probe goes to a peer that has been silent for this long.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
/// The time between keep-alive probes.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
/// The unanswered keep-alive probes that end the connection.
const KEEPALIVE_TRIES: u32 = 6;

/// One side of a relay.
#[derive(Debug)]
pub enum Stream {
    /// A socket.
    Plain(Socket),
    /// A socket with TLS, as client or as server. Boxed: most connections have none.
    Tls(Box<TlsStream<Socket>>),
}

impl Stream {
    /// Whether it uses TLS.
    pub fn is_secure(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Whether written bytes need a flush to reach the socket.
    pub fn is_buffered(&self) -> bool {
        self.is_secure()
    }

    /// Whether another process can go on with it: it is the kernel's, and has no TLS.
    pub fn is_movable(&self) -> bool {
        matches!(self, Self::Plain(socket) if socket.is_movable())
    }

    /// Its socket once more. `None` if there is none, or no descriptor is left.
    pub fn copy_socket(&self) -> Option<OwnedFd> {
        match self {
            Self::Plain(socket) => socket.copy(),
            Self::Tls(_) => None,
        }
    }

    /// The certificate that the peer presented.
    pub fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => stream.get_ref().1.peer_certificates()?.first(),
        }
    }

    /// Whether the peer says nothing now, and has not closed. Reads at most a byte, so that whoever asks has no more use for
    /// a stream that is not silent.
    pub fn is_silent(&mut self) -> bool {
        if let Self::Plain(socket) = self
            && let Some(is_silent) = socket.is_silent()
        {
            return is_silent;
        }
        let mut context = Context::from_waker(Waker::noop());
        self.poll_read_some(&mut context, &mut [0; 1]).is_pending()
    }

    /// Reads the next bytes into the front of `bytes`. Returns 0 at the end.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn poll_read_some(
        &mut self,
        context: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(bytes);
        Pin::new(self)
            .poll_read(context, &mut buffer)
            .map_ok(|()| buffer.filled().len())
    }
}

/// Sets the options of a relay's sockets: no delay of small packets, and keep-alive probes.
///
/// # Errors
/// The socket has been reset.
pub fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_EVERY)
        .with_retries(KEEPALIVE_TRIES);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
