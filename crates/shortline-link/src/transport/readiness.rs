//! Whether a connection can send, and whether somebody waits until it can: two marks that threads share
//! without a lock.
//!
//! The connection's own thread says when its bytes are in the socket. The thread that makes grants passes over a
//! job whose connection cannot send, and marks that somebody waits. Both marks are in one number, and
//! either change returns what was there before. So one of the two comes first, and the other sees it:
//! the job is told. `tests/orders.rs` goes through all orders that there are.

use super::sync::{AtomicU8, Ordering};

/// Bytes were handed to the connection and are not all in the socket yet.
const BUSY: u8 = 1;
/// Somebody waits until they are.
const AWAITED: u8 = 2;

/// The two marks.
pub struct Readiness(AtomicU8);

impl Readiness {
    /// Of a connection that can send, and that nobody waits for.
    pub fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// Whether nothing handed over before still waits for the socket.
    pub fn can_send(&self) -> bool {
        self.0.load(Ordering::Acquire) & BUSY == 0
    }

    /// Bytes were handed over.
    pub fn begin(&self) {
        self.0.fetch_or(BUSY, Ordering::AcqRel);
    }

    /// All bytes are in the socket: whether somebody waits for that; `None` if none were under way.
    pub fn end(&self) -> Option<bool> {
        let before = self.0.fetch_and(!BUSY, Ordering::AcqRel);
        (before & BUSY != 0).then_some(before & AWAITED != 0)
    }

    /// Somebody waits from now on. Whether it need not, for the connection can send after all: then nobody else
    /// comes to tell.
    pub fn wait(&self) -> bool {
        self.0.fetch_or(AWAITED, Ordering::AcqRel) & BUSY == 0
    }

    /// Whether somebody waits.
    pub fn is_awaited(&self) -> bool {
        self.0.load(Ordering::Acquire) & AWAITED != 0
    }

    /// All who waited were told.
    pub fn told(&self) {
        self.0.fetch_and(!AWAITED, Ordering::AcqRel);
    }
}
