//! Pseudo-header fields in the trailers of HTTP/2 are malformed (RFC 9113 8.1, 8.3), and a stream
//! error.
//!
//! h2 decodes them and drops them silently. So what h2 reads passes through here. Frames are told
//! apart (RFC 9113 4.1), and the names in header blocks are checked ([`header_block`]). A second
//! block on a stream is its trailers. Bytes pass unchanged, and nothing is held back. A stream with
//! malformed trailers is [`Condemned`] before h2 has them. The code that reads its body or answers
//! it checks for that. If the bytes are not a frame or a header block, h2 ends the connection.

pub mod header_block;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, ReadBuf};

use crate::write_through::write_through;
use header_block::HeaderBlocks;

/// What a client sends before its first frame (RFC 9113 3.4).
const PREFACE_BYTES: u32 = 24;
/// Frame types and flags (RFC 9113 6.2, 6.10).
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;
const PRIORITY_BYTES: u32 = 5;
/// The most condemned streams that are not yet over. With more, the connection ends.
const CONDEMNED_MAX: usize = 256;

/// The streams whose trailers are malformed.
#[derive(Debug, Default)]
pub struct Condemned(Mutex<Vec<u32>>);

/// A client's connection as h2 reads it.
pub struct Watched<S> {
    stream: S,
    frames: Frames,
    condemned: Arc<Condemned>,
}

/// The state of a connection's frames, from the client's preface on.
#[derive(Default)]
pub struct Frames {
    place: Place,
    blocks: HeaderBlocks,
    /// The stream of the current block, and whether it had a block before.
    stream: u32,
    is_trailers: bool,
    ends_block: bool,
    /// The highest stream that has been opened.
    stream_max: u32,
}

/// Where in a frame the next byte is.
enum Place {
    /// In the frame's header, with the bytes of it read so far.
    Head([u8; 9], usize),
    /// At the length of the padding, with the bytes of payload and priority that follow.
    Padding { payload: u32, priority: u32 },
    /// In the rest of the payload: bytes to skip, bytes of a header block, and bytes to skip again.
    Payload { lead: u32, block: u32, tail: u32 },
}

impl Condemned {
    /// Whether a stream's trailers are malformed.
    pub fn has(&self, stream: u32) -> bool {
        self.0.lock().contains(&stream)
    }

    /// Drops a stream that is over.
    pub fn forget(&self, stream: u32) {
        self.0.lock().retain(|other| *other != stream);
    }

    fn add(&self, stream: u32) -> io::Result<()> {
        let mut streams = self.0.lock();
        if streams.len() >= CONDEMNED_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        streams.push(stream);
        Ok(())
    }
}

impl<S> Watched<S> {
    /// Reads `stream`, from the client's preface on.
    pub fn new(stream: S, condemned: Arc<Condemned>) -> Self {
        Self {
            stream,
            frames: Frames::default(),
            condemned,
        }
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::Payload {
            lead: PREFACE_BYTES,
            block: 0,
            tail: 0,
        }
    }
}

impl Frames {
    /// Reads on, and calls `tell` for each stream with a pseudo-header field in its trailers.
    ///
    /// # Errors
    /// Those of `tell`.
    pub fn read(
        &mut self,
        mut bytes: &[u8],
        mut tell: impl FnMut(u32) -> io::Result<()>,
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            let taken = match &mut self.place {
                Place::Head(head, got) => {
                    let taken = bytes.len().min(head.len() - *got);
                    head[*got..*got + taken].copy_from_slice(&bytes[..taken]);
                    *got += taken;
                    taken
                }
                Place::Padding { payload, priority } => {
                    let padding = u32::from(bytes[0]);
                    self.place = Place::Payload {
                        lead: *priority,
                        block: payload.saturating_sub(1 + *priority + padding),
                        tail: padding,
                    };
                    1
                }
                Place::Payload { lead, block, tail } => {
                    if *lead > 0 {
                        pass(lead, bytes)
                    } else if *block > 0 {
                        let taken = pass(block, bytes);
                        self.blocks.read(&bytes[..taken]);
                        taken
                    } else {
                        pass(tail, bytes)
                    }
                }
            };
            bytes = &bytes[taken..];
            self.go_on(&mut tell)?;
        }
        Ok(())
    }

    /// Moves on to what follows when a part of a frame has ended.
    fn go_on(&mut self, tell: &mut impl FnMut(u32) -> io::Result<()>) -> io::Result<()> {
        if let Place::Head(head, 9) = self.place {
            self.begin(head);
        }
        let Place::Payload { lead, block, tail } = self.place else {
            return Ok(());
        };
        if (lead, block, tail) != (0, 0, 0) {
            return Ok(());
        }
        self.place = Place::Head([0; 9], 0);
        if std::mem::take(&mut self.ends_block) && self.blocks.end() && self.is_trailers {
            tell(self.stream)?;
        }
        Ok(())
    }

    /// Begins the payload of a frame.
    fn begin(&mut self, head: [u8; 9]) {
        let [high, middle, low, kind, flags, stream @ ..] = head;
        let payload = u32::from_be_bytes([0, high, middle, low]);
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        let has = |flag| flags & flag != 0;
        if kind == HEADERS {
            self.stream = stream;
            self.is_trailers = stream <= self.stream_max;
            self.stream_max = self.stream_max.max(stream);
        }
        let of_block = kind == HEADERS || kind == CONTINUATION;
        self.ends_block = of_block && has(END_HEADERS);
        let priority = if kind == HEADERS && has(PRIORITY) {
            PRIORITY_BYTES
        } else {
            0
        };
        self.place = if kind == HEADERS && has(PADDED) && payload > 0 {
            Place::Padding { payload, priority }
        } else if of_block {
            Place::Payload {
                lead: priority.min(payload),
                block: payload.saturating_sub(priority),
                tail: 0,
            }
        } else {
            Place::Payload {
                lead: payload,
                block: 0,
                tail: 0,
            }
        };
    }
}

/// Takes what is available of a part of a frame.
fn pass(left: &mut u32, bytes: &[u8]) -> usize {
    let taken = bytes.len().min(*left as usize);
    *left -= taken as u32;
    taken
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let start = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        let condemned = &this.condemned;
        let read = &buffer.filled()[start..];
        Poll::Ready(this.frames.read(read, |stream| condemned.add(stream)))
    }
}

write_through!(Watched<S>);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        [head, payload.to_vec()].concat()
    }

    /// Preface, settings, and two requests. The trailers of one are fine, those of the other are
    /// not. Both come in pieces, with padding and a priority.
    fn conversation() -> Vec<u8> {
        let request = b"\x83\x86\x84\x41\x01a";
        let padded = [&[3, 0, 0, 0, 0, 9][..], b"\x00\x01a\x01b", &[0x84; 3]].concat();
        [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(4, 0, 0, &[0; 6]),
            frame(HEADERS, END_HEADERS, 1, request),
            frame(HEADERS, 0, 3, &request[..2]),
            frame(CONTINUATION, END_HEADERS, 3, &request[2..]),
            frame(0, 0, 1, b"\x84\x84"),
            frame(HEADERS, 1 | PADDED | PRIORITY | END_HEADERS, 1, &padded),
            frame(HEADERS, 1, 3, b"\x00\x01"),
            frame(CONTINUATION, 0, 3, b"a\x01b"),
            // The host that the requests added to the table.
            frame(CONTINUATION, END_HEADERS, 3, b"\xbe"),
            frame(HEADERS, END_HEADERS, 5, request),
        ]
        .concat()
    }

    proptest! {
        #[test]
        fn trailers_are_told_however_they_come(piece in 1usize..200) {
            let mut frames = Frames::default();
            let mut told = Vec::new();
            for bytes in conversation().chunks(piece) {
                let tell = |stream| {
                    told.push(stream);
                    Ok(())
                };
                frames.read(bytes, tell).unwrap();
            }
            prop_assert_eq!(told, [3]);
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut frames = Frames::default();
            frames.read(&conversation(), |_| Ok(())).unwrap();
            frames.read(&bytes, |_| Ok(())).unwrap();
        }
    }

    #[test]
    fn the_condemned_are_not_kept_without_bound() {
        let condemned = Condemned::default();
        for stream in 0..CONDEMNED_MAX as u32 {
            condemned.add(stream).unwrap();
        }
        assert!(condemned.add(1000).is_err() && condemned.has(7));
        condemned.forget(7);
        assert!(!condemned.has(7) && condemned.add(1000).is_ok());
    }
}
