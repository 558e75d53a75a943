//! The buffers that files are read into, used again. The allocator asks the kernel for a new one of this size and has it cleared page by
//! page, which took several times as long as the read itself.
//!
//! Some are kept for all threads. How many are in use is bounded by who reads: a response has one piece of a file at a time.

use std::io;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;

/// The size of a buffer that is kept.
const BUFFER_BYTES: usize = 64 * 1024;
/// What is shorter gets memory of its own size, which costs little, or a short piece would hold much.
const SHORT_BYTES_MAX: usize = BUFFER_BYTES / 2;
/// Buffers kept without use: 4 MiB.
const KEPT_MAX: usize = 64;

static KEPT: Mutex<Vec<Box<[u8]>>> = Mutex::new(Vec::new());

/// `len` bytes that `fill` has filled, all of them.
///
/// # Errors
/// Those of `fill`.
pub(super) fn filled(
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> io::Result<()>,
) -> io::Result<Bytes> {
    if len <= SHORT_BYTES_MAX || len > BUFFER_BYTES {
        let mut memory = BytesMut::zeroed(len);
        fill(&mut memory)?;
        return Ok(memory.freeze());
    }
    let kept = KEPT.lock().pop();
    let memory = kept.unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice());
    let mut buffer = Buffer { memory, len };
    fill(&mut buffer.memory[..len])?;
    Ok(Bytes::from_owner(buffer))
}

/// A buffer in use.
struct Buffer {
    memory: Box<[u8]>,
    /// Bytes of what was read now. What is behind them was read before.
    len: usize,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        let mut kept = KEPT.lock();
        if kept.len() < KEPT_MAX {
            kept.push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_read_before_is_not_seen() {
        for len in [
            1,
            SHORT_BYTES_MAX,
            SHORT_BYTES_MAX + 1,
            BUFFER_BYTES,
            BUFFER_BYTES + 1,
        ] {
            for byte in [1, 2] {
                let bytes = filled(len, |memory| {
                    memory.fill(byte);
                    Ok(())
                });
                assert_eq!(bytes.unwrap(), vec![byte; len]);
            }
        }
        let broken = filled(BUFFER_BYTES, |_| Err(io::ErrorKind::UnexpectedEof.into()));
        assert_eq!(broken.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
