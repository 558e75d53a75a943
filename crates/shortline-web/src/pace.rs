//! The pace of a response whose bandwidth is limited: when its next bytes may leave, and how many (nginx's `limit_rate` and
//! `limit_rate_after`). It has no clock of its own.
//!
//! After `after` bytes, each piece of `n` bytes puts off the next one:
//!
//! ```text
//! due = max(due, now - CATCH_UP) + 8 n / rate        n at most what the rate gives in PIECE
//! ```
//!
//! So in any time t a response sends at most rate (t + CATCH_UP + PIECE) / 8 bytes more than `after`. A late piece is made up for, within
//! CATCH_UP: timers are late, and the uplink may be with others.
//!
//! Until then the response does not ask for its next grant. To the link its job is *out*, as that of a backend's response is whose
//! bytes have not come: it takes no turn from others, and the order of those that ask stays what it was.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use shortline_base::clock::now_ns;
use shortline_sched::units::Rate;
use tokio::time::{Sleep, sleep};

/// What a response gets at a time, as time.
const PIECE_NS: u64 = 100_000_000;
/// How much time is made up for.
const CATCH_UP_NS: u64 = 100_000_000;
/// A full segment: a piece is at least this.
const PIECE_BYTES_MIN: u64 = 1448;
const PIECE_BYTES_MAX: u64 = 1 << 20;

/// A limit of bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// The most.
    pub rate: Rate,
    /// Bytes of each response that are not limited.
    pub after_bytes: u64,
}

/// The pace of one response; see the module's text.
pub struct Pace {
    rate: Rate,
    free_bytes: u64,
    due_ns: u64,
}

/// A pace that waits.
pub struct Paced {
    pace: Pace,
    waits: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    /// That of a response that begins.
    pub fn new(bandwidth: Bandwidth) -> Self {
        Self {
            rate: bandwidth.rate,
            free_bytes: bandwidth.after_bytes,
            due_ns: 0,
        }
    }

    /// When the next piece may leave.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// How many bytes it may have.
    pub fn piece_bytes(&self) -> u32 {
        let bytes = bytes_in(self.rate, PIECE_NS).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX);
        let bytes = self.free_bytes.saturating_add(bytes);
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// So many bytes leave now.
    pub fn leave(&mut self, bytes: u32, now_ns: u64) {
        let free = self.free_bytes.min(bytes.into());
        self.free_bytes -= free;
        let limited = u64::from(bytes) - free;
        if limited > 0 {
            let from_ns = self.due_ns.max(now_ns.saturating_sub(CATCH_UP_NS));
            self.due_ns = from_ns.saturating_add(ns_of(self.rate, limited));
        }
    }
}

fn bytes_in(rate: Rate, ns: u64) -> u64 {
    let bytes = u128::from(rate.bps()) * u128::from(ns) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// How long the rate takes for that, rounded up.
fn ns_of(rate: Rate, bytes: u64) -> u64 {
    let ns = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(rate.bps().max(1)));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

impl Paced {
    /// The pace of a response that begins.
    pub fn new(bandwidth: Bandwidth) -> Self {
        Self {
            pace: Pace::new(bandwidth),
            waits: None,
        }
    }

    /// Ready when the next piece may leave, with how many bytes it may have.
    pub fn poll_due(&mut self, context: &mut Context<'_>) -> Poll<u32> {
        loop {
            if let Some(waits) = &mut self.waits {
                std::task::ready!(waits.as_mut().poll(context));
                self.waits = None;
            }
            let wait_ns = self.pace.due_ns().saturating_sub(now_ns());
            if wait_ns == 0 {
                return Poll::Ready(self.piece_bytes());
            }
            self.waits = Some(Box::pin(sleep(Duration::from_nanos(wait_ns))));
        }
    }

    /// How many bytes the next piece may have.
    pub fn piece_bytes(&self) -> u32 {
        self.pace.piece_bytes()
    }

    /// So many bytes leave now.
    pub fn leave(&mut self, bytes: u32) {
        self.pace.leave(bytes, now_ns());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn pace(bps: u64, after_bytes: u64) -> Pace {
        Pace::new(Bandwidth {
            rate: Rate::from_bps(bps),
            after_bytes,
        })
    }

    /// Bytes that leave until `end_ns`, if each piece leaves as soon as it may.
    fn sent_by(pace: &mut Pace, end_ns: u64) -> u64 {
        let (mut now_ns, mut sent) = (SECOND, 0);
        while now_ns <= end_ns {
            let bytes = pace.piece_bytes();
            pace.leave(bytes, now_ns);
            sent += u64::from(bytes);
            now_ns = now_ns.max(pace.due_ns());
        }
        sent
    }

    #[test]
    fn a_response_gets_its_rate_and_what_is_free_before() {
        // 1 Mbit/s in ten seconds.
        for (after, expected) in [(0, 1_250_000), (1_000_000, 2_250_000)] {
            let sent = sent_by(&mut pace(1_000_000, after), 11 * SECOND);
            // A piece and what is made up for.
            assert!((expected..=expected + 25_000).contains(&sent), "{sent}");
        }
    }

    #[test]
    fn a_late_piece_is_made_up_for_within_a_bound() {
        let mut pace = pace(8_000_000, 0);
        assert_eq!(pace.piece_bytes(), 100_000);
        pace.leave(100_000, 10 * SECOND);
        assert_eq!(pace.due_ns(), 10 * SECOND);
        pace.leave(100_000, 10 * SECOND);
        assert_eq!(pace.due_ns(), 10 * SECOND + PIECE_NS);
        // An hour later it has no hour to send.
        pace.leave(100_000, 4000 * SECOND);
        assert_eq!(pace.due_ns(), 4000 * SECOND);
    }

    #[test]
    fn the_slowest_rate_sends_a_segment_at_a_time() {
        let mut pace = pace(1, 0);
        assert_eq!(pace.piece_bytes(), 1448);
        pace.leave(1448, SECOND);
        assert_eq!(pace.due_ns(), SECOND - CATCH_UP_NS + 1448 * 8 * SECOND);
        let mut pace = super::tests::pace(u64::MAX, u64::MAX);
        pace.leave(u32::MAX, u64::MAX);
        assert_eq!(pace.due_ns(), 0);
    }

    proptest! {
        /// However pieces come, more than the rate allows never leaves in any stretch of time.
        #[test]
        fn no_stretch_of_time_has_more_than_the_rate_allows(
            bps in 1_000_u64..1_000_000_000_000,
            after in 0_u64..1_000_000,
            steps in prop::collection::vec((0_u64..2_000_000_000, 1_u32..2_000_000), 1..60),
        ) {
            let mut pace = pace(bps, after);
            let mut now_ns = SECOND;
            let mut left: Vec<(u64, u64)> = Vec::new();
            let mut free = after;
            for (wait_ns, wanted) in steps {
                now_ns = (now_ns + wait_ns).max(pace.due_ns());
                let bytes = wanted.min(pace.piece_bytes());
                pace.leave(bytes, now_ns);
                let limited = u64::from(bytes).saturating_sub(free);
                free = free.saturating_sub(bytes.into());
                left.push((now_ns, limited));
            }
            for (from, &(from_ns, _)) in left.iter().enumerate() {
                let mut sent = 0_u64;
                for &(at_ns, bytes) in &left[from..] {
                    sent += bytes;
                    let time_ns = at_ns - from_ns + CATCH_UP_NS + PIECE_NS;
                    let most = bytes_in(Rate::from_bps(bps), time_ns) + PIECE_BYTES_MIN + 1;
                    prop_assert!(sent <= most, "{sent} bytes in {time_ns} ns");
                }
            }
        }
    }
}
