//! Our own interface as the bottleneck. The kernel reports its backlog and, for HTB, TBF, cake and
//! a link's speed, its rate. Then there is nothing to search for.

use super::config::MS;
use super::observation::LocalQueue;

/// A backlog above this is a queue, not the packet that is being sent.
const BACKLOG_BYTES: u64 = 2 * 1514;
/// A paced link shows a queue at its interface only now and then; the queue counts for this long.
const LATELY_NS: u64 = 5_000 * MS;

/// What is known about the local interface.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Local {
    /// Its stated rate.
    rate_bps: Option<u64>,
    /// When a queue was seen last at this rate.
    queued_ns: Option<u64>,
}

impl Local {
    /// Takes in what is known now. An interface that has vanished is forgotten.
    pub fn observe(&mut self, queue: Option<LocalQueue>, now_ns: u64) {
        let rate_bps = queue
            .and_then(|queue| queue.rate_bps)
            .filter(|rate| *rate > 0);
        if rate_bps != self.rate_bps {
            *self = Self {
                rate_bps,
                queued_ns: None,
            };
        }
        if rate_bps.is_some() && queue.is_some_and(|queue| queue.backlog_bytes > BACKLOG_BYTES) {
            self.queued_ns = Some(now_ns);
        }
    }

    /// The rate that is never exceeded, if it is stated.
    pub fn rate_bps(&self) -> Option<u64> {
        self.rate_bps
    }

    /// Whether the interface has been seen to be a bottleneck.
    pub fn is_bottleneck(&self) -> bool {
        self.queued_ns.is_some()
    }

    /// Whether it was the bottleneck until lately.
    pub fn is_bottleneck_lately(&self, now_ns: u64) -> bool {
        self.queued_ns
            .is_some_and(|queued_ns| now_ns.saturating_sub(queued_ns) < LATELY_NS)
    }

    /// The part of a shared delay that is not in this queue. Where no rate is stated the queue is
    /// like any other on the way, and its delay stays in.
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
