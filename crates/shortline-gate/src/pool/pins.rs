//! Sessions that keep their connection: how many may, and how many units can run beside them.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::PoolMode;
use crate::Gate;

/// All of a pool.
#[derive(Debug)]
pub struct Pins {
    mode: PoolMode,
    /// Exchanged at a reload.
    size: AtomicUsize,
    /// Sessions that keep their connection.
    kept: AtomicUsize,
    /// Of these, those without a unit.
    pinned: AtomicUsize,
    gate: Gate,
}

/// A session keeps its connection as long as this lives.
#[derive(Debug)]
pub struct Keeping {
    pins: Arc<Pins>,
    /// It is one of those that are bounded.
    is_kept: bool,
    /// Admission counts without its connection.
    is_counted: bool,
}

impl Keeping {
    /// Its session has no unit from now on, or has one again: admission is told how many units can run.
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
    /// Of a pool of so many connections, before `gate`.
    pub fn new(mode: PoolMode, size: NonZeroUsize, gate: &Gate) -> Arc<Self> {
        Arc::new(Self {
            mode,
            size: AtomicUsize::new(size.get()),
            kept: AtomicUsize::new(0),
            pinned: AtomicUsize::new(0),
            gate: gate.clone(),
        })
    }

    /// Sessions that keep a connection between two units.
    pub fn pinned(&self) -> usize {
        self.pinned.load(Ordering::Relaxed)
    }

    fn set_pinned(&self, is_pinned: bool) {
        if self.mode != PoolMode::Transaction {
            return;
        }
        let pinned = match is_pinned {
            true => self.pinned.fetch_add(1, Ordering::AcqRel) + 1,
            false => self.pinned.fetch_sub(1, Ordering::AcqRel) - 1,
        };
        self.tell_places(pinned);
    }

    /// The pool has so many connections from now on.
    pub fn resize(&self, size: NonZeroUsize) {
        self.size.store(size.get(), Ordering::Relaxed);
        if self.mode == PoolMode::Transaction {
            self.tell_places(self.pinned());
        }
    }

    /// Tells admission how many units can run, where so many sessions keep a connection without one.
    fn tell_places(&self, pinned: usize) {
        let left = self.size.load(Ordering::Relaxed).saturating_sub(pinned);
        // One at least: what it lets in waits for a connection.
        self.gate
            .set_running_max(NonZeroUsize::new(left).unwrap_or(NonZeroUsize::MIN));
    }

    /// One more session keeps its connection, if one is left for all others.
    pub fn keep(self: &Arc<Self>) -> Option<Keeping> {
        let size = self.size.load(Ordering::Relaxed);
        let more = |kept| (kept + 1 < size).then_some(kept + 1);
        let kept = self
            .kept
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        kept.ok().map(|_| self.pin(true))
    }

    /// A session keeps its connection to its end, whoever else wants one.
    pub fn keep_for_session(self: &Arc<Self>) -> Keeping {
        self.pin(false)
    }

    fn pin(self: &Arc<Self>, is_kept: bool) -> Keeping {
        Keeping {
            pins: Arc::clone(self),
            is_kept,
            is_counted: false,
        }
    }
}
