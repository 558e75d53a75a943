//! A timer that is set again for each wait. The runtime's own `timeout` makes one each time and takes it away again, both under a lock,
//! and where it would be the first to end, it wakes the runtime so that it sleeps less long: two system calls a request at a low load.
//! One that is only put off costs neither.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// A longer wait is as long as that.
const DELAY_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The timer. It ends once after it was set last, though nobody waits any more, and then wakes who did.
#[derive(Default)]
pub struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// What `future` comes to. `None`: it takes longer than `delay`.
    pub async fn limit<T>(
        &mut self,
        delay: Duration,
        mut future: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let mut is_set = false;
        poll_fn(|context| {
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                return Poll::Ready(Some(value));
            }
            if !is_set {
                is_set = true;
                self.set(Instant::now() + delay.min(DELAY_MAX));
            }
            match &mut self.0 {
                Some(sleep) => sleep.as_mut().poll(context).map(|()| None),
                None => Poll::Pending,
            }
        })
        .await
    }

    fn set(&mut self, deadline: Instant) {
        match &mut self.0 {
            Some(sleep) => sleep.as_mut().reset(deadline),
            None => self.0 = Some(Box::pin(sleep_until(deadline))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn each_wait_has_its_own_time() {
        let mut timer = Timer::default();
        assert_eq!(timer.limit(MS, pin!(ready(7))).await, Some(7));
        for delay in [3 * MS, MS, 5 * MS, Duration::ZERO] {
            let begun = Instant::now();
            assert_eq!(timer.limit(delay, pin!(pending::<()>())).await, None);
            assert!(begun.elapsed() >= delay);
        }
    }

    #[tokio::test]
    async fn a_wait_that_was_over_early_leaves_nothing_to_the_next() {
        let mut timer = Timer::default();
        let early = pin!(tokio::time::sleep(MS));
        assert!(timer.limit(Duration::MAX, early).await.is_some());
        assert!(timer.limit(MS, pin!(pending::<()>())).await.is_none());
        let early = pin!(tokio::task::yield_now());
        assert!(timer.limit(10 * MS, early).await.is_some());
        let (begun, late) = (Instant::now(), pin!(tokio::time::sleep(20 * MS)));
        assert!(timer.limit(Duration::MAX, late).await.is_some());
        assert!(begun.elapsed() >= 20 * MS);
    }
}
