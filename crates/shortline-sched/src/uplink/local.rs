//! Our own interface as the bottleneck: the kernel says how much waits and, for HTB, TBF, cake
//! and a link's speed, how fast it goes. Nothing has to be searched then.

use super::observation::LocalQueue;

/// A backlog above this is a queue, not the packet that is being sent.
const BACKLOG_BYTES: u64 = 2 * 1514;

/// What is known of the local interface.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Local {
    /// Its stated rate.
    rate_bps: Option<u64>,
    /// At this rate a queue has been seen.
    queued: bool,
}

impl Local {
    /// Takes in what is known now; an interface that has vanished is forgotten.
    pub fn observe(&mut self, queue: Option<LocalQueue>) {
        let rate_bps = queue
            .and_then(|queue| queue.rate_bps)
            .filter(|rate| *rate > 0);
        if rate_bps != self.rate_bps {
            *self = Self {
                rate_bps,
                queued: false,
            };
        }
        self.queued |=
            rate_bps.is_some() && queue.is_some_and(|queue| queue.backlog_bytes > BACKLOG_BYTES);
    }

    /// The rate that is never exceeded, where it is stated.
    pub fn rate_bps(&self) -> Option<u64> {
        self.rate_bps
    }

    /// Whether the interface has been seen to be a bottleneck.
    pub fn is_bottleneck(&self) -> bool {
        self.queued
    }

    /// The part of a shared delay that is not in this queue. Where no rate is stated the
    /// queue is one like any other on the way, and its delay is left in.
    pub fn beyond_ns(&self, delay_ns: u64, queue: Option<LocalQueue>) -> u64 {
        match (self.rate_bps, queue) {
            (Some(rate_bps), Some(queue)) => {
                let here_ns =
                    u128::from(queue.backlog_bytes) * 8_000_000_000 / u128::from(rate_bps);
                delay_ns.saturating_sub(u64::try_from(here_ns).unwrap_or(u64::MAX))
            }
            _ => delay_ns,
        }
    }
}
