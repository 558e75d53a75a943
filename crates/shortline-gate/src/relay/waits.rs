//! Finds a session by the key with which a client cancels its statement: PostgreSQL's cancel key, or
//! MySQL's connection number.
//!
//! Clients get the backend's own keys, so a key means the same to the gate and to the backend. The
//! backend does not have a statement that still waits here, so the gate itself ends the wait.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Handle, Order};

/// All sessions.
#[derive(Debug)]
pub struct Waits<Key>(Mutex<HashMap<Key, Arc<Handle>>>);

/// A session's entry, removed when dropped.
#[derive(Debug)]
pub struct Entry<Key: Eq + Hash> {
    waits: Arc<Waits<Key>>,
    key: Key,
    handle: Arc<Handle>,
}

impl<Key> Default for Waits<Key> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Key: Clone + Eq + Hash> Waits<Key> {
    /// Registers a session under the key that the backend gave it.
    pub fn register(self: &Arc<Self>, key: Key, handle: &Arc<Handle>) -> Entry<Key> {
        self.0.lock().insert(key.clone(), Arc::clone(handle));
        Entry {
            waits: Arc::clone(self),
            key,
            handle: Arc::clone(handle),
        }
    }

    /// Whether a session has this key.
    pub fn has<Q>(&self, key: &Q) -> bool
    where
        Key: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.0.lock().contains_key(key)
    }

    /// Ends the session's wait. Returns false if it does not wait.
    pub fn cancel<Q>(&self, key: &Q) -> bool
    where
        Key: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let handle = self.0.lock().get(key).cloned();
        handle.is_some_and(|handle| handle.cancel_waiting())
    }

    /// Ends the session.
    pub fn close<Q>(&self, key: &Q)
    where
        Key: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let handle = self.0.lock().get(key).cloned();
        if let Some(handle) = handle {
            handle.give(Order::Close);
        }
    }
}

impl<Key: Eq + Hash> Drop for Entry<Key> {
    fn drop(&mut self) {
        let mut sessions = self.waits.0.lock();
        // A restarted backend may have given the same key to another session.
        let is_this = |handle: &Arc<Handle>| Arc::ptr_eq(handle, &self.handle);
        if sessions.get(&self.key).is_some_and(is_this) {
            sessions.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_ended_by_its_key_only() {
        let waits = Arc::new(Waits::default());
        let (first, second) = (Arc::new(Handle::default()), Arc::new(Handle::default()));
        let entry = waits.register(1, &first);
        assert!(!waits.cancel(&1));
        first.begin_waiting();
        assert!(!waits.cancel(&2));
        assert!(first.is_waiting());
        assert!(waits.cancel(&1));
        assert!(!first.is_waiting());
        let again = waits.register(1, &second);
        drop(entry);
        second.begin_waiting();
        assert!(waits.cancel(&1));
        drop(again);
        assert!(waits.0.lock().is_empty());
    }
}
