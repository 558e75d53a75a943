//! What the kernel counted of a connection when it was asked last.

use shortline_base::TcpInfo;

use super::round_trip::RoundTrips;

/// The counters of a connection when it was asked last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    bytes: Bytes,
    pub(super) round_trips: RoundTrips,
}

/// Payload bytes of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bytes {
    pub sent: u64,
    pub resent: u64,
    pub acked: u64,
}

impl Counted {
    /// What happened since; the counters are now what `info` says.
    pub(super) fn advance(&mut self, info: &TcpInfo) -> Bytes {
        let now = Bytes {
            sent: info.sent_bytes,
            resent: info.resent_bytes,
            acked: info.acked_bytes,
        };
        let before = std::mem::replace(&mut self.bytes, now);
        Bytes {
            sent: now.sent.saturating_sub(before.sent),
            resent: now.resent.saturating_sub(before.resent),
            acked: now.acked.saturating_sub(before.acked),
        }
    }
}
