//! Header blocks (RFC 9113 4.3): requests and trailers.

use http::StatusCode;

use super::received::{Fault, parent, unpadded};
use super::{Connection, Ending, calm, protocol, size};
use crate::error::{ConnectionError, Reason};
use crate::frame::{self, Head};
use crate::request::{Fields, Unsound};
use crate::streams::{Past, Stream};

/// The most frames of one header block.
const BLOCK_FRAMES_MAX: u32 = 64;
/// The most bytes of a header block beyond those of the header list, for one that is refused: its client is told that its
/// fields are too large, and its connection goes on.
const BLOCK_BYTES_MORE: usize = 64 * 1024;

/// A header block that has begun (4.3).
#[derive(Debug)]
pub struct Block {
    pub stream: u32,
    ends_stream: bool,
    /// Its stream depends on itself (RFC 7540 5.3.1).
    is_own_parent: bool,
    frames: u32,
    bytes: Vec<u8>,
}

impl Connection {
    pub(super) fn headers(&mut self, head: &Head, payload: &[u8]) -> Result<(), Fault> {
        if head.stream.is_multiple_of(2) {
            return Err(protocol("a request on a stream that is not a client's").into());
        }
        let mut fields = unpadded(head, payload)?;
        let mut is_own_parent = false;
        if head.has(frame::HAS_PRIORITY) {
            let (priority, after) = fields
                .split_first_chunk::<5>()
                .ok_or(size("a priority that is cut short"))?;
            is_own_parent = parent(priority) == head.stream;
            fields = after;
        }
        let block = Block {
            stream: head.stream,
            ends_stream: head.has(frame::END_STREAM),
            is_own_parent,
            frames: 1,
            bytes: Vec::new(),
        };
        if head.has(frame::END_HEADERS) {
            return self.block(&block, fields);
        }
        self.block = Some(Block {
            bytes: fields.to_vec(),
            ..block
        });
        Ok(())
    }

    pub(super) fn continuation(&mut self, head: &Head, payload: &[u8]) -> Result<(), Fault> {
        let Some(mut block) = self.block.take() else {
            return Err(protocol("a header block that has not begun").into());
        };
        block.frames += 1;
        block.bytes.extend_from_slice(payload);
        let bytes_max = self.limits.header_bytes_max + BLOCK_BYTES_MORE;
        if block.frames > BLOCK_FRAMES_MAX || block.bytes.len() > bytes_max {
            return Err(calm("a header block without an end").into());
        }
        if head.has(frame::END_HEADERS) {
            let bytes = std::mem::take(&mut block.bytes);
            return self.block(&block, &bytes);
        }
        self.block = Some(block);
        Ok(())
    }

    /// A header block is whole.
    fn block(&mut self, block: &Block, bytes: &[u8]) -> Result<(), Fault> {
        let mut fields = Fields::default();
        let list_bytes_max = self.limits.header_bytes_max;
        let decoded = self.decoder.decode(bytes, |field, bytes| {
            fields.add(field, bytes, list_bytes_max)
        });
        if decoded.is_err() {
            let reason = Reason::COMPRESSION_ERROR;
            let why = "bytes that are no header block";
            return Err(ConnectionError { reason, why }.into());
        }
        let id = block.stream;
        if id <= self.last_stream {
            if let Some(key) = self.streams.find(id) {
                return self.trailers(key, block, fields);
            }
            return match self.streams.past(id) {
                Past::Reset => Ok(()),
                Past::Cancelled => Err(Fault::Stream(id, Reason::STREAM_CLOSED)),
                Past::Ended => Err(ConnectionError {
                    reason: Reason::STREAM_CLOSED,
                    why: "a request on a stream that has ended",
                }
                .into()),
                Past::Unknown => Err(protocol("a stream below one that is open").into()),
            };
        }
        self.last_stream = id;
        if self.ending == Ending::Known {
            // 6.8: the client knows that it is not answered.
            self.streams.remember(id, Past::Reset);
            return Ok(());
        }
        self.request(block, fields)
    }

    fn request(&mut self, block: &Block, fields: Fields) -> Result<(), Fault> {
        let fault = |reason| Err(Fault::Stream(block.stream, reason));
        let streams_max = self.limits.streams_max as usize;
        if block.is_own_parent {
            return fault(Reason::PROTOCOL_ERROR);
        }
        // Those that are over and still held are not the client's any more. But they are not without number, either.
        if self.streams.open() >= streams_max || self.streams.len() >= 2 * streams_max + 64 {
            return fault(Reason::REFUSED_STREAM);
        }
        match fields.check() {
            Ok(()) => {}
            Err(Unsound::Malformed) => return fault(Reason::PROTOCOL_ERROR),
            Err(Unsound::TooLarge) => {
                self.refuse(block);
                return Ok(());
            }
        }
        let Ok(left_bytes) = fields.content_length() else {
            return fault(Reason::PROTOCOL_ERROR);
        };
        let Some(head) = fields.into_head() else {
            return fault(Reason::PROTOCOL_ERROR);
        };
        if block.ends_stream && left_bytes.is_some_and(|left| left > 0) {
            return fault(Reason::PROTOCOL_ERROR);
        }
        let window = i64::from(self.stream_window);
        let stream = Stream::new(block.stream, window, left_bytes, block.ends_stream);
        let key = self.streams.insert(stream);
        self.requests.push_back((key, head));
        Ok(())
    }

    /// Answers a request whose fields are too large, and takes no more of it.
    fn refuse(&mut self, block: &Block) {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        self.write_head(block.stream, status, None, None, true);
        if !block.ends_stream {
            frame::write_reset(block.stream, Reason::NO_ERROR, self.output.small());
        }
        self.streams.remember(block.stream, Past::Reset);
    }

    fn trailers(&mut self, key: usize, block: &Block, fields: Fields) -> Result<(), Fault> {
        let stream = self.streams.get(key);
        if stream.received_all || stream.is_cancelled {
            return Err(Fault::Stream(block.stream, Reason::STREAM_CLOSED));
        }
        if stream.over.is_some() {
            return Ok(());
        }
        let trailers = match fields.check() {
            Ok(()) if block.ends_stream => fields.into_trailers(),
            Ok(()) | Err(_) => None,
        };
        match trailers {
            Some(trailers) => self.ends(key, Some(trailers)),
            None => Err(Fault::Stream(block.stream, Reason::PROTOCOL_ERROR)),
        }
    }
}
