//! Accepting connections for ever, within a limit, and surviving what a machine runs short of.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream, unix};
use tokio::time::Instant;

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

impl Accepts for TcpListener {
    type Stream = TcpStream;
    type Peer = SocketAddr;

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        TcpListener::poll_accept(self, context)
    }
}

impl Accepts for UnixListener {
    type Stream = UnixStream;
    type Peer = unix::SocketAddr;

    fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(UnixStream, unix::SocketAddr)>> {
        UnixListener::poll_accept(self, context)
    }
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
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
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
