//! The bounded buffer of a response's body between who reads the backend and who gets grants.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Frame;
use parking_lot::Mutex;
use shortline_base::clock::now_ns;

use super::super::admission::{Held, Side};
use super::super::upstream::Upstream;
use crate::piped::Piped;

/// See the module's text.
pub struct Buffer {
    state: Mutex<State>,
    /// What holds the bytes that come after those in `chunks`.
    piped: Option<Arc<Piped>>,
    bytes_max: usize,
    /// Buffered bytes of all responses of the upstream.
    all_bytes: Arc<AtomicUsize>,
    all_bytes_max: usize,
}

#[derive(Default)]
struct State {
    chunks: VecDeque<Bytes>,
    /// Those in the pipe.
    piped_bytes: usize,
    /// All of them.
    bytes: usize,
    trailers: Option<HeaderMap>,
    /// How the body ended, once it has.
    end: Option<Result<(), io::ErrorKind>>,
    /// When it ended whole.
    ended_ns: Option<u64>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Buffer {
    /// An empty one for a response of this upstream, which may pass through a pipe.
    pub fn new(upstream: &Upstream, piped: Option<Arc<Piped>>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            piped,
            bytes_max: upstream.options.buffer_bytes_max,
            all_bytes: Arc::clone(upstream.buffered_bytes()),
            all_bytes_max: upstream.options.buffers_bytes_max,
        })
    }

    /// Whether what comes next are promises: nothing that was read is left, and there is a pipe.
    pub fn is_piped(&self) -> bool {
        let state = self.state.lock();
        self.piped.is_some() && state.bytes == state.piped_bytes
    }

    /// Whether nothing more is to be read for now.
    pub fn is_full(&self) -> bool {
        let bytes = self.state.lock().bytes;
        self.is_full_with(bytes)
    }

    fn is_full_with(&self, bytes: usize) -> bool {
        let all_full = self.all_bytes.load(Ordering::Relaxed) >= self.all_bytes_max;
        bytes >= self.bytes_max || (all_full && bytes > 0)
    }

    /// Waits until there is room, and pauses the permit meanwhile.
    pub async fn wait_for_space(&self, held: &Held) {
        if self.is_full() {
            held.waits(Side::Download, true);
            std::future::poll_fn(|context| self.poll_space(context)).await;
            held.waits(Side::Download, false);
        }
    }

    fn poll_space(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if self.is_full_with(state.bytes) {
            state.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Adds what has come.
    pub fn push(&self, frame: Frame<Bytes>) {
        let mut state = self.state.lock();
        match frame.into_data() {
            Ok(data) if data.is_empty() => return,
            Ok(data) => {
                self.all_bytes.fetch_add(data.len(), Ordering::Relaxed);
                state.bytes += data.len();
                state.chunks.push_back(data);
            }
            Err(frame) => {
                state.trailers = frame.into_trailers().ok();
                return;
            }
        }
        state.reader.take().into_iter().for_each(Waker::wake);
    }

    /// How many bytes more it takes.
    pub fn room_bytes(&self) -> usize {
        self.bytes_max.saturating_sub(self.state.lock().bytes)
    }

    /// Adds what has come into the pipe.
    pub fn push_piped(&self, bytes: usize) {
        let mut state = self.state.lock();
        self.all_bytes.fetch_add(bytes, Ordering::Relaxed);
        state.bytes += bytes;
        state.piped_bytes += bytes;
        state.reader.take().into_iter().for_each(Waker::wake);
    }

    /// The body has ended, whole or not.
    pub fn end(&self, end: Result<(), io::ErrorKind>) {
        let mut state = self.state.lock();
        state.end = Some(end);
        state.ended_ns = end.is_ok().then(now_ns);
        state.reader.take().into_iter().for_each(Waker::wake);
    }

    /// Up to `bytes_max` bytes from the front, perhaps as a promise of them; empty if there are none.
    pub fn take(&self, bytes_max: usize) -> Bytes {
        let mut state = self.state.lock();
        let chunk_bytes = state.bytes - state.piped_bytes;
        let taken = match &self.piped {
            Some(piped) if chunk_bytes == 0 => {
                let promise = piped.promise(bytes_max.min(state.piped_bytes));
                state.piped_bytes -= promise.len();
                state.bytes -= promise.len();
                promise
            }
            _ => state.take(bytes_max.min(chunk_bytes)),
        };
        self.all_bytes.fetch_sub(taken.len(), Ordering::Relaxed);
        if !self.is_full_with(state.bytes) {
            state.writer.take().into_iter().for_each(Waker::wake);
        }
        taken
    }

    /// Ready with the number of bytes that have arrived, or with `None` at the body's end.
    pub fn poll_at_hand(&self, context: &mut Context<'_>) -> Poll<io::Result<Option<usize>>> {
        let mut state = self.state.lock();
        if state.bytes > 0 {
            return Poll::Ready(Ok(Some(state.bytes)));
        }
        match state.end {
            Some(Ok(())) => Poll::Ready(Ok(None)),
            Some(Err(kind)) => Poll::Ready(Err(kind.into())),
            None => {
                state.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// When the backend sent the last byte. `None`: it has not.
    pub fn ended_ns(&self) -> Option<u64> {
        self.state.lock().ended_ns
    }

    /// Bytes that have arrived and are not yet taken.
    pub fn at_hand(&self) -> usize {
        self.state.lock().bytes
    }

    /// Whether the backend will send nothing more.
    pub fn is_filled(&self) -> bool {
        self.state.lock().end.is_some()
    }

    /// Whether there is something to take, or never will be.
    pub fn has_news(&self) -> bool {
        let state = self.state.lock();
        state.bytes > 0 || state.end.is_some()
    }

    /// Whether all of it was taken and there are no trailers.
    pub fn has_ended(&self) -> bool {
        let state = self.state.lock();
        state.bytes == 0 && state.end == Some(Ok(())) && state.trailers.is_none()
    }

    /// Takes the trailers, which follow the body's last byte.
    pub fn take_trailers(&self) -> Option<HeaderMap> {
        self.state.lock().trailers.take()
    }
}

impl State {
    fn take(&mut self, wanted: usize) -> Bytes {
        self.bytes -= wanted;
        match self.chunks.front_mut() {
            None => return Bytes::new(),
            Some(front) if front.len() > wanted => return front.split_to(wanted),
            Some(front) if front.len() == wanted => {
                return self.chunks.pop_front().unwrap_or_default();
            }
            Some(_) => {}
        }
        // Joined, or backends that write little at a time would make a packet of each piece.
        let mut taken = BytesMut::with_capacity(wanted);
        while taken.len() < wanted
            && let Some(front) = self.chunks.front_mut()
        {
            let piece = front.split_to(front.len().min(wanted - taken.len()));
            taken.extend_from_slice(&piece);
            if front.is_empty() {
                self.chunks.pop_front();
            }
        }
        taken.freeze()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(piped) = &self.piped {
            piped.end();
        }
        let bytes = self.state.get_mut().bytes;
        self.all_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn buffer(bytes_max: usize, all_bytes_max: usize) -> Buffer {
        Buffer {
            state: Mutex::default(),
            piped: None,
            bytes_max,
            all_bytes: Arc::default(),
            all_bytes_max,
        }
    }

    fn data(bytes: &[u8]) -> Frame<Bytes> {
        Frame::data(Bytes::copy_from_slice(bytes))
    }

    #[test]
    fn a_buffer_is_full_by_itself_or_with_all_others() {
        let alone = buffer(4, 100);
        alone.push(data(b"abc"));
        assert!(!alone.is_full());
        alone.push(data(b"d"));
        assert!(alone.is_full());
        assert_eq!(alone.take(1), "a");
        assert!(!alone.is_full());

        let crowded = buffer(4, 10);
        crowded.all_bytes.store(10, Ordering::Relaxed);
        assert!(!crowded.is_full(), "one chunk is always let in");
        crowded.push(data(b"a"));
        assert!(crowded.is_full());
    }

    #[test]
    fn what_is_dropped_unread_no_longer_counts() {
        let buffer = buffer(10, 10);
        let all = Arc::clone(&buffer.all_bytes);
        buffer.push(data(b"abc"));
        assert_eq!(all.load(Ordering::Relaxed), 3);
        drop(buffer);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..20),
            steps in prop::collection::vec(1_usize..30, 1..40),
        ) {
            let buffer = buffer(1000, 1000);
            for chunk in &chunks {
                buffer.push(data(chunk));
            }
            let whole = chunks.concat();
            let mut taken = Vec::new();
            for step in steps.into_iter().cycle() {
                let piece = buffer.take(step);
                prop_assert_eq!(piece.len(), step.min(whole.len() - taken.len()));
                if piece.is_empty() {
                    break;
                }
                taken.extend_from_slice(&piece);
            }
            prop_assert_eq!(taken, whole);
            prop_assert_eq!(buffer.all_bytes.load(Ordering::Relaxed), 0);
        }
    }
}
