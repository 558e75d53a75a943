//! What is to be written: small pieces in one buffer, large ones as they are between them.
//!
//! An empty output has no buffer. It goes to whoever on this thread writes next.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// A shorter piece is copied.
const WHOLE_BYTES_MIN: usize = 2048;
/// A larger buffer is not kept for the next.
const SPARE_BYTES_MAX: usize = 128 * 1024;
/// So many written bytes at the front of a buffer that never empties are dropped.
const WRITTEN_BYTES_MAX: usize = 64 * 1024;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Bytes that wait for the socket.
#[derive(Debug, Default)]
pub struct Output {
    small: Vec<u8>,
    /// How much of `small` is written.
    written: usize,
    /// Pieces that are not copied, and how much of `small` is before each.
    whole: VecDeque<(usize, Bytes)>,
    whole_bytes: usize,
}

impl Output {
    /// The bytes that wait.
    pub fn len(&self) -> usize {
        self.copied_bytes() + self.whole_bytes
    }

    /// Those of them that were copied: heads, what answers the client's frames, and small pieces.
    pub fn copied_bytes(&self) -> usize {
        self.small.len() - self.written
    }

    /// Whether none do.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where small pieces are appended.
    pub fn small(&mut self) -> &mut Vec<u8> {
        if self.small.capacity() == 0 {
            self.small = SPARE.take();
        }
        &mut self.small
    }

    /// Appends a piece.
    pub fn push(&mut self, piece: Bytes) {
        if piece.len() < WHOLE_BYTES_MIN {
            self.small().extend_from_slice(&piece);
        } else {
            self.whole_bytes += piece.len();
            self.whole.push_back((self.small.len(), piece));
        }
    }

    /// Fills `slices` with what is next, and returns how many it filled.
    pub fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        let mut at = self.written;
        let mut fill = |bytes: &'a [u8]| {
            let slice = slices.get_mut(filled).filter(|_| !bytes.is_empty());
            if let Some(slice) = slice {
                *slice = IoSlice::new(bytes);
                filled += 1;
            }
        };
        for (before, piece) in &self.whole {
            fill(&self.small[at..*before]);
            fill(piece);
            at = *before;
        }
        fill(&self.small[at..]);
        filled
    }

    /// So many of the next bytes are written.
    pub fn advance(&mut self, bytes: usize) {
        self.pass(bytes);
        if self.written >= WRITTEN_BYTES_MAX {
            self.shorten();
        }
    }

    fn pass(&mut self, mut bytes: usize) {
        while let Some((before, piece)) = self.whole.front_mut() {
            let small = bytes.min(*before - self.written);
            self.written += small;
            bytes -= small;
            let whole = bytes.min(piece.len());
            piece.advance(whole);
            self.whole_bytes -= whole;
            bytes -= whole;
            if self.written < *before || !piece.is_empty() {
                return;
            }
            self.whole.pop_front();
        }
        self.written += bytes;
        if self.written >= self.small.len() {
            self.give_back();
        }
    }

    /// Drops what is written of a buffer that goes on.
    fn shorten(&mut self) {
        let written = std::mem::take(&mut self.written);
        self.small.drain(..written);
        self.whole
            .iter_mut()
            .for_each(|(before, _)| *before -= written);
    }

    fn give_back(&mut self) {
        self.written = 0;
        let mut buffer = std::mem::take(&mut self.small);
        buffer.clear();
        if buffer.capacity() <= SPARE_BYTES_MAX {
            SPARE.set(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes at most so many bytes, in at most three slices.
    fn write(output: &mut Output, bytes_max: usize, into: &mut Vec<u8>) {
        let mut slices = [IoSlice::new(&[]); 3];
        let filled = output.fill(&mut slices);
        let next: Vec<u8> = slices[..filled]
            .iter()
            .flat_map(|slice| slice.to_vec())
            .collect();
        let written = next.len().min(bytes_max);
        into.extend_from_slice(&next[..written]);
        output.advance(written);
    }

    proptest! {
        #[test]
        fn what_is_pushed_is_written_in_its_order(
            pieces in proptest::collection::vec(0usize..5000, 0..20),
            takes in proptest::collection::vec(1usize..9000, 1..10),
        ) {
            let mut output = Output::default();
            let (mut pushed, mut written) = (Vec::new(), Vec::new());
            for (index, bytes) in pieces.iter().enumerate() {
                let piece = vec![index as u8; *bytes];
                pushed.extend_from_slice(&piece);
                output.push(piece.into());
                if index % 3 == 0 {
                    write(&mut output, takes[index % takes.len()], &mut written);
                }
            }
            let mut turn = 0;
            while !output.is_empty() {
                prop_assert_eq!(output.len(), pushed.len() - written.len());
                write(&mut output, takes[turn % takes.len()], &mut written);
                turn += 1;
            }
            prop_assert_eq!(written, pushed);
            prop_assert_eq!(output.small.capacity(), 0);
        }
    }
}
