//! The path to a job's client, for the policies that use it.
//!
//! A driver reads it from the connection (`TCP_INFO` on Linux) at submission and whenever it
//! changes. The formulas use lengths and rates only in proportion to the work. So a driver that
//! counts work in another unit than bytes gives window and rate in that unit.

/// The path to a job's client at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathView {
    /// The round trip time, in nanoseconds.
    pub rtt_ns: u64,
    /// The congestion window, in bytes; 0 counts as 1.
    pub cwnd_bytes: u64,
    /// What the connection has carried so far, in bits per second; `None` if nothing yet.
    pub rate_bps_past: Option<u64>,
}

impl PathView {
    /// An unknown path. It has the round trip time that TCP assumes before it has
    /// measured one (RFC 6298 2.1), and TCP's initial window (RFC 6928 2).
    pub const UNKNOWN: PathView = PathView {
        rtt_ns: 1_000_000_000,
        cwnd_bytes: 14_600,
        rate_bps_past: None,
    };

    /// How long `bytes` take from now on (004 3.3.5), in nanoseconds:
    /// `RTT (1 + bytes / cwnd)`.
    pub fn response_ns(&self, bytes: u64) -> u64 {
        let sending_ns = transfer_ns(bytes, self.rate_bps_window());
        self.rtt_ns.saturating_add(sending_ns.round() as u64)
    }

    /// What the window lets through, in bits per second: a window each round trip (004 3.3.4).
    pub(crate) fn rate_bps_window(&self) -> f64 {
        self.cwnd_bytes.max(1) as f64 * BITS_NS / self.rtt_ns as f64
    }
}

/// Nanoseconds that `bytes` need at `rate_bps`; infinite at rate 0.
pub(crate) fn transfer_ns(bytes: u64, rate_bps: f64) -> f64 {
    if bytes == 0 {
        return 0.0;
    }
    bytes as f64 * BITS_NS / rate_bps
}

/// Bits of a byte times nanoseconds of a second.
const BITS_NS: f64 = 8e9;
