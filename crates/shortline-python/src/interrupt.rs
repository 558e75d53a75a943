//! Long work that Ctrl-C ends.
//!
//! The work runs in a thread of its own, without the interpreter. Meanwhile the caller's thread
//! looks for signals some ten times a second, which only Python's main thread does anything at.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How often to look for signals.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The work's result. At a signal whose handler raises, such as Ctrl-C's, `cancel` is set; the
/// work is then to end soon, and the exception is returned.
///
/// # Errors
/// The exception of a signal's handler.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    cancel: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    py.detach(|| {
        thread::scope(|scope| {
            let (working, ended) = channel::<()>();
            let worker = scope.spawn(move || {
                // Closed when the work ends, also by a panic.
                let _working = working;
                work()
            });
            let mut raised = None;
            while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = Python::attach(|py| py.check_signals()) {
                    raised = Some(error);
                    cancel.store(true, Ordering::Relaxed);
                }
            }
            let result = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            raised.map_or(Ok(result), Err)
        })
    })
}
