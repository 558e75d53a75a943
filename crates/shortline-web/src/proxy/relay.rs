//! A response's body between its backend and the uplink: a bounded buffer. A task fills it as fast
//! as the backend sends, and the response empties it as it gets grants.
//!
//! So the client's pace does not decide when the backend is done. A response that fits in the
//! buffer frees its backend at once, however slow the client is. With a larger one the backend
//! waits while the buffer is full, and its permit is paused meanwhile (`admission`).
//!
//! A body that is compressed on the way ([`Coder`]) is so before it gets into the buffer, in pieces between which other tasks
//! run. What was taken in is brought out when nothing more has arrived, so an event reaches its client at once.
//!
//! A body that ends too early is an error here, however it came. The client's connection is then
//! reset, so that no truncated response looks complete.

use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http::HeaderMap;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use shortline_base::clock::now_ns;
use tokio::task::AbortHandle;

use super::admission::{Held, Side};
use super::error::with_sources;
use super::exchange::Ending;
use super::response::ResponseBody;
use crate::compress::PIECE_BYTES;
use crate::compress::encoder::Coder;
use crate::response_cache::Recording;

/// How often to yield to others while a body's first bytes are on their way. They can then leave
/// with the head rather than in a packet of their own.
const SETTLE_TURNS: usize = 3;

/// The end of the buffer that the client's response reads.
pub struct Relayed {
    buffer: Arc<Buffer>,
    /// Body bytes not yet taken, if the head gave the length.
    remaining_bytes: Option<u64>,
    pump: AbortHandle,
}

struct Buffer {
    state: Mutex<State>,
    bytes_max: usize,
    /// Buffered bytes of all responses of the upstream.
    all_bytes: Arc<AtomicUsize>,
    all_bytes_max: usize,
}

#[derive(Default)]
struct State {
    chunks: VecDeque<Bytes>,
    bytes: usize,
    trailers: Option<HeaderMap>,
    /// How the body ended, once it has.
    end: Option<Result<(), io::ErrorKind>>,
    /// When it ended whole.
    ended_ns: Option<u64>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// What is done with a body on its way: nothing, or it is kept for other requests, or compressed.
#[allow(missing_docs)]
pub enum Way {
    Plain,
    Recorded(Box<Recording>),
    Coded(Box<Coder>),
}

/// Begins to read `body`; `None` if there is nothing to read.
pub fn begin(body: ResponseBody, ending: Ending, held: Held, way: Way) -> Option<Relayed> {
    if body.is_end_stream() {
        if let Way::Recorded(recording) = way {
            recording.finish();
        }
        held.finish(true);
        ending.complete();
        tokio::spawn(ending.keep_connection());
        return None;
    }
    let options = &ending.upstream.options;
    let buffer = Arc::new(Buffer {
        state: Mutex::default(),
        bytes_max: options.buffer_bytes_max,
        all_bytes: Arc::clone(ending.upstream.buffered_bytes()),
        all_bytes_max: options.buffers_bytes_max,
    });
    let remaining_bytes = match way {
        Way::Coded(_) => None,
        Way::Plain | Way::Recorded(_) => body.size_hint().exact(),
    };
    let pump = tokio::spawn(pump(body, Arc::clone(&buffer), ending, held, way));
    Some(Relayed {
        buffer,
        remaining_bytes,
        pump: pump.abort_handle(),
    })
}

/// Reads the body to its end.
async fn pump(body: ResponseBody, buffer: Arc<Buffer>, ending: Ending, held: Held, way: Way) {
    let idle_time_max = ending.upstream.options.idle_time_max;
    let mut recording = None;
    let end = match way {
        Way::Coded(coder) => fill_coded(body, &buffer, &held, idle_time_max, *coder).await,
        Way::Plain => fill(body, &buffer, &held, idle_time_max, &mut recording).await,
        Way::Recorded(recorded) => {
            recording = Some(*recorded);
            fill(body, &buffer, &held, idle_time_max, &mut recording).await
        }
    };
    held.finish(end.is_ok());
    match end {
        Ok(()) => {
            ending.complete();
            recording.into_iter().for_each(Recording::finish);
            buffer.end(Ok(()));
            ending.keep_connection().await;
        }
        Err(BrokenOff { kind, reason }) => {
            ending.broke_off(kind, &reason);
            buffer.end(Err(kind));
        }
    }
}

/// A response that ended too early.
struct BrokenOff {
    /// The error for the client's side.
    kind: io::ErrorKind,
    /// The reason for the log.
    reason: String,
}

async fn fill(
    mut body: ResponseBody,
    buffer: &Buffer,
    held: &Held,
    idle_time_max: Duration,
    recording: &mut Option<Recording>,
) -> Result<(), BrokenOff> {
    loop {
        // What is recorded in memory is held anyway, however slow the client is.
        if !recording.as_ref().is_some_and(Recording::is_in_memory) {
            buffer.wait_for_space(held).await;
        }
        let Some(frame) = next_frame(&mut body, idle_time_max).await? else {
            return Ok(());
        };
        *recording = recording
            .take()
            .and_then(|recording| recorded(recording, &frame));
        buffer.push(frame);
        if body.is_end_stream() {
            return Ok(());
        }
    }
}

/// The same, with a body that is compressed on the way.
async fn fill_coded(
    mut body: ResponseBody,
    buffer: &Buffer,
    held: &Held,
    idle_time_max: Duration,
    mut coder: Coder,
) -> Result<(), BrokenOff> {
    loop {
        buffer.wait_for_space(held).await;
        // What is on its way gets time to arrive.
        tokio::task::yield_now().await;
        let frame = match body.frame().now_or_never() {
            Some(frame) => frame.transpose().map_err(|error| broken_off(&*error))?,
            None => {
                buffer.push(Frame::data(coder.flush()?));
                next_frame(&mut body, idle_time_max).await?
            }
        };
        let data = match frame.map(Frame::into_data) {
            None => break,
            Some(Err(trailers)) => {
                buffer.push(trailers);
                continue;
            }
            Some(Ok(data)) => data,
        };
        for piece in data.chunks(PIECE_BYTES) {
            buffer.push(Frame::data(coder.pass(piece)?));
            tokio::task::yield_now().await;
        }
        if body.is_end_stream() {
            break;
        }
    }
    buffer.push(Frame::data(coder.finish()?));
    Ok(())
}

/// What the backend sends next. `None`: it has sent all.
async fn next_frame(
    body: &mut ResponseBody,
    idle_time_max: Duration,
) -> Result<Option<Frame<Bytes>>, BrokenOff> {
    match tokio::time::timeout(idle_time_max, body.frame()).await {
        Ok(frame) => frame.transpose().map_err(|error| broken_off(&*error)),
        Err(_elapsed) => Err(BrokenOff {
            kind: io::ErrorKind::TimedOut,
            reason: format!("silent for {} s", idle_time_max.as_secs_f64()),
        }),
    }
}

fn broken_off(error: &(dyn Error + Send + Sync)) -> BrokenOff {
    BrokenOff {
        kind: io::ErrorKind::UnexpectedEof,
        reason: with_sources(error),
    }
}

impl From<io::Error> for BrokenOff {
    /// It cannot be compressed: there is no memory.
    fn from(error: io::Error) -> Self {
        Self {
            kind: error.kind(),
            reason: format!("it cannot be compressed: {error}"),
        }
    }
}

/// Records a frame. `None`: the response is not kept after all. One with trailers is not.
fn recorded(mut recording: Recording, frame: &Frame<Bytes>) -> Option<Recording> {
    let data = frame.data_ref()?;
    recording.push(data).then_some(recording)
}

impl Buffer {
    fn is_full(&self) -> bool {
        let bytes = self.state.lock().bytes;
        self.is_full_with(bytes)
    }

    fn is_full_with(&self, bytes: usize) -> bool {
        let all_full = self.all_bytes.load(Ordering::Relaxed) >= self.all_bytes_max;
        bytes >= self.bytes_max || (all_full && bytes > 0)
    }

    /// Waits until there is room, and pauses the permit meanwhile.
    async fn wait_for_space(&self, held: &Held) {
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

    fn push(&self, frame: Frame<Bytes>) {
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

    fn end(&self, end: Result<(), io::ErrorKind>) {
        let mut state = self.state.lock();
        state.end = Some(end);
        state.ended_ns = end.is_ok().then(now_ns);
        state.reader.take().into_iter().for_each(Waker::wake);
    }

    /// Up to `bytes_max` bytes from the front; empty if there are none.
    fn take(&self, bytes_max: usize) -> Bytes {
        let mut state = self.state.lock();
        let wanted = bytes_max.min(state.bytes);
        let taken = state.take(wanted);
        self.all_bytes.fetch_sub(taken.len(), Ordering::Relaxed);
        if !self.is_full_with(state.bytes) {
            state.writer.take().into_iter().for_each(Waker::wake);
        }
        taken
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
        let bytes = self.state.get_mut().bytes;
        self.all_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Relayed {
    /// Body bytes not yet taken, if the head gave the length.
    pub fn remaining_bytes(&self) -> Option<u64> {
        self.remaining_bytes
    }

    /// Ready with the number of bytes that have arrived, or with `None` at the body's end.
    pub fn poll_at_hand(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<usize>>> {
        let mut state = self.buffer.state.lock();
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
        self.buffer.state.lock().ended_ns
    }

    /// Bytes that have arrived and are not yet taken.
    pub fn at_hand(&self) -> usize {
        self.buffer.state.lock().bytes
    }

    /// Whether all of it was taken and there are no trailers.
    pub fn has_ended(&self) -> bool {
        let state = self.buffer.state.lock();
        state.bytes == 0 && state.end == Some(Ok(())) && state.trailers.is_none()
    }

    /// Takes up to `bytes_max` of the bytes that have arrived.
    pub fn take(&mut self, bytes_max: usize) -> Bytes {
        let taken = self.buffer.take(bytes_max);
        if let Some(remaining) = &mut self.remaining_bytes {
            *remaining = remaining.saturating_sub(taken.len() as u64);
        }
        taken
    }

    /// Takes the trailers, which follow the body's last byte.
    pub fn take_trailers(&mut self) -> Option<HeaderMap> {
        self.buffer.state.lock().trailers.take()
    }

    /// Reads all of it for nobody.
    pub async fn pass_over(&mut self) {
        while let Ok(Some(bytes)) = std::future::poll_fn(|context| self.poll_at_hand(context)).await
        {
            drop(self.take(bytes));
        }
    }

    /// Gives a body that is on its way time to arrive.
    pub async fn settle(&self) {
        for _ in 0..SETTLE_TURNS {
            let arrived = {
                let state = self.buffer.state.lock();
                state.bytes > 0 || state.end.is_some()
            };
            if arrived {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Relayed {
    fn drop(&mut self) {
        // The body is still being read, but nobody wants the rest: tell the backend.
        let unread = self.remaining_bytes != Some(0);
        if unread && self.buffer.state.lock().end.is_none() {
            self.pump.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn buffer(bytes_max: usize, all_bytes_max: usize) -> Buffer {
        Buffer {
            state: Mutex::default(),
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
