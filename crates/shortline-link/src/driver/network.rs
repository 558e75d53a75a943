//! What a connection's network is like, for the policies that go by it: from `TCP_INFO`
//! (linux/tcp.h) to the scheduler's [`PathView`].
//!
//! Source: paper 004 3.3.1-3.3.5. RTT is the smoothed round trip, and the congestion window in
//! bytes is `snd_cwnd` times the segment's payload (004 counts `advmss`, which leaves out the
//! timestamps' 12 bytes).
//!
//! Departures: the past rate is the kernel's delivery rate, which it takes over the last round
//! trip of data, where 004 A divides all that was sent by the time since the request. Before a
//! response has sent anything there is none, and policies go by `cwnd / RTT`.

use shortline_sched::PathView;

use shortline_base::TcpInfo;

/// The path as `info` shows it, for a response that has sent something (`has_sent`) or not yet.
/// [`PathView::UNKNOWN`] where the kernel has no round trip or no window to tell.
pub(crate) fn view(info: &TcpInfo, has_sent: bool) -> PathView {
    let cwnd_bytes = u64::from(info.cwnd_segments) * u64::from(info.segment_bytes);
    if info.rtt_us == 0 || cwnd_bytes == 0 {
        return PathView::UNKNOWN;
    }
    let delivered_bps = info.delivered_bytes_per_s.saturating_mul(8);
    PathView {
        rtt_ns: u64::from(info.rtt_us) * 1000,
        cwnd_bytes,
        rate_bps_past: (has_sent && delivered_bps > 0).then_some(delivered_bps),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: TcpInfo = TcpInfo {
        segment_bytes: 1448,
        sent_bytes: 0,
        sent_segments: 0,
        ack_segments: 0,
        request_segments: 0,
        rtt_us_min: 20_000,
        rtt_us: 30_000,
        ack_age_ms: 0,
        request_age_ms: 0,
        cwnd_segments: 10,
        flight_segments: 0,
        unsent_bytes: 0,
        delivered_bytes_per_s: 50_000,
        resent_bytes: 0,
        acked_bytes: 0,
    };

    #[test]
    fn the_window_is_in_bytes_and_the_past_rate_is_what_was_delivered() {
        let path = view(&INFO, true);
        assert_eq!((path.rtt_ns, path.cwnd_bytes), (30_000_000, 14_480));
        assert_eq!(path.rate_bps_past, Some(400_000));
    }

    #[test]
    fn a_response_that_has_sent_nothing_goes_by_its_window() {
        assert_eq!(view(&INFO, false).rate_bps_past, None);
    }

    #[test]
    fn what_the_kernel_leaves_out_makes_the_path_unknown() {
        for missing in [
            TcpInfo { rtt_us: 0, ..INFO },
            TcpInfo {
                cwnd_segments: 0,
                ..INFO
            },
            TcpInfo {
                segment_bytes: 0,
                ..INFO
            },
            TcpInfo::default(),
        ] {
            assert_eq!(view(&missing, true), PathView::UNKNOWN);
        }
        let silent = TcpInfo {
            delivered_bytes_per_s: 0,
            ..INFO
        };
        assert_eq!(view(&silent, true).rate_bps_past, None);
    }
}
