//! Cancel requests: a connection of its own names another one by the key that the backend gave it
//! (PostgreSQL's documentation, 55.2.8).
//!
//! A request is forwarded, unless the connection's statement still waits here: then that wait is
//! ended ([`crate::relay::Waits`]), and the client gets the error that the backend would have given.

use super::startup::PACKET_BYTES_MAX;

/// Where the key begins in a CancelRequest: behind length and code.
const KEY_AT: usize = 8;

/// The longest key of a BackendKeyData that is kept, in bytes (256 since protocol 3.2).
pub const KEY_BYTES_MAX: usize = PACKET_BYTES_MAX - KEY_AT;

/// The key in a CancelRequest: what the body of a BackendKeyData was.
pub fn key_of(packet: &[u8]) -> Option<&[u8]> {
    packet.get(KEY_AT..)
}
