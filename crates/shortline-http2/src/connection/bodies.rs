//! The bodies of requests, and the windows that bound them (RFC 9113 5.2, 6.1, 6.9).

use http::header::HeaderMap;

use super::received::{Fault, unpadded};
use super::{Connection, flow};
use crate::error::Reason;
use crate::frame::{self, Head};
use crate::streams::{GIVE_BACK_BYTES, Past, Stream};

impl Connection {
    pub(super) fn data(&mut self, head: &Head, payload: &[u8]) -> Result<(), Fault> {
        let data = unpadded(head, payload)?;
        let all_bytes = payload.len() as u32;
        let left = self.receive_window.checked_sub(all_bytes);
        self.receive_window = left.ok_or(flow("more data than the connection's window"))?;
        let Some(key) = self.streams.find(head.stream) else {
            self.is_not_idle(head.stream)?;
            self.read(all_bytes);
            return match self.streams.past(head.stream) {
                Past::Reset => Ok(()),
                Past::Cancelled | Past::Ended | Past::Unknown => {
                    Err(Fault::Stream(head.stream, Reason::STREAM_CLOSED))
                }
            };
        };
        let stream = self.streams.get_mut(key);
        if stream.over.is_some() && !stream.is_cancelled {
            self.read(all_bytes);
            return Ok(());
        }
        if let Some(reason) = refusal(stream, data.len() as u64, all_bytes) {
            self.read(all_bytes);
            return Err(Fault::Stream(head.stream, reason));
        }
        stream.incoming.window -= all_bytes;
        if let Some(left) = &mut stream.incoming.left_bytes {
            *left -= data.len() as u64;
        }
        if stream.has_body || !stream.is_accepted {
            if !data.is_empty() {
                stream.incoming.push(data);
            }
            // Padding counts as read.
            let padding_bytes = all_bytes - data.len() as u32;
            self.read(padding_bytes);
            self.read_of(key, padding_bytes);
        } else {
            // Nobody wants more of it: the connection's window is given back, and the stream's is not.
            self.read(all_bytes);
        }
        if head.has(frame::END_STREAM) {
            self.ends(key, None)?;
        } else if let Some(waker) = self.streams.get_mut(key).incoming.waiting.take() {
            waker.wake();
        }
        Ok(())
    }

    /// The client's half of a stream ends.
    pub(super) fn ends(&mut self, key: usize, trailers: Option<HeaderMap>) -> Result<(), Fault> {
        let stream = self.streams.get_mut(key);
        if stream.incoming.left_bytes.is_some_and(|left| left > 0) {
            return Err(Fault::Stream(stream.id, Reason::PROTOCOL_ERROR));
        }
        stream.received_all = true;
        stream.incoming.trailers = trailers;
        if let Some(waker) = stream.incoming.waiting.take() {
            waker.wake();
        }
        self.streams.settle(key);
        Ok(())
    }

    /// So many bytes of the connection's window are used no more.
    pub(crate) fn read(&mut self, bytes: u32) {
        self.read_bytes += bytes;
        if self.read_bytes >= GIVE_BACK_BYTES {
            let more = std::mem::take(&mut self.read_bytes);
            self.receive_window += more;
            frame::write_window_update(0, more, self.output.small());
        }
    }

    /// So many bytes of a stream's window are used no more.
    pub(crate) fn read_of(&mut self, key: usize, bytes: u32) {
        let stream = self.streams.get_mut(key);
        stream.incoming.read_bytes += bytes;
        if stream.incoming.read_bytes >= GIVE_BACK_BYTES && !stream.received_all {
            let more = std::mem::take(&mut stream.incoming.read_bytes);
            stream.incoming.window += more;
            let id = stream.id;
            frame::write_window_update(id, more, self.output.small());
        }
    }

    /// What nobody will read does not take the connection's window from others.
    pub(crate) fn give_back_unread(&mut self, key: usize) {
        let unread = std::mem::take(&mut self.streams.get_mut(key).incoming.data);
        self.read(unread.iter().map(|data| data.len() as u32).sum());
    }
}

/// Why a stream does not take so much data, of so many bytes with the padding.
fn refusal(stream: &Stream, data_bytes: u64, all_bytes: u32) -> Option<Reason> {
    let is_closed = stream.received_all || stream.is_cancelled;
    let left_bytes = stream.incoming.left_bytes;
    if is_closed {
        Some(Reason::STREAM_CLOSED)
    } else if stream.incoming.window < all_bytes {
        Some(Reason::FLOW_CONTROL_ERROR)
    } else if left_bytes.is_some_and(|left| left < data_bytes) {
        Some(Reason::PROTOCOL_ERROR)
    } else {
        None
    }
}
