//! A connection in two halves, one that receives and one that sends, with what the kernel reports
//! of it and is told. Simulated worlds have their own.

mod tcp;

use std::io::{self, IoSlice};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use rustix::fs::sendfile;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use socket2::SockRef;
use tokio::io::{AsyncRead, Interest};
use tokio::net::{UnixStream, unix};

use crate::pipe::drain;
use crate::sys::{self, TcpInfo};

/// Both halves.
pub struct Halves {
    /// The receiving half.
    pub receiving: ReceiveHalf,
    /// The sending half.
    pub sending: Box<dyn SendHalf>,
}

/// The half of a connection that receives.
pub type ReceiveHalf = Box<dyn AsyncRead + Send + Unpin>;

/// A socket that does not block.
impl From<TcpStream> for Halves {
    fn from(stream: TcpStream) -> Self {
        tcp::halves(stream.into())
    }
}

impl From<UnixStream> for Halves {
    fn from(stream: UnixStream) -> Self {
        let (receiving, half) = stream.into_split();
        Self {
            receiving: Box::new(receiving),
            sending: Box::new(UnixSendHalf {
                half,
                written_bytes: AtomicU64::new(0),
            }),
        }
    }
}

/// What a packet of a connection costs beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// IP's header and the transport's.
    pub outer_bytes: u32,
    /// What the bytes above these ([`Sent`]) have that is no payload.
    pub inner_bytes: u32,
}

impl Headers {
    /// IPv4, and TCP with timestamps.
    pub const TCP: Self = Self {
        outer_bytes: 52,
        inner_bytes: 0,
    };
}

/// What a connection has put on the wire so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes above [`Headers::outer_bytes`], what was sent again included.
    pub bytes: u64,
    /// Packets, acknowledgements included.
    pub packets: u64,
}

/// The half of a connection that sends. When it is dropped, what was written still leaves, and then
/// the peer sees the end.
pub trait SendHalf: Send + Sync {
    /// Ready when a write may make progress.
    ///
    /// # Errors
    /// The connection is broken.
    fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Writes what the socket takes now.
    ///
    /// # Errors
    /// `WouldBlock`, or the connection is broken.
    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Writes `before`, then up to `len` bytes of `file` at `offset`, without ending a packet
    /// between them.
    ///
    /// # Errors
    /// As [`SendHalf::try_write`].
    fn try_send_file(
        &self,
        before: &[IoSlice<'_>],
        file: BorrowedFd<'_>,
        offset: u64,
        len: usize,
    ) -> io::Result<usize>;

    /// Whether [`SendHalf::try_send_pipe`] works.
    fn takes_pipes(&self) -> bool {
        false
    }

    /// Writes `before`, then up to `len` bytes from the front of a pipe, which has them.
    ///
    /// # Errors
    /// As [`SendHalf::try_write`].
    fn try_send_pipe(
        &self,
        _before: &[IoSlice<'_>],
        _pipe: BorrowedFd<'_>,
        _len: usize,
    ) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Ends the sending direction after what was written.
    ///
    /// # Errors
    /// The connection is broken.
    fn shutdown(&self) -> io::Result<()>;

    /// Resets the connection now.
    fn reset(&self);

    /// Makes the connection end with a reset, which drops what the peer has not taken.
    fn reset_on_close(&self);

    /// The connection's counters.
    ///
    /// # Errors
    /// The socket is gone.
    fn info(&self) -> io::Result<TcpInfo>;

    /// What its packets cost.
    fn headers(&self) -> Headers {
        Headers::TCP
    }

    /// What it has put on the wire.
    ///
    /// # Errors
    /// The socket is gone.
    fn sent(&self) -> io::Result<Sent> {
        let info = self.info()?;
        Ok(Sent {
            bytes: info.sent_bytes,
            packets: info.sent_segments.into(),
        })
    }

    /// Bytes that were written and that the peer has not acknowledged, sent or not.
    ///
    /// # Errors
    /// The socket is gone.
    fn unacknowledged_bytes(&self) -> io::Result<u32>;

    /// Sets the priority of its packets (`SO_PRIORITY`).
    fn set_priority(&self, priority: u32);

    /// The socket counts as not writable once so many bytes are unsent; 0: no such limit.
    fn set_unsent_bytes_max(&self, bytes: u32);

    /// Whether the peer has closed or reset the connection.
    fn hang_up(&self) -> HangUp<'_>;
}

/// How to learn whether a peer has gone.
pub enum HangUp<'a> {
    /// Ask the kernel, in one call for many descriptors.
    Ask(BorrowedFd<'a>),
    /// The answer is known.
    Known(bool),
}

/// The sending half of a connection in the file system. It has no packets, no priority and no reset: its peer, on this machine, sees
/// the end.
struct UnixSendHalf {
    half: unix::OwnedWriteHalf,
    written_bytes: AtomicU64,
}

impl UnixSendHalf {
    fn stream(&self) -> &UnixStream {
        self.half.as_ref()
    }

    fn counted(&self, written: io::Result<usize>) -> io::Result<usize> {
        let written = written?;
        self.written_bytes
            .fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }
}

impl SendHalf for UnixSendHalf {
    fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_write_ready(context)
    }

    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.counted(match slices {
            [one] => self.stream().try_write(one),
            _ => self.stream().try_write_vectored(slices),
        })
    }

    fn try_send_file(
        &self,
        before: &[IoSlice<'_>],
        file: BorrowedFd<'_>,
        offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        let send = || send_file(self.stream(), before, file, offset, len);
        self.counted(self.stream().try_io(Interest::WRITABLE, send))
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
        let send = || send_pipe(self.stream(), before, pipe, len);
        self.counted(self.stream().try_io(Interest::WRITABLE, send))
    }

    fn shutdown(&self) -> io::Result<()> {
        SockRef::from(self.stream()).shutdown(Shutdown::Write)
    }

    fn reset(&self) {
        // Fails only if the connection has gone already.
        let _ = SockRef::from(self.stream()).shutdown(Shutdown::Both);
    }

    fn reset_on_close(&self) {}

    fn info(&self) -> io::Result<TcpInfo> {
        let sent_bytes = self.written_bytes.load(Ordering::Relaxed);
        let unread_bytes = u64::from(self.unacknowledged_bytes()?);
        Ok(TcpInfo {
            sent_bytes,
            acked_bytes: sent_bytes.saturating_sub(unread_bytes),
            ..TcpInfo::default()
        })
    }

    fn unacknowledged_bytes(&self) -> io::Result<u32> {
        sys::unacknowledged_bytes(self.stream())
    }

    fn set_priority(&self, _priority: u32) {}

    fn set_unsent_bytes_max(&self, _bytes: u32) {}

    fn hang_up(&self) -> HangUp<'_> {
        HangUp::Ask(self.stream().as_fd())
    }
}

fn send_file(
    socket: impl AsFd,
    before: &[IoSlice<'_>],
    file: BorrowedFd<'_>,
    offset: u64,
    len: usize,
) -> io::Result<usize> {
    let mut from = offset;
    send_after(&socket, before, || {
        Ok(sendfile(&socket, file, Some(&mut from), len)?)
    })
}

fn send_pipe(
    socket: impl AsFd,
    before: &[IoSlice<'_>],
    pipe: BorrowedFd<'_>,
    len: usize,
) -> io::Result<usize> {
    send_after(&socket, before, || drain(pipe, &socket, len))
}

/// Sends `before`, and if all of it was taken what `send_rest` sends.
fn send_after(
    socket: impl AsFd,
    before: &[IoSlice<'_>],
    send_rest: impl FnOnce() -> io::Result<usize>,
) -> io::Result<usize> {
    let mut written = 0;
    if !before.is_empty() {
        // More follows at once, so the head must not leave in a packet of its own.
        let flags = SendFlags::MORE | SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        written = sendmsg(&socket, before, &mut SendAncillaryBuffer::default(), flags)?;
        if written < before.iter().map(|slice| slice.len()).sum() {
            return Ok(written);
        }
    }
    match send_rest() {
        // An error here shows again at the next write.
        Err(_) if written > 0 => Ok(written),
        sent => Ok(written + sent?),
    }
}
