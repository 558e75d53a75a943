//! Load, capacity and queue over the last minutes, for the live page: one sample per second.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;
use shortline_gate::{Gate, GateSnapshot};

use super::opening::Opened;
use super::quiet::Quiet;

/// How often a sample is taken.
const EVERY: Duration = Duration::from_secs(1);
/// Samples kept: five minutes.
const SAMPLES_MAX: usize = 300;

/// A sample of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Time since the start, in seconds.
    pub at_seconds: f64,
    /// The sum of the estimates of the running requests, in nanoseconds.
    pub load_ns: u64,
    /// The capacity: the most load that was admitted, in nanoseconds. `None` without a limit.
    pub capacity_ns: Option<u64>,
    /// Requests that waited.
    pub waiting: usize,
    /// Requests that ran.
    pub running: usize,
    /// Requests that had completed so far.
    pub completed: u64,
}

/// The last minutes. A handle: clones share them.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<VecDeque<Sample>>>);

impl History {
    /// Takes a sample of the gate every second from now on, for as long as the runtime lives. Also
    /// logs when the gate has changed nothing for minutes, and when it opens up.
    pub fn start(gate: Gate, started: Instant, quiet: Quiet, opened: Opened) -> Self {
        let history = Self::default();
        let kept = history.clone();
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(EVERY);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
                let (at, seen) = (started.elapsed(), gate.snapshot());
                if let Some(line) = quiet.look(at, &seen) {
                    tracing::info!("{line}");
                }
                if let Some(line) = opened.look(at, &seen) {
                    tracing::warn!("{line}");
                }
                kept.add(Sample::new(at, &seen));
            }
        });
        history
    }

    /// The samples, the oldest first.
    pub fn samples(&self) -> Vec<Sample> {
        self.0.lock().iter().copied().collect()
    }

    fn add(&self, sample: Sample) {
        let mut samples = self.0.lock();
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}

impl Sample {
    /// The sample of a snapshot.
    pub fn new(at: Duration, snapshot: &GateSnapshot) -> Self {
        Self {
            at_seconds: at.as_secs_f64(),
            load_ns: snapshot.load_ns,
            capacity_ns: snapshot.capacity_ns,
            waiting: snapshot.waiting,
            running: snapshot.running,
            completed: snapshot.totals.completed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first() {
        let history = History::default();
        let sample = |waiting| Sample {
            at_seconds: 0.0,
            load_ns: 0,
            capacity_ns: None,
            waiting,
            running: 0,
            completed: 0,
        };
        for waiting in 0..SAMPLES_MAX + 2 {
            history.add(sample(waiting));
        }
        let samples = history.samples();
        assert_eq!(samples.len(), SAMPLES_MAX);
        assert_eq!(samples[0], sample(2));
        assert_eq!(samples[SAMPLES_MAX - 1], sample(SAMPLES_MAX + 1));
    }
}
