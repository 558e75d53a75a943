//! A response that is kept while it is sent. Its pieces are the relay's, and not copied until it has all come.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderName};
use http::{HeaderMap, StatusCode};

use super::store::Stored;
use super::terms::Terms;
use super::{Flight, ResponseCache, Sought};

/// How long it is remembered that a response could not be kept.
const NOT_KEPT_FOR: Duration = Duration::from_secs(60);

/// Waits for the head of a response.
pub struct Recorder {
    cache: Arc<ResponseCache>,
    asked: Sought,
    flight: Option<Arc<Flight>>,
}

/// A response whose head has come.
pub struct Recording {
    cache: Arc<ResponseCache>,
    asked: Sought,
    /// Those who wait are told when the recording ends.
    _flight: Option<Arc<Flight>>,
    head: (StatusCode, HeaderMap),
    terms: Terms,
    names: Arc<[HeaderName]>,
    pieces: Vec<Bytes>,
    bytes: usize,
}

impl Recorder {
    /// Keeps the response to a request, if it may be kept.
    pub fn new(cache: &Arc<ResponseCache>, asked: Sought, flight: Option<Arc<Flight>>) -> Self {
        Self {
            cache: Arc::clone(cache),
            asked,
            flight,
        }
    }

    /// Begins to record a response with this head and a body of that length, if it is known. `None`: it is not kept.
    pub fn begin(
        self,
        status: StatusCode,
        headers: &HeaderMap,
        bytes: Option<u64>,
    ) -> Option<Recording> {
        let now = shortline_base::clock::date();
        let bytes_max = self.cache.options.response_bytes_max as u64;
        let terms = Terms::of(status, headers, &self.cache.options, now);
        let terms = terms.filter(|_| bytes.is_none_or(|bytes| bytes <= bytes_max));
        let Some((terms, names)) = terms else {
            self.note_not_kept(status, now);
            return None;
        };
        if self.asked.is_personal() && !terms.is_for_cookies(&names) {
            return None;
        }
        let mut headers = headers.clone();
        headers.remove(header::CONTENT_LENGTH);
        Some(Recording {
            cache: self.cache,
            asked: self.asked,
            _flight: self.flight,
            head: (status, headers),
            terms,
            names,
            pieces: Vec::new(),
            bytes: 0,
        })
    }

    /// Lets later requests go to the backend at once. A failure says nothing about the next response, and the response to one client's
    /// cookies nothing about others'.
    fn note_not_kept(&self, status: StatusCode, now: SystemTime) {
        let is_usual = status.as_u16() < 500 && status != StatusCode::NOT_MODIFIED;
        if is_usual && !self.asked.is_personal() {
            self.cache
                .store
                .note_not_kept(self.asked.name(), now + NOT_KEPT_FOR);
        }
    }
}

impl Recording {
    /// Records a piece of the body. `false`: it is too much, and nothing is kept.
    pub fn push(&mut self, piece: &Bytes) -> bool {
        let options = &self.cache.options;
        self.bytes += piece.len();
        let all = &self.cache.recording_bytes;
        let all = all.fetch_add(piece.len(), Ordering::Relaxed) + piece.len();
        self.pieces.push(piece.clone());
        self.bytes <= options.response_bytes_max && all as u64 <= options.bytes_max
    }

    /// The body has all come.
    pub fn finish(mut self) {
        let pieces = std::mem::take(&mut self.pieces);
        let body = match <[Bytes; 1]>::try_from(pieces) {
            // A slice would hold the buffer that it was read into.
            Ok([piece]) => Bytes::copy_from_slice(&piece),
            Err(pieces) => {
                let mut body = BytesMut::with_capacity(self.bytes);
                pieces
                    .iter()
                    .for_each(|piece| body.extend_from_slice(piece));
                body.freeze()
            }
        };
        let (status, headers) = std::mem::take(&mut self.head);
        let stored = Stored {
            status,
            headers,
            body,
            terms: self.terms.clone(),
        };
        self.cache
            .keep(&self.asked, Arc::clone(&self.names), stored);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.cache
            .recording_bytes
            .fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
