//! Reads of open files, and moves of what the page cache has of them into a pipe.
//!
//! Nothing tells whether a piece is in the page cache but a read, which copies it. A move asks for its first and its last byte so.
//! If the last one is missing, half of the piece is tried: the kernel reads ahead, but not always so far. What is between them mostly
//! comes and goes with them; if not, the move waits for the disk, as a thread that serves others must not.
//! So one that has waited is the last for a while ([`MOVES_REST`]), and what is sent meanwhile is read. Strangers who ask for
//! single bytes can bring a file into that state. They make a thread wait for one piece in that time.

use std::io::IoSliceMut;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::{Errno, ReadWriteFlags};

use crate::clock::now_ns;
use crate::pipe::Pipe;
use crate::sys::thread_waits;
use crate::world::{self, DiskRead};

/// For how long nothing is moved after a move that has waited.
pub const MOVES_REST: Duration = Duration::from_secs(1);

/// So much or less is not moved in part.
const WHOLE_BYTES_MAX: usize = 64 * 1024;

/// Until when nothing is moved, on the clock.
static REST_UNTIL_NS: AtomicU64 = AtomicU64::new(0);

/// Why a piece of a file was not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMoved {
    /// It is not in memory.
    NotAtHand,
    /// Nothing is moved now: it has to be read.
    Refused,
}

/// Reads into `buffer` at `offset`, waiting for the disk or not. Returns how many bytes; 0 at the
/// end.
///
/// # Errors
/// `EAGAIN` or `EOPNOTSUPP` if it does not wait: the bytes are not in memory, or nobody knows.
/// Otherwise the disk's error.
pub fn read_at(
    file: impl AsFd,
    buffer: &mut [u8],
    offset: u64,
    may_wait: bool,
) -> Result<usize, Errno> {
    let flags = match world::here(|world| world.disk_read(may_wait)) {
        None if may_wait => ReadWriteFlags::empty(),
        None => ReadWriteFlags::NOWAIT,
        Some(DiskRead::There) => ReadWriteFlags::empty(),
        Some(DiskRead::NotAtHand) => return Err(Errno::AGAIN),
        Some(DiskRead::Broken) => return Err(Errno::IO),
    };
    rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], offset, flags)
}

/// Moves up to `bytes_max` bytes of a file at `offset` into a pipe, if they are in memory. They stay in memory until they have left it.
/// Returns how many, 1 at least.
///
/// # Errors
/// [`NotMoved`]
pub fn move_at(
    file: impl AsFd,
    offset: u64,
    bytes_max: usize,
    pipe: &Pipe,
) -> Result<usize, NotMoved> {
    let is_real = world::here(|_| ()).is_none();
    if !is_real || bytes_max == 0 || now_ns() < REST_UNTIL_NS.load(Ordering::Relaxed) {
        return Err(NotMoved::Refused);
    }
    let mut bytes = bytes_max;
    is_there(&file, offset)?;
    while let Err(missing) = is_there(&file, offset + bytes as u64 - 1) {
        if missing == NotMoved::Refused || bytes <= WHOLE_BYTES_MAX {
            return Err(missing);
        }
        bytes /= 2;
    }
    let waits = thread_waits();
    let moved = pipe.fill_from_file(file, offset, bytes);
    if thread_waits() > waits {
        REST_UNTIL_NS.store(now_ns() + MOVES_REST.as_nanos() as u64, Ordering::Relaxed);
    }
    moved
        .ok()
        .filter(|bytes| *bytes > 0)
        .ok_or(NotMoved::Refused)
}

/// Whether this byte of a file is in memory.
fn is_there(file: impl AsFd, offset: u64) -> Result<(), NotMoved> {
    match read_at(file, &mut [0], offset, false) {
        Ok(1) => Ok(()),
        Err(Errno::AGAIN) => Err(NotMoved::NotAtHand),
        // The end, or what a read tells better.
        _ => Err(NotMoved::Refused),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;
    use std::num::NonZeroU64;

    use super::*;

    #[test]
    fn what_is_in_memory_is_moved_and_nothing_behind_the_end() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 10_000]).unwrap();
        let pipe = Pipe::new(1 << 16).unwrap();
        // Just written, it is in memory, unless its file system cannot tell.
        let can_tell = read_at(&file, &mut [0], 0, false).is_ok();
        let expected = if can_tell {
            Ok(5_000)
        } else {
            Err(NotMoved::Refused)
        };
        assert_eq!(move_at(&file, 5_000, 5_000, &pipe), expected);
        assert_eq!(move_at(&file, 5_001, 5_000, &pipe), Err(NotMoved::Refused));
        assert_eq!(move_at(&file, 0, 0, &pipe), Err(NotMoved::Refused));
    }

    #[test]
    fn of_a_piece_that_is_not_all_in_memory_the_front_is_moved() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 1 << 18]).unwrap();
        file.sync_all().unwrap();
        let back = NonZeroU64::new(1 << 17);
        rustix::fs::fadvise(&file, 1 << 17, back, rustix::fs::Advice::DontNeed).unwrap();
        let pipe = Pipe::new(1 << 18).unwrap();
        // A file system in memory keeps it all, and one that cannot tell refuses.
        let expected = match is_there(&file, (1 << 18) - 1) {
            Ok(()) => Ok(1 << 18),
            Err(NotMoved::NotAtHand) => Ok(1 << 17),
            Err(NotMoved::Refused) => Err(NotMoved::Refused),
        };
        assert_eq!(move_at(&file, 0, 1 << 18, &pipe), expected);
    }
}
