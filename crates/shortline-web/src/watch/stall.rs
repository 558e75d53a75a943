//! Whether a response stands still because of its client: the socket takes nothing, or every window is
//! closed. A client may be so slow that its socket takes nothing for a minute, and still take what is in
//! there: what it acknowledges tells it from one that takes nothing.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Order, Watch};

/// A client takes something if it acknowledges so much in half of `stall_time_max`: a full segment.
const TAKEN_BYTES_MIN: u64 = 1448;

/// A response waits for the client's HTTP/2 window.
pub struct WindowClosed<'a>(&'a Watch);

impl Watch {
    /// A response cannot go on before the client opens its window: while the answer is held.
    pub fn window_closed(&self) -> WindowClosed<'_> {
        self.windows_closed.fetch_add(1, Ordering::Relaxed);
        WindowClosed(self)
    }

    /// What is due of a response that has stood still for so long.
    pub(super) fn due_of_stalled(
        &self,
        since: Duration,
        stall_time_max: Duration,
        now_ns: u64,
    ) -> Order {
        let mut before = self.acknowledged_bytes.lock();
        let acknowledged_bytes = || self.transport.acknowledged_bytes().unwrap_or(0);
        if since <= stall_time_max {
            // Asked once, in the middle: it is a system call.
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

    /// Its responses stand still because of their client, not because others are before them.
    pub(super) fn is_stalled(&self) -> bool {
        // Where no response waits for grants, only the socket tells.
        let takes_nothing = !self.transport.can_send() || self.transport.is_full();
        let windows_closed = self.windows_closed.load(Ordering::Relaxed);
        takes_nothing || windows_closed >= self.responses.load(Ordering::Relaxed)
    }
}

impl Drop for WindowClosed<'_> {
    fn drop(&mut self) {
        self.0.windows_closed.fetch_sub(1, Ordering::Relaxed);
    }
}
