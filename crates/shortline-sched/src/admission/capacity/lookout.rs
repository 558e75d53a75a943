//! When to look below a load without waiters. A look costs work for a while if the backend can bear the load,
//! so it is rare. It comes sooner when the load has changed.

use super::dwell::Measured;

/// The pause between two looks, in nanoseconds: at first and at most. Each is twice as long as the last.
const PAUSE_NS: u64 = 10_000_000_000;
const PAUSE_NS_MAX: u64 = 320_000_000_000;

/// A load has changed if it is this many times larger or smaller, or has this many times more requests.
const LARGER: f64 = 2.0;
/// A load has changed if its slowdown is this many times larger.
const SLOWER: f64 = 1.5;

/// The load at the last look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lookout {
    load: f64,
    active: f64,
    slowdown: f64,
    pause_ns: u64,
    at_ns: Option<u64>,
}

impl Default for Lookout {
    fn default() -> Self {
        Self {
            load: 0.0,
            active: 0.0,
            slowdown: 0.0,
            pause_ns: PAUSE_NS,
            at_ns: None,
        }
    }
}

impl Lookout {
    /// Whether to look below the measured load.
    pub(super) fn is_due(self, now_ns: u64, measured: Measured) -> bool {
        let Some(at_ns) = self.at_ns else {
            return true;
        };
        let pause_ns = now_ns.saturating_sub(at_ns);
        pause_ns >= self.pause_ns || pause_ns >= PAUSE_NS && self.is_another(measured)
    }

    /// A search has just ended, which looked below by itself.
    pub(super) fn searched(&mut self, now_ns: u64) {
        self.at_ns = Some(now_ns);
    }

    /// Notes a look below the measured load.
    pub(super) fn look(&mut self, now_ns: u64, measured: Measured) {
        self.pause_ns = if self.is_another(measured) {
            PAUSE_NS
        } else {
            (2 * self.pause_ns).min(PAUSE_NS_MAX)
        };
        self.at_ns = Some(now_ns);
        (self.load, self.active) = (measured.load, measured.active);
        self.slowdown = measured.slowdown;
    }

    fn is_another(self, measured: Measured) -> bool {
        let is_like = (1.0 / LARGER..=LARGER).contains(&(measured.load / self.load));
        !is_like
            || measured.active > LARGER * self.active
            || measured.slowdown > SLOWER * self.slowdown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(load: f64, slowdown: f64) -> Measured {
        Measured {
            span: 1e9,
            waited: 0.0,
            active: 10.0,
            load,
            load_max: load as u64,
            service_ns: 1e7,
            slowdown,
            work_rate: 1.0,
            variance: 1e-4,
            alone_ns: 1e6,
            estimate_ns: 1e6,
        }
    }

    #[test]
    fn does_not_look_where_a_search_has_just_looked() {
        let mut lookout = Lookout::default();
        let load = measured(1e8, 1.0);
        assert!(lookout.is_due(0, load));
        lookout.searched(5);
        assert!(!lookout.is_due(5 + PAUSE_NS - 1, load));
        assert!(lookout.is_due(5 + PAUSE_NS, load));
    }

    #[test]
    fn looks_ever_more_rarely_and_soon_below_another_load() {
        let mut lookout = Lookout::default();
        let (mut now_ns, mut pauses) = (0, Vec::new());
        let same = measured(1e8, 1.0);
        for _ in 0..8 {
            assert!(lookout.is_due(now_ns, same));
            lookout.look(now_ns, same);
            assert!(!lookout.is_due(now_ns + lookout.pause_ns - 1, measured(1.9e8, 1.4)));
            pauses.push(lookout.pause_ns);
            now_ns += lookout.pause_ns;
        }
        assert_eq!(pauses[..3], [PAUSE_NS, 2 * PAUSE_NS, 4 * PAUSE_NS]);
        assert_eq!(pauses[7], PAUSE_NS_MAX);
        lookout.look(now_ns, same);
        for other in [measured(2.1e8, 1.0), measured(4e7, 1.0), measured(1e8, 1.6)] {
            assert!(!lookout.is_due(now_ns + PAUSE_NS - 1, other));
            assert!(lookout.is_due(now_ns + PAUSE_NS, other));
        }
    }
}
