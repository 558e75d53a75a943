//! How many responses of backends are compressed at a time, and how much of the processors that takes.
//!
//! Each holds up to about a megabyte. And compressing may use half of the time of the workers' processors in the long run
//! (GCRA, a virtual clock that each piece of work moves on by twice its share, and that may be a second ahead). Beyond either
//! limit responses leave as they are: then the processor, and not the uplink, is the bottleneck.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use shortline_base::clock;

/// By how much the work may be ahead of its half of the time: what comes at once need not wait.
const AHEAD_NS_MAX: u64 = 1_000_000_000;

/// What is compressed as it passes.
#[derive(Debug)]
pub struct Streams {
    open: AtomicUsize,
    open_max: usize,
    processors: u64,
    /// Until when, by its half of the time, the work done so far takes.
    until_ns: AtomicU64,
}

/// One of them.
#[derive(Debug)]
pub struct Place(Arc<Streams>);

impl Streams {
    /// At most `open_max` at a time, on as many processors.
    pub fn new(open_max: usize, processors: usize) -> Arc<Self> {
        Arc::new(Self {
            open: AtomicUsize::new(0),
            open_max,
            processors: processors.max(1) as u64,
            until_ns: AtomicU64::new(0),
        })
    }

    /// A place for one more. `None`: the response leaves as it is.
    pub fn enter(self: &Arc<Self>) -> Option<Place> {
        if self.until_ns.load(Ordering::Relaxed) > clock::now_ns() + AHEAD_NS_MAX {
            return None;
        }
        let more = |open| (open < self.open_max).then_some(open + 1);
        let entered = self
            .open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        entered.is_ok().then(|| Place(Arc::clone(self)))
    }

    /// Counts work of so many nanoseconds of one processor.
    fn charge(&self, work_ns: u64) {
        let share_ns = 2 * work_ns / self.processors;
        let now_ns = clock::now_ns();
        let later = |until_ns: u64| Some(until_ns.max(now_ns) + share_ns);
        // It never refuses.
        let _ = self
            .until_ns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }
}

impl Place {
    /// Does a piece of the work, and counts what it takes.
    pub fn work<T>(&self, piece: impl FnOnce() -> T) -> T {
        let before_ns = clock::thread_work_ns();
        let done = piece();
        self.0
            .charge(clock::thread_work_ns().saturating_sub(before_ns));
        done
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_at_a_time_than_allowed() {
        let streams = Streams::new(2, 1);
        let (one, two) = (streams.enter(), streams.enter());
        assert!(one.is_some() && two.is_some() && streams.enter().is_none());
        drop(one);
        assert!(streams.enter().is_some());
    }

    #[test]
    fn work_beyond_half_of_the_time_is_left_out() {
        let streams = Streams::new(10, 2);
        // A second of two processors is work for a second.
        streams.charge(AHEAD_NS_MAX / 2);
        assert!(streams.enter().is_some());
        // An hour of it, so that no delay of this test makes up for it.
        streams.charge(3600 * AHEAD_NS_MAX);
        assert!(streams.enter().is_none());
    }
}
