//! Whether a response stalls because of its client: the socket takes nothing, or every window is
//! closed. A slow client's socket may take nothing for a minute while the client still takes what
//! is in there. What it acknowledges tells it apart from a client that takes nothing.

use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Order, Watch};

/// The bytes a client must acknowledge in half of `stall_time_max` to count as taking something: a
/// full segment.
const TAKEN_BYTES_MIN: u64 = 1448;

/// A response that waits for the client's window.
pub struct WindowClosed<W: Deref<Target = Watch>>(W);

impl<W: Deref<Target = Watch>> WindowClosed<W> {
    /// Notes it for as long as the result is held.
    pub fn new(watch: W) -> Self {
        watch.windows_closed.fetch_add(1, Ordering::Relaxed);
        Self(watch)
    }
}

impl Watch {
    /// Notes, for as long as the result is held, that a response waits for the client to open its
    /// window.
    pub fn window_closed(&self) -> WindowClosed<&Self> {
        WindowClosed::new(self)
    }

    /// The order for a response that has stalled for this long.
    pub(super) fn due_of_stalled(
        &self,
        since: Duration,
        stall_time_max: Duration,
        now_ns: u64,
    ) -> Order {
        let mut before = self.acknowledged_bytes.lock();
        let acknowledged_bytes = || self.transport.acknowledged_bytes().unwrap_or(0);
        if since <= stall_time_max {
            // Asked once, in the middle, because it is a system call.
            if since > stall_time_max / 2 && before.is_none() {
                *before = Some(acknowledged_bytes());
            }
            return Order::None;
        }
        let taken_bytes = before.map_or(0, |before| acknowledged_bytes().saturating_sub(before));
        if taken_bytes < TAKEN_BYTES_MIN {
            return Order::Close;
        }
        *before = None;
        self.since_ns.store(now_ns, Ordering::Relaxed);
        Order::None
    }

    /// Whether its responses stall because of their client, and not because others go first.
    pub(super) fn is_stalled(&self) -> bool {
        // If no response waits for grants, only the socket can tell.
        let takes_nothing = !self.transport.can_send() || self.transport.is_full();
        let windows_closed = self.windows_closed.load(Ordering::Relaxed);
        takes_nothing || windows_closed >= self.responses.load(Ordering::Relaxed)
    }
}

impl<W: Deref<Target = Watch>> Drop for WindowClosed<W> {
    fn drop(&mut self) {
        self.0.windows_closed.fetch_sub(1, Ordering::Relaxed);
    }
}
