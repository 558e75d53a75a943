//! A socket without TLS: TCP, a Unix socket, or one of a simulated world.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use shortline_base::world;
use socket2::{Domain, SockRef};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::stream::prepare;

/// A socket.
pub enum Socket {
    /// TCP.
    Kernel(TcpStream),
    /// A Unix socket, and its first byte if `first_byte` has read it.
    Unix(UnixStream, Option<u8>),
    /// One of a simulated world, and its first byte if it was read, too.
    Simulated(Box<dyn world::Stream>, Option<u8>),
}

impl Socket {
    /// Waits for the first byte, and leaves it to be read. `None` at the end.
    ///
    /// # Errors
    /// Those of the socket.
    pub async fn first_byte(&mut self) -> io::Result<Option<u8>> {
        let mut first = [0];
        match self {
            Self::Kernel(stream) => {
                let length = stream.peek(&mut first).await?;
                Ok((length > 0).then_some(first[0]))
            }
            Self::Unix(stream, looked_at) => {
                let length = stream.read(&mut first).await?;
                *looked_at = (length > 0).then_some(first[0]);
                Ok(*looked_at)
            }
            Self::Simulated(stream, looked_at) => {
                let length = stream.read(&mut first).await?;
                *looked_at = (length > 0).then_some(first[0]);
                Ok(*looked_at)
            }
        }
    }

    /// A client's socket that comes from another process.
    ///
    /// # Errors
    /// It is no connection by TCP or by a Unix socket.
    pub fn arrived(socket: OwnedFd) -> io::Result<Self> {
        let kind = SockRef::from(&socket);
        kind.peer_addr()?;
        kind.set_nonblocking(true)?;
        match kind.domain()? {
            Domain::UNIX => UnixStream::from_std(socket.into()).map(Self::from),
            Domain::IPV4 | Domain::IPV6 => TcpStream::from_std(socket.into()).map(Self::from),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Whether another process can go on with it.
    pub fn is_movable(&self) -> bool {
        match self {
            Self::Kernel(_) | Self::Unix(_, None) => true,
            Self::Unix(_, Some(_)) | Self::Simulated(..) => false,
        }
    }

    /// The same socket once more. `None` if it is a simulated one, or no descriptor is left.
    pub fn copy(&self) -> Option<OwnedFd> {
        match self {
            Self::Kernel(stream) => stream.as_fd().try_clone_to_owned().ok(),
            Self::Unix(stream, _) => stream.as_fd().try_clone_to_owned().ok(),
            Self::Simulated(..) => None,
        }
    }

    /// Whether nothing has come and the peer has not closed: a byte that has come is read. A socket of the kernel is only
    /// asked if it is ready, and whoever waits for it goes on waiting. `None` for others, which have to be polled.
    pub fn is_silent(&self) -> Option<bool> {
        let read = match self {
            Self::Kernel(stream) => stream.try_read(&mut [0]),
            Self::Unix(stream, None) => stream.try_read(&mut [0]),
            Self::Unix(_, Some(_)) => return Some(false),
            Self::Simulated(..) => return None,
        };
        Some(read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock))
    }

    /// Sets the options of a relay's sockets.
    ///
    /// # Errors
    /// The socket has been reset.
    pub fn prepare(&self) -> io::Result<()> {
        match self {
            Self::Kernel(stream) => prepare(stream),
            Self::Unix(..) | Self::Simulated(..) => Ok(()),
        }
    }

    /// The address of our end.
    ///
    /// # Errors
    /// The socket was reset, or is not TCP.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Kernel(stream) => stream.local_addr(),
            Self::Unix(..) | Self::Simulated(..) => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// The user whose process is at the other end of a Unix socket.
    pub fn peer_uid(&self) -> Option<u32> {
        match self {
            Self::Unix(stream, _) => stream.peer_cred().ok().map(|peer| peer.uid()),
            Self::Kernel(_) | Self::Simulated(..) => None,
        }
    }
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        Self::Kernel(stream)
    }
}

impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Self {
        Self::Unix(stream, None)
    }
}

impl From<Box<dyn world::Stream>> for Socket {
    fn from(stream: Box<dyn world::Stream>) -> Self {
        Self::Simulated(stream, None)
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Socket")
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Kernel(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream, looked_at) => {
                if let Some(first) = looked_at.take() {
                    buffer.put_slice(&[first]);
                    return Poll::Ready(Ok(()));
                }
                Pin::new(stream).poll_read(context, buffer)
            }
            Self::Simulated(stream, looked_at) => {
                if let Some(first) = looked_at.take() {
                    buffer.put_slice(&[first]);
                    return Poll::Ready(Ok(()));
                }
                Pin::new(stream).poll_read(context, buffer)
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Kernel(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream, _) => Pin::new(stream).poll_write(context, bytes),
            Self::Simulated(stream, _) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Kernel(stream) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream, _) => Pin::new(stream).poll_flush(context),
            Self::Simulated(stream, _) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Kernel(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream, _) => Pin::new(stream).poll_shutdown(context),
            Self::Simulated(stream, _) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_peer_is_silent_until_it_says_something_or_closes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for says in [&b"x"[..], b""] {
            let ours = TcpStream::connect(address).await.unwrap();
            let (mut theirs, _) = listener.accept().await.unwrap();
            let ours = Socket::from(ours);
            assert_eq!(ours.is_silent(), Some(true));
            theirs.write_all(says).await.unwrap();
            theirs.shutdown().await.unwrap();
            let Socket::Kernel(stream) = &ours else {
                panic!("it is TCP");
            };
            stream.readable().await.unwrap();
            assert_eq!(ours.is_silent(), Some(false));
        }
    }
}
