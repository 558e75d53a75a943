//! A response that is kept while it is sent: in memory, in the folder, or both.
//!
//! In memory its pieces are the relay's, and not copied until it has all come. What is too much for memory goes on to the folder alone.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderName};
use http::{HeaderMap, StatusCode};

use super::folder::Writing;
use super::store::{Body, Stored};
use super::terms::Terms;
use super::{Flight, ResponseCache, Sought};

/// How long it is remembered that a response could not be kept.
const NOT_KEPT_FOR: Duration = Duration::from_secs(60);

/// Waits for the head of a response.
pub struct Recorder {
    cache: Arc<ResponseCache>,
    asked: Sought,
    flight: Option<Arc<Flight>>,
    purges: u64,
}

/// A response whose head has come.
pub struct Recording {
    cache: Arc<ResponseCache>,
    asked: Sought,
    /// Those who wait are told when the recording ends.
    flight: Option<Arc<Flight>>,
    head: (StatusCode, HeaderMap),
    terms: Terms,
    names: Arc<[HeaderName]>,
    purges: u64,
    /// What is kept in memory. `None`: it is too much.
    pieces: Option<Vec<Bytes>>,
    /// Bytes of `pieces`.
    bytes: usize,
    /// Where it is written, if it is.
    writing: Option<Writing>,
}

impl Recorder {
    /// Keeps the response to a request that is about to be made, if it may be kept.
    pub fn new(cache: &Arc<ResponseCache>, asked: Sought, flight: Option<Arc<Flight>>) -> Self {
        Self {
            cache: Arc::clone(cache),
            asked,
            flight,
            purges: cache.purges(),
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
        let options = &self.cache.options;
        let in_memory = bytes.is_none_or(|bytes| bytes <= options.response_bytes_max as u64);
        let in_folder = options.folder.as_ref();
        let in_folder = in_folder
            .is_some_and(|folder| bytes.is_none_or(|bytes| bytes <= folder.response_bytes_max));
        let terms = Terms::of(status, headers, options, now);
        let Some((terms, names)) = terms.filter(|_| in_memory || in_folder) else {
            self.note_not_kept(status, now);
            return None;
        };
        if self.asked.is_personal() && !terms.is_for_cookies(&names) {
            return None;
        }
        let writing = self
            .cache
            .folder
            .as_ref()
            .and_then(|folder| folder.begin(bytes));
        if !in_memory && writing.is_none() {
            return None;
        }
        let mut headers = headers.clone();
        headers.remove(header::CONTENT_LENGTH);
        Some(Recording {
            cache: self.cache,
            asked: self.asked,
            flight: self.flight,
            head: (status, headers),
            terms,
            names,
            purges: self.purges,
            pieces: in_memory.then(Vec::new),
            bytes: 0,
            writing,
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
    /// Whether all that has come is held in memory, however slow the client is.
    pub fn is_in_memory(&self) -> bool {
        self.pieces.is_some()
    }

    /// Records a piece of the body. `false`: it is too much, and nothing is kept.
    pub fn push(&mut self, piece: &Bytes) -> bool {
        self.push_to_memory(piece);
        if let (Some(folder), Some(writing)) = (&self.cache.folder, &mut self.writing)
            && !folder.push(writing, piece)
        {
            self.abort();
        }
        self.pieces.is_some() || self.writing.is_some()
    }

    fn push_to_memory(&mut self, piece: &Bytes) {
        let Some(pieces) = &mut self.pieces else {
            return;
        };
        pieces.push(piece.clone());
        self.bytes += piece.len();
        let (options, all) = (&self.cache.options, &self.cache.recording_bytes);
        let all = all.fetch_add(piece.len(), Ordering::Relaxed) + piece.len();
        if self.bytes > options.response_bytes_max || all as u64 > options.bytes_max {
            self.pieces = None;
            self.release();
        }
    }

    /// The body has all come.
    pub fn finish(mut self) {
        if self.cache.purges() != self.purges {
            return;
        }
        let (status, headers) = std::mem::take(&mut self.head);
        let body = self
            .pieces
            .take()
            .map(|pieces| Body::Memory(joined(pieces, self.bytes)));
        let names = Arc::clone(&self.names);
        let head = self
            .cache
            .head(&self.asked, &names, (status, &headers), &self.terms);
        match body {
            Some(body) => {
                let terms = self.terms.clone();
                let stored = Stored {
                    status,
                    headers,
                    body,
                    terms,
                };
                let stored = Arc::new(stored);
                self.cache.keep(&self.asked, names, stored, self.purges);
            }
            None => self.cache.leave(&self.asked, names),
        }
        if let (Some(folder), Some(writing)) = (&self.cache.folder, self.writing.take()) {
            let variant = head.variant.clone();
            folder.finish(writing, head, self.flight.take());
            // A purge in between may not have met it.
            if self.cache.purges() != self.purges {
                folder.forget(&variant);
            }
        }
    }

    fn abort(&mut self) {
        if let (Some(folder), Some(writing)) = (&self.cache.folder, self.writing.take()) {
            folder.abort(writing);
        }
    }

    fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.cache
            .recording_bytes
            .fetch_sub(bytes, Ordering::Relaxed);
    }
}

fn joined(pieces: Vec<Bytes>, bytes: usize) -> Bytes {
    match <[Bytes; 1]>::try_from(pieces) {
        // A slice would hold the buffer that it was read into.
        Ok([piece]) => Bytes::copy_from_slice(&piece),
        Err(pieces) => {
            let mut body = BytesMut::with_capacity(bytes);
            pieces
                .iter()
                .for_each(|piece| body.extend_from_slice(piece));
            body.freeze()
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.abort();
        self.release();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::Request;
    use http::header::HeaderValue;

    use super::*;
    use crate::response_cache::{Found, ResponseCacheOptions};

    #[test]
    fn what_was_asked_for_before_a_purge_is_not_kept_behind_it() {
        let cache = ResponseCache::new(ResponseCacheOptions::default());
        let request = Request::builder().uri("/x").header("host", "a");
        let head = request.body(()).unwrap().into_parts().0;
        let asked = Sought::of(&head, false, "/x", false).unwrap();
        let mut headers = HeaderMap::new();
        let fresh = HeaderValue::from_static("max-age=60");
        headers.insert(header::CACHE_CONTROL, fresh);
        let recording = || {
            let recorder = Recorder::new(&cache, asked.clone(), None);
            recorder.begin(StatusCode::OK, &headers, None).unwrap()
        };
        let is_kept = || {
            let found = cache.find(&asked, shortline_base::clock::date());
            matches!(found, Found::Fresh(_))
        };
        let before = recording();
        cache.purge("http://a/x", false);
        before.finish();
        assert!(!is_kept());
        recording().finish();
        assert!(is_kept());
        // A confirmation of it comes too late as well.
        let purges = cache.purges();
        let Found::Fresh(stored) = cache.find(&asked, shortline_base::clock::date()) else {
            panic!("it is kept")
        };
        cache.purge("http://a/", true);
        let now = shortline_base::clock::date();
        cache.renew(&asked, &stored, &headers, now, purges);
        assert!(!is_kept());
    }
}
