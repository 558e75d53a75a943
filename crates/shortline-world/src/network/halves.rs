//! The ends of a connection, as the program and the clients hold them.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use shortline_base::TcpInfo;
use shortline_base::disk;
use shortline_base::socket::{Halves, HangUp, SendHalf};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Connection;
use super::pipe::Pipe;

/// The server's end of a connection, in halves.
pub fn server_halves(connection: &Arc<Connection>) -> Halves {
    let whole = Arc::new(Whole(Arc::clone(connection), AtomicBool::new(false)));
    Halves {
        receiving: Box::new(Receiving(Arc::clone(&whole))),
        sending: Box::new(Sending(whole)),
    }
}

/// The server's end. It is closed when both halves are gone.
struct Whole(Arc<Connection>, AtomicBool);

impl Drop for Whole {
    fn drop(&mut self) {
        let Self(connection, reset_on_close) = self;
        // As in Linux, closing with unread bytes is a reset.
        if reset_on_close.load(Ordering::Relaxed) || connection.up.has_unread() {
            connection.down.send_reset();
        }
        connection.down.close();
        connection.up.reader_gone();
    }
}

struct Receiving(Arc<Whole>);

impl AsyncRead for Receiving {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        read(&self.0.0.up, context, buffer)
    }
}

struct Sending(Arc<Whole>);

impl Sending {
    fn down(&self) -> &Arc<Pipe> {
        &self.0.0.down
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.down().close();
    }
}

impl SendHalf for Sending {
    fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.down().poll_writable(context)
    }

    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.down().write(slices)
    }

    fn try_send_file(
        &self,
        before: &[IoSlice<'_>],
        file: BorrowedFd<'_>,
        offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        let mut bytes = vec![0; len];
        let read = disk::read_at(file, &mut bytes, offset, true)?;
        let mut slices: Vec<_> = before.iter().map(|slice| IoSlice::new(slice)).collect();
        slices.push(IoSlice::new(&bytes[..read]));
        self.down().write(&slices)
    }

    fn shutdown(&self) -> io::Result<()> {
        self.down().close();
        Ok(())
    }

    fn reset(&self) {
        self.down().send_reset();
        self.0.0.up.reader_gone();
    }

    fn reset_on_close(&self) {
        self.0.1.store(true, Ordering::Relaxed);
    }

    fn info(&self) -> io::Result<TcpInfo> {
        Ok(self.down().info(&self.0.0.up))
    }

    fn unacknowledged_bytes(&self) -> io::Result<u32> {
        Ok(self.down().unacknowledged_bytes())
    }

    fn set_priority(&self, _: u32) {}

    fn set_unsent_bytes_max(&self, bytes: u32) {
        self.down().set_unsent_bytes_max(bytes);
    }

    fn hang_up(&self) -> HangUp<'_> {
        HangUp::Known(self.0.0.up.has_ended())
    }
}

/// Resets a connection that a backend has accepted, whoever holds its end.
pub fn reset_by_backend(connection: &Connection) {
    connection.down.send_reset();
    connection.up.break_writer();
}

/// The other end of a connection: a client's, or a backend's.
pub struct End {
    connection: Arc<Connection>,
    /// It sends what the server's end reads.
    is_client: bool,
}

impl End {
    /// The client's end of a connection to the server.
    pub fn of_client(connection: &Arc<Connection>) -> Self {
        Self {
            connection: Arc::clone(connection),
            is_client: true,
        }
    }

    /// The end that accepted a connection opened by the program.
    pub fn of_backend(connection: &Arc<Connection>) -> Self {
        Self {
            connection: Arc::clone(connection),
            is_client: false,
        }
    }

    /// The connection.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Resets the connection now.
    pub fn reset(&self) {
        self.sends().send_reset();
        self.receives().break_writer();
    }

    /// Ends the sending direction.
    pub fn finish(&self) {
        self.sends().close();
    }

    /// When the other end could know that this one has ended its direction.
    pub fn finish_came_ns(&self) -> Option<u64> {
        self.sends().finished_ns()
    }

    fn sends(&self) -> &Arc<Pipe> {
        match self.is_client {
            true => &self.connection.up,
            false => &self.connection.down,
        }
    }

    fn receives(&self) -> &Arc<Pipe> {
        match self.is_client {
            true => &self.connection.down,
            false => &self.connection.up,
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if self.receives().has_unread() {
            self.sends().send_reset();
        }
        self.sends().close();
        self.receives().reader_gone();
    }
}

impl AsyncRead for End {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        read(self.receives(), context, buffer)
    }
}

impl AsyncWrite for End {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.sends().write(&[IoSlice::new(bytes)]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                match self.sends().poll_writable(context) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(_) => {
                        context.waker().wake_by_ref();
                        Poll::Pending
                    }
                }
            }
            written => Poll::Ready(written),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sends().close();
        Poll::Ready(Ok(()))
    }
}

fn read(
    pipe: &Arc<Pipe>,
    context: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    pipe.poll_read(context, buffer.remaining(), |bytes| buffer.put_slice(bytes))
}
