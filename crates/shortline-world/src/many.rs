//! Many seeds, on several threads.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use parking_lot::Mutex;

use crate::Run;

/// Runs `simulate` with the seeds from `first` on, on several threads. Shows each run to `look`, in
/// no particular order, until `look` says that it has seen enough.
pub fn simulate_many(
    simulate: fn(u64, bool) -> Run,
    first: u64,
    threads: usize,
    look: impl FnMut(Run) -> ControlFlow<()> + Send,
) {
    let next = AtomicU64::new(first);
    let enough = AtomicBool::new(false);
    let look = Mutex::new(look);
    let work = || {
        while !enough.load(Ordering::Acquire) {
            let run = simulate(next.fetch_add(1, Ordering::Relaxed), false);
            let mut look = look.lock();
            if !enough.load(Ordering::Acquire) && look(run).is_break() {
                enough.store(true, Ordering::Release);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
}
