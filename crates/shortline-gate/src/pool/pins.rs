//! Sessions that keep their connection: how many may, and how many units can run besides them.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::PoolMode;
use crate::Gate;

/// The pins of a pool.
#[derive(Debug)]
pub struct Pins {
    mode: PoolMode,
    /// The pool's connections. Replaced at a reload.
    size: AtomicUsize,
    /// Sessions that keep their connection, of those that are bounded.
    kept: AtomicUsize,
    /// Sessions that keep their connection and have no unit.
    pinned: Mutex<usize>,
    gate: Gate,
}

/// A pin: the session keeps its connection for as long as this lives.
#[derive(Debug)]
pub struct Keeping {
    pins: Arc<Pins>,
    /// Whether it counts towards the bound of `Pins::keep`.
    is_kept: bool,
    /// Whether it counts as pinned. Admission then does not count on its connection.
    is_counted: bool,
}

impl Keeping {
    /// Sets whether its session has no unit now. Admission's bound on running units changes accordingly.
    pub fn set_resting(&mut self, rests: bool) {
        if std::mem::replace(&mut self.is_counted, rests) != rests {
            self.pins.set_pinned(rests);
        }
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.set_resting(false);
        if self.is_kept {
            self.pins.kept.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Pins {
    /// The pins of a pool of `size` connections at `gate`.
    pub fn new(mode: PoolMode, size: NonZeroUsize, gate: &Gate) -> Arc<Self> {
        Arc::new(Self {
            mode,
            size: AtomicUsize::new(size.get()),
            kept: AtomicUsize::new(0),
            pinned: Mutex::new(0),
            gate: gate.clone(),
        })
    }

    /// The number of sessions that keep a connection between two units.
    pub fn pinned(&self) -> usize {
        *self.pinned.lock()
    }

    fn set_pinned(&self, is_pinned: bool) {
        if self.mode != PoolMode::Transaction {
            return;
        }
        let mut pinned = self.pinned.lock();
        match is_pinned {
            true => *pinned += 1,
            false => *pinned -= 1,
        }
        self.tell_places(*pinned);
    }

    /// Sets the number of the pool's connections.
    pub fn resize(&self, size: NonZeroUsize) {
        self.size.store(size.get(), Ordering::Relaxed);
        if self.mode == PoolMode::Transaction {
            self.tell_places(*self.pinned.lock());
        }
    }

    /// Sets how many units can run while `pinned` sessions keep a connection without a unit. The lock on their number is
    /// held, so that the gate's bound is that of the last change.
    fn tell_places(&self, pinned: usize) {
        let left = self.size.load(Ordering::Relaxed).saturating_sub(pinned);
        // At least one. A unit that finds no connection waits for one.
        self.gate
            .set_running_max(NonZeroUsize::new(left).unwrap_or(NonZeroUsize::MIN));
    }

    /// Lets one more session keep its connection, if at least one is left for the others.
    pub fn keep(self: &Arc<Self>) -> Option<Keeping> {
        let size = self.size.load(Ordering::Relaxed);
        let more = |kept| (kept + 1 < size).then_some(kept + 1);
        let kept = self
            .kept
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        kept.ok().map(|_| self.pin(true))
    }

    /// Why a session of a pool of transactions keeps its connection where a rule says so.
    pub const OF_SESSIONS: &'static str = "its client's pool is one of sessions";

    /// The answer to a session for which [`Self::keep`] has none left.
    pub fn too_many_keep(reason: &str) -> String {
        format!(
            "the session would keep its connection, as {reason}, and too many do: raise --pool-size"
        )
    }

    /// Lets a session keep its connection to its end. Where others need one for each transaction, at least one is left
    /// for them.
    pub fn keep_for_session(self: &Arc<Self>) -> Option<Keeping> {
        match self.mode {
            PoolMode::Session => Some(self.pin(false)),
            PoolMode::Transaction => self.keep(),
        }
    }

    fn pin(self: &Arc<Self>, is_kept: bool) -> Keeping {
        Keeping {
            pins: Arc::clone(self),
            is_kept,
            is_counted: false,
        }
    }
}
