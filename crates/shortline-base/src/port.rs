//! A port for a server that is started with a port number, in the lab and in tests.
//!
//! Port 0 would let the kernel choose. But then the number is free again before the server has it,
//! and any connection that begins in between may get it; a busy machine opens thousands. So the
//! port is one that the kernel never hands out by itself (ip(7), `ip_local_port_range` begins at
//! 32768). It is chosen at random, because other processes look for one at the same time.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

/// Above what services usually use, below what the kernel gives to connections.
const PORTS: Range<u16> = 12_000..32_768;
/// This many taken ports in a row are no coincidence.
const TRIES_MAX: usize = 64;

/// A port of 127.0.0.1 at which nobody listens.
///
/// # Errors
/// If none of those tried can be bound.
pub fn free_port() -> io::Result<u16> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..TRIES_MAX {
        let port = chance(&PORTS);
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The standard library seeds each new state of its hash tables at random.
fn chance(range: &Range<u16>) -> u16 {
    let chance = RandomState::new().hash_one(0) % range.len() as u64;
    // Less than the range's length.
    range.start + chance as u16
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_port_is_free_and_of_those_that_no_connection_gets() {
        let ports: Vec<u16> = (0..8).map(|_| free_port().unwrap()).collect();
        assert!(ports.iter().all(|port| PORTS.contains(port)), "{ports:?}");
        assert!(ports.iter().any(|port| *port != ports[0]), "{ports:?}");
    }
}
