//! The limits and windows of the controller. The simulated plants and the lab ran with these
//! defaults.

/// One millisecond in nanoseconds.
pub(super) const MS: u64 = 1_000_000;

/// How the controller behaves. Every duration is in nanoseconds, every rate in wire bits per
/// second.
#[derive(Clone, Debug, PartialEq)]
pub struct UplinkConfig {
    /// Never pace below this. Default: 100 kbit/s.
    pub rate_bps_min: u64,
    /// Never pace above this; a decision of exactly this rate holds nothing back. Default: 100
    /// Gbit/s.
    pub rate_bps_max: u64,
    /// The queueing delay to leave at the bottleneck, so that it never runs dry. Where round trips
    /// are short it is half a millisecond plus an eighth of theirs. It is always at least the time
    /// of two packets. Default: 3 ms.
    pub delay_target_ns: u64,
    /// Without an estimate, a delay of this much counts as a queue. Default: 8 ms.
    pub delay_start_ns: u64,
    /// The shortest time over which a rate is measured. Default: 200 ms.
    pub window_ns_min: u64,
    /// The longest time over which a rate is measured. On slow uplinks a measurement waits for 24
    /// packets, but no longer than this. Default: 1.5 s.
    pub window_ns_max: u64,
    /// The round-trip time assumed where none is known. Default: 100 ms.
    pub rtt_ns_assumed: u64,
    /// Observations further apart than this do not belong together. Default: 1 s.
    pub gap_ns_max: u64,
    /// Blind after bytes were sent without a known delay for this long. Default: 2 s.
    pub blind_ns: u64,
    /// No bottleneck after sending at what the connections allow for this long without a queue.
    /// Default: 3 s.
    pub open_ns: u64,
    /// While yielding, try this often whether the others have gone. Default: 3 s.
    pub yield_retry_ns: u64,
}

impl Default for UplinkConfig {
    fn default() -> Self {
        Self {
            rate_bps_min: 100_000,
            rate_bps_max: 100_000_000_000,
            delay_target_ns: 3 * MS,
            delay_start_ns: 8 * MS,
            window_ns_min: 200 * MS,
            window_ns_max: 1500 * MS,
            rtt_ns_assumed: 100 * MS,
            gap_ns_max: 1000 * MS,
            blind_ns: 2000 * MS,
            open_ns: 3000 * MS,
            yield_retry_ns: 3000 * MS,
        }
    }
}
