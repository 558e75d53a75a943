//! A connection by TCP. Its socket goes on the runtime's poller when it has to wait for the first time. Whoever connects has mostly
//! sent a request by the time that the connection is taken, and a short answer fits into the socket. A connection for one
//! request then does without the poller: two calls of epoll_ctl(2) and a wake-up of its task fewer.

use std::io::{self, IoSlice, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use socket2::SockRef;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest, ReadBuf};

use super::{Halves, HangUp, SendHalf, send_file, send_pipe};
use crate::sys::{self, TcpInfo};

/// Slices of so many bytes are copied together and sent as one: `writev` takes the kernel longer than that and `send`.
const GATHERED_BYTES_MAX: usize = 2048;

/// Both halves of a socket that does not block.
pub(super) fn halves(socket: OwnedFd) -> Halves {
    let socket = Arc::new(Socket {
        descriptor: Arc::new(socket),
        poller: OnceLock::new(),
    });
    Halves {
        receiving: Box::new(TcpReceiveHalf {
            socket: Arc::clone(&socket),
            turn: Turn::First,
        }),
        sending: Box::new(TcpSendHalf {
            socket,
            ended: AtomicBool::new(false),
        }),
    }
}

/// What the halves share. Only the task that serves the connection waits for it.
struct Socket {
    descriptor: Arc<OwnedFd>,
    poller: OnceLock<AsyncFd<Arc<OwnedFd>>>,
}

impl Socket {
    /// The socket on the poller, from now on if it was not there.
    fn polled(&self) -> io::Result<&AsyncFd<Arc<OwnedFd>>> {
        if let Some(polled) = self.poller.get() {
            return Ok(polled);
        }
        let polled = sys::on_poller(Arc::clone(&self.descriptor))?;
        Ok(self.poller.get_or_init(|| polled))
    }

    /// Sends with `send`. `WouldBlock`: the poller knows when it may go on.
    fn try_send(
        &self,
        send: impl FnOnce(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        if let Some(polled) = self.poller.get() {
            return polled.try_io(Interest::WRITABLE, |socket| send(socket.as_fd()));
        }
        let sent = send(self.descriptor.as_fd());
        if sent.as_ref().is_err_and(would_block) {
            self.polled()?;
        }
        sent
    }
}

/// The half that receives.
struct TcpReceiveHalf {
    socket: Arc<Socket>,
    turn: Turn,
}

/// How often it was asked to read.
enum Turn {
    /// Not yet: it asks the socket itself.
    First,
    /// Once. It is asked again at once, for the next request or the client's end, while the first request is answered.
    Second,
    /// More often. It asks the poller, whose budget lets other connections have their turn too.
    Later,
}

impl AsyncRead for TcpReceiveHalf {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.turn {
            Turn::First => {
                let received = sys::receive(&self.socket.descriptor, buffer);
                if !received.as_ref().is_err_and(would_block) {
                    self.turn = Turn::Second;
                    return Poll::Ready(received.map(drop));
                }
                self.turn = Turn::Later;
            }
            Turn::Second => {
                // The task does the rest of its turn first. If that is all that it has to do, there is no other.
                self.turn = Turn::Later;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Turn::Later => {}
        }
        let polled = self.socket.polled()?;
        loop {
            let mut ready = ready!(polled.poll_read_ready(context))?;
            let room_bytes = buffer.remaining();
            match sys::receive(polled, buffer) {
                Err(error) if would_block(&error) => ready.clear_ready(),
                Ok(bytes) => {
                    // What is less than there was room for was all: to ask again would be for nothing (epoll(7)).
                    if 0 < bytes && bytes < room_bytes {
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// The half that sends. The connection's end is told once: of the protocol, the transport and the drop of this half, whichever
/// comes first makes the system call.
struct TcpSendHalf {
    socket: Arc<Socket>,
    ended: AtomicBool,
}

impl TcpSendHalf {
    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.descriptor.as_fd()
    }
}

impl Drop for TcpSendHalf {
    fn drop(&mut self) {
        // Fails only if the connection has gone already.
        let _ = self.shutdown();
    }
}

impl SendHalf for TcpSendHalf {
    fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.socket.poller.get() {
            Some(polled) => polled.poll_write_ready(context).map_ok(drop),
            None => Poll::Ready(Ok(())),
        }
    }

    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let send_one = |bytes: &[u8]| {
            self.socket
                .try_send(|socket| Ok(send(socket, bytes, flags)?))
        };
        if let [one] = slices {
            return send_one(one);
        }
        if slices.iter().map(|slice| slice.len()).sum::<usize>() > GATHERED_BYTES_MAX {
            return self.socket.try_send(|socket| {
                let mut nothing = SendAncillaryBuffer::default();
                Ok(sendmsg(socket, slices, &mut nothing, flags)?)
            });
        }
        let mut gathered = [0; GATHERED_BYTES_MAX];
        let bytes = (&mut gathered[..]).write_vectored(slices)?;
        send_one(&gathered[..bytes])
    }

    fn try_send_file(
        &self,
        before: &[IoSlice<'_>],
        file: BorrowedFd<'_>,
        offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        self.socket
            .try_send(|socket| send_file(socket, before, file, offset, len))
    }

    fn takes_pipes(&self) -> bool {
        true
    }

    fn try_send_pipe(
        &self,
        before: &[IoSlice<'_>],
        pipe: BorrowedFd<'_>,
        len: usize,
    ) -> io::Result<usize> {
        self.socket
            .try_send(|socket| send_pipe(socket, before, pipe, len))
    }

    fn shutdown(&self) -> io::Result<()> {
        match self.ended.swap(true, Ordering::Relaxed) {
            true => Ok(()),
            false => SockRef::from(&self.socket()).shutdown(Shutdown::Write),
        }
    }

    fn reset(&self) {
        // Fails only if the connection has gone already.
        let _ = rustix::net::connect_unspec(self.socket());
    }

    fn reset_on_close(&self) {
        // As above.
        let _ = SockRef::from(&self.socket()).set_linger(Some(Duration::ZERO));
    }

    fn info(&self) -> io::Result<TcpInfo> {
        sys::tcp_info(self.socket())
    }

    fn unacknowledged_bytes(&self) -> io::Result<u32> {
        sys::unacknowledged_bytes(self.socket())
    }

    fn set_priority(&self, priority: u32) {
        // The permission was checked at the start; a socket that is gone sends nothing more.
        let _ = SockRef::from(&self.socket()).set_priority(priority);
    }

    fn set_unsent_bytes_max(&self, bytes: u32) {
        // As above.
        let _ = SockRef::from(&self.socket()).set_tcp_notsent_lowat(bytes);
    }

    fn hang_up(&self) -> HangUp<'_> {
        HangUp::Ask(self.socket())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use rustix::event::{PollFd, PollFlags, poll};
    use tokio::io::AsyncReadExt;

    use super::*;

    /// Our halves of a connection, and the client's end.
    fn connected() -> (Halves, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let ours = listener.accept().unwrap().0;
        ours.set_nonblocking(true).unwrap();
        (Halves::from(ours), client)
    }

    #[test]
    fn slices_arrive_in_their_order_however_many_bytes_they_have() {
        let (halves, mut client) = connected();
        for second in [0, 1, GATHERED_BYTES_MAX - 3, GATHERED_BYTES_MAX - 2] {
            let (first, second) = (vec![b'a'; 3], vec![b'b'; second]);
            let slices = [&first[..], &[], &second[..]].map(IoSlice::new);
            let written = halves.sending.try_write(&slices).unwrap();
            assert_eq!(written, first.len() + second.len());
            let mut got = vec![0; written];
            client.read_exact(&mut got).unwrap();
            assert!(got == [first, second].concat());
        }
    }

    #[test]
    fn what_has_come_is_read_without_the_poller() {
        let (mut halves, mut client) = connected();
        client.write_all(b"request").unwrap();
        if let HangUp::Ask(socket) = halves.sending.hang_up() {
            poll(&mut [PollFd::new(&socket, PollFlags::IN)], None).unwrap();
        }
        // Here is no runtime, so to wait for the poller would panic.
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut space = [0; 64];
        let mut buffer = ReadBuf::new(&mut space);
        let read = Pin::new(&mut halves.receiving).poll_read(&mut context, &mut buffer);
        assert!(matches!(read, Poll::Ready(Ok(()))));
        assert_eq!(buffer.filled(), b"request");
    }

    #[tokio::test]
    async fn reads_and_writes_wait_for_the_peer() {
        const PIECES: usize = 400;
        const PIECE_BYTES: usize = 64 * 1024;
        let (mut halves, mut client) = connected();
        let peer = std::thread::spawn(move || {
            // Until now the socket had nothing, and what is written now does not fit into it.
            std::thread::sleep(Duration::from_millis(20));
            client.write_all(b"go on").unwrap();
            let mut got = Vec::new();
            client.read_to_end(&mut got).unwrap();
            got
        });
        let mut order = [0; 5];
        halves.receiving.read_exact(&mut order).await.unwrap();
        assert_eq!(&order, b"go on");
        let mut waits = 0;
        for piece in 0..PIECES {
            let bytes = vec![piece as u8; PIECE_BYTES];
            let mut left = &bytes[..];
            while !left.is_empty() {
                std::future::poll_fn(|context| halves.sending.poll_write_ready(context))
                    .await
                    .unwrap();
                match halves.sending.try_write(&[IoSlice::new(left)]) {
                    Ok(written) => left = &left[written..],
                    Err(error) if would_block(&error) => waits += 1,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        drop(halves);
        let got = peer.join().unwrap();
        assert_eq!(got.len(), PIECES * PIECE_BYTES);
        let pieces = got.chunks(PIECE_BYTES).enumerate();
        assert!(
            pieces
                .into_iter()
                .all(|(piece, bytes)| bytes.iter().all(|byte| *byte == piece as u8))
        );
        assert!(waits > 0, "it never had to wait");
    }
}
