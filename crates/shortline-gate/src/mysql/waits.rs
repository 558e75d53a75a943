//! Which connection waits for admission, by the number that KILL names it by.
//!
//! The backend's own numbers go to the clients, so a KILL means the same to both and is forwarded.
//! Of a statement that still waits here the backend knows nothing: when it has answered with OK, and
//! so has found that the client may do this, the wait is ended too. (A connection that it kills is
//! closed by it, and leaves the queue by that.)

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::relay::Handle;

/// All sessions.
#[derive(Debug, Default)]
pub struct Waits(Mutex<HashMap<u32, Arc<Handle>>>);

/// A session's entry, forgotten when dropped.
#[derive(Debug)]
pub struct Entry {
    waits: Arc<Waits>,
    thread_id: u32,
    handle: Arc<Handle>,
}

impl Waits {
    /// The backend gave a session this number.
    pub fn register(self: &Arc<Self>, thread_id: u32, handle: &Arc<Handle>) -> Entry {
        self.0.lock().insert(thread_id, Arc::clone(handle));
        Entry {
            waits: Arc::clone(self),
            thread_id,
            handle: Arc::clone(handle),
        }
    }

    /// Ends the session's wait, if it waits.
    pub fn cancel(&self, thread_id: u32) {
        let handle = self.0.lock().get(&thread_id).cloned();
        if let Some(handle) = handle {
            handle.cancel_waiting();
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut sessions = self.waits.0.lock();
        // A backend that was started anew may have given the same number to another.
        let is_this = |handle: &Arc<Handle>| Arc::ptr_eq(handle, &self.handle);
        if sessions.get(&self.thread_id).is_some_and(is_this) {
            sessions.remove(&self.thread_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_ended_by_its_number_only() {
        let waits = Arc::new(Waits::default());
        let (first, second) = (Arc::new(Handle::default()), Arc::new(Handle::default()));
        let entry = waits.register(1, &first);
        first.begin_waiting();
        waits.cancel(2);
        assert!(first.is_waiting());
        waits.cancel(1);
        assert!(!first.is_waiting());
        let again = waits.register(1, &second);
        drop(entry);
        second.begin_waiting();
        waits.cancel(1);
        assert!(!second.is_waiting());
        drop(again);
        assert!(waits.0.lock().is_empty());
    }
}
