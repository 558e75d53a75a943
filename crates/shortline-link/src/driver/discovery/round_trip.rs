//! A connection's round trips since it was last asked, out of the kernel's average.
//!
//! The kernel says a moving average, s' = s + (x - s) / 8 with each acknowledgement's round trip x
//! (RFC 6298, 2.3), that still has the handshake's in it when a small response is over. Between two
//! questions with n acknowledgements s' = k s + (1 - k) x for k = (7/8)^n, where x is a mean of these n,
//! later ones weighing more: x = s + (s' - s) / (1 - k). How many there were, a segment without
//! payload each, the kernel says too (since 4.6; 0 before that: then the average is taken as it is);
//! a client that asks again at once sends them with its requests, which are counted where there are no others.
//! At the first question it is taken as it is: an average since the connection's handshake, just before
//! its request.
//!
//! It is believed where no delayed acknowledgement can be in it (40 ms with Linux, 200 with others): of
//! the handshake, or where more than a segment was acknowledged; and where it is so short that neither
//! it nor a queue can be in it, as responses of one segment would else tell nothing at all. It is as old
//! as the last acknowledgement, and the average of a connection that was never asked before as its last
//! request: a response that has waited for its first grant since then tells of the queue that there was.

use shortline_base::TcpInfo;

/// The kernel's average moves by an eighth to each round trip.
const KEPT: f64 = 7.0 / 8.0;
/// Within less than this nothing waited, be the acknowledgement delayed or not: without an estimate
/// the controller takes more for a queue.
const SHORT_NS: u64 = 8_000_000;
/// A delay is good for so long: many round trips of a near path, a part of one of a far one.
pub(super) const DELAY_AGE_NS_MAX: u64 = 100_000_000;

/// What is kept of a connection's average from one question to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrips {
    rtt_us: f64,
    acks: u32,
    requests: u32,
    asked: bool,
}

/// The mean round trip of what was acknowledged since the last question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RoundTrip {
    us: f64,
    age_ms: u32,
    /// No acknowledgement in it can have been delayed.
    at_once: bool,
}

impl RoundTrips {
    /// The round trip since the last question, where `acked_bytes` were acknowledged since; the next
    /// will be since this one.
    pub fn of(&mut self, info: &TcpInfo, acked_bytes: u64) -> Option<RoundTrip> {
        let before = std::mem::replace(
            self,
            Self {
                rtt_us: f64::from(info.rtt_us),
                acks: info.ack_segments,
                requests: info.request_segments,
                asked: true,
            },
        );
        if info.rtt_us == 0 {
            return None;
        }
        let of_handshake = !before.asked && info.acked_bytes == 0;
        let age_ms = if before.asked {
            info.ack_age_ms
        } else {
            info.ack_age_ms.max(info.request_age_ms)
        };
        Some(RoundTrip {
            us: before.mean_us(info, acked_bytes)?,
            age_ms,
            at_once: of_handshake || acked_bytes > u64::from(info.segment_bytes),
        })
    }

    /// The mean since `self` was kept.
    fn mean_us(&self, info: &TcpInfo, acked_bytes: u64) -> Option<f64> {
        let rtt_us = f64::from(info.rtt_us);
        if !self.asked || info.ack_segments == 0 {
            return Some(rtt_us);
        }
        let alone = info.ack_segments.wrapping_sub(self.acks);
        let acks = if alone == 0 && acked_bytes > 0 {
            info.request_segments.wrapping_sub(self.requests)
        } else {
            alone
        };
        if acks == 0 {
            return None;
        }
        let kept = KEPT.powf(f64::from(acks));
        let mean_us = self.rtt_us + (rtt_us - self.rtt_us) / (1.0 - kept);
        Some(mean_us.max(f64::from(info.rtt_us_min)))
    }
}

impl RoundTrip {
    /// In nanoseconds.
    pub fn ns(&self) -> u64 {
        (self.us * 1000.0) as u64
    }

    /// How long ago it was, in nanoseconds.
    pub fn age_ns(&self) -> u64 {
        u64::from(self.age_ms) * 1_000_000
    }

    /// Whether it, with so much delay in it, tells of the queue that there is now.
    pub fn tells_of_now(&self, delay_ns: u64) -> bool {
        self.age_ns() <= DELAY_AGE_NS_MAX && (self.at_once || delay_ns < SHORT_NS)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn info(rtt_us: u32, ack_segments: u32) -> TcpInfo {
        TcpInfo {
            segment_bytes: 1448,
            rtt_us,
            ack_segments,
            acked_bytes: 1,
            ..TcpInfo::default()
        }
    }

    #[test]
    fn the_first_answer_is_taken_as_it_is_and_as_old_as_the_request() {
        let first = TcpInfo {
            ack_age_ms: 2,
            request_age_ms: 30,
            ..info(5000, 3)
        };
        let rtt = RoundTrips::default().of(&first, 0).unwrap();
        assert_eq!((rtt.ns(), rtt.age_ns()), (5_000_000, 30_000_000));
    }

    #[test]
    fn without_acknowledgements_nothing_is_new() {
        let mut trips = RoundTrips::default();
        trips.of(&info(5000, 3), 0);
        assert_eq!(trips.of(&info(5000, 3), 0), None);
    }

    /// Connections kept busy on loopback were taken for blind.
    #[test]
    fn an_acknowledgement_that_comes_with_the_next_request_counts() {
        let mut trips = RoundTrips::default();
        let asked = |rtt_us, request_segments| TcpInfo {
            request_segments,
            ..info(rtt_us, 1)
        };
        trips.of(&asked(5000, 1), 0);
        let rtt = trips.of(&asked(6000, 2), 1000).unwrap();
        assert_eq!(rtt.ns(), 13_000_000, "one of 13 ms moves 5 ms to 6");
        assert_eq!(
            trips.of(&asked(6000, 3), 0),
            None,
            "nothing was acknowledged"
        );
    }

    #[test]
    fn a_kernel_that_counts_no_acknowledgements_is_believed_as_it_is() {
        let mut trips = RoundTrips::default();
        trips.of(&info(5000, 0), 0);
        assert_eq!(trips.of(&info(6000, 0), 3000).unwrap().ns(), 6_000_000);
    }

    #[test]
    fn it_tells_of_now_if_it_is_fresh_and_no_acknowledgement_was_delayed() {
        let trip = |at_once, age_ms| RoundTrip {
            us: 1.0,
            age_ms,
            at_once,
        };
        let long_ns = 40_000_000;
        assert!(trip(true, 90).tells_of_now(long_ns));
        assert!(!trip(false, 0).tells_of_now(long_ns), "it may be delayed");
        assert!(trip(false, 0).tells_of_now(SHORT_NS - 1), "nothing waited");
        assert!(!trip(true, 101).tells_of_now(0), "the queue of long ago");
    }

    #[test]
    fn more_than_a_segment_at_once_was_not_delayed_nor_was_the_handshake() {
        let mut trips = RoundTrips::default();
        let handshake = TcpInfo {
            acked_bytes: 0,
            ..info(5000, 1)
        };
        assert!(trips.of(&handshake, 0).unwrap().at_once);
        assert!(!trips.of(&info(5100, 2), 1448).unwrap().at_once);
        assert!(trips.of(&info(5200, 3), 2 * 1448).unwrap().at_once);
    }

    proptest! {
        /// The kernel's own arithmetic (`tcp_rtt_estimator`, eighths of microseconds), undone to a mean
        /// that lies between the smallest and the largest round trip.
        #[test]
        fn an_average_is_undone(
            before_us in 100u32..500_000,
            since_us in proptest::collection::vec(100u32..500_000, 1..40),
        ) {
            let mut trips = RoundTrips::default();
            let mut eighths_us = i64::from(before_us) * 8;
            trips.of(&info(before_us, 7), 0);
            for &rtt_us in &since_us {
                eighths_us += i64::from(rtt_us) - (eighths_us >> 3);
            }
            let acks = 7 + since_us.len() as u32;
            let rtt = trips.of(&info((eighths_us >> 3) as u32, acks), 9000).unwrap();
            let least_us = f64::from(*since_us.iter().min().unwrap());
            let most_us = f64::from(*since_us.iter().max().unwrap());
            // What the kernel cuts off counts eightfold where there is one acknowledgement.
            prop_assert!(rtt.us >= least_us - 20.0 && rtt.us <= most_us + 20.0, "{rtt:?}");
        }
    }
}
