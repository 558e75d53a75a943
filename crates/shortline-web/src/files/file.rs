//! A file that is being sent: reads that never wait for the disk, and reads that do.
//!
//! There are no memory maps. If a mapped file is cut short, SIGBUS kills the process; a read comes
//! back short and ends one response with `UnexpectedEof`. `preadv2(RWF_NOWAIT)` returns what the
//! page cache holds, and EAGAIN otherwise. The disk can then be asked on another thread, in the
//! scheduler's order. If a file system does not support RWF_NOWAIT, every read of the disk goes
//! there. What the page cache holds can also be moved into a pipe, and is copied nowhere then ([`OpenFile::promise`]).
//!
//! A small file (up to 1 MiB by default) is read whole when any of it is first read, and kept. A
//! response from memory costs one copy, a response read anew costs two. Changes on disk no longer
//! affect a file in memory. The kernel gets a copy of it ([`KernelCopy`]) when a connection can
//! first use one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use rustix::io::Errno;
use shortline_base::disk::{self, NotMoved};

use super::buffers;
use super::kernel_copy::{KERNEL_COPY_BYTES_MIN, KernelCopies, KernelCopy};
use super::open::Wait;
use crate::piped::Piped;

/// A regular file opened for sending. Its length is the one it had then.
#[derive(Debug)]
pub struct OpenFile {
    len: u64,
    /// All bytes of a file that is small enough to keep, once read.
    memory: OnceLock<Kept>,
    /// Counts the kernel's copies of kept bytes. `None` if the bytes may not be kept.
    keep: Option<Arc<KernelCopies>>,
    /// `None` for a file that was in memory from the start.
    disk: Option<OwnedFd>,
}

/// The bytes of a file in memory.
#[derive(Clone, Debug)]
struct Kept {
    bytes: Bytes,
    /// Made when it is first needed. TLS and HTTP/2 never need it.
    in_kernel: OnceLock<Option<Arc<KernelCopy>>>,
}

impl OpenFile {
    /// Takes an open regular file of `len` bytes. With `keep`, its bytes stay in memory once they
    /// are read. If they are in the page cache they are read now, and the descriptor is closed.
    pub(super) fn new(disk: OwnedFd, len: u64, keep: Option<Arc<KernelCopies>>) -> Self {
        let mut file = Self {
            len,
            memory: OnceLock::new(),
            keep,
            disk: Some(disk),
        };
        if file.keep.is_some() {
            // An error shows up again when the file is sent. It then ends only that response.
            if let Ok(Some(_)) = file.read_now(0, usize::try_from(len).unwrap_or(usize::MAX)) {
                file.disk = None;
            }
        }
        file
    }

    /// An open regular file of `len` bytes that is sent from the disk.
    pub fn on_disk(disk: OwnedFd, len: u64) -> Self {
        Self::new(disk, len, None)
    }

    /// Bytes that were made of a file, all in memory.
    pub(super) fn of_bytes(bytes: Bytes, keep: Arc<KernelCopies>) -> Self {
        let kept = Kept {
            bytes: bytes.clone(),
            in_kernel: OnceLock::new(),
        };
        Self {
            len: bytes.len() as u64,
            memory: kept.into(),
            keep: Some(keep),
            disk: None,
        }
    }

    /// The same file without its descriptor, if its bytes were read since it was opened.
    pub(super) fn released(&self) -> Option<Self> {
        let kept = self.memory.get().filter(|_| self.disk.is_some())?;
        Some(Self {
            len: self.len,
            memory: kept.clone().into(),
            keep: self.keep.clone(),
            disk: None,
        })
    }

    /// Reads `len` bytes at `offset` if they are in memory. Never waits for a disk. `Ok(None)`:
    /// they are not in memory; use [`OpenFile::read_blocking`]. `UnexpectedEof`: the file was cut
    /// short, or the piece lies outside of it.
    pub fn read_now(&self, offset: u64, len: usize) -> io::Result<Option<Bytes>> {
        match self.read(offset, len, Wait::Never) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_not_at_hand(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads `len` bytes at `offset` and waits for the disk, so the thread must be allowed to
    /// block. `UnexpectedEof`: the file was cut short, or the piece lies outside of it.
    pub fn read_blocking(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        self.read(offset, len, Wait::Allowed)
    }

    /// Moves up to `len` bytes at `offset` into a pipe and promises them, if they are in memory and this file's bytes are not kept.
    ///
    /// # Errors
    /// [`NotMoved`]
    pub fn promise(&self, offset: u64, len: usize, piped: &Piped) -> Result<Bytes, NotMoved> {
        let fits = offset
            .checked_add(len as u64)
            .is_some_and(|end| end <= self.len);
        let disk = self.disk.as_ref().filter(|_| fits && self.keep.is_none());
        piped.promise_of_file(disk.ok_or(NotMoved::Refused)?, offset, len)
    }

    /// The length promised to clients, in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file was empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The descriptor of a file that is not in memory.
    pub(super) fn disk(&self) -> Option<&OwnedFd> {
        self.disk.as_ref()
    }

    /// The bytes a client is sent, if all are in memory.
    pub fn in_memory(&self) -> Option<&Bytes> {
        self.memory.get().map(|kept| &kept.bytes)
    }

    /// The kernel's copy of the bytes in memory. It is made now if there is none and one is
    /// allowed.
    pub fn in_kernel(&self) -> Option<&Arc<KernelCopy>> {
        let (kept, copies) = (self.memory.get()?, self.keep.as_ref()?);
        let make = || copies.make(&kept.bytes).map(Arc::new);
        kept.in_kernel.get_or_init(make).as_ref()
    }

    /// The bytes of memory this takes or may come to take: twice its length if the kernel may have
    /// a copy. The value never changes, since the cache's sums rely on it.
    pub fn kept_bytes(&self) -> u64 {
        let copies = 1 + u64::from(self.len >= KERNEL_COPY_BYTES_MIN as u64);
        if self.keep.is_some() {
            self.len * copies
        } else {
            0
        }
    }

    fn read(&self, offset: u64, len: usize, wait: Wait) -> io::Result<Bytes> {
        let end = offset
            .checked_add(len as u64)
            .filter(|end| *end <= self.len);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        if self.keep.is_none() {
            return self.read_disk(offset, len, wait);
        }
        let whole = match self.memory.get() {
            Some(kept) => kept,
            None => {
                let bytes = self.read_disk(0, fitting(self.len)?, wait)?;
                self.memory.get_or_init(|| Kept {
                    bytes,
                    in_kernel: OnceLock::new(),
                })
            }
        };
        Ok(whole.bytes.slice(fitting(offset)?..fitting(end)?))
    }

    fn read_disk(&self, offset: u64, len: usize, wait: Wait) -> io::Result<Bytes> {
        let disk = self
            .disk
            .as_ref()
            .expect("invariant: closed only once the bytes are kept");
        let may_wait = wait == Wait::Allowed;
        buffers::filled(len, |buffer| {
            let mut filled = 0;
            while filled < len {
                let rest = &mut buffer[filled..];
                match disk::read_at(disk, rest, offset + filled as u64, may_wait) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(read) => filled += read,
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
            Ok(())
        })
    }
}

/// EAGAIN: not in the page cache. EOPNOTSUPP: this file system cannot tell.
fn is_not_at_hand(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    errno == Some(Errno::AGAIN.raw_os_error()) || errno == Some(Errno::OPNOTSUPP.raw_os_error())
}

/// A position as `usize`. It always fits for a file kept in memory. On 32 bits a larger one is
/// refused.
fn fitting(value: u64) -> io::Result<usize> {
    usize::try_from(value).map_err(|_| io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write;

    use super::*;

    fn opened(content: &[u8], keep: bool) -> OpenFile {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        let keep = keep.then(|| Arc::new(KernelCopies::new(1)));
        OpenFile::new(file.into(), content.len() as u64, keep)
    }

    #[test]
    fn pieces_outside_of_the_file_are_refused() {
        for keep in [false, true] {
            let file = opened(b"0123456789", keep);
            for (offset, len) in [(0, 11), (10, 1), (u64::MAX, 1), (5, usize::MAX)] {
                let error = file.read_blocking(offset, len).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
                assert!(file.read_now(offset, len).is_err());
            }
            assert_eq!(&file.read_blocking(3, 4).unwrap()[..], b"3456");
            assert_eq!(&file.read_blocking(10, 0).unwrap()[..], b"");
        }
    }

    #[test]
    fn a_kept_file_once_read_needs_no_descriptor() {
        let file = opened(b"0123456789", true);
        assert_eq!(&file.read_blocking(3, 4).unwrap()[..], b"3456");
        assert_eq!(&file.in_memory().unwrap()[..], b"0123456789");
        // Either the page cache held it when it was opened, or it can be released now.
        let file = if file.disk().is_some() {
            file.released().unwrap()
        } else {
            file
        };
        assert!(file.disk().is_none() && file.released().is_none());
        assert_eq!(&file.read_now(3, 4).unwrap().unwrap()[..], b"3456");
        assert_eq!((file.len(), file.kept_bytes()), (10, 10));
    }

    #[test]
    fn other_files_keep_their_descriptor() {
        let file = opened(b"0123456789", false);
        assert_eq!(&file.read_blocking(0, 10).unwrap()[..], b"0123456789");
        assert!(file.disk().is_some() && file.in_memory().is_none());
        assert_eq!(file.kept_bytes(), 0);
    }
}
