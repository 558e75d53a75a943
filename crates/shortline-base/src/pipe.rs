//! Bytes that pass into a socket from another, or from a file, within the kernel (`splice`, Linux): in at one end of a pipe, out at
//! the other. What the network card or a disk has brought is only referred to, and copied nowhere.
//!
//! A pipe has room for pages, not for bytes: 16 as the kernel makes it, more if it allows that. A page counts whole, however little of it
//! is used. So nobody can say how many bytes are still taken but the kernel, by taking none.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

/// Neither end waits.
const FLAGS: SpliceFlags = SpliceFlags::NONBLOCK.union(SpliceFlags::MOVE);

/// A pipe. It has two descriptors.
#[derive(Debug)]
pub struct Pipe {
    front: OwnedFd,
    back: OwnedFd,
}

/// What a try to fill a pipe from a socket has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// So many bytes were moved; 0 at the end of the connection.
    Bytes(usize),
    /// The pipe has no room for what has come.
    Full,
    /// The kernel moves no bytes of this socket, or the process may not ask it to: they have to be read.
    Refused,
}

/// A socket whose bytes can be moved.
pub trait Source: AsFd {
    /// Ready when bytes have come, or the end.
    ///
    /// # Errors
    /// The connection is broken.
    fn poll_come(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Does `work`, which reads the socket. `WouldBlock` says that nothing has come.
    ///
    /// # Errors
    /// Those of `work`.
    fn reading(&self, work: &mut dyn FnMut() -> io::Result<Filled>) -> io::Result<Filled>;
}

impl Source for TcpStream {
    fn poll_come(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(context)
    }

    fn reading(&self, work: &mut dyn FnMut() -> io::Result<Filled>) -> io::Result<Filled> {
        self.try_io(Interest::READABLE, work)
    }
}

impl Source for UnixStream {
    fn poll_come(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(context)
    }

    fn reading(&self, work: &mut dyn FnMut() -> io::Result<Filled>) -> io::Result<Filled> {
        self.try_io(Interest::READABLE, work)
    }
}

impl Pipe {
    /// A pipe with room for this many bytes in whole pages, or what the kernel allows.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let (front, back) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A user has a share of all pipes' pages (`pipe-user-pages-soft`). Beyond it a pipe stays as it is.
        let _ = fcntl_setpipe_size(&back, bytes);
        Ok(Self { front, back })
    }

    /// Moves up to `bytes_max` bytes of `source` into the pipe. `is_empty`: there is nothing in it.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn poll_fill(
        &self,
        source: &dyn Source,
        bytes_max: usize,
        is_empty: bool,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Filled>> {
        let mut move_some = || match splice(source, None, &self.back, None, bytes_max, FLAGS) {
            Ok(bytes) => Ok(Filled::Bytes(bytes)),
            // It says the same of a full pipe and of a socket with nothing in it.
            Err(Errno::AGAIN) if !is_empty && rustix::io::ioctl_fionread(source)? > 0 => {
                Ok(Filled::Full)
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => Ok(Filled::Refused),
            Err(error) => Err(error.into()),
        };
        loop {
            ready!(source.poll_come(context))?;
            match source.reading(&mut move_some) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                filled => return Poll::Ready(filled),
            }
        }
    }

    /// Moves up to `bytes_max` bytes of a file at `offset` into the pipe. What is not in memory it waits for. Returns how many there
    /// was room for; 0 at the end of the file.
    ///
    /// # Errors
    /// `EAGAIN` if the pipe is full, or the file's.
    pub(crate) fn fill_from_file(
        &self,
        file: impl AsFd,
        offset: u64,
        bytes_max: usize,
    ) -> Result<usize, Errno> {
        let mut from = offset;
        splice(file, Some(&mut from), &self.back, None, bytes_max, FLAGS)
    }

    /// The end from which the bytes come out.
    pub fn front(&self) -> BorrowedFd<'_> {
        self.front.as_fd()
    }
}

/// Moves up to `bytes` bytes from the front of a pipe into `socket`. Returns how many.
///
/// # Errors
/// `WouldBlock`, or the connection is broken.
pub(crate) fn drain(pipe: BorrowedFd<'_>, socket: impl AsFd, bytes: usize) -> io::Result<usize> {
    Ok(splice(pipe, None, socket, None, bytes, FLAGS)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::future::poll_fn;
    use std::io::IoSlice;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::socket::Halves;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap());
        let (one, other) = tokio::join!(one, listener.accept());
        (one.unwrap(), other.unwrap().0)
    }

    #[tokio::test]
    async fn bytes_pass_from_socket_to_socket_behind_those_before() {
        let (mut backend, source) = pair().await;
        let (mut client, ours) = pair().await;
        let sending = Halves::from(ours.into_std().unwrap()).sending;
        let pipe = Pipe::new(1 << 16).unwrap();
        backend.write_all(b"body, and more").await.unwrap();
        let filled = poll_fn(|context| pipe.poll_fill(&source, 4, true, context)).await;
        assert_eq!(filled.unwrap(), Filled::Bytes(4));
        let head = [IoSlice::new(b"head ")];
        let sent = sending.try_send_pipe(&head, pipe.front(), 4);
        assert_eq!(sent.unwrap(), 9);
        let mut got = [0; 9];
        client.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"head body");
        drop(backend);
        let mut left = 10;
        while left > 0 {
            let filled = poll_fn(|context| pipe.poll_fill(&source, 99, true, context)).await;
            let Filled::Bytes(bytes) = filled.unwrap() else {
                panic!("there is room");
            };
            left -= sending.try_send_pipe(&[], pipe.front(), bytes).unwrap();
        }
        let end = poll_fn(|context| pipe.poll_fill(&source, 99, true, context)).await;
        assert_eq!(end.unwrap(), Filled::Bytes(0));
    }

    /// It looks as if something had come.
    struct Odd(OwnedFd);

    impl AsFd for Odd {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    impl Source for Odd {
        fn poll_come(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn reading(&self, work: &mut dyn FnMut() -> io::Result<Filled>) -> io::Result<Filled> {
            work()
        }
    }

    #[tokio::test]
    async fn what_the_kernel_does_not_move_has_to_be_read() {
        let source =
            Odd(rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).unwrap());
        let pipe = Pipe::new(4096).unwrap();
        let filled = poll_fn(|context| pipe.poll_fill(&source, 1, true, context)).await;
        assert_eq!(filled.unwrap(), Filled::Refused);
    }

    #[tokio::test]
    async fn a_full_pipe_is_told_from_a_socket_with_nothing_in_it() {
        let (mut backend, source) = pair().await;
        let pipe = Pipe::new(4096).unwrap();
        let mut held = 0;
        let full = loop {
            backend.write_all(&[0; 4096]).await.unwrap();
            let is_empty = held == 0;
            match poll_fn(|context| pipe.poll_fill(&source, 1 << 20, is_empty, context)).await {
                Ok(Filled::Bytes(bytes)) => held += bytes,
                full => break full.unwrap(),
            }
            assert!(held < 1 << 20);
        };
        assert_eq!(full, Filled::Full);
        assert!(held > 0);
    }
}
