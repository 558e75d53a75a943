//! Cancel requests under way for a pooled connection. The connection is not lent again before they are over.
//! Otherwise they could cancel the next session's statement.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The cancel requests under way for a connection.
#[derive(Debug, Default)]
pub struct Cancels {
    under_way: AtomicUsize,
    ended: Notify,
}

/// A cancel request. It is over when this is dropped.
#[derive(Debug)]
pub struct Cancelling(Arc<Cancels>);

impl Cancels {
    /// Counts a new cancel request.
    pub fn begin(self: &Arc<Self>) -> Cancelling {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        Cancelling(Arc::clone(self))
    }

    /// Whether none is under way.
    pub fn are_none(&self) -> bool {
        self.under_way.load(Ordering::Acquire) == 0
    }

    /// Waits until none is under way.
    pub async fn end(&self) {
        loop {
            let ended = self.ended.notified();
            if self.are_none() {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for Cancelling {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.ended.notify_waiters();
        }
    }
}
