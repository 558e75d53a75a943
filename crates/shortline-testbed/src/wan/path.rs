//! What a path does to packets, as plain data.
//!
//! A packet meets the following, in the order of netem (tc-netem(8)): loss; a FIFO of `queue_packets`
//! before a link of `rate`, which counts IP bytes and 14 a packet as the uplink does; then `delay`, plus
//! a jitter drawn evenly from `-jitter..=jitter` for each packet.
//!
//! It departs from netem in one thing. Unless `reorder` is set, jitter keeps the order inside a
//! connection, and a packet waits for those before it, because a real path seldom reorders packets.
//! netem sends each packet at its own time.

use serde::{Deserialize, Serialize};
use shortline_sched::units::{Rate, Span};
use thiserror::Error;

use super::loss::Loss;

/// Packets that may wait before a slow link, as in a usual router.
const QUEUE_PACKETS: u32 = 100;

/// One direction of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Way {
    /// How long a packet travels.
    pub delay: Span,
    /// How much longer or shorter it may take, at most `delay`.
    pub jitter: Span,
    /// Which packets are lost.
    pub loss: Loss,
    /// The rate of the path's own slowest link, if it has one.
    pub rate: Option<Rate>,
    /// The most packets that wait for that link. One more is dropped.
    pub queue_packets: u32,
    /// Whether jitter may change the order inside a connection.
    pub reorder: bool,
}

/// Why a path is invalid.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PathError {
    /// A packet cannot arrive before it was sent.
    #[error("jitter {jitter} is more than the delay {delay}: want at most that")]
    Jitter {
        /// How much.
        jitter: Span,
        /// Of what.
        delay: Span,
    },
    /// Not a probability.
    #[error("{what} {value} is no probability: want 0 to 1")]
    Probability {
        /// Which one.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// A link that lets nothing through.
    #[error("{what} 0 lets nothing through: want 1 or more")]
    Nothing {
        /// What is 0.
        what: &'static str,
    },
}

impl Way {
    /// A way that does nothing to packets.
    pub fn direct() -> Self {
        Self::of(Span::from_duration(std::time::Duration::ZERO), Loss::None)
    }

    /// A way with that delay and loss and nothing else.
    pub fn of(delay: Span, loss: Loss) -> Self {
        Self {
            delay,
            jitter: Span::from_duration(std::time::Duration::ZERO),
            loss,
            rate: None,
            queue_packets: QUEUE_PACKETS,
            reorder: false,
        }
    }

    /// Whether it does nothing to packets.
    pub fn is_direct(&self) -> bool {
        self.delay.duration().is_zero() && self.loss == Loss::None && self.rate.is_none()
    }

    /// Checks the way.
    ///
    /// # Errors
    /// The first value that is wrong.
    pub fn check(&self) -> Result<(), PathError> {
        if self.jitter > self.delay {
            return Err(PathError::Jitter {
                jitter: self.jitter,
                delay: self.delay,
            });
        }
        if self.queue_packets == 0 {
            return Err(PathError::Nothing {
                what: "queue_packets",
            });
        }
        if self.rate.is_some_and(|rate| rate.bps() == 0) {
            return Err(PathError::Nothing { what: "rate" });
        }
        self.loss.check()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::Duration;

    fn ms(milliseconds: u64) -> Span {
        Span::from_duration(Duration::from_millis(milliseconds))
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let jitter = Way {
            jitter: ms(11),
            ..Way::of(ms(10), Loss::None)
        };
        let text = jitter.check().unwrap_err().to_string();
        assert_eq!(
            text,
            "jitter 11ms is more than the delay 10ms: want at most that"
        );
        let loss = Way::of(ms(0), Loss::Uniform { probability: 1.5 });
        let text = loss.check().unwrap_err().to_string();
        assert_eq!(text, "loss 1.5 is no probability: want 0 to 1");
        let queue = Way {
            queue_packets: 0,
            ..Way::direct()
        };
        assert!(queue.check().is_err());
        assert_eq!(Way::direct().check(), Ok(()));
    }

    #[test]
    fn only_a_way_that_does_nothing_is_direct() {
        assert!(Way::direct().is_direct());
        assert!(!Way::of(ms(1), Loss::None).is_direct());
        let slow = Way {
            rate: Some(Rate::from_bps(1_000_000)),
            ..Way::direct()
        };
        assert!(!slow.is_direct());
    }
}
