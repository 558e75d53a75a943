//! Round-trip times as a server sees them, per path, and the delay that paths share
//! (`shortline_link`'s discovery: `round_trip`, `shared`).

/// A delay counts if it was seen within this many steps, or for as long as it takes to have enough
/// paths.
const FRESH: u32 = 20;
const PATHS_ENOUGH: usize = 4;
/// A delay is forgotten after this many steps.
const RECENT: u32 = 100;

pub(super) struct PathState {
    /// Of each connection, since the last look: the number of round trips, and their sum.
    since: Vec<(usize, u32, f64)>,
    /// The means of earlier looks, and their times.
    means: Vec<(u32, f64)>,
    smallest_ms: f64,
}

impl PathState {
    pub fn new() -> Self {
        Self {
            since: Vec::new(),
            means: Vec::new(),
            smallest_ms: f64::INFINITY,
        }
    }

    /// An acknowledgement on one of its connections.
    pub fn sample(&mut self, connection: usize, rtt_ms: f64) {
        self.smallest_ms = self.smallest_ms.min(rtt_ms);
        match self.since.iter_mut().find(|(of, ..)| *of == connection) {
            Some((_, count, sum_ms)) => {
                *count += 1;
                *sum_ms += rtt_ms;
            }
            None => self.since.push((connection, 1, rtt_ms)),
        }
    }

    /// Looks at its connections.
    pub fn look(&mut self, step: u32) {
        self.means.retain(|(at, _)| at + RECENT > step);
        let means = self.since.drain(..);
        self.means
            .extend(means.map(|(_, count, sum_ms)| (step, sum_ms / f64::from(count))));
    }

    /// When it was last seen, if ever.
    fn seen(&self) -> Option<u32> {
        self.means.last().map(|(at, _)| *at)
    }

    fn smallest_since(&self, from: u32) -> Option<f64> {
        let fresh = self.means.iter().filter(|(at, _)| *at >= from);
        fresh.map(|(_, ms)| *ms).min_by(f64::total_cmp)
    }
}

/// The lower quartile of the fresh paths' excess over their smallest round-trip time, the median of
/// their round-trip times, both in nanoseconds, and the number of paths seen at all.
pub(super) fn shared_delay(paths: &[PathState], step: u32) -> (Option<u64>, Option<u64>, u32) {
    let mut seen: Vec<u32> = paths.iter().filter_map(PathState::seen).collect();
    seen.sort_unstable_by(|a, b| b.cmp(a));
    let enough = seen[..seen.len().min(PATHS_ENOUGH)].last().copied();
    let from = enough.unwrap_or(step).min(step.saturating_sub(FRESH));
    let (mut delays, mut rtts): (Vec<f64>, Vec<f64>) = paths
        .iter()
        .filter_map(|path| {
            path.smallest_since(from)
                .map(|rtt_ms| (rtt_ms - path.smallest_ms, rtt_ms))
        })
        .unzip();
    delays.sort_unstable_by(f64::total_cmp);
    rtts.sort_unstable_by(f64::total_cmp);
    let nanoseconds = |ms: &f64| (ms.max(0.0) * 1e6) as u64;
    (
        delays.get(delays.len() / 4).map(nanoseconds),
        rtts.get(rtts.len() / 2).map(nanoseconds),
        seen.len() as u32,
    )
}
