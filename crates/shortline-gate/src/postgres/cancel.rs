//! Cancel requests: a connection of its own names another one by the key that the backend gave it
//! (PostgreSQL's documentation, 55.2.8).
//!
//! The backend's own key goes to the client, so a request means the same to both and is forwarded.
//! Only when the connection's statement still waits here does the backend know nothing of it: then
//! the wait is ended, and the client gets the error that the backend would have given.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::startup::PACKET_BYTES_MAX;
use crate::relay::Handle;

/// Where the key begins in a CancelRequest: behind length and code.
const KEY_AT: usize = 8;

/// The keys of all connections.
#[derive(Debug, Default)]
pub struct CancelKeys(Mutex<HashMap<Box<[u8]>, Arc<Handle>>>);

/// A connection's key, forgotten when dropped.
#[derive(Debug)]
pub struct CancelKey {
    keys: Arc<CancelKeys>,
    key: Box<[u8]>,
    handle: Arc<Handle>,
}

impl CancelKeys {
    /// The backend gave this connection a key: the body of a BackendKeyData.
    pub fn register(self: &Arc<Self>, key: &[u8], handle: &Arc<Handle>) -> CancelKey {
        let key: Box<[u8]> = key.into();
        self.0.lock().insert(key.clone(), Arc::clone(handle));
        CancelKey {
            keys: Arc::clone(self),
            key,
            handle: Arc::clone(handle),
        }
    }

    /// Ends the wait for admission that a CancelRequest is for. False if there is none: the
    /// request is for the backend.
    pub fn cancel_waiting(&self, packet: &[u8]) -> bool {
        let Some(key) = packet.get(KEY_AT..) else {
            return false;
        };
        let handle = self.0.lock().get(key).cloned();
        handle.is_some_and(|handle| handle.cancel_waiting())
    }
}

impl Drop for CancelKey {
    fn drop(&mut self) {
        let mut keys = self.keys.0.lock();
        // A backend that was started anew may have given the same key to another.
        if keys
            .get(&self.key)
            .is_some_and(|handle| Arc::ptr_eq(handle, &self.handle))
        {
            keys.remove(&self.key);
        }
    }
}

/// The longest key of a BackendKeyData that is kept, in bytes (256 since protocol 3.2).
pub const KEY_BYTES_MAX: usize = PACKET_BYTES_MAX - KEY_AT;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_cancelled_by_its_key_only() {
        let keys = Arc::new(CancelKeys::default());
        let (first, second) = (Arc::new(Handle::default()), Arc::new(Handle::default()));
        let registered = keys.register(b"12345678", &first);
        let packet = |key: &[u8]| [&[0; 8], key].concat();
        assert!(!keys.cancel_waiting(&packet(b"12345678")));
        first.begin_waiting();
        assert!(!keys.cancel_waiting(&packet(b"12345679")));
        assert!(!keys.cancel_waiting(b""));
        assert!(keys.cancel_waiting(&packet(b"12345678")));
        let again = keys.register(b"12345678", &second);
        drop(registered);
        second.begin_waiting();
        assert!(keys.cancel_waiting(&packet(b"12345678")));
        drop(again);
        assert!(keys.0.lock().is_empty());
    }
}
