//! A connection as the link sees it: can it send now, what does a write cost on the wire, and
//! what does the kernel still hold of it. A job knows nothing else of its connection, so that
//! other transports fit behind the same calls.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use shortline_base::TcpInfo;
use shortline_base::socket::SendHalf;
use shortline_sched::{JobId, PathView};

use readiness::Readiness;

use crate::bands::JobsBands;
use crate::discovery::counted::Counted;
use crate::network;
use crate::regulator::slots::Holder;

mod readiness;

/// What [`readiness`] is made of; its tests have others.
mod sync {
    pub use std::sync::atomic::{AtomicU8, Ordering};
}

/// Payload bytes of a full segment on Ethernet with TCP timestamps, until the socket says.
pub(crate) const SEGMENT_BYTES_DEFAULT: u32 = 1448;

/// What `TCP_INFO` counts of the handshake as acknowledged: the SYN has a number, like a byte.
const HANDSHAKE_BYTES: u64 = 1;

/// The band of a connection that has not sent a response yet.
const BAND_OF_CONTROL: usize = usize::MAX;

/// A connection that carries jobs.
pub struct Transport {
    socket: Box<dyn SendHalf>,
    scheduled: bool,
    address: IpAddr,
    /// Asked of the socket when first needed; 0 until then.
    segment_bytes: AtomicU32,
    packet_overhead_bytes: u32,
    pub(crate) readiness: Readiness,
    /// The socket took no more when it was last tried.
    full: AtomicBool,
    /// The unsent bytes before it counts as not writable. Changed under the link's lock only.
    unsent_bytes_max: AtomicU32,
    /// The band its packets wait in (mode `bands`). Changed under the link's lock only.
    band: AtomicUsize,
    /// The bands of its jobs that can send or wait for it (mode `bands`). Changed under the link's
    /// lock only.
    pub(crate) jobs_bands: Mutex<JobsBands>,
    /// Jobs on this connection.
    jobs: AtomicU32,
    pub(crate) ledger: Ledger,
    /// Its counters when discovery asked for them last.
    counted: Mutex<Counted>,
    /// It is on the list of the connections that discovery asks.
    recent: AtomicBool,
    /// Something was granted on it before.
    known: AtomicBool,
    /// Jobs passed over while the connection could not send. Changed under the link's lock only.
    pub(crate) parked: Mutex<Vec<JobId>>,
}

/// What was charged for this connection, in wire bytes. Changed under the link's lock, but for
/// what is written where no pacer waits to hear of it.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Charged, and not yet in the socket.
    pub unwritten: AtomicU32,
    /// Charged before, given back because the socket took no more.
    pub refunded: AtomicU32,
    /// Everything that stayed charged.
    pub charged: AtomicU64,
    /// How often the unwritten bytes were found in the socket.
    pub drains: AtomicU64,
}

impl Ledger {
    /// What was charged and not yet in the socket is there now.
    pub(crate) fn written(&self) {
        let unwritten = self.unwritten.swap(0, Ordering::AcqRel);
        self.charged
            .fetch_add(u64::from(unwritten), Ordering::AcqRel);
        self.drains.fetch_add(1, Ordering::AcqRel);
    }
}

impl Transport {
    pub(crate) fn new(
        socket: Box<dyn SendHalf>,
        scheduled: bool,
        address: IpAddr,
        per_packet: u32,
        unsent_bytes_max: u32,
    ) -> Self {
        Self {
            socket,
            unsent_bytes_max: AtomicU32::new(unsent_bytes_max),
            scheduled,
            address,
            segment_bytes: AtomicU32::new(0),
            packet_overhead_bytes: per_packet,
            readiness: Readiness::new(),
            full: AtomicBool::new(false),
            band: AtomicUsize::new(BAND_OF_CONTROL),
            jobs_bands: Mutex::default(),
            jobs: AtomicU32::new(0),
            ledger: Ledger::default(),
            counted: Mutex::default(),
            recent: AtomicBool::new(false),
            known: AtomicBool::new(false),
            parked: Mutex::new(Vec::new()),
        }
    }

    /// The socket below.
    pub fn socket(&self) -> &dyn SendHalf {
        &*self.socket
    }

    /// Whether the jobs of this connection wait for grants at all.
    pub fn is_scheduled(&self) -> bool {
        self.scheduled
    }

    /// Payload bytes of a full segment.
    fn segment_bytes(&self) -> u32 {
        let known = self.segment_bytes.load(Ordering::Relaxed);
        if known > 0 {
            return known;
        }
        let asked = self.socket.info().map_or(0, |info| info.segment_bytes);
        let bytes = if asked > 0 {
            asked
        } else {
            SEGMENT_BYTES_DEFAULT
        };
        self.segment_bytes.store(bytes, Ordering::Relaxed);
        bytes
    }

    /// Wire bytes that `payload_bytes` cost: themselves and the headers of their packets.
    pub fn wire_bytes(&self, payload_bytes: u32) -> u32 {
        let packets = payload_bytes.div_ceil(self.segment_bytes());
        payload_bytes.saturating_add(packets.saturating_mul(self.packet_overhead_bytes))
    }

    /// The connection is over: what its socket has still leaves, and then the client hears of the end. To drop our
    /// own hold of it would not do: discovery may hold it longer.
    pub fn end(&self) {
        // It fails where the protocol has done it, or the client has gone.
        let _ = self.socket.shutdown();
    }

    /// Whether a grant would be used now: nothing handed over before still waits for the socket.
    pub fn can_send(&self) -> bool {
        self.readiness.can_send()
    }

    /// Whether the socket took no more when it was last tried.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// The connection has taken bytes that are not in the socket yet.
    pub(crate) fn set_busy(&self) {
        self.readiness.begin();
    }

    /// Everything handed over so far is in the socket. Whether a job waits to hear of it; none if the
    /// connection was not busy.
    pub(crate) fn end_busy(&self) -> Option<bool> {
        self.full.store(false, Ordering::Release);
        self.readiness.end()
    }

    /// The socket takes no more for now.
    pub(crate) fn set_full(&self) {
        self.full.store(true, Ordering::Release);
    }

    /// Whether the regulator has charged it, or given back, what it is to hear of.
    pub(crate) fn is_charged(&self) -> bool {
        self.has_unwritten() || self.ledger.refunded.load(Ordering::Acquire) > 0
    }

    /// Whether responses of this connection wait or are being sent.
    pub(crate) fn carries_jobs(&self) -> bool {
        self.jobs() > 0
    }

    /// How many of them there are.
    pub(crate) fn jobs(&self) -> u32 {
        self.jobs.load(Ordering::Acquire)
    }

    /// A job on this connection begins.
    pub(crate) fn job_began(&self) {
        self.jobs.fetch_add(1, Ordering::AcqRel);
    }

    /// A job on this connection has ended.
    pub(crate) fn job_ended(&self) {
        self.jobs.fetch_sub(1, Ordering::AcqRel);
    }

    /// Lets further packets wait in `band`, whose `SO_PRIORITY` is as told. Whether that is another
    /// than before: else no system call is made.
    pub(crate) fn move_to_band(&self, band: usize, priority: u32) -> bool {
        let moves = self.band.swap(band, Ordering::Relaxed) != band;
        if moves {
            self.set_priority(priority);
        }
        moves
    }

    /// Whether packets wait in a band of responses that is less urgent than `band`.
    pub(crate) fn waits_below(&self, band: usize) -> bool {
        let own = self.band.load(Ordering::Relaxed);
        own != BAND_OF_CONTROL && own > band
    }

    /// Lets the socket count as not writable from so many unsent bytes on: no system call where it
    /// does already.
    pub(crate) fn set_unsent_bytes_max(&self, bytes: u32) {
        if self.unsent_bytes_max.swap(bytes, Ordering::Relaxed) != bytes {
            self.socket.set_unsent_bytes_max(bytes);
        }
    }

    pub(crate) fn set_priority(&self, priority: u32) {
        self.socket.set_priority(priority);
    }

    /// Whether something was granted on it before.
    pub(crate) fn is_known(&self) -> bool {
        self.known.load(Ordering::Relaxed)
    }

    /// Something is granted on it; whether that is the first.
    pub(crate) fn become_known(&self) -> bool {
        !self.is_known() && !self.known.swap(true, Ordering::Relaxed)
    }

    /// Whether the client has acknowledged anything since it connected: one system call. So it has where the
    /// socket is gone.
    pub(crate) fn has_acknowledged(&self) -> bool {
        self.socket
            .info()
            .map_or(true, |info| info.acked_bytes > HANDSHAKE_BYTES)
    }

    /// What the client has acknowledged since it connected: one system call.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn acknowledged_bytes(&self) -> io::Result<u64> {
        Ok(self.socket.info()?.acked_bytes)
    }

    /// The path to the client now, for a response that has sent something or not yet: one system
    /// call. Unknown where the socket is gone.
    pub(crate) fn path(&self, has_sent: bool) -> PathView {
        self.socket
            .info()
            .map_or(PathView::UNKNOWN, |info| network::view(&info, has_sent))
    }

    /// The client's address.
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// What the kernel says of the connection: one system call.
    pub(crate) fn ask(&self) -> io::Result<TcpInfo> {
        self.socket.info()
    }

    /// Changes the counters that discovery keeps of the connection.
    pub(crate) fn count<T>(&self, change: impl FnOnce(&mut Counted) -> T) -> T {
        change(&mut self.counted.lock())
    }

    /// Puts the connection on the list of those that discovery asks; whether it was not there.
    pub(crate) fn set_recent(&self) -> bool {
        !self.recent.swap(true, Ordering::AcqRel)
    }

    /// Takes the connection off that list.
    pub(crate) fn clear_recent(&self) {
        self.recent.store(false, Ordering::Release);
    }

    /// What the connection has put on the wire so far, by the kernel's count.
    pub(crate) fn wire_bytes_sent(&self) -> io::Result<u64> {
        let info = self.socket.info()?;
        let headers = u64::from(info.sent_segments) * u64::from(self.packet_overhead_bytes);
        Ok(info.sent_bytes + headers)
    }
}

impl Holder for Transport {
    fn has_unwritten(&self) -> bool {
        self.ledger.unwritten.load(Ordering::Acquire) > 0
    }

    fn unacknowledged_bytes(&self) -> u32 {
        self.socket.unacknowledged_bytes().unwrap_or(0)
    }

    fn rtt_ns_min(&self) -> u64 {
        self.socket
            .info()
            .map_or(0, |info| u64::from(info.rtt_us_min) * 1000)
    }
}
