//! The state of a connection (RFC 9113): what the client's frames change, and what ours say.
//!
//! Bytes come in whole reads, however they are cut. What is to be sent is appended to an [`Output`].
//! Nothing here waits, reads a clock or touches a socket.

mod blocks;
mod bodies;
mod received;
mod sending;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::task::Waker;

use http::request::Parts;

use crate::error::{ConnectionError, Reason};
use crate::frame::{self, LARGEST};
use crate::hpack::{Decoder, Encoder};
use crate::output::Output;
use crate::streams::{Past, Streams, WINDOW_BYTES};
use blocks::Block;
pub use sending::Room;

/// What a graceful end asks for the answer to. A client's own pings are answered, whatever they are.
const FAREWELL: [u8; 8] = *b"shutdown";
/// The most streams reset for what the client did. With more, it is taken for an attack.
const FAULTS_MAX: u32 = 1024;

/// What a client may do.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Streams at a time.
    pub streams_max: u32,
    /// The bytes of a request's header list (RFC 9113 6.5.2).
    pub header_bytes_max: usize,
    /// Streams that it opens and resets in one read, before anybody could have answered.
    pub resets_max: u32,
}

/// How far the end of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    No,
    /// The client is told that there will be one, and asked for a sign that it knows (6.8).
    Announced,
    /// It knows. Streams that it opens from now on are not answered.
    Known,
}

/// The state of a connection.
pub struct Connection {
    limits: Limits,
    /// Bytes of a frame that is not whole yet, or of the preface.
    partial: Vec<u8>,
    has_preface: bool,
    has_settings: bool,
    /// A header block that has begun.
    block: Option<Block>,
    decoder: Decoder,
    encoder: Encoder,
    pub(crate) streams: Streams,
    /// The highest stream that the client has opened.
    last_stream: u32,
    /// Requests that nobody has taken yet, by the keys of their streams.
    requests: VecDeque<(usize, Parts)>,
    resets: u32,
    faults: u32,
    send_window: i64,
    receive_window: u32,
    /// What was read, and is not yet given back.
    read_bytes: u32,
    /// The client's settings: the window of a new stream.
    stream_window: u32,
    ending: Ending,
    /// The client has said that it ends.
    client_ends: bool,
    pub(crate) output: Output,
    /// The streams that wait for it, the first of them first.
    queue: VecDeque<u32>,
    /// Wakes whoever writes the output. `None`: it looks by itself, later.
    pub(crate) writer: Option<Waker>,
}

impl Connection {
    /// A connection whose client is about to send its preface. Our settings are to be written.
    pub fn new(limits: Limits) -> Self {
        let mut output = Output::default();
        let settings = [
            (frame::MAX_CONCURRENT_STREAMS, limits.streams_max),
            (
                frame::MAX_HEADER_LIST_SIZE,
                u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX),
            ),
        ];
        frame::write_settings(&settings, output.small());
        Self {
            limits,
            partial: Vec::new(),
            has_preface: false,
            has_settings: false,
            block: None,
            decoder: Decoder::default(),
            encoder: Encoder::default(),
            streams: Streams::default(),
            last_stream: 0,
            requests: VecDeque::new(),
            resets: 0,
            faults: 0,
            send_window: i64::from(WINDOW_BYTES),
            receive_window: WINDOW_BYTES,
            read_bytes: 0,
            stream_window: WINDOW_BYTES,
            ending: Ending::No,
            client_ends: false,
            output,
            queue: VecDeque::new(),
            writer: None,
        }
    }

    /// The next request, by the key of its stream.
    pub fn next_request(&mut self) -> Option<(usize, Parts)> {
        while let Some((key, head)) = self.requests.pop_front() {
            let stream = self.streams.get_mut(key);
            stream.is_accepted = true;
            if stream.over.is_none() {
                return Some((key, head));
            }
            self.streams.settle(key);
        }
        self.resets = 0;
        None
    }

    /// Tells the client that the connection ends when what is under way is answered.
    pub fn end_gracefully(&mut self) {
        if self.ending == Ending::No {
            self.ending = Ending::Announced;
            frame::write_go_away(LARGEST, Reason::NO_ERROR, self.output.small());
            frame::write_ping(0, FAREWELL, self.output.small());
        }
    }

    /// The client knows that the connection ends.
    fn end_after_these(&mut self) {
        if self.ending == Ending::Announced {
            self.ending = Ending::Known;
            frame::write_go_away(self.last_stream, Reason::NO_ERROR, self.output.small());
        }
    }

    /// Whether it has ended, but for what is to be written.
    pub fn has_ended(&self) -> bool {
        let may_end = self.ending == Ending::Known || self.client_ends;
        may_end && self.streams.len() == 0
    }

    /// Says why the connection cannot go on. Nothing that comes is read any more.
    pub fn fail(&mut self, error: ConnectionError) {
        frame::write_go_away(self.last_stream, error.reason, self.output.small());
        self.close();
    }

    /// The connection is gone: all its streams are over.
    pub fn close(&mut self) {
        for stream in self.streams.iter_mut() {
            stream.over.get_or_insert(Reason::CANCEL);
            stream.wake();
        }
    }

    /// Resets a stream that is not over, and tells the client.
    pub fn reset(&mut self, key: usize, reason: Reason) {
        let stream = self.streams.get_mut(key);
        if !stream.is_closed() {
            stream.over = Some(reason);
            stream.wake();
            let id = stream.id;
            frame::write_reset(id, reason, self.output.small());
            self.give_back_unread(key);
        }
        self.streams.settle(key);
    }

    /// Resets a stream for what the client did.
    fn fault(&mut self, id: u32, reason: Reason) -> Result<(), ConnectionError> {
        self.faults += 1;
        if self.faults > FAULTS_MAX {
            return Err(calm("too many streams at fault"));
        }
        let key = self.streams.find(id);
        match key.filter(|key| !self.streams.get(*key).is_closed()) {
            Some(key) => self.reset(key, reason),
            None => {
                frame::write_reset(id, reason, self.output.small());
                self.streams.remember(id, Past::Reset);
            }
        }
        Ok(())
    }

    /// Wakes whoever writes, if there is something to write.
    pub(crate) fn wake_writer(&mut self) {
        if !self.output.is_empty()
            && let Some(writer) = self.writer.take()
        {
            writer.wake();
        }
    }
}

fn protocol(why: &'static str) -> ConnectionError {
    ConnectionError {
        reason: Reason::PROTOCOL_ERROR,
        why,
    }
}

fn size(why: &'static str) -> ConnectionError {
    ConnectionError {
        reason: Reason::FRAME_SIZE_ERROR,
        why,
    }
}

fn flow(why: &'static str) -> ConnectionError {
    ConnectionError {
        reason: Reason::FLOW_CONTROL_ERROR,
        why,
    }
}

fn calm(why: &'static str) -> ConnectionError {
    ConnectionError {
        reason: Reason::ENHANCE_YOUR_CALM,
        why,
    }
}
