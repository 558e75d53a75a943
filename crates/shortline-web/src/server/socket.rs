//! The sockets that a server listens on: by TCP, or in the file system.
//!
//! A client of the latter has no address. It is on this machine, so it counts as one at 127.0.0.1: in the limits, the rules and the log, as
//! a trusted proxy, and for the order, which leaves the loopback interface out.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::task::{Context, Poll, ready};

use shortline_base::accept::{Accepts, Listening};
use shortline_base::socket::Halves;
use tokio::net::UnixStream;

/// Where clients in the file system are.
const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A socket that listens.
#[derive(Debug)]
pub enum Socket {
    /// By TCP.
    Tcp(TcpListener),
    /// In the file system.
    Unix(UnixListener),
}

impl From<TcpListener> for Socket {
    fn from(socket: TcpListener) -> Self {
        Self::Tcp(socket)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}

impl Socket {
    /// Sets it up to be accepted from.
    pub(super) fn prepare(&self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                // Accepted sockets inherit this. Without it, a response of several grants would stall for the client's
                // delayed acknowledgement.
                socket2::SockRef::from(socket).set_tcp_nodelay(true)
            }
            Self::Unix(socket) => socket.set_nonblocking(true),
        }
    }

    /// Our end of each connection to it, unless it listens at all addresses of the machine.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(socket) => {
                let local = socket.local_addr().ok();
                local.filter(|local| !local.ip().is_unspecified())
            }
            Self::Unix(_) => Some(HERE),
        }
    }

    /// The socket for the runtime of this thread.
    pub(super) fn register(&self) -> io::Result<Registered> {
        Ok(match self {
            Self::Tcp(socket) => Registered::Tcp(Listening::new(socket.try_clone()?)?),
            Self::Unix(socket) => Registered::Unix(Listening::new(socket.try_clone()?)?),
        })
    }

    /// A connection that waits, if one does.
    pub(super) fn accept(&self) -> io::Result<(Incoming, SocketAddr)> {
        match self {
            Self::Tcp(socket) => {
                let (stream, peer) = socket.accept()?;
                stream.set_nonblocking(true)?;
                Ok((Incoming::Tcp(stream), peer))
            }
            Self::Unix(socket) => {
                let (stream, _) = socket.accept()?;
                stream.set_nonblocking(true)?;
                Ok((Incoming::Unix(UnixStream::from_std(stream)?), HERE))
            }
        }
    }
}

/// A socket that listens, with a runtime.
pub(super) enum Registered {
    Tcp(Listening<TcpStream>),
    Unix(Listening<UnixStream>),
}

impl Accepts for Registered {
    type Stream = Incoming;
    type Peer = SocketAddr;

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(Incoming, SocketAddr)>> {
        Poll::Ready(match self {
            Self::Tcp(socket) => ready!(socket.poll_accept(context))
                .map(|(stream, peer)| (Incoming::Tcp(stream), peer)),
            Self::Unix(socket) => ready!(socket.poll_accept(context))
                .map(|(stream, _)| (Incoming::Unix(stream), HERE)),
        })
    }
}

/// A connection that was accepted.
pub(super) enum Incoming {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Incoming {
    /// Our end of it.
    pub(super) fn local(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.local_addr(),
            Self::Unix(_) => Ok(HERE),
        }
    }
}

impl From<Incoming> for Halves {
    fn from(incoming: Incoming) -> Self {
        match incoming {
            Incoming::Tcp(stream) => stream.into(),
            Incoming::Unix(stream) => stream.into(),
        }
    }
}
