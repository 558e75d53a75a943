//! Round-trip times as a server sees them, per path, and the delay that paths share.

/// A path was recently sampled when that is not longer ago than this, in steps.
const RECENT: u32 = 100;

pub(super) struct PathState {
    smoothed_ms: Option<f64>,
    smallest_ms: f64,
    sampled: u32,
}

impl PathState {
    pub fn new() -> Self {
        Self {
            smoothed_ms: None,
            smallest_ms: f64::INFINITY,
            sampled: 0,
        }
    }

    /// An acknowledgement on one of its connections, whose smoothed round-trip time is that.
    pub fn sample(&mut self, rtt_ms: f64, smoothed_ms: f64, step: u32) {
        self.smoothed_ms = Some(smoothed_ms);
        self.smallest_ms = self.smallest_ms.min(rtt_ms);
        self.sampled = step;
    }
}

/// The lower quartile of the recently sampled paths' excess over their smallest round-trip time,
/// the median of their round-trip times, both in nanoseconds, and their number.
pub(super) fn shared_delay(paths: &[PathState], step: u32) -> (Option<u64>, Option<u64>, u32) {
    let recent = paths.iter().filter(|path| path.sampled + RECENT > step);
    let (mut delays, mut rtts): (Vec<f64>, Vec<f64>) = recent
        .filter_map(|path| {
            path.smoothed_ms
                .map(|smoothed_ms| (smoothed_ms - path.smallest_ms, smoothed_ms))
        })
        .unzip();
    let count = delays.len();
    delays.sort_unstable_by(f64::total_cmp);
    rtts.sort_unstable_by(f64::total_cmp);
    let nanoseconds = |ms: &f64| (ms.max(0.0) * 1e6) as u64;
    (
        delays.get(count / 4).map(nanoseconds),
        rtts.get(count / 2).map(nanoseconds),
        count as u32,
    )
}
