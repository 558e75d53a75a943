//! The server of paper 001: at most N writers, each of which hands one block to a socket and is
//! free again when the socket has taken it all.
//!
//! Source: 001 3.1 and 5.4, there N threads (35 as a rule, 1 to 60 tried) that block in `write` of 32
//! KiB and put what remains of the response back into the queue. What the sockets took is out of
//! the queue's order, so that more writers, or larger socket buffers, mean less control and more
//! throughput (001 Figs 5 and 6): sockets have a buffer as small as 001's system gave them. Kept for the lab, beside [`crate::slots`], which counts what the
//! peer has not acknowledged instead.
//!
//! Departures: a writer is a count and no thread, and there is one queue for the network where
//! 001 has two more before it, for the protocol (always empty there) and the disk
//! (`shortline-web`'s own). As there, a socket that takes nothing keeps its writer.

use std::sync::{Arc, Weak};

/// The writers; see the module's text. `T` is a connection.
pub struct Writers<T> {
    writers_max: usize,
    /// The connection that each busy writer writes to.
    writing: Vec<Weak<T>>,
}

impl<T> Writers<T> {
    /// `writers_max` writers, all free.
    pub fn new(writers_max: usize) -> Self {
        Self {
            writers_max,
            writing: Vec::new(),
        }
    }

    /// How many are writing, as far as known without looking.
    pub fn busy(&self) -> usize {
        self.writing.len()
    }

    /// Whether one is free. Writers of connections that are gone are.
    pub fn is_free(&mut self) -> bool {
        if self.writing.len() >= self.writers_max {
            self.writing
                .retain(|connection| connection.strong_count() > 0);
        }
        self.writing.len() < self.writers_max
    }

    /// One begins to write to `connection`.
    pub fn take(&mut self, connection: &Arc<T>) {
        self.writing.push(Arc::downgrade(connection));
    }

    /// The socket of `connection` has taken everything.
    pub fn release(&mut self, connection: &Arc<T>) {
        let taken = Arc::as_ptr(connection);
        self.writing.retain(|other| other.as_ptr() != taken);
    }

    /// What the last writer of `connection` was to write will not be written.
    pub fn release_last(&mut self, connection: &Arc<T>) {
        let taken = Arc::as_ptr(connection);
        let last = self
            .writing
            .iter()
            .rposition(|other| other.as_ptr() == taken);
        if let Some(last) = last {
            self.writing.swap_remove(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_free_when_its_socket_has_taken_everything() {
        let mut writers = Writers::new(2);
        let (first, second) = (Arc::new(1), Arc::new(2));
        writers.take(&first);
        assert!(writers.is_free());
        writers.take(&second);
        assert!(!writers.is_free());
        writers.release(&first);
        assert!(writers.is_free());
        assert_eq!(writers.busy(), 1);
    }

    #[test]
    fn a_connection_that_is_gone_holds_no_writer() {
        let mut writers = Writers::new(1);
        let gone = Arc::new(1);
        writers.take(&gone);
        assert!(!writers.is_free());
        drop(gone);
        assert!(writers.is_free());
    }

    #[test]
    fn what_is_aborted_frees_one_writer_of_its_connection() {
        let mut writers = Writers::new(2);
        let shared = Arc::new(1);
        writers.take(&shared);
        writers.take(&shared);
        writers.release_last(&shared);
        assert_eq!(writers.busy(), 1);
    }
}
