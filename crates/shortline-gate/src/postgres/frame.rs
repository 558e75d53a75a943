//! Finds the messages in a stream of bytes, in place. A message is a type byte, a length of four
//! bytes that includes itself, and a body (PostgreSQL's documentation, 55.2.1 and 55.7). The scanner
//! returns the first bytes of a body, as many as the caller wants. It only counts the rest.

/// Type byte and length.
pub const HEADER_BYTES: usize = 5;

/// Bytes that are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length is too short to include itself.
    #[error("message `{}` has length {length}, less than 4", char::from(*tag).escape_default())]
    Short {
        /// The type byte.
        tag: u8,
        /// The length in the header.
        length: u32,
    },
    /// The message is longer than allowed.
    #[error(
        "message `{}` has {body_bytes} bytes, more than {body_bytes_max}",
        char::from(*tag).escape_default()
    )]
    Long {
        /// The type byte.
        tag: u8,
        /// The length of its body, in bytes.
        body_bytes: u32,
        /// The limit, in bytes.
        body_bytes_max: u32,
    },
}

/// A message's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The type byte.
    pub tag: u8,
    /// The length of the body.
    pub body_bytes: u32,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// [`FrameError`]
    pub fn parse(bytes: [u8; HEADER_BYTES], body_bytes_max: u32) -> Result<Self, FrameError> {
        let [tag, length @ ..] = bytes;
        let length = u32::from_be_bytes(length);
        let Some(body_bytes) = length.checked_sub(4) else {
            return Err(FrameError::Short { tag, length });
        };
        if body_bytes > body_bytes_max {
            return Err(FrameError::Long {
                tag,
                body_bytes,
                body_bytes_max,
            });
        }
        Ok(Self { tag, body_bytes })
    }

    /// The header at the front of `bytes`, if it is complete.
    ///
    /// # Errors
    /// [`FrameError`]
    pub fn first_of(bytes: &[u8], body_bytes_max: u32) -> Result<Option<Self>, FrameError> {
        match bytes.first_chunk() {
            Some(header) => Self::parse(*header, body_bytes_max).map(Some),
            None => Ok(None),
        }
    }

    /// The whole message's length in bytes.
    pub fn message_bytes(self) -> usize {
        HEADER_BYTES + self.body_bytes as usize
    }
}

/// A message whose first bytes have come.
#[derive(Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The type byte.
    pub tag: u8,
    /// The length of the body.
    pub body_bytes: u32,
    /// The body's first bytes, as many as wanted, or all.
    pub start: &'a [u8],
}

/// Scans a stream that comes in pieces, cut anywhere.
#[derive(Debug)]
pub struct Scanner {
    body_bytes_max: u32,
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    tag: u8,
    body_bytes: u32,
    body_left: u32,
    /// The start of a body that comes in several pieces, and how many bytes of it are missing.
    start: Vec<u8>,
    start_left: usize,
}

impl Scanner {
    /// Starts at the beginning of a stream. A body may have `body_bytes_max` bytes.
    pub fn new(body_bytes_max: u32) -> Self {
        Self {
            body_bytes_max,
            header: [0; HEADER_BYTES],
            header_bytes: 0,
            tag: 0,
            body_bytes: 0,
            body_left: 0,
            start: Vec::new(),
            start_left: 0,
        }
    }

    /// Whether everything so far was complete messages.
    pub fn is_between_messages(&self) -> bool {
        self.header_bytes == 0 && self.body_left == 0
    }

    /// Moves `at` past the rest of the previous message. Returns true if its end is in `bytes`.
    pub fn skip_body(&mut self, bytes: &[u8], at: &mut usize) -> bool {
        if self.start_left > 0 {
            return false;
        }
        let skipped = (bytes.len() - *at).min(self.body_left as usize);
        *at += skipped;
        self.body_left -= skipped as u32;
        self.body_left == 0
    }

    /// Finds the next message, and moves `at` past its header and the first `wanted(tag)` bytes of its
    /// body. Returns None if these have not all come; `at` is then the end of `bytes`.
    ///
    /// # Errors
    /// [`FrameError`]. The stream cannot be read any further.
    pub fn next<'a>(
        &'a mut self,
        bytes: &'a [u8],
        at: &mut usize,
        wanted: impl FnOnce(u8) -> usize,
    ) -> Result<Option<Message<'a>>, FrameError> {
        if self.start_left > 0 {
            return Ok(self.gather(bytes, at));
        }
        if !self.skip_body(bytes, at) || !self.header(bytes, at)? {
            return Ok(None);
        }
        let start_bytes = wanted(self.tag).min(self.body_bytes as usize);
        if bytes.len() - *at < start_bytes {
            self.start = Vec::with_capacity(start_bytes);
            self.start_left = start_bytes;
            return Ok(self.gather(bytes, at));
        }
        let start = &bytes[*at..*at + start_bytes];
        *at += start_bytes;
        self.body_left -= start_bytes as u32;
        Ok(Some(self.message(start)))
    }

    /// Reads the header that begins or continues at `at`. Returns false if it does not end in `bytes`.
    fn header(&mut self, bytes: &[u8], at: &mut usize) -> Result<bool, FrameError> {
        let taken = (bytes.len() - *at).min(HEADER_BYTES - self.header_bytes);
        let come = &bytes[*at..*at + taken];
        self.header[self.header_bytes..self.header_bytes + taken].copy_from_slice(come);
        self.header_bytes += taken;
        *at += taken;
        if self.header_bytes < HEADER_BYTES {
            return Ok(false);
        }
        let header = Header::parse(self.header, self.body_bytes_max)?;
        self.header_bytes = 0;
        self.tag = header.tag;
        self.body_bytes = header.body_bytes;
        self.body_left = header.body_bytes;
        Ok(true)
    }

    /// Keeps the next part of a body's start.
    fn gather<'a>(&'a mut self, bytes: &[u8], at: &mut usize) -> Option<Message<'a>> {
        let taken = (bytes.len() - *at).min(self.start_left);
        self.start.extend_from_slice(&bytes[*at..*at + taken]);
        *at += taken;
        self.start_left -= taken;
        self.body_left -= taken as u32;
        if self.start_left > 0 {
            return None;
        }
        Some(self.message(&self.start))
    }

    fn message<'a>(&self, start: &'a [u8]) -> Message<'a> {
        Message {
            tag: self.tag,
            body_bytes: self.body_bytes,
            start,
        }
    }

    /// Frees the memory of a body's start whose message has been handled.
    pub fn forget(&mut self) {
        if self.start_left == 0 && self.start.capacity() > 0 {
            self.start = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// The tag, length and start of each message in `pieces`.
    fn found(pieces: &[&[u8]]) -> Result<Vec<(u8, u32, Vec<u8>)>, FrameError> {
        let mut scanner = Scanner::new(1000);
        let mut messages = Vec::new();
        for piece in pieces {
            let mut at = 0;
            while let Some(message) = scanner.next(piece, &mut at, |tag| usize::from(tag % 8))? {
                messages.push((message.tag, message.body_bytes, message.start.to_vec()));
            }
            assert_eq!(at, piece.len());
        }
        Ok(messages)
    }

    proptest! {
        #[test]
        fn messages_are_found_however_the_stream_is_cut(
            bodies in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)), 0..12),
            cuts in prop::collection::vec(0..400_usize, 0..12),
        ) {
            let mut stream = Vec::new();
            for (tag, body) in &bodies {
                stream.push(*tag);
                stream.extend((body.len() as u32 + 4).to_be_bytes());
                stream.extend(body);
            }
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|ends| &stream[ends[0]..ends[1]]).collect();
            let expected: Vec<(u8, u32, Vec<u8>)> = bodies
                .iter()
                .map(|(tag, body)| {
                    let start = body[..body.len().min(usize::from(tag % 8))].to_vec();
                    (*tag, body.len() as u32, start)
                })
                .collect();
            prop_assert_eq!(found(&pieces).unwrap(), expected);
        }

        #[test]
        fn any_bytes_are_messages_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Err(error) = found(&[&bytes]) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }

    #[test]
    fn lengths_that_cannot_be_are_told() {
        assert_eq!(
            found(&[b"Q\0\0\0\x03"]).unwrap_err().to_string(),
            "message `Q` has length 3, less than 4"
        );
        assert_eq!(
            found(&[b"Q\0\x01\0\0"]).unwrap_err().to_string(),
            "message `Q` has 65532 bytes, more than 1000"
        );
    }
}
