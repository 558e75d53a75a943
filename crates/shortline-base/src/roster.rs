//! The open connections of a server. Each has its place from its beginning to its end, and a
//! stopping server waits until all have gone.

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
use slab::Slab;
use tokio::sync::Notify;

/// What is known of each open connection.
#[derive(Debug)]
pub struct Roster<T> {
    members: Mutex<Slab<Arc<T>>>,
    emptied: Notify,
}

/// A connection's place, given back when dropped.
#[derive(Debug)]
pub struct Place<T> {
    roster: Arc<Roster<T>>,
    key: usize,
    member: Arc<T>,
}

impl<T> Default for Roster<T> {
    fn default() -> Self {
        Self {
            members: Mutex::default(),
            emptied: Notify::default(),
        }
    }
}

impl<T> Roster<T> {
    /// Registers a connection, and returns how many are open with it.
    pub fn enter(self: &Arc<Self>, member: T) -> (Place<T>, usize) {
        let member = Arc::new(member);
        let (key, open) = {
            let mut members = self.members.lock();
            (members.insert(Arc::clone(&member)), members.len())
        };
        let place = Place {
            roster: Arc::clone(self),
            key,
            member,
        };
        (place, open)
    }

    /// Connections open now.
    pub fn open(&self) -> usize {
        self.members.lock().len()
    }

    /// Shows each to `look`; none can come or go meanwhile.
    pub fn for_each(&self, mut look: impl FnMut(&Arc<T>)) {
        for (_, member) in self.members.lock().iter() {
            look(member);
        }
    }

    /// Waits until none is left.
    pub async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            // Listen before looking, or the last one's end could be missed.
            emptied.as_mut().enable();
            if self.open() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

impl<T> Place<T> {
    /// The data kept with the connection.
    pub fn member(&self) -> &Arc<T> {
        &self.member
    }
}

impl<T> Deref for Place<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.member
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        let left = {
            let mut members = self.roster.members.lock();
            members.remove(self.key);
            members.len()
        };
        if left == 0 {
            self.roster.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn who_waits_for_the_end_hears_of_the_last_one() {
        let roster = Arc::new(Roster::default());
        let (first, open) = roster.enter(1);
        assert_eq!((open, *first), (1, 1));
        let (second, open) = roster.enter(2);
        assert_eq!(open, 2);
        let mut empty = pin!(roster.empty());
        let mut context = Context::from_waker(Waker::noop());
        assert!(empty.as_mut().poll(&mut context).is_pending());
        drop(first);
        assert!(empty.as_mut().poll(&mut context).is_pending());
        let mut seen = Vec::new();
        roster.for_each(|member| seen.push(**member));
        assert_eq!(seen, [2]);
        drop(second);
        assert!(empty.as_mut().poll(&mut context).is_ready());
        assert_eq!(roster.open(), 0);
    }
}
