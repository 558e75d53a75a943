//! What we send on a stream.

use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};

use super::Connection;
use crate::error::StreamOver;
use crate::frame::{self, HEAD_BYTES, Head, PAYLOAD_BYTES_MAX};

/// As many bytes may wait for the socket. Who has more to send asks again when some have left.
const OUTPUT_BYTES_MAX: usize = 128 * 1024;

/// How much data a stream may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// So many bytes.
    Bytes(u32),
    /// None before its client opens a window.
    NoWindow,
    /// None before some of the output has left.
    NoOutput,
}

impl Connection {
    /// Sends a response's head: these fields without those of a connection, and a date if none is among them. An interim
    /// response has no fields, and does not end the stream.
    pub fn send_head(
        &mut self,
        key: usize,
        status: StatusCode,
        fields: Option<&HeaderMap>,
        date: Option<&dyn Fn() -> HeaderValue>,
        is_end: bool,
    ) -> Result<(), StreamOver> {
        let id = self.sendable(key)?;
        self.write_head(id, status, fields, date, is_end);
        self.sent(key, is_end);
        Ok(())
    }

    pub(super) fn write_head(
        &mut self,
        id: u32,
        status: StatusCode,
        fields: Option<&HeaderMap>,
        date: Option<&dyn Fn() -> HeaderValue>,
        is_end: bool,
    ) {
        let begin = self.begin_block();
        let (encoder, into) = (&mut self.encoder, self.output.small());
        encoder.begin(into);
        encoder.status(status, into);
        let mut says_date = false;
        for (name, value) in fields.into_iter().flatten() {
            says_date |= name == header::DATE;
            if name != header::CONNECTION {
                encoder.field(name, value, into);
            }
        }
        if let Some(date) = date.filter(|_| !says_date) {
            encoder.field(&header::DATE, &date(), into);
        }
        self.end_block(begin, id, is_end);
    }

    /// Sends trailers, the end of a stream.
    pub fn send_trailers(&mut self, key: usize, fields: &HeaderMap) -> Result<(), StreamOver> {
        let id = self.sendable(key)?;
        let begin = self.begin_block();
        let (encoder, into) = (&mut self.encoder, self.output.small());
        encoder.begin(into);
        for (name, value) in fields {
            encoder.field(name, value, into);
        }
        self.end_block(begin, id, true);
        self.sent(key, true);
        Ok(())
    }

    /// How much data may be sent.
    pub fn room(&self, key: usize) -> Result<Room, StreamOver> {
        self.sendable(key)?;
        let window = self.streams.get(key).send_window.min(self.send_window);
        Ok(match u32::try_from(window) {
            Err(_) | Ok(0) => Room::NoWindow,
            Ok(_) if self.output.len() >= OUTPUT_BYTES_MAX => Room::NoOutput,
            Ok(bytes) => Room::Bytes(bytes),
        })
    }

    /// The stream waits for the output, behind those that wait already.
    pub fn queue(&mut self, key: usize) {
        let stream = self.streams.get_mut(key);
        if !std::mem::replace(&mut stream.is_queued, true) {
            self.queue.push_back(stream.id);
        }
    }

    /// Wakes the next stream that waits for the output, if there is room. Whether it did.
    pub fn wake_next(&mut self) -> bool {
        while self.output.len() < OUTPUT_BYTES_MAX
            && let Some(id) = self.queue.pop_front()
        {
            if let Some(key) = self.streams.find(id) {
                let stream = self.streams.get_mut(key);
                stream.is_queued = false;
                stream.wake();
                return true;
            }
        }
        false
    }

    /// Sends data, for which there must be room.
    pub fn send_data(
        &mut self,
        key: usize,
        mut data: Bytes,
        is_end: bool,
    ) -> Result<(), StreamOver> {
        let id = self.sendable(key)?;
        let bytes = data.len() as i64;
        self.send_window -= bytes;
        self.streams.get_mut(key).send_window -= bytes;
        loop {
            let length = data.len().min(PAYLOAD_BYTES_MAX);
            let piece = data.split_to(length);
            let is_last = data.is_empty();
            let head = Head {
                length,
                kind: frame::DATA,
                flags: if is_last && is_end {
                    frame::END_STREAM
                } else {
                    0
                },
                stream: id,
            };
            head.write(self.output.small());
            self.output.push(piece);
            if is_last {
                break;
            }
        }
        self.sent(key, is_end);
        Ok(())
    }

    fn sendable(&self, key: usize) -> Result<u32, StreamOver> {
        let stream = self.streams.get(key);
        stream
            .over
            .map_or(Ok(stream.id), |reason| Err(StreamOver(reason)))
    }

    fn sent(&mut self, key: usize, is_end: bool) {
        if is_end {
            self.streams.get_mut(key).sent_all = true;
            self.streams.settle(key);
        }
    }

    /// Leaves room for the head of a frame, and returns where.
    fn begin_block(&mut self) -> usize {
        let into = self.output.small();
        let begin = into.len();
        into.extend_from_slice(&[0; HEAD_BYTES]);
        begin
    }

    /// Writes the head of the frame whose block is now behind it, or of as many as it takes.
    fn end_block(&mut self, begin: usize, stream: u32, is_end: bool) {
        let into = self.output.small();
        let block_bytes = into.len() - begin - HEAD_BYTES;
        let mut head = Head {
            length: block_bytes.min(PAYLOAD_BYTES_MAX),
            kind: frame::HEADERS,
            flags: if is_end { frame::END_STREAM } else { 0 },
            stream,
        };
        if block_bytes <= PAYLOAD_BYTES_MAX {
            head.flags |= frame::END_HEADERS;
            into[begin..begin + HEAD_BYTES].copy_from_slice(&head.bytes());
            return;
        }
        let block = into.split_off(begin + HEAD_BYTES);
        into.truncate(begin);
        let mut pieces = block.chunks(PAYLOAD_BYTES_MAX).peekable();
        while let Some(piece) = pieces.next() {
            head.length = piece.len();
            if pieces.peek().is_none() {
                head.flags |= frame::END_HEADERS;
            }
            head.write(into);
            into.extend_from_slice(piece);
            head.kind = frame::CONTINUATION;
            head.flags = 0;
        }
    }
}
