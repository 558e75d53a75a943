//! The streams of a connection (RFC 9113 5.1): those that are open, those that somebody here still holds, and
//! the last that are over.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;
use http::HeaderMap;
use slab::Slab;

use crate::error::Reason;

/// The window of a new stream, and of the connection, for what the client sends (6.9.2).
pub const WINDOW_BYTES: u32 = 65_535;
/// As many bytes are given back at once.
pub const GIVE_BACK_BYTES: u32 = WINDOW_BYTES / 2;
/// How many streams that were reset are remembered: what was under way to them is no mistake.
const RESETS_MAX: usize = 128;
/// How many that have ended are: only to name a client's mistake.
const ENDED_MAX: usize = 32;
/// Pieces of a body are put together until they are as long. Otherwise what is kept of a window of single bytes would be
/// fifty times as large.
const PIECE_BYTES_MIN: usize = 512;

/// A stream.
#[derive(Debug)]
pub struct Stream {
    pub id: u32,
    /// The client has sent its end, and we ours.
    pub received_all: bool,
    pub sent_all: bool,
    /// Either side has reset it.
    pub over: Option<Reason>,
    /// It was the client.
    pub is_cancelled: bool,
    /// How much we may send: less than nothing where the client has made its windows smaller.
    pub send_window: i64,
    pub incoming: Incoming,
    /// Who waits to hear that it is reset.
    pub waiting: Option<Waker>,
    /// Its request is with whoever answers it.
    pub is_accepted: bool,
    /// Its answer and its body are still held by somebody.
    pub has_answer: bool,
    pub has_body: bool,
    /// It waits for the output.
    pub is_queued: bool,
    is_counted: bool,
}

/// The body of a request.
#[derive(Debug)]
pub struct Incoming {
    /// What the client may still send, and what is to be given back to it.
    pub window: u32,
    pub read_bytes: u32,
    /// What the client says is still to come, if it says so.
    pub left_bytes: Option<u64>,
    /// What nobody has read yet.
    pub data: VecDeque<Bytes>,
    pub trailers: Option<HeaderMap>,
    pub waiting: Option<Waker>,
}

impl Incoming {
    /// Keeps a piece until it is read.
    pub fn push(&mut self, piece: &[u8]) {
        match self.data.back_mut() {
            Some(last) if last.len() + piece.len() <= PIECE_BYTES_MIN => {
                *last = [&last[..], piece].concat().into();
            }
            _ => self.data.push_back(Bytes::copy_from_slice(piece)),
        }
    }
}

impl Stream {
    /// A stream of the client.
    pub fn new(id: u32, send_window: i64, left_bytes: Option<u64>, received_all: bool) -> Self {
        Self {
            id,
            received_all,
            sent_all: false,
            over: None,
            is_cancelled: false,
            send_window,
            incoming: Incoming {
                window: WINDOW_BYTES,
                read_bytes: 0,
                left_bytes,
                data: VecDeque::new(),
                trailers: None,
                waiting: None,
            },
            waiting: None,
            is_accepted: false,
            has_answer: false,
            has_body: false,
            is_queued: false,
            is_counted: true,
        }
    }

    /// Whether nothing moves on it any more.
    pub fn is_closed(&self) -> bool {
        self.over.is_some() || (self.received_all && self.sent_all)
    }

    /// Whether nothing of its body is left to read, and nothing follows.
    pub fn is_read(&self) -> bool {
        let Incoming { data, trailers, .. } = &self.incoming;
        self.received_all && data.is_empty() && trailers.is_none()
    }

    /// What is to be remembered of it once it is closed.
    pub fn past(&self) -> Past {
        match self.over {
            Some(_) if self.is_cancelled => Past::Cancelled,
            Some(_) => Past::Reset,
            None => Past::Ended,
        }
    }

    /// Wakes all that wait for something of it.
    pub fn wake(&mut self) {
        for waiting in [&mut self.waiting, &mut self.incoming.waiting] {
            if let Some(waker) = waiting.take() {
                waker.wake();
            }
        }
    }
}

/// What is known of a stream that is not held any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// We have reset it: what was under way is of no account (5.1).
    Reset,
    /// The client has.
    Cancelled,
    /// It has ended.
    Ended,
    /// Nothing.
    Unknown,
}

/// The streams of a connection.
#[derive(Debug, Default)]
pub struct Streams {
    slab: Slab<Stream>,
    /// Their keys, by their ids, which only grow.
    keys: VecDeque<(u32, usize)>,
    open: usize,
    resets: VecDeque<(u32, Past)>,
    ended: VecDeque<u32>,
}

impl Streams {
    /// How many are open.
    pub fn open(&self) -> usize {
        self.open
    }

    /// How many are open or held.
    pub fn len(&self) -> usize {
        self.slab.len()
    }

    /// The key of a stream.
    pub fn find(&self, id: u32) -> Option<usize> {
        let at = self.keys.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(self.keys[at].1)
    }

    /// Adds a stream with a higher id than all before.
    pub fn insert(&mut self, stream: Stream) -> usize {
        let id = stream.id;
        let key = self.slab.insert(stream);
        self.keys.push_back((id, key));
        self.open += 1;
        key
    }

    pub fn get(&self, key: usize) -> &Stream {
        &self.slab[key]
    }

    pub fn get_mut(&mut self, key: usize) -> &mut Stream {
        &mut self.slab[key]
    }

    /// All of them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.slab.iter_mut().map(|(_, stream)| stream)
    }

    /// After a change: a stream that is closed is not counted, and one that nobody holds is let go.
    pub fn settle(&mut self, key: usize) {
        let stream = &mut self.slab[key];
        if !stream.is_closed() {
            return;
        }
        if std::mem::take(&mut stream.is_counted) {
            self.open -= 1;
        }
        if stream.has_answer || stream.has_body || !stream.is_accepted {
            return;
        }
        let (id, past) = (stream.id, stream.past());
        self.slab.remove(key);
        if let Ok(at) = self.keys.binary_search_by_key(&id, |(id, _)| *id) {
            self.keys.remove(at);
        }
        self.remember(id, past);
    }

    /// Remembers a stream that is over.
    pub fn remember(&mut self, id: u32, past: Past) {
        match past {
            Past::Reset | Past::Cancelled => {
                self.resets.truncate(RESETS_MAX - 1);
                self.resets.push_front((id, past));
            }
            Past::Ended => {
                self.ended.truncate(ENDED_MAX - 1);
                self.ended.push_front(id);
            }
            Past::Unknown => {}
        }
    }

    /// What is known of a stream that is not held.
    pub fn past(&self, id: u32) -> Past {
        let reset = self.resets.iter().find(|(reset, _)| *reset == id);
        match reset {
            Some((_, past)) => *past,
            None if self.ended.contains(&id) => Past::Ended,
            None => Past::Unknown,
        }
    }
}
