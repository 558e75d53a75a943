//! Reads of open files.

use std::io::IoSliceMut;
use std::os::fd::AsFd;

use rustix::io::{Errno, ReadWriteFlags};

use crate::world::{self, DiskRead};

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
