//! The server of paper 001: at most N writers, each of which hands one block to a socket and is
//! free again when the socket has taken it all.
//!
//! Source: 001 3.1 and 5.4, there N threads (35 as a rule, 1 to 60 tried) that block in `write` of 32
//! KiB and put what remains of the response back into the queue. What the sockets took is out of
//! the queue's order, so that more writers, or larger socket buffers, mean less control and more
//! throughput (001 Figs 5 and 6): sockets have a buffer as small as 001's system gave them. Kept for the lab,
//! beside [`super::slots`], which counts what the
//! peer has not acknowledged instead.
//!
//! Departures: a writer is a count and no thread, and there is one queue for the network where
//! 001 has two more before it, for the protocol (always empty there) and the disk
//! (`shortline-web`'s own). As there, a socket that takes nothing keeps its writer.

use crate::connections::ConnectionId;

/// The writers; see the module's text.
pub struct Writers {
    writers_max: usize,
    /// The connection that each busy writer writes to.
    writing: Vec<ConnectionId>,
}

impl Writers {
    /// `writers_max` writers, all free.
    pub fn new(writers_max: usize) -> Self {
        Self {
            writers_max,
            writing: Vec::new(),
        }
    }

    /// How many are writing.
    pub fn busy(&self) -> usize {
        self.writing.len()
    }

    /// Whether one is free.
    pub fn is_free(&self) -> bool {
        self.writing.len() < self.writers_max
    }

    /// One begins to write to `connection`.
    pub fn take(&mut self, connection: ConnectionId) {
        self.writing.push(connection);
    }

    /// The socket of `connection` has taken everything, or the connection has ended.
    pub fn release(&mut self, connection: ConnectionId) {
        self.writing.retain(|&other| other != connection);
    }

    /// What the last writer of `connection` was to write will not be written.
    pub fn release_last(&mut self, connection: ConnectionId) {
        let last = self.writing.iter().rposition(|&other| other == connection);
        if let Some(last) = last {
            self.writing.swap_remove(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::testing::connections;

    #[test]
    fn a_writer_is_free_when_its_socket_has_taken_everything() {
        let (_, [first, second]) = connections();
        let mut writers = Writers::new(2);
        writers.take(first);
        assert!(writers.is_free());
        writers.take(second);
        assert!(!writers.is_free());
        writers.release(first);
        assert!(writers.is_free());
        assert_eq!(writers.busy(), 1);
    }

    #[test]
    fn what_is_aborted_frees_one_writer_of_its_connection() {
        let (_, [shared]) = connections();
        let mut writers = Writers::new(2);
        writers.take(shared);
        writers.take(shared);
        writers.release_last(shared);
        assert_eq!(writers.busy(), 1);
    }
}
