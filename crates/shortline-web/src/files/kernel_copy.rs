//! A second copy of a kept file's bytes, inside the kernel (a memfd), for `sendfile` to give to
//! sockets. A write to a socket copies into pages that another processor had last. For 10 KB that
//! costs a quarter of a response's processor time. Pages that already belong to the kernel are only
//! referred to.
//!
//! On every path the bytes of a response are those in memory. A socket may recognise a slice of
//! them by its address and send the same piece of the copy instead. TLS and HTTP/2 use other slices
//! and never notice. Nobody can change the copy or cut it short, and it waits for no disk.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use shortline_base::socket::SendHalf;

/// Shorter pieces are cheaper to copy: 10 KB by a tenth, with one system call instead of two.
pub const KERNEL_COPY_BYTES_MIN: usize = 16 * 1024;
/// The most bytes handed over at a time by a response that is not scheduled. The socket takes what it has room for.
const PIECE_BYTES_MAX: u64 = 1 << 30;
/// Pieces end at pages. One that begins inside a page takes one more reference than fits into a packet.
const PAGE_BYTES: u64 = 4096;
/// The end of a file, which follows by itself.
const END_BYTES: u64 = 64 * 1024;
/// What is shorter is not parted.
const END_BYTES_MAX: u64 = 2 * END_BYTES;

/// Limits the number of copies. Each is an open file.
#[derive(Debug)]
pub(super) struct KernelCopies {
    held: AtomicU64,
    max: u64,
}

/// One file's copy.
#[derive(Debug)]
pub struct KernelCopy {
    original: Bytes,
    memory: OwnedFd,
    copies: Arc<KernelCopies>,
}

impl KernelCopies {
    pub(super) fn new(max: u64) -> Self {
        Self {
            held: AtomicU64::new(0),
            max,
        }
    }

    /// A copy of `original`, if it is long enough and there is room. `None`: the original is sent.
    pub(super) fn make(self: &Arc<Self>, original: &Bytes) -> Option<KernelCopy> {
        if original.len() < KERNEL_COPY_BYTES_MIN {
            return None;
        }
        let more = |held| (held < self.max).then_some(held + 1);
        self.held
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .ok()?;
        let Ok(memory) = filled(original) else {
            self.held.fetch_sub(1, Ordering::AcqRel);
            return None;
        };
        Some(KernelCopy {
            original: original.clone(),
            memory,
            copies: Arc::clone(self),
        })
    }
}

impl KernelCopy {
    /// The offset of `piece` in the file, if it is part of the very bytes this is a copy of.
    pub fn offset_of(&self, piece: &[u8]) -> Option<u64> {
        let first = self.original.as_ptr().addr();
        let offset = piece.as_ptr().addr().checked_sub(first)?;
        let end = offset.checked_add(piece.len())?;
        (end <= self.original.len()).then_some(offset as u64)
    }

    /// How much to hand over at once of `len` bytes from `offset` on, where no grant limits it: nearly all, since the kernel then fills its
    /// packets (1 MB whole took 0.72 of the processor time of 64 KiB pieces). Only its end follows by itself, so that the
    /// response counts as being sent until nearly all is with the kernel.
    pub fn piece_bytes(offset: u64, len: u64) -> u32 {
        let bytes = match len {
            0..END_BYTES_MAX => len,
            _ => {
                let most = (len - END_BYTES).min(PIECE_BYTES_MAX);
                (offset + most) / PAGE_BYTES * PAGE_BYTES - offset
            }
        };
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Writes `before` to a socket, then gives it up to `len` bytes at `offset`. Returns how many
    /// it took.
    ///
    /// # Errors
    /// As a write to the socket.
    pub fn send(
        &self,
        socket: &dyn SendHalf,
        before: &[IoSlice<'_>],
        offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        socket.try_send_file(before, self.memory.as_fd(), offset, len)
    }
}

impl Drop for KernelCopy {
    fn drop(&mut self) {
        self.copies.held.fetch_sub(1, Ordering::AcqRel);
    }
}

fn filled(bytes: &[u8]) -> Result<OwnedFd, Errno> {
    let memory = memfd_create("shortline-file", MemfdFlags::CLOEXEC)?;
    let mut written = 0;
    while written < bytes.len() {
        written += rustix::io::write(&memory, &bytes[written..])?;
    }
    Ok(memory)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use shortline_base::socket::Halves;
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    fn numbered(len: usize) -> Bytes {
        (0..len).map(|byte| (byte % 251) as u8).collect()
    }

    #[test]
    fn nearly_all_is_one_piece_and_so_is_the_end() {
        let pieces = |mut offset: u64, mut len: u64| {
            let mut pieces = Vec::new();
            while len > 0 {
                let bytes = KernelCopy::piece_bytes(offset, len);
                pieces.push(bytes);
                offset += u64::from(bytes);
                len -= u64::from(bytes);
            }
            pieces
        };
        assert_eq!(pieces(0, 1_000_000), [933_888, 66_112]);
        assert_eq!(pieces(0, 1_048_576), [983_040, 65_536]);
        assert_eq!(pieces(100, 200_000), [130_972, 69_028]);
        assert_eq!(pieces(0, 100_000), [100_000]);
        assert_eq!(pieces(7, 1), [1]);
        let long = pieces(0, 3 << 30);
        assert_eq!((long.len(), long[0]), (4, 1 << 30));
    }

    #[tokio::test]
    async fn a_piece_is_known_by_its_address_and_sent_from_the_copy() {
        let bytes = numbered(3 * KERNEL_COPY_BYTES_MIN);
        let copy = Arc::new(KernelCopies::new(1)).make(&bytes).unwrap();
        let piece = bytes.slice(1000..1100);
        assert_eq!(copy.offset_of(&piece), Some(1000));
        assert_eq!(copy.offset_of(&bytes), Some(0));
        let elsewhere = Bytes::copy_from_slice(&piece);
        assert_eq!(copy.offset_of(&elsewhere), None, "the same bytes");

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let ours = listener.accept().await.unwrap().0.into_std().unwrap();
        let socket = Halves::from(ours).sending;
        let sent = copy.send(&*socket, &[IoSlice::new(b"head")], 1000, 100);
        assert_eq!(sent.unwrap(), 104);
        let mut head = [0; 4];
        peer.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"head");
        let mut got = [0; 100];
        peer.read_exact(&mut got).await.unwrap();
        assert_eq!(got, piece[..]);
    }

    #[test]
    fn there_are_no_more_copies_than_allowed_and_none_of_small_files() {
        let copies = Arc::new(KernelCopies::new(1));
        assert!(copies.make(&numbered(KERNEL_COPY_BYTES_MIN - 1)).is_none());
        let bytes = numbered(KERNEL_COPY_BYTES_MIN);
        let only = copies.make(&bytes).unwrap();
        assert!(copies.make(&bytes).is_none());
        drop(only);
        assert!(copies.make(&bytes).is_some());
    }
}
