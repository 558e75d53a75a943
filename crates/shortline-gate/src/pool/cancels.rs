//! Cancel requests for a connection that are under way: it is not lent on before they are over, or they would
//! meet the next session's statement.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Cancel requests for a connection that are under way.
#[derive(Debug, Default)]
pub struct Cancels {
    under_way: AtomicUsize,
    ended: Notify,
}

/// One of them; over when dropped.
#[derive(Debug)]
pub struct Cancelling(Arc<Cancels>);

impl Cancels {
    /// One begins.
    pub fn begin(self: &Arc<Self>) -> Cancelling {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        Cancelling(Arc::clone(self))
    }

    /// Whether none is under way.
    pub fn are_none(&self) -> bool {
        self.under_way.load(Ordering::Acquire) == 0
    }

    /// Waits until none is.
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
