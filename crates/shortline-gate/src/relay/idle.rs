//! The limit on how long a client keeps a transaction open without asking for anything.
//!
//! Transactions begin and go on too often to set the alarm each time. The alarm stays as it is, and is
//! set again when it goes off too early.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// See the module's text.
#[derive(Debug, Default)]
pub struct Idle {
    max: Option<Duration>,
    since: Option<Instant>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Idle {
    /// The longest idle time. `None` sets no limit.
    pub fn new(max: Option<Duration>) -> Self {
        Self {
            max,
            ..Self::default()
        }
    }

    /// Whether the limit is exceeded, given whether the transaction is idle now. If not, the task is woken
    /// in time to check again.
    pub fn is_over(&mut self, context: &mut Context<'_>, is_idle: bool) -> bool {
        let Some(max) = self.max else {
            return false;
        };
        if !is_idle {
            self.since = None;
            let rang = |alarm: &mut Pin<Box<Sleep>>| alarm.as_mut().poll(context).is_ready();
            if self.alarm.as_mut().is_some_and(rang) {
                self.alarm = None;
            }
            return false;
        }
        let until = *self.since.get_or_insert_with(Instant::now) + max;
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(sleep_until(until)));
        while alarm.as_mut().poll(context).is_ready() {
            if Instant::now() >= until {
                return true;
            }
            alarm.as_mut().reset(until);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;

    async fn ask(idle: &mut Idle, is_idle: bool) -> bool {
        poll_fn(|context| Poll::Ready(idle.is_over(context, is_idle))).await
    }

    #[tokio::test(start_paused = true)]
    async fn what_goes_on_begins_anew() {
        let mut idle = Idle::new(Some(Duration::from_secs(10)));
        let second = Duration::from_secs(1);
        assert!(!ask(&mut idle, true).await);
        tokio::time::advance(9 * second).await;
        assert!(!ask(&mut idle, false).await);
        assert!(!ask(&mut idle, true).await);
        tokio::time::advance(9 * second).await;
        assert!(!ask(&mut idle, true).await);
        // The alarm wakes the task.
        let over = poll_fn(|context| match idle.is_over(context, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        let began = Instant::now();
        over.await;
        assert_eq!(began.elapsed().as_secs(), 1);
        assert!(!ask(&mut Idle::new(None), true).await);
    }
}
