//! One direction of a connection.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use rand::Rng;
use shortline_base::TcpInfo;

use super::{PACKET_HEADER_BYTES, Path, Uplink};
use crate::world::World;

/// Payload bytes of a full segment.
const SEGMENT_BYTES: usize = 1448;
/// The congestion window of a new connection (RFC 6928), and its minimum and maximum.
const WINDOW_START: u64 = 10 * SEGMENT_BYTES as u64;
const WINDOW_MIN: u64 = 2 * SEGMENT_BYTES as u64;
const WINDOW_MAX: u64 = 1 << 20;
/// The timeout, on top of two round trips.
const TIMEOUT_NS: u64 = 20_000_000;
/// The most bytes a socket takes at once.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// How a stream ended for its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The sender has ended the stream.
    Finished,
    /// It was reset.
    Reset,
}

/// One direction; see [`super`].
pub struct Pipe {
    world: Arc<World>,
    name: String,
    path: Path,
    uplink: Option<Arc<Uplink>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    // The sender's part.
    unsent: VecDeque<u8>,
    /// Nothing follows what was written.
    closing: bool,
    end_sent: bool,
    /// Writes fail from now on.
    broken: bool,
    sent: u64,
    resent: u64,
    acknowledged: u64,
    segments_sent: u32,
    acks_seen: u32,
    acked_ns: u64,
    congestion_window: u64,
    /// The receiver accepts bytes up to this one.
    limit: u64,
    unsent_bytes_max: u32,
    writer: Option<Waker>,
    // The receiver's part.
    received: VecDeque<u8>,
    expected: u64,
    early: BTreeMap<u64, Vec<u8>>,
    end_at: Option<u64>,
    ending: Option<Ending>,
    /// When the sender's end of the stream had come, and all before it was read.
    finished_ns: Option<u64>,
    announced: u64,
    segments_seen: u32,
    seen_ns: u64,
    reader: Option<Waker>,
    /// Nobody will read any more.
    reader_gone: bool,
    // The network's part.
    vanished: bool,
}

impl Pipe {
    pub(super) fn new(
        world: &Arc<World>,
        name: String,
        path: Path,
        uplink: Option<Arc<Uplink>>,
    ) -> Arc<Self> {
        let limit = u64::from(path.window_bytes);
        Arc::new(Self {
            world: Arc::clone(world),
            name,
            path,
            uplink,
            state: Mutex::new(State {
                congestion_window: WINDOW_START,
                limit,
                announced: limit,
                ..State::default()
            }),
        })
    }

    /// Writes as much as there is room for.
    pub(super) fn write(self: &Arc<Self>, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.state.lock();
        if state.broken || state.closing {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut room = state.room(&self.path);
        if room > 1 && self.world.chance(self.path.short_writes) {
            room = self.world.draw(|random| random.random_range(1..=room));
        }
        let mut written = 0;
        for slice in slices {
            let bytes = &slice[..slice.len().min(room - written)];
            state.unsent.extend(bytes);
            written += bytes.len();
        }
        let offered: usize = slices.iter().map(|slice| slice.len()).sum();
        if written == 0 && offered > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.world
            .note(format_args!("{} writes {written} of {offered}", self.name));
        self.pump(&mut state);
        Ok(written)
    }

    pub(super) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state.lock();
        // A broken stream is writable: the write returns the error.
        if state.broken || state.is_writable(&self.path) {
            return Poll::Ready(Ok(()));
        }
        state.writer = Some(context.waker().clone());
        Poll::Pending
    }

    /// Ends the stream.
    pub(super) fn close(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if !state.closing && !state.broken {
            state.closing = true;
            self.pump(&mut state);
        }
    }

    /// Drops what was not sent, and resets the reader.
    pub(super) fn send_reset(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.broken || state.end_sent && state.unsent.is_empty() && state.in_flight() == 0 {
            return;
        }
        state.broken = true;
        state.unsent.clear();
        if state.vanished {
            return;
        }
        let pipe = Arc::clone(self);
        self.world.after(self.path.delay_ns, move || {
            let mut state = pipe.state.lock();
            if state.ending.is_none() {
                state.ending = Some(Ending::Reset);
                pipe.world.note(format_args!("{} reset", pipe.name));
            }
            state.wake_reader();
        });
    }

    /// Reads what has come.
    pub(super) fn poll_read(
        self: &Arc<Self>,
        context: &mut Context<'_>,
        most: usize,
        take: impl FnOnce(&[u8]),
    ) -> Poll<io::Result<()>> {
        let mut state = self.state.lock();
        if state.received.is_empty() {
            return match state.ending {
                Some(Ending::Finished) => Poll::Ready(Ok(())),
                Some(Ending::Reset) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                None => {
                    state.reader = Some(context.waker().clone());
                    Poll::Pending
                }
            };
        }
        let (front, _) = state.received.as_slices();
        let length = front.len().min(most);
        take(&front[..length]);
        state.received.drain(..length);
        state.note_finished(self.world.now_ns());
        self.announce(&mut state);
        Poll::Ready(Ok(()))
    }

    /// Notes that nobody will read any more, and tells the writer.
    pub(super) fn reader_gone(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.reader_gone, true) {
            return;
        }
        if !state.received.is_empty() {
            drop(state);
            self.break_writer();
        }
    }

    /// Tells the writer, after a while, that its peer has gone.
    pub(super) fn break_writer(self: &Arc<Self>) {
        if self.state.lock().vanished {
            return;
        }
        let pipe = Arc::clone(self);
        self.world.after(self.path.delay_ns, move || {
            let mut state = pipe.state.lock();
            state.broken = true;
            state.unsent.clear();
            state.wake_writer();
        });
    }

    pub(super) fn vanish(&self) {
        self.state.lock().vanished = true;
    }

    /// Whether the peer has ended or reset the stream.
    pub(super) fn has_ended(&self) -> bool {
        let state = self.state.lock();
        state.ending.is_some() || state.broken
    }

    pub(super) fn has_unread(&self) -> bool {
        !self.state.lock().received.is_empty()
    }

    /// Whether the sender waits for room: it has more to write than what was written.
    pub fn has_writer(&self) -> bool {
        self.state.lock().writer.is_some()
    }

    pub(super) fn set_unsent_bytes_max(&self, bytes: u32) {
        self.state.lock().unsent_bytes_max = bytes;
    }

    pub(super) fn unacknowledged_bytes(&self) -> u32 {
        let state = self.state.lock();
        state.held() as u32
    }

    /// When the reader could know that nothing follows.
    pub fn finished_ns(&self) -> Option<u64> {
        self.state.lock().finished_ns
    }

    /// What the kernel would report about the connection with this sending direction.
    pub(super) fn info(&self, other: &Self) -> TcpInfo {
        let now_ns = self.world.now_ns();
        let rtt_us = (2 * self.path.delay_ns / 1000).max(1) as u32;
        let (state, other) = (self.state.lock(), other.state.lock());
        let age_ms = |then_ns: u64| (now_ns.saturating_sub(then_ns) / 1_000_000) as u32;
        TcpInfo {
            segment_bytes: SEGMENT_BYTES as u32,
            sent_bytes: state.sent + state.resent,
            resent_bytes: state.resent,
            // The SYN has a number too.
            acked_bytes: state.acknowledged + 1,
            sent_segments: state.segments_sent + 1,
            ack_segments: state.acks_seen,
            request_segments: other.segments_seen,
            rtt_us_min: rtt_us,
            rtt_us,
            ack_age_ms: age_ms(state.acked_ns),
            request_age_ms: age_ms(other.seen_ns),
            cwnd_segments: (state.congestion_window / SEGMENT_BYTES as u64) as u32,
            flight_segments: state.in_flight().div_ceil(SEGMENT_BYTES as u64) as u32,
            unsent_bytes: state.unsent.len() as u32,
            delivered_bytes_per_s: 0,
        }
    }

    /// Sends what may be sent.
    fn pump(self: &Arc<Self>, state: &mut State) {
        if state.broken {
            return;
        }
        loop {
            let window = state
                .congestion_window
                .saturating_sub(state.in_flight())
                .min(state.limit.saturating_sub(state.sent)) as usize;
            let length = state.unsent.len().min(SEGMENT_BYTES);
            // A partial segment leaves if the receiver's window or the end of the stream makes it
            // partial.
            if length == 0 || window == 0 || window < length && state.in_flight() > 0 {
                break;
            }
            let bytes: Vec<u8> = state.unsent.drain(..length.min(window)).collect();
            self.send(state, bytes);
        }
        if state.closing && state.unsent.is_empty() && !state.end_sent {
            state.end_sent = true;
            state.segments_sent += 1;
            let at = state.sent;
            if let Some(delay_ns) = self.travel(state, 0) {
                let pipe = Arc::clone(self);
                self.world.after(delay_ns, move || pipe.end_arrived(at));
            }
        }
    }

    fn send(self: &Arc<Self>, state: &mut State, bytes: Vec<u8>) {
        let at = state.sent;
        state.sent += bytes.len() as u64;
        state.segments_sent += 1;
        if let Some(delay_ns) = self.travel(state, bytes.len()) {
            let pipe = Arc::clone(self);
            self.world.after(delay_ns, move || pipe.arrived(at, bytes));
        }
    }

    /// How long a segment travels. `None`: forever.
    fn travel(&self, state: &mut State, bytes: usize) -> Option<u64> {
        if state.vanished {
            return None;
        }
        let now_ns = self.world.now_ns();
        let mut late_ns = 0;
        let mut lost = self.world.chance(self.path.loss);
        if let Some(uplink) = &self.uplink {
            match uplink.depart(now_ns, bytes as u64 + PACKET_HEADER_BYTES) {
                Some(departs_ns) => late_ns = departs_ns - now_ns,
                None => lost = true,
            }
        }
        while lost {
            state.congestion_window = (state.congestion_window / 2).max(WINDOW_MIN);
            state.resent += bytes as u64;
            state.segments_sent += 1;
            late_ns += 4 * self.path.delay_ns + TIMEOUT_NS;
            self.world
                .note(format_args!("{} loses {bytes} bytes", self.name));
            lost = self.world.chance(self.path.loss);
        }
        let jitter_ns = match self.path.jitter_ns {
            0 => 0,
            most => self.world.draw(|random| random.random_range(0..most)),
        };
        Some(late_ns + self.path.delay_ns + jitter_ns)
    }

    fn arrived(self: &Arc<Self>, at: u64, bytes: Vec<u8>) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if state.vanished || state.ending == Some(Ending::Reset) {
            return;
        }
        if state.reader_gone {
            drop(guard);
            self.break_writer();
            return;
        }
        state.segments_seen += 1;
        state.seen_ns = self.world.now_ns();
        self.world
            .note(format_args!("{} brings {at}+{}", self.name, bytes.len()));
        state.early.insert(at, bytes);
        let expected = state.expected;
        while let Some(entry) = state.early.first_entry()
            && *entry.key() == state.expected
        {
            let bytes = entry.remove();
            state.expected += bytes.len() as u64;
            state.received.extend(bytes);
        }
        state.see_end(self.world.now_ns());
        if state.expected > expected {
            state.wake_reader();
        }
        self.acknowledge(state);
    }

    fn end_arrived(self: &Arc<Self>, at: u64) {
        let mut state = self.state.lock();
        if state.vanished {
            return;
        }
        state.end_at = Some(at);
        state.see_end(self.world.now_ns());
    }

    /// Tells the sender what has arrived and how much room there is.
    fn acknowledge(self: &Arc<Self>, state: &mut State) {
        state.announced = state.announced.max(state.room_to(&self.path));
        let (upto, limit) = (state.expected, state.announced);
        let pipe = Arc::clone(self);
        self.world.after(self.path.delay_ns, move || {
            let mut state = pipe.state.lock();
            if state.vanished || state.broken {
                return;
            }
            state.acks_seen += 1;
            state.acked_ns = pipe.world.now_ns();
            let newly = upto.saturating_sub(state.acknowledged);
            state.acknowledged += newly;
            state.congestion_window = (state.congestion_window + newly).min(WINDOW_MAX);
            state.limit = state.limit.max(limit);
            pipe.pump(&mut state);
            if state.is_writable(&pipe.path) {
                state.wake_writer();
            }
        });
    }

    /// Tells the sender, after a read, about a window that had been closed or has grown by much.
    fn announce(self: &Arc<Self>, state: &mut State) {
        let limit = state.room_to(&self.path);
        let grew = limit.saturating_sub(state.announced);
        let was_closed = state.announced == state.expected;
        if grew >= 2 * SEGMENT_BYTES as u64 || was_closed && grew > 0 {
            self.acknowledge(state);
        }
    }
}

impl State {
    fn in_flight(&self) -> u64 {
        self.sent - self.acknowledged
    }

    /// The bytes a write may have now.
    fn room(&self, path: &Path) -> usize {
        let marked =
            self.unsent_bytes_max > 0 && self.unsent.len() >= self.unsent_bytes_max as usize;
        if marked {
            return 0;
        }
        (path.buffer_bytes as usize)
            .saturating_sub(self.held())
            .min(WRITE_BYTES_MAX)
    }

    /// Whether a writer that waits is told to write: a third of the buffer is free, and of the unsent bytes that it may hold a half.
    /// So it is in Linux (`__sk_stream_is_writeable`). Else each byte acknowledged would let one byte be written, for ever.
    fn is_writable(&self, path: &Path) -> bool {
        let room = self.room(path);
        let half_unsent =
            self.unsent_bytes_max == 0 || 2 * self.unsent.len() < self.unsent_bytes_max as usize;
        room > 0 && room >= (self.held() / 2).min(WRITE_BYTES_MAX) && half_unsent
    }

    /// The bytes in the socket's buffer.
    fn held(&self) -> usize {
        self.unsent.len() + self.in_flight() as usize
    }

    /// The receiver has room for bytes up to this one.
    fn room_to(&self, path: &Path) -> u64 {
        let held = self.received.len();
        self.expected + u64::from(path.window_bytes).saturating_sub(held as u64)
    }

    fn see_end(&mut self, now_ns: u64) {
        if self.ending.is_none() && self.end_at == Some(self.expected) {
            self.ending = Some(Ending::Finished);
            self.note_finished(now_ns);
            self.wake_reader();
        }
    }

    fn note_finished(&mut self, now_ns: u64) {
        if self.ending == Some(Ending::Finished) && self.received.is_empty() {
            self.finished_ns.get_or_insert(now_ns);
        }
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    fn wake_writer(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }
}
