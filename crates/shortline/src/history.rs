//! Samples of the last minutes, for the live pages: one a second.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How often a sample is taken.
const EVERY: Duration = Duration::from_secs(1);
/// Samples kept: five minutes.
const SAMPLES_MAX: usize = 300;

/// The last minutes. A handle: clones share them.
#[derive(Clone, Debug)]
pub struct History<S>(Arc<Mutex<VecDeque<S>>>);

impl<S> Default for History<S> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<S: Clone + Send + 'static> History<S> {
    /// Takes a sample every second from now on, for as long as somebody has the history. `sample` is told how long it is
    /// since `started`.
    pub fn start(started: Instant, sample: impl Fn(Duration) -> S + Send + 'static) -> Self {
        let history = Self::default();
        let kept = Arc::downgrade(&history.0);
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(EVERY);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
                let Some(kept) = kept.upgrade() else {
                    return;
                };
                Self(kept).add(sample(started.elapsed()));
            }
        });
        history
    }

    /// The samples, the oldest first.
    pub fn samples(&self) -> Vec<S> {
        self.0.lock().iter().cloned().collect()
    }

    fn add(&self, sample: S) {
        let mut samples = self.0.lock();
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first() {
        let history = History::default();
        for waiting in 0..SAMPLES_MAX + 2 {
            history.add(waiting);
        }
        let samples = history.samples();
        assert_eq!(samples.len(), SAMPLES_MAX);
        assert_eq!(samples[0], 2);
        assert_eq!(samples[SAMPLES_MAX - 1], SAMPLES_MAX + 1);
    }
}
