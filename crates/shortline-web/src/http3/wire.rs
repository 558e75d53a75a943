//! What the link knows of a QUIC connection, in the place of a socket's `TCP_INFO`, and the bound on the bytes between
//! the link's grant and the wire.
//!
//! quinn's congestion control hears of every packet. [`Counting`] stands before it, passes everything on and counts:
//!
//! | what the link asks | TCP | QUIC |
//! |---|---|---|
//! | what is unacknowledged | `SIOCOUTQ` | the bytes of packets in flight, and what was written since the last packet. A lone packet counts for a round trip |
//! | acknowledged | `tcpi_bytes_acked` | sent, less lost, less in flight |
//! | round trip, window, segment | `TCP_INFO` | quinn's estimate (RFC 9002, 5), its window, the path's MTU less [`QUIC_BYTES`] |
//! | on the wire | segments and bytes of the kernel | quinn's datagrams and their bytes, 28 bytes of IP and UDP each |
//!
//! All but the last are read without quinn's lock, because the link asks under its own.
//!
//! **The bound.** A TCP socket takes no more once `TCP_NOTSENT_LOWAT` bytes are unsent. quinn takes what fits into its send window,
//! which counts what is unacknowledged. So before each write the window is set to what is in flight and as much as may
//! wait unsent: what is written and not in flight is unsent. In flight is at most the congestion window. A client that acknowledges
//! nothing so holds its first window and the unsent bytes, 48 KiB or so; one whose window grows holds at most [`SEND_BYTES_MAX`].
//! What is sent opens the window again, so each packet wakes who waits to write.
//!
//! **The congestion control** is CUBIC (RFC 9438), which Linux has for TCP by default: QUIC and TCP of one server then get like
//! shares of a bottleneck. quinn's BBR is an experiment by its own manual.

use std::any::Any;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use parking_lot::Mutex;
use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics, CubicConfig};
use quinn_proto::RttEstimator;
use shortline_base::TcpInfo;
use shortline_base::clock::now_ns;
use shortline_base::socket::{HangUp, Headers, SendHalf, Sent};

use super::{EXCESSIVE_LOAD, NO_ERROR};

/// What QUIC adds to the payload of a packet: a short header with a number of 8 bytes for the connection and 2 for the packet, the
/// head of a STREAM frame, the tag (RFC 9000, 17.3.1 and 19.8; RFC 9001, 5.3).
const QUIC_BYTES: u32 = 11 + 8 + 16;
/// IPv4 and UDP.
const IP_UDP_BYTES: u32 = 28;
/// The most that quinn keeps of what a client has not acknowledged: as `tcp_wmem` of Linux.
const SEND_BYTES_MAX: u64 = 4 << 20;
/// What may wait unsent where the link says nothing, as where nothing is scheduled.
const UNSENT_BYTES_DEFAULT: u32 = 64 * 1024;

/// A QUIC connection, as the link sees it.
pub struct Wire {
    counts: Arc<Counts>,
    connection: OnceLock<quinn::Connection>,
    window_bytes: AtomicU64,
    unsent_bytes_max: AtomicU32,
    /// Written since the last packet left.
    fresh: Arc<AtomicU32>,
}

/// What the congestion control has seen, in bytes of UDP's payload.
#[derive(Default)]
struct Counts {
    sent_bytes: AtomicU64,
    packets: AtomicU64,
    lost_bytes: AtomicU64,
    in_flight_bytes: AtomicU64,
    window_bytes: AtomicU64,
    mtu: AtomicU32,
    acks: AtomicU32,
    rtt_us: AtomicU32,
    rtt_us_min: AtomicU32,
    acked_ns: AtomicU64,
    asked_ns: AtomicU64,
    sent_ns: AtomicU64,
    fresh: Arc<AtomicU32>,
    /// Who waits until something is sent.
    writers: Mutex<Vec<Waker>>,
    has_writers: AtomicBool,
}

impl Wire {
    /// A connection that is to be accepted.
    pub fn new() -> Self {
        let counts = Arc::<Counts>::default();
        let now_ns = now_ns();
        counts.acked_ns.store(now_ns, Ordering::Relaxed);
        counts.asked_ns.store(now_ns, Ordering::Relaxed);
        Self {
            fresh: Arc::clone(&counts.fresh),
            counts,
            connection: OnceLock::new(),
            window_bytes: AtomicU64::new(u64::from(UNSENT_BYTES_DEFAULT)),
            unsent_bytes_max: AtomicU32::new(UNSENT_BYTES_DEFAULT),
        }
    }

    /// What makes its congestion control.
    pub fn controllers(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(Controllers(Arc::clone(&self.counts)))
    }

    /// The window that quinn begins with.
    pub fn first_window_bytes(&self) -> u64 {
        self.window_bytes.load(Ordering::Relaxed)
    }

    /// It is accepted.
    pub fn connected(&self, connection: quinn::Connection) {
        self.connection.get_or_init(|| connection);
    }

    /// A request has come.
    pub fn asked(&self) {
        self.counts.asked_ns.store(now_ns(), Ordering::Relaxed);
    }

    /// Lets quinn take what is in flight and as much as may wait unsent. To be called before each write.
    pub fn make_room(&self) {
        let unsent_bytes = self.unsent_bytes_max.load(Ordering::Relaxed);
        let in_flight_bytes = self.counts.in_flight_bytes.load(Ordering::Relaxed);
        let window_bytes = (in_flight_bytes + u64::from(unsent_bytes)).min(SEND_BYTES_MAX);
        if self.window_bytes.swap(window_bytes, Ordering::Relaxed) != window_bytes
            && let Some(connection) = self.connection.get()
        {
            connection.set_send_window(window_bytes);
        }
    }

    /// So many bytes were written.
    pub fn written(&self, bytes: usize) {
        self.fresh.fetch_add(bytes as u32, Ordering::Relaxed);
    }

    /// Whether nothing is under way. A write that waits then waits for the client's window.
    pub fn is_still(&self) -> bool {
        self.counts.in_flight_bytes.load(Ordering::Acquire) == 0
            && self.fresh.load(Ordering::Acquire) == 0
    }

    /// Wakes the task once something is sent or nothing is in flight any more.
    pub fn wait(&self, context: &Context<'_>) {
        let mut writers = self.counts.writers.lock();
        if !writers.iter().any(|known| known.will_wake(context.waker())) {
            writers.push(context.waker().clone());
        }
        self.counts.has_writers.store(true, Ordering::Release);
    }

    fn close(&self, code: u32) {
        if let Some(connection) = self.connection.get() {
            connection.close(code.into(), &[]);
        }
    }
}

impl Counts {
    fn wake(&self) {
        if self.has_writers.swap(false, Ordering::AcqRel) {
            let writers = std::mem::take(&mut *self.writers.lock());
            writers.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether what is in flight is one packet, and that for longer than a round trip: clients acknowledge every second packet at
    /// once and a lone one late, 25 ms as a rule (RFC 9000, 13.2.1). A slot must not wait for that.
    fn has_surely_arrived(&self, in_flight_bytes: u64) -> bool {
        let is_lone = in_flight_bytes <= u64::from(self.mtu.load(Ordering::Relaxed));
        let rtt_ns = u64::from(self.rtt_us.load(Ordering::Relaxed)) * 1000;
        let age_ns = now_ns().saturating_sub(self.sent_ns.load(Ordering::Relaxed));
        is_lone && rtt_ns > 0 && age_ns > rtt_ns + rtt_ns / 4
    }

    /// What of the bytes of full packets is payload.
    fn payload(&self, bytes: u64) -> u64 {
        let mtu = u64::from(self.mtu.load(Ordering::Relaxed)).max(1);
        (bytes * mtu.saturating_sub(QUIC_BYTES.into())).div_ceil(mtu)
    }
}

/// The sending half as the link sees it. Responses are written to streams, not here.
pub struct Sending(pub Arc<Wire>);

impl SendHalf for Sending {
    fn poll_write_ready(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    fn try_write(&self, _: &[IoSlice<'_>]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn try_send_file(
        &self,
        _: &[IoSlice<'_>],
        _: BorrowedFd<'_>,
        _: u64,
        _: usize,
    ) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn shutdown(&self) -> io::Result<()> {
        self.0.close(NO_ERROR);
        Ok(())
    }

    fn reset(&self) {
        self.0.close(EXCESSIVE_LOAD);
    }

    fn reset_on_close(&self) {}

    fn info(&self) -> io::Result<TcpInfo> {
        let counts = &*self.0.counts;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (sent, lost) = (load(&counts.sent_bytes), load(&counts.lost_bytes));
        let arrived = sent.saturating_sub(lost + load(&counts.in_flight_bytes));
        let now_ns = now_ns();
        let age_ms = |since: &AtomicU64| (now_ns.saturating_sub(load(since)) / 1_000_000) as u32;
        let segment_bytes = counts
            .mtu
            .load(Ordering::Relaxed)
            .saturating_sub(QUIC_BYTES);
        Ok(TcpInfo {
            segment_bytes,
            sent_bytes: counts.payload(sent),
            resent_bytes: counts.payload(lost),
            acked_bytes: counts.payload(arrived),
            sent_segments: load(&counts.packets) as u32,
            ack_segments: counts.acks.load(Ordering::Relaxed),
            request_segments: 0,
            rtt_us_min: counts.rtt_us_min.load(Ordering::Relaxed),
            rtt_us: counts.rtt_us.load(Ordering::Relaxed),
            ack_age_ms: age_ms(&counts.acked_ns),
            request_age_ms: age_ms(&counts.asked_ns),
            cwnd_segments: (load(&counts.window_bytes) / u64::from(segment_bytes.max(1))) as u32,
            ..TcpInfo::default()
        })
    }

    fn headers(&self) -> Headers {
        Headers {
            outer_bytes: IP_UDP_BYTES,
            inner_bytes: QUIC_BYTES,
        }
    }

    fn sent(&self) -> io::Result<Sent> {
        let Some(connection) = self.0.connection.get() else {
            return Ok(Sent::default());
        };
        let sent = connection.stats().udp_tx;
        Ok(Sent {
            bytes: sent.bytes,
            packets: sent.datagrams,
        })
    }

    fn unacknowledged_bytes(&self) -> io::Result<u32> {
        let counts = &*self.0.counts;
        let in_flight = counts.in_flight_bytes.load(Ordering::Acquire);
        let fresh = self.0.fresh.load(Ordering::Acquire);
        Ok(match fresh == 0 && counts.has_surely_arrived(in_flight) {
            true => 0,
            false => (counts.payload(in_flight) as u32).saturating_add(fresh),
        })
    }

    fn set_priority(&self, _: u32) {
        // All connections of a port share its socket: `bands` is refused beside HTTP/3.
    }

    fn set_unsent_bytes_max(&self, bytes: u32) {
        let bytes = if bytes == 0 {
            UNSENT_BYTES_DEFAULT
        } else {
            bytes
        };
        self.0.unsent_bytes_max.store(bytes, Ordering::Relaxed);
    }

    fn hang_up(&self) -> HangUp<'_> {
        let connection = self.0.connection.get();
        HangUp::Known(connection.is_some_and(|connection| connection.close_reason().is_some()))
    }
}

/// Makes the congestion control of one connection, anew where its path changes.
struct Controllers(Arc<Counts>);

impl ControllerFactory for Controllers {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        self.0.mtu.store(current_mtu.into(), Ordering::Relaxed);
        let inner = Arc::new(CubicConfig::default()).build(now, current_mtu);
        Box::new(Counting {
            inner,
            counts: Arc::clone(&self.0),
        })
    }
}

/// A congestion control that counts; see the module's text.
struct Counting {
    inner: Box<dyn Controller>,
    counts: Arc<Counts>,
}

impl Counting {
    fn note_window(&self) {
        let window_bytes = self.inner.window();
        self.counts
            .window_bytes
            .store(window_bytes, Ordering::Relaxed);
    }
}

impl Controller for Counting {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
        let counts = &*self.counts;
        counts.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        let mtu = u64::from(counts.mtu.load(Ordering::Relaxed)).max(1);
        counts
            .packets
            .fetch_add(bytes.div_ceil(mtu), Ordering::Relaxed);
        counts.in_flight_bytes.fetch_add(bytes, Ordering::AcqRel);
        counts.sent_ns.store(now_ns(), Ordering::Relaxed);
        counts.fresh.store(0, Ordering::Release);
        counts.wake();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
        let us = |time: std::time::Duration| time.as_micros() as u32;
        self.counts.rtt_us.store(us(rtt.get()), Ordering::Relaxed);
        self.counts
            .rtt_us_min
            .store(us(rtt.min()), Ordering::Relaxed);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.inner
            .on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        self.note_window();
        let counts = &*self.counts;
        counts.acks.fetch_add(1, Ordering::Relaxed);
        counts.acked_ns.store(now_ns(), Ordering::Relaxed);
        counts.in_flight_bytes.store(in_flight, Ordering::Release);
        if in_flight == 0 {
            counts.wake();
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.inner
            .on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        self.note_window();
        let counts = &*self.counts;
        counts.lost_bytes.fetch_add(lost_bytes, Ordering::Relaxed);
        let less = |bytes: u64| Some(bytes.saturating_sub(lost_bytes));
        // It is never `None`, so it never fails.
        let _ = counts
            .in_flight_bytes
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
        self.counts.mtu.store(new_mtu.into(), Ordering::Relaxed);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            counts: Arc::clone(&self.counts),
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// What happens to packets.
    #[derive(Clone, Copy, Debug)]
    enum Event {
        Sent(u16),
        /// So much of what is in flight, in 1/256.
        Acknowledged(u8),
        Lost(u8),
        Written(u16),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            (1..14_520u16).prop_map(Event::Sent),
            any::<u8>().prop_map(Event::Acknowledged),
            any::<u8>().prop_map(Event::Lost),
            (1..10_000u16).prop_map(Event::Written),
        ]
    }

    proptest! {
        /// Whatever is sent, lost or acknowledged: the parts add up, and nothing counts as arrived that is in flight.
        #[test]
        fn what_was_sent_is_lost_in_flight_or_has_arrived(events in proptest::collection::vec(event(), 0..100)) {
            let wire = Arc::new(Wire::new());
            let now = Instant::now();
            let mut control = wire.controllers().build(now, 1452);
            let sending = Sending(Arc::clone(&wire));
            let (mut in_flight, mut arrived) = (0u64, 0u64);
            for event in events {
                let part = |share: u8| in_flight * u64::from(share) / 256;
                match event {
                    Event::Sent(bytes) => {
                        control.on_sent(now, bytes.into(), 1);
                        in_flight += u64::from(bytes);
                    }
                    Event::Acknowledged(share) => {
                        let bytes = part(share);
                        (in_flight, arrived) = (in_flight - bytes, arrived + bytes);
                        control.on_end_acks(now, in_flight, false, Some(1));
                    }
                    Event::Lost(share) => {
                        let bytes = part(share);
                        in_flight -= bytes;
                        control.on_congestion_event(now, now, false, bytes);
                    }
                    Event::Written(bytes) => wire.written(bytes.into()),
                }
                let info = sending.info().unwrap();
                prop_assert_eq!(info.acked_bytes, wire.counts.payload(arrived));
                prop_assert!(info.acked_bytes <= info.sent_bytes);
                let unacknowledged = u64::from(sending.unacknowledged_bytes().unwrap());
                prop_assert!(unacknowledged >= wire.counts.payload(in_flight));
                prop_assert_eq!(wire.is_still(), unacknowledged == 0);
            }
        }
    }

    #[tokio::test]
    async fn who_waits_to_write_is_woken_by_each_packet() {
        let wire = Wire::new();
        let mut control = wire.controllers().build(Instant::now(), 1452);
        let mut turns = 0;
        std::future::poll_fn(|context| {
            turns += 1;
            wire.wait(context);
            // Twice by the same task is once, if its wakers can be told to be the same: not so in every optimized build.
            wire.wait(context);
            let is_known = context.waker().clone().will_wake(context.waker());
            assert_eq!(wire.counts.writers.lock().len(), 2 - usize::from(is_known));
            control.on_sent(Instant::now(), 1200, turns);
            if turns == 3 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}
