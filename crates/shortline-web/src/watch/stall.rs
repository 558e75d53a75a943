//! Whether a response stalls because of its client: the socket takes nothing, or every window is
//! closed. A slow client's socket may take nothing for a minute while the client still takes what
//! is in there. What it acknowledges tells it apart from a client that takes nothing.
//!
//! If only some of a connection's responses wait for their windows, only those are given up. The others wait for something of ours,
//! such as a place at a backend, and that may be held by one that is given up.

use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::futures::Notified;

use super::{Due, Order, Watch};

/// The bytes a client must acknowledge in half of `stall_time_max` to count as taking something: a
/// full segment.
const TAKEN_BYTES_MIN: u64 = 1448;

/// Which responses of a connection wait for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stalled {
    None,
    /// Those whose windows are closed.
    Some,
    All,
}

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

    /// Tells whoever waits for the client's window when to look again, once.
    pub fn look_again(&self) -> Notified<'_> {
        self.windows.notified()
    }

    /// Lets all who wait for the client's window look again.
    pub fn windows_may_be_open(&self) {
        self.windows.notify_waiters();
    }

    /// Whether whoever waits for the client's window, or for room, is to give up: nothing has moved since that was decided.
    pub fn gives_up(&self) -> bool {
        self.given_up_at.load(Ordering::Acquire) == self.progress.load(Ordering::Relaxed)
    }

    /// Runs what waits for the client to its end, or gives it up (`None`).
    pub async fn sending<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            // Nothing is missed in between.
            let mut told = pin!(self.look_again());
            if self.gives_up() {
                return None;
            }
            let sent = poll_fn(|context| match work.as_mut().poll(context) {
                Poll::Pending => told.as_mut().poll(context).map(|()| None),
                sent => sent.map(Some),
            });
            if let Some(sent) = sent.await {
                return Some(sent);
            }
        }
    }

    /// What is due if its responses have stalled for this long.
    pub(super) fn due_of_stalled(
        &self,
        since: Duration,
        stall_time_max: Duration,
        now_ns: u64,
    ) -> Due {
        match self.stalled() {
            Stalled::None => Due::Nothing,
            _ if !self.takes_nothing(since, stall_time_max, now_ns) => Due::Nothing,
            Stalled::Some => Due::GiveUp,
            Stalled::All => Due::Order(Order::Close),
        }
    }

    /// Gives up all responses that wait for the client's window.
    pub(super) fn give_up(&self) {
        // As the sweep saw it: what has moved since goes on.
        let progress = self.progress_seen.load(Ordering::Relaxed);
        self.given_up_at.store(progress, Ordering::Release);
        self.windows_may_be_open();
    }

    /// Whether the client has taken hardly anything for longer than a response may stall.
    fn takes_nothing(&self, since: Duration, stall_time_max: Duration, now_ns: u64) -> bool {
        let mut before = self.acknowledged_bytes.lock();
        let acknowledged_bytes = || self.transport.acknowledged_bytes().unwrap_or(0);
        if since <= stall_time_max {
            // Asked once, in the middle, because it is a system call.
            if since > stall_time_max / 2 && before.is_none() {
                *before = Some(acknowledged_bytes());
            }
            return false;
        }
        let taken_bytes = before.map_or(0, |before| acknowledged_bytes().saturating_sub(before));
        if taken_bytes < TAKEN_BYTES_MIN {
            return true;
        }
        *before = None;
        self.since_ns.store(now_ns, Ordering::Relaxed);
        false
    }

    /// Which of its responses stall because of their client, and not because others go first.
    fn stalled(&self) -> Stalled {
        let windows_closed = self.windows_closed.load(Ordering::Relaxed);
        // If no response waits for grants, only the socket can tell.
        if !self.transport.can_send()
            || self.transport.is_full()
            || windows_closed >= self.responses.load(Ordering::Relaxed)
        {
            Stalled::All
        } else if windows_closed > 0 {
            Stalled::Some
        } else {
            Stalled::None
        }
    }
}

impl<W: Deref<Target = Watch>> Drop for WindowClosed<W> {
    fn drop(&mut self) {
        self.0.windows_closed.fetch_sub(1, Ordering::Relaxed);
    }
}
