//! The compressed protocol (MySQL's source documentation, "Compression"). A frame has a length, a
//! sequence number, the length of its content, and the content, compressed with zlib unless its
//! length is given as 0. The content is the plain stream of packets, cut anywhere.
//!
//! Compression ends at the gate. The gate speaks it with a client that asks for it, and does not
//! offer it to the server. So the gate bears the cost of compression, and can read every message.

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Length, sequence number, and length of the content.
const HEADER_BYTES: usize = 7;
/// The most bytes in a frame.
const CONTENT_BYTES_MAX: usize = 0xff_ffff;
/// Shorter content is sent as it is (MySQL's MIN_COMPRESS_LENGTH).
const COMPRESSED_BYTES_MIN: usize = 50;

/// Bytes that are not frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    /// Not zlib.
    #[error("a compressed packet holds no zlib data")]
    Data,
    /// The content has a different length.
    #[error("a compressed packet of {0} bytes holds more or fewer")]
    Length(u32),
    /// The frames of an exchange are numbered.
    #[error("a compressed packet has number {came}, where {expected} was to come")]
    Sequence {
        /// The number that came.
        came: u8,
        /// The number that was expected.
        expected: u8,
    },
}

/// Decodes a client's bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Frames not decoded yet.
    frames: Vec<u8>,
    at: usize,
    frame: Option<Frame>,
}

#[derive(Debug)]
struct Frame {
    /// Bytes of the current frame not decoded yet.
    left: usize,
    content_bytes: u32,
    content_left: usize,
    zlib: Option<Box<Decompress>>,
}

impl Decoder {
    /// Takes the next bytes. If [`Self::decode`] has nothing left to do between calls, little more
    /// than the bytes of one call is kept.
    pub fn take(&mut self, bytes: &[u8]) {
        self.frames.drain(..self.at);
        self.at = 0;
        self.frames.extend_from_slice(bytes);
    }

    /// Decodes the received bytes and appends them to `plain`, until `plain` has `plain_bytes_max` bytes
    /// or more. Returns false if nothing could be decoded.
    ///
    /// # Errors
    /// [`CompressionError`]
    pub fn decode(
        &mut self,
        plain: &mut Vec<u8>,
        plain_bytes_max: usize,
        sequence: &mut Sequence,
    ) -> Result<bool, CompressionError> {
        let before = plain.len();
        while plain.len() < plain_bytes_max {
            let Some(frame) = &mut self.frame else {
                if !self.begin_frame(sequence)? {
                    break;
                }
                continue;
            };
            let come = (self.frames.len() - self.at).min(frame.left);
            let room = plain_bytes_max - plain.len();
            let taken = frame.decode(&self.frames[self.at..self.at + come], plain, room)?;
            self.at += taken;
            if frame.is_over() {
                self.frame = None;
            } else if come == 0 {
                break;
            }
        }
        if self.at == self.frames.len() {
            self.frames = Vec::new();
            self.at = 0;
        }
        Ok(plain.len() > before)
    }

    fn begin_frame(&mut self, sequence: &mut Sequence) -> Result<bool, CompressionError> {
        let Some(header) = self.frames[self.at..].first_chunk::<HEADER_BYTES>() else {
            return Ok(false);
        };
        let [a, b, c, number, d, e, f] = *header;
        sequence.came(number)?;
        self.at += HEADER_BYTES;
        let left = u32::from_le_bytes([a, b, c, 0]) as usize;
        let content_bytes = u32::from_le_bytes([d, e, f, 0]);
        let is_zlib = content_bytes > 0;
        self.frame = Some(Frame {
            left,
            content_bytes: if is_zlib { content_bytes } else { left as u32 },
            content_left: if is_zlib {
                content_bytes as usize
            } else {
                left
            },
            zlib: is_zlib.then(|| Box::new(Decompress::new(true))),
        });
        Ok(true)
    }
}

impl Frame {
    fn is_over(&self) -> bool {
        self.left == 0 && self.content_left == 0
    }

    /// Decodes part of `come` into at most `room` bytes. Returns how much of it was decoded.
    fn decode(
        &mut self,
        come: &[u8],
        plain: &mut Vec<u8>,
        room: usize,
    ) -> Result<usize, CompressionError> {
        let Some(zlib) = &mut self.zlib else {
            let taken = come.len().min(room);
            plain.extend_from_slice(&come[..taken]);
            self.left -= taken;
            self.content_left -= taken;
            return Ok(taken);
        };
        // One byte more than allowed, to see whether there is more, and to reach the end after it.
        let start = plain.len();
        plain.resize(start + room.min(self.content_left + 1), 0);
        let (in_before, out_before) = (zlib.total_in(), zlib.total_out());
        let status = zlib
            .decompress(come, &mut plain[start..], FlushDecompress::None)
            .map_err(|_| CompressionError::Data)?;
        let taken = (zlib.total_in() - in_before) as usize;
        let made = (zlib.total_out() - out_before) as usize;
        plain.truncate(start + made);
        let wrong = CompressionError::Length(self.content_bytes);
        self.content_left = self.content_left.checked_sub(made).ok_or(wrong)?;
        self.left -= taken;
        // The stream must end exactly with the frame and its content.
        let is_too_early = status == Status::StreamEnd && !self.is_over();
        let is_stuck = taken + made == 0 && (!come.is_empty() || self.left == 0) && !self.is_over();
        if is_too_early || is_stuck {
            return Err(wrong);
        }
        Ok(taken)
    }
}

/// The numbers of an exchange's frames, in both directions.
#[derive(Debug, Default)]
pub struct Sequence(u8);

impl Sequence {
    /// Starts at the answer to a command of one frame.
    pub fn answer() -> Self {
        Self(1)
    }

    /// Checks the number of a received frame. A client begins each exchange with 0.
    fn came(&mut self, number: u8) -> Result<(), CompressionError> {
        if number != self.0 && number != 0 {
            let expected = self.0;
            return Err(CompressionError::Sequence {
                came: number,
                expected,
            });
        }
        self.0 = number.wrapping_add(1);
        Ok(())
    }

    fn next(&mut self) -> u8 {
        let number = self.0;
        self.0 = number.wrapping_add(1);
        number
    }
}

thread_local! {
    /// Shared, because a compressor is large (300 KB) and each frame is independent.
    static COMPRESS: RefCell<Compress> = RefCell::new(Compress::new(Compression::fast(), true));
}

/// The frames for `plain`.
pub fn encode(plain: &[u8], sequence: &mut Sequence) -> Vec<u8> {
    let mut frames = Vec::new();
    for content in plain.chunks(CONTENT_BYTES_MAX) {
        let compressed = compress(content);
        let (body, content_bytes) = match &compressed {
            Some(compressed) => (compressed.as_slice(), content.len()),
            None => (content, 0),
        };
        frames.extend_from_slice(&(body.len() as u32).to_le_bytes()[..3]);
        frames.push(sequence.next());
        frames.extend_from_slice(&(content_bytes as u32).to_le_bytes()[..3]);
        frames.extend_from_slice(body);
    }
    frames
}

/// The compressed content, if that is shorter.
fn compress(content: &[u8]) -> Option<Vec<u8>> {
    if content.len() < COMPRESSED_BYTES_MIN {
        return None;
    }
    let mut compressed = Vec::with_capacity(content.len());
    COMPRESS.with_borrow_mut(|zlib| {
        zlib.reset();
        let status = zlib.compress_vec(content, &mut compressed, FlushCompress::Finish);
        matches!(status, Ok(Status::StreamEnd)).then_some(compressed)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn decode(pieces: &[&[u8]], step: usize) -> Result<Vec<u8>, CompressionError> {
        let (mut decoder, mut sequence) = (Decoder::default(), Sequence::default());
        let mut whole = Vec::new();
        for piece in pieces {
            decoder.take(piece);
            let mut plain = Vec::new();
            while decoder.decode(&mut plain, step, &mut sequence)? {
                assert!(plain.len() <= step);
                whole.append(&mut plain);
            }
        }
        Ok(whole)
    }

    #[test]
    fn a_frame_of_another_library_is_read() {
        // Made with Python's zlib: a COM_QUERY of 50 bytes.
        let frame = b"\x22\0\0\0\x32\0\0\x78\x9c\xd3\x63\x60\x60\x60\x2e\x4e\xcd\x49\x4d\
            \x2e\x51\x50\x32\x30\x34\x32\x36\x31\x35\x33\xb7\xb0\xc4\xcd\x52\x02\x00\x0c\xd1\x0a\x6c";
        let plain = decode(&[frame], 1000).unwrap();
        assert_eq!(plain.len(), 50);
        assert!(plain.starts_with(b"\x2e\0\0\0\x03select \"0123456789"));
    }

    #[test]
    fn what_is_no_frame_is_told() {
        let zlib = encode(&[b'a'; 100], &mut Sequence::default());
        let mut longer = zlib.clone();
        longer[4] += 1;
        assert_eq!(decode(&[&longer], 1000), Err(CompressionError::Length(101)));
        let mut shorter = zlib.clone();
        shorter[4] -= 1;
        assert_eq!(decode(&[&shorter], 1000), Err(CompressionError::Length(99)));
        let mut broken = zlib.clone();
        broken[7] = 0xff;
        assert_eq!(decode(&[&broken], 1000), Err(CompressionError::Data));
        let mut skipped = zlib;
        skipped[3] = 5;
        let error = CompressionError::Sequence {
            came: 5,
            expected: 0,
        };
        assert_eq!(decode(&[&skipped], 1000), Err(error));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_however_it_is_cut(
            parts in prop::collection::vec((any::<u8>(), 0..3000_usize, any::<bool>()), 0..5),
            cuts in prop::collection::vec(0..4000_usize, 0..8),
            step in 1..5000_usize,
        ) {
            let (mut frames, mut plain) = (Vec::new(), Vec::new());
            let mut sequence = Sequence::default();
            for (byte, length, is_random) in parts {
                let part: Vec<u8> = (0..length)
                    .map(|at| if is_random { ((at * at * 31) >> 3) as u8 ^ byte } else { byte })
                    .collect();
                frames.extend(encode(&part, &mut sequence));
                plain.extend(part);
            }
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(frames.len())).collect();
            cuts.extend([0, frames.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|ends| &frames[ends[0]..ends[1]]).collect();
            prop_assert_eq!(decode(&pieces, step).unwrap(), plain);
        }

        #[test]
        fn any_bytes_are_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), first in 0..40_u8) {
            let _ = decode(&[&bytes], 100);
            let _ = decode(&[&[first, 0, 0, 0, 60, 0, 0, 0x78, 0x9c], &bytes], 100);
        }
    }
}
