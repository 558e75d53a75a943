//! The queueing delay that all paths share, without what they vary by themselves.
//!
//! A queue grows and shrinks evenly: what bends between three observations is the paths' own (radio, losses). It looks
//! like a queue that comes and goes whatever is sent, so where there is much of it the delay is smoothed over longer, and
//! is counted from above the smallest that was seen.

/// The delay is smoothed over this time at least, and at most.
const SMOOTHING_NS: f64 = 20e6;
const SMOOTHING_NS_MAX: f64 = 500e6;
/// It bends by so much where nothing varies by itself: packets, our own grants, and other people's traffic.
const BENDS_NS: f64 = 3e6;
/// Where it bends by so much more, it is smoothed over twice the time.
const VARIES_NS: f64 = 1.5e6;
/// How it bends is averaged over this time.
const BENDS_OVER_NS: f64 = 1e9;
/// What varies by itself is on average longer than its smallest by so many times what it bends.
const ABOVE_GROUND: f64 = 2.0;

/// The delay; see the module's text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    smooth_ns: f64,
    /// How much it bends, on average.
    bends_ns: f64,
    /// The last observation, and the one before.
    last_ns: [f64; 2],
}

impl Delay {
    /// The delay as it was first observed.
    pub fn new(delay_ns: f64) -> Self {
        Self {
            smooth_ns: delay_ns,
            bends_ns: 0.0,
            last_ns: [delay_ns; 2],
        }
    }

    /// The queue's part of it.
    pub fn ns(&self) -> f64 {
        (self.smooth_ns - ABOVE_GROUND * self.varies_ns()).max(0.0)
    }

    /// How much it bends by itself.
    fn varies_ns(&self) -> f64 {
        (self.bends_ns - BENDS_NS).max(0.0)
    }

    /// Takes in an observation, `span_ns` after the one before.
    pub fn take_in(&mut self, delay_ns: f64, span_ns: f64) {
        let [last_ns, before_ns] = self.last_ns;
        let bend_ns = (delay_ns - 2.0 * last_ns + before_ns).abs() / 2.0;
        self.last_ns = [delay_ns, last_ns];
        self.bends_ns += span_ns / (span_ns + BENDS_OVER_NS) * (bend_ns - self.bends_ns);
        let longer = 1.0 + (self.varies_ns() / VARIES_NS).powi(2);
        let smoothing_ns = (SMOOTHING_NS * longer).min(SMOOTHING_NS_MAX);
        self.smooth_ns += span_ns / (span_ns + smoothing_ns) * (delay_ns - self.smooth_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK_NS: f64 = 10e6;
    const MS: f64 = 1e6;

    /// What is seen after these delays, in milliseconds, one every 10 ms.
    fn seen_ms(delays_ms: impl IntoIterator<Item = f64>) -> f64 {
        let mut delay = Delay::new(0.0);
        for delay_ms in delays_ms {
            delay.take_in(delay_ms * MS, LOOK_NS);
        }
        delay.ns() / MS
    }

    /// A number for each of 1,000 looks: the first for even ones, the second for odd ones.
    fn in_turn(even: f64, odd: f64) -> impl Iterator<Item = f64> {
        (0..1000).map(move |look| if look % 2 == 0 { even } else { odd })
    }

    #[test]
    fn a_queue_that_stays_is_all_of_it() {
        let seen = seen_ms(in_turn(40.0, 40.0));
        assert!((seen - 40.0).abs() < 0.1, "{seen} ms");
    }

    #[test]
    fn a_queue_that_grows_evenly_is_followed_closely() {
        let seen = seen_ms((1..=1000).map(|look| f64::from(look) * 0.1));
        assert!((99.0..=100.0).contains(&seen), "{seen} ms");
    }

    #[test]
    fn what_the_paths_vary_by_themselves_is_no_queue() {
        assert!(seen_ms(in_turn(0.0, 30.0)) < 0.1);
    }

    #[test]
    fn a_queue_behind_paths_that_vary_is_still_seen() {
        let seen = seen_ms(in_turn(37.0, 43.0));
        assert!((30.0..=40.0).contains(&seen), "{seen} ms");
    }

    #[test]
    fn a_queue_that_comes_is_seen_later_where_paths_vary() {
        let after = |quiet: f64, varies: f64| {
            let come = [60.0 - varies, 60.0 + varies, 60.0 - varies];
            seen_ms(in_turn(quiet - varies, quiet + varies).chain(come))
        };
        let (steady, varying) = (after(20.0, 0.0), after(20.0, 5.0));
        assert!(
            steady > 40.0 && varying < steady,
            "{steady} and {varying} ms"
        );
    }
}
