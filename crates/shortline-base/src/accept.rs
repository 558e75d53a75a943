//! Accepting connections for ever, within a limit, and surviving what a machine runs short of.

use std::future::poll_fn;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketAddrAny, SocketFlags, acceptfrom_with};
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;

use crate::sys::on_poller;
use crate::throttle::Throttle;

/// How long to wait while the machine or a limit allows no further connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

/// What accepts connections.
pub trait Accepts {
    /// A connection.
    type Stream;
    /// Where one comes from.
    type Peer;

    /// The next connection.
    ///
    /// # Errors
    /// Those of accept(2).
    fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(Self::Stream, Self::Peer)>>;
}

/// A socket that listens, with this thread's runtime. It gives streams of this kind.
///
/// Whether somebody waits is asked before accept(2), with poll(2). For after nearly every connection nobody does, and where
/// several threads have the socket, all but one come too late; to learn that from accept(2) takes ten times as long (3.9 us for 0.4
/// on Linux 6.18), since it makes a socket first.
pub struct Listening<S>(AsyncFd<Arc<OwnedFd>>, PhantomData<fn() -> S>);

impl<S> Listening<S> {
    /// Registers a socket that does not block.
    ///
    /// # Errors
    /// The runtime cannot watch it.
    pub fn new(socket: impl Into<OwnedFd>) -> io::Result<Self> {
        on_poller(socket.into()).map(|socket| Self(socket, PhantomData))
    }

    fn poll_next(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(OwnedFd, Option<SocketAddrAny>)>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(context))?;
            if somebody_waits(self.0.get_ref()) {
                let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
                match acceptfrom_with(self.0.get_ref(), flags) {
                    // Another thread was faster.
                    Err(Errno::AGAIN) => {}
                    accepted => return Poll::Ready(accepted.map_err(io::Error::from)),
                }
            }
            ready.clear_ready();
        }
    }

    fn poll_next_by_tcp(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(OwnedFd, SocketAddr)>> {
        let (socket, peer) = ready!(self.poll_next(context))?;
        let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        let peer = peer.ok_or(io::ErrorKind::ConnectionAborted)?;
        Poll::Ready(Ok((socket, peer)))
    }
}

/// The connections are not on the poller yet.
impl Accepts for Listening<std::net::TcpStream> {
    type Stream = std::net::TcpStream;
    type Peer = SocketAddr;

    fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(std::net::TcpStream, SocketAddr)>> {
        self.poll_next_by_tcp(context)
            .map_ok(|(socket, peer)| (socket.into(), peer))
    }
}

impl Accepts for Listening<TcpStream> {
    type Stream = TcpStream;
    type Peer = SocketAddr;

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let (socket, peer) = ready!(self.poll_next_by_tcp(context))?;
        Poll::Ready(TcpStream::from_std(socket.into()).map(|stream| (stream, peer)))
    }
}

impl Accepts for Listening<UnixStream> {
    type Stream = UnixStream;
    /// It has no address.
    type Peer = ();

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(UnixStream, ())>> {
        let (socket, _) = ready!(self.poll_next(context))?;
        Poll::Ready(UnixStream::from_std(socket.into()).map(|stream| (stream, ())))
    }
}

/// Whether accept(2) has something to say, if only why it fails.
fn somebody_waits(socket: &OwnedFd) -> bool {
    let mut asked = [PollFd::new(socket, PollFlags::IN)];
    poll(&mut asked, Some(&Timespec::default())).map_or(true, |waiting| waiting > 0)
}

/// Hands each connection to `listener` to `take` while `has_room`; the others wait in the backlog.
/// Ends only when it is dropped. Errors go to `warn`, at most ten a second, with the number of
/// those left out.
pub async fn accept<L: Accepts>(
    listener: &L,
    has_room: impl Fn() -> bool,
    mut take: impl FnMut(L::Stream, L::Peer),
    warn: impl Fn(io::Error, u64),
) {
    let mut failures = Throttle::default();
    loop {
        // Asked when a connection is there, not when the wait for it begins: another worker may
        // have taken the last place meanwhile. (Two that ask in the same microsecond may take one
        // too many.)
        let accepted = poll_fn(|context| {
            if !has_room() {
                return Poll::Ready(None);
            }
            listener.poll_accept(context).map(Some)
        });
        match accepted.await {
            Some(Ok((socket, peer))) => {
                take(socket, peer);
                continue;
            }
            // The client gave up while it waited in the backlog.
            Some(Err(error)) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Some(Err(error)) => {
                // No descriptors or no memory left. That passes when other connections end.
                if let Some(untold) = failures.allow(Instant::now()) {
                    warn(error, untold);
                }
            }
            None => {}
        }
        tokio::time::sleep(ACCEPT_AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::cell::{Cell, RefCell};

    use super::*;

    #[tokio::test]
    async fn who_finds_no_room_is_taken_when_there_is_some() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let listener = Listening::<TcpStream>::new(listener).unwrap();
        let (room, taken) = (Cell::new(1), RefCell::new(Vec::new()));
        let accepting = accept(
            &listener,
            || taken.borrow().len() < room.get(),
            |socket, _| taken.borrow_mut().push(socket),
            |error, _| panic!("{error}"),
        );
        let clients = async {
            let first = TcpStream::connect(address).await.unwrap();
            let second = TcpStream::connect(address).await.unwrap();
            while taken.borrow().is_empty() {
                tokio::task::yield_now().await;
            }
            // Long enough to be asked again, and refused again.
            tokio::time::sleep(3 * ACCEPT_AGAIN).await;
            assert_eq!(taken.borrow().len(), 1);
            room.set(2);
            while taken.borrow().len() < 2 {
                tokio::task::yield_now().await;
            }
            drop((first, second));
        };
        tokio::select! {
            () = accepting => unreachable!("it accepts for ever"),
            () = clients => {}
        }
    }
}
