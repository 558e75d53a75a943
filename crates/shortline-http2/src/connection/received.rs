//! What the client's frames do.

use super::blocks::Block;
use super::{Connection, FAREWELL, calm, flow, protocol, size};
use crate::error::{ConnectionError, Reason};
use crate::frame::{self, HEAD_BYTES, Head, LARGEST, PAYLOAD_BYTES_MAX};

/// What a client sends first (3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What is wrong with a frame.
pub enum Fault {
    /// The connection cannot go on.
    Connection(ConnectionError),
    /// The stream is reset.
    Stream(u32, Reason),
}

impl From<ConnectionError> for Fault {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error)
    }
}

impl Connection {
    /// Takes what has been read.
    ///
    /// # Errors
    /// The client has done what ends the connection. [`Connection::fail`] tells it.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        if self.partial.is_empty() {
            let taken = self.take(bytes)?;
            self.partial = bytes[taken..].to_vec();
        } else {
            let mut all = std::mem::take(&mut self.partial);
            all.extend_from_slice(bytes);
            let taken = self.take(&all)?;
            if taken < all.len() {
                all.drain(..taken);
                self.partial = all;
            }
        }
        Ok(())
    }

    /// Takes the frames that are whole, and returns the bytes they have.
    fn take(&mut self, bytes: &[u8]) -> Result<usize, ConnectionError> {
        let mut rest = bytes;
        if !self.has_preface {
            let begun = PREFACE.len().min(rest.len());
            if rest[..begun] != PREFACE[..begun] {
                return Err(protocol("no preface"));
            }
            if begun < PREFACE.len() {
                return Ok(0);
            }
            self.has_preface = true;
            rest = &rest[begun..];
        }
        while let Some((head, after)) = rest.split_first_chunk::<HEAD_BYTES>() {
            let head = Head::read(head);
            if head.length > PAYLOAD_BYTES_MAX {
                return Err(size("a frame of more than 16384 bytes"));
            }
            let Some((payload, after)) = after.split_at_checked(head.length) else {
                break;
            };
            rest = after;
            match self.frame(&head, payload) {
                Ok(()) => {}
                Err(Fault::Stream(id, reason)) => self.fault(id, reason)?,
                Err(Fault::Connection(error)) => return Err(error),
            }
        }
        Ok(bytes.len() - rest.len())
    }

    fn frame(&mut self, head: &Head, payload: &[u8]) -> Result<(), Fault> {
        if !self.has_settings && head.kind != frame::SETTINGS {
            return Err(protocol("no settings behind the preface").into());
        }
        let continues =
            |block: &Block| head.kind == frame::CONTINUATION && head.stream == block.stream;
        if !self.block.as_ref().is_none_or(continues) {
            return Err(protocol("a frame inside a header block").into());
        }
        match head.kind {
            frame::DATA => self.data(head, payload),
            frame::HEADERS => self.headers(head, payload),
            frame::CONTINUATION => self.continuation(head, payload),
            frame::PRIORITY => self.priority(head, payload),
            frame::RST_STREAM => self.rst_stream(head, payload),
            frame::SETTINGS => self.settings(head, payload),
            frame::PING => self.ping(head, payload),
            frame::GOAWAY => self.go_away(head, payload),
            frame::WINDOW_UPDATE => self.window_update(head, payload),
            frame::PUSH_PROMISE => Err(protocol("a push of a client").into()),
            // 4.1: of types that are not known.
            _ => Ok(()),
        }
    }

    /// Priorities are not taken into account (RFC 9113 5.3.2), but they must be sound.
    fn priority(&mut self, head: &Head, payload: &[u8]) -> Result<(), Fault> {
        if head.stream == 0 {
            return Err(protocol("a priority of the connection").into());
        }
        let Ok(priority) = payload.try_into() else {
            return Err(Fault::Stream(head.stream, Reason::FRAME_SIZE_ERROR));
        };
        if parent(priority) == head.stream {
            return Err(Fault::Stream(head.stream, Reason::PROTOCOL_ERROR));
        }
        Ok(())
    }

    fn rst_stream(&mut self, head: &Head, payload: &[u8]) -> Result<(), Fault> {
        let code = four(payload).ok_or(size("a reset without its four bytes"))?;
        let Some(key) = self.streams.find(head.stream) else {
            return Ok(self.is_not_idle(head.stream)?);
        };
        let stream = self.streams.get_mut(key);
        if stream.over.is_none() {
            stream.over = Some(Reason::new(code));
            stream.is_cancelled = true;
            stream.wake();
        }
        if !stream.is_accepted {
            self.resets += 1;
            if self.resets > self.limits.resets_max {
                return Err(calm("too many requests that are reset at once").into());
            }
        }
        self.give_back_unread(key);
        self.streams.settle(key);
        Ok(())
    }

    fn settings(&mut self, head: &Head, payload: &[u8]) -> Result<(), Fault> {
        if head.stream != 0 {
            return Err(protocol("settings of a stream").into());
        }
        if head.has(frame::ACK) {
            if !payload.is_empty() {
                return Err(size("an acknowledgement with settings").into());
            }
            return Ok(());
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(size("a setting that is cut short").into());
        }
        self.has_settings = true;
        for [high, low, value @ ..] in settings {
            let setting = u16::from_be_bytes([*high, *low]);
            self.setting(setting, u32::from_be_bytes(*value))?;
        }
        frame::write_settings_ack(self.output.small());
        Ok(())
    }

    fn setting(&mut self, setting: u16, value: u32) -> Result<(), ConnectionError> {
        match setting {
            frame::HEADER_TABLE_SIZE => self.encoder.allow(value as usize),
            frame::ENABLE_PUSH if value > 1 => return Err(protocol("a push that is not 0 or 1")),
            frame::INITIAL_WINDOW_SIZE => {
                if value > LARGEST {
                    return Err(flow("a window of more than 2^31-1 bytes"));
                }
                let more = i64::from(value) - i64::from(self.stream_window);
                self.stream_window = value;
                for stream in self.streams.iter_mut() {
                    stream.send_window += more;
                    if stream.send_window > i64::from(LARGEST) {
                        return Err(flow("a window of more than 2^31-1 bytes"));
                    }
                }
            }
            // Ours are never longer than the shortest allowed.
            frame::MAX_FRAME_SIZE if !(16_384..1 << 24).contains(&value) => {
                return Err(protocol("a frame size that is not 16384 to 2^24-1"));
            }
            _ => {}
        }
        Ok(())
    }

    fn ping(&mut self, head: &Head, payload: &[u8]) -> Result<(), Fault> {
        if head.stream != 0 {
            return Err(protocol("a ping of a stream").into());
        }
        let Ok(payload) = payload.try_into() else {
            return Err(size("a ping without its eight bytes").into());
        };
        if !head.has(frame::ACK) {
            frame::write_ping(frame::ACK, payload, self.output.small());
        } else if payload == FAREWELL {
            self.end_after_these();
        }
        Ok(())
    }

    fn go_away(&mut self, head: &Head, payload: &[u8]) -> Result<(), Fault> {
        if head.stream != 0 {
            return Err(protocol("the end of a stream as that of the connection").into());
        }
        if payload.len() < 8 {
            return Err(size("an end that is cut short").into());
        }
        self.client_ends = true;
        Ok(())
    }

    fn window_update(&mut self, head: &Head, payload: &[u8]) -> Result<(), Fault> {
        let more = four(payload).ok_or(size("more window without its four bytes"))? & LARGEST;
        if head.stream == 0 {
            if more == 0 {
                return Err(protocol("no more window").into());
            }
            self.send_window += i64::from(more);
            if self.send_window > i64::from(LARGEST) {
                return Err(flow("a window of more than 2^31-1 bytes").into());
            }
            return Ok(());
        }
        let Some(key) = self.streams.find(head.stream) else {
            return Ok(self.is_not_idle(head.stream)?);
        };
        if more == 0 {
            return Err(Fault::Stream(head.stream, Reason::PROTOCOL_ERROR));
        }
        let stream = self.streams.get_mut(key);
        stream.send_window += i64::from(more);
        if stream.send_window > i64::from(LARGEST) {
            return Err(Fault::Stream(head.stream, Reason::FLOW_CONTROL_ERROR));
        }
        Ok(())
    }

    /// A stream that nobody has opened gets nothing but a request (5.1).
    pub(super) fn is_not_idle(&self, id: u32) -> Result<(), ConnectionError> {
        if id == 0 || id > self.last_stream {
            return Err(protocol("a frame of a stream that is not open"));
        }
        Ok(())
    }
}

fn four(payload: &[u8]) -> Option<u32> {
    payload.try_into().ok().map(u32::from_be_bytes)
}

/// A frame's payload without its padding (6.1, 6.2).
pub fn unpadded<'a>(head: &Head, payload: &'a [u8]) -> Result<&'a [u8], ConnectionError> {
    if !head.has(frame::PADDED) {
        return Ok(payload);
    }
    let (padding, rest) = payload
        .split_first()
        .ok_or(size("padding that is cut short"))?;
    let length = rest.len().checked_sub(usize::from(*padding));
    let length = length.ok_or(protocol("more padding than its frame has"))?;
    Ok(&rest[..length])
}

/// The stream that a priority depends on (RFC 7540 6.3).
pub fn parent([a, b, c, d, _]: &[u8; 5]) -> u32 {
    u32::from_be_bytes([*a, *b, *c, *d]) & LARGEST
}
