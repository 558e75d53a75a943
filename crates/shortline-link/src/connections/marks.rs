//! What the queue and a connection's own thread tell each other without a lock.
//!
//! The connection's thread says when its bytes are in the socket, and seldom needs the link's lock for it. The
//! thread that makes grants passes over a job whose connection cannot send, and marks that somebody waits. It also
//! marks what was charged, so that the connection's thread knows whether anybody is to hear of a write.
//!
//! All marks are in one number, beside the count of how often the connection has drained. Each change is one atomic
//! operation that returns what was there before. So of two changes one comes first, and the other sees it: no job is
//! forgotten, and what is charged while a connection drains is charged after it. `tests/orders.rs` goes through all
//! orders that there are.

use super::sync::{AtomicU32, AtomicU64, Ordering};

/// Bytes were handed to the connection and are not all in the socket yet.
const BUSY: u64 = 1;
/// Somebody waits until they are.
const AWAITED: u64 = 2;
/// Something was charged since the connection drained.
const UNWRITTEN: u64 = 4;
/// Something was charged and given back because the socket was full: it is charged again once it is written.
const REFUNDED: u64 = 8;
/// From here on the number counts how often the connection has drained.
const DRAIN: u64 = 16;

/// When the link is to hear that a connection has drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// Somebody waits until it can send.
    IfAwaited,
    /// That, or something was charged to it.
    IfCharged,
    /// In any case.
    Always,
}

/// The marks of one connection; see the module's text.
pub struct Marks {
    marks: AtomicU64,
    /// Its responses that were granted whole and have not ended. They end without the lock.
    wholes: AtomicU32,
    /// The slots that its bytes take. They change under the lock.
    slots: AtomicU32,
}

impl Marks {
    /// Of a connection that can send, and that nobody waits for.
    pub fn new() -> Self {
        Self {
            marks: AtomicU64::new(0),
            wholes: AtomicU32::new(0),
            slots: AtomicU32::new(0),
        }
    }

    /// Whether nothing handed over before still waits for the socket.
    pub fn can_send(&self) -> bool {
        !self.has(BUSY)
    }

    /// Whether something was charged and is not known to be in the socket.
    pub fn has_unwritten(&self) -> bool {
        self.has(UNWRITTEN)
    }

    /// Whether the regulator is to hear of what was charged, or given back.
    pub fn is_charged(&self) -> bool {
        self.has(UNWRITTEN | REFUNDED)
    }

    /// Whether somebody waits until the connection can send.
    pub fn is_awaited(&self) -> bool {
        self.has(AWAITED)
    }

    /// How often the connection has drained.
    pub fn drains(&self) -> u64 {
        self.marks.load(Ordering::Acquire) / DRAIN
    }

    /// Bytes were handed over.
    pub fn begin(&self) {
        self.set(BUSY);
    }

    /// All bytes are in the socket. `None` if none were under way; else whether the link has to be told, which then calls
    /// [`Self::told`]. If not, what was charged counts as written from here on.
    pub fn drain(&self, report: Report) -> Option<bool> {
        let has_to_be_told = |marks: u64| match report {
            Report::IfAwaited => marks & AWAITED != 0,
            Report::IfCharged => marks & (AWAITED | UNWRITTEN | REFUNDED) != 0,
            Report::Always => true,
        };
        let drained = |marks: u64| match marks & BUSY {
            0 => None,
            _ if has_to_be_told(marks) => Some(marks & !BUSY),
            _ => Some((marks & !(BUSY | UNWRITTEN)) + DRAIN),
        };
        let before = self
            .marks
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, drained);
        before.ok().map(has_to_be_told)
    }

    /// The link was told that the connection has drained: nothing is unwritten, and nobody waits any more. How often
    /// it had drained before.
    pub fn told(&self) -> u64 {
        let told = |marks: u64| Some((marks & !(AWAITED | UNWRITTEN | REFUNDED)) + DRAIN);
        let before = self
            .marks
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, told);
        before.unwrap_or_else(|marks| marks) / DRAIN
    }

    /// Somebody waits from now on. Whether it need not, for the connection can send after all: then nobody else
    /// comes to tell.
    pub fn wait(&self) -> bool {
        self.set(AWAITED) & BUSY == 0
    }

    /// Something is charged. How often the connection had drained by then: what was charged before its last drain is
    /// written.
    pub fn charge(&self) -> u64 {
        self.set(UNWRITTEN) / DRAIN
    }

    /// Nothing that was charged is unwritten.
    pub fn clear_unwritten(&self) {
        self.marks.fetch_and(!UNWRITTEN, Ordering::AcqRel);
    }

    /// Whether anything was given back that is to be charged again.
    pub fn set_refunded(&self, is_any: bool) {
        if is_any {
            self.set(REFUNDED);
        } else {
            self.marks.fetch_and(!REFUNDED, Ordering::AcqRel);
        }
    }

    /// A response is granted whole.
    pub fn whole_began(&self) {
        self.wholes.fetch_add(1, Ordering::AcqRel);
    }

    /// A response that was granted whole has ended, or has a place in the queue now.
    pub fn whole_ended(&self) {
        self.wholes.fetch_sub(1, Ordering::AcqRel);
    }

    /// How many there are.
    pub fn wholes(&self) -> u32 {
        self.wholes.load(Ordering::Acquire)
    }

    /// Its bytes take one slot more.
    pub fn slot_taken(&self) {
        self.slots.fetch_add(1, Ordering::AcqRel);
    }

    /// They take one less.
    pub fn slot_freed(&self) {
        self.slots.fetch_sub(1, Ordering::AcqRel);
    }

    /// How many they take.
    pub fn slots(&self) -> u32 {
        self.slots.load(Ordering::Acquire)
    }

    fn has(&self, any: u64) -> bool {
        self.marks.load(Ordering::Acquire) & any != 0
    }

    fn set(&self, mark: u64) -> u64 {
        self.marks.fetch_or(mark, Ordering::AcqRel)
    }
}
