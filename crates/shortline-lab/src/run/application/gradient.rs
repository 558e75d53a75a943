//! Netflix' gradient, for comparison: a limit on the requests under way, above which requests are refused.
//!
//! ```text
//! gradient = clamp(long / short, 0.5, 1)
//! new      = limit * gradient + queue                      (queue = 4)
//! limit    = clamp(0.8 * limit + 0.2 * new, 20, 200)
//! ```
//!
//! `short` is the mean time of a window, `long` an exponential mean of these over 600 windows, of which the
//! first 10 are averaged plainly. If `long` is more than twice `short` it loses a tenth. If less than half of
//! the limit is under way, the limit stays.
//!
//! Source: Netflix concurrency-limits, Gradient2Limit and WindowedLimit, both with their defaults. A window
//! lasts a second and has ten requests at least. Departures: none are known. The text is our own.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

const LIMIT_FIRST: f64 = 20.0;
const LIMIT_MIN: f64 = 20.0;
const LIMIT_MAX: f64 = 200.0;
const QUEUE: f64 = 4.0;
const SMOOTHING: f64 = 0.2;
const LONG_WINDOWS: f64 = 600.0;
const WARM_UP_WINDOWS: f64 = 10.0;
/// The length of a window, in seconds. The library's least and greatest are the same.
const WINDOW_S: f64 = 1.0;
const WINDOW_REQUESTS_MIN: u64 = 10;

/// The limit and what it goes by.
#[derive(Debug)]
pub struct Gradient {
    limit: f64,
    long_s: f64,
    long_sum_s: f64,
    long_windows: f64,
    window: Window,
}

/// The requests of a window.
#[derive(Debug)]
struct Window {
    end_s: f64,
    times_sum_s: f64,
    requests: u64,
    under_way_max: u64,
}

impl Default for Gradient {
    fn default() -> Self {
        Self {
            limit: LIMIT_FIRST,
            long_s: 0.0,
            long_sum_s: 0.0,
            long_windows: 0.0,
            window: Window::until(0.0),
        }
    }
}

impl Gradient {
    fn limit(&self) -> u64 {
        self.limit as u64
    }

    /// A request was completed, after `time_s`, with `under_way` at its beginning.
    fn completed(&mut self, now_s: f64, time_s: f64, under_way: u64) {
        let window = &mut self.window;
        window.times_sum_s += time_s;
        window.requests += 1;
        window.under_way_max = window.under_way_max.max(under_way);
        if now_s > window.end_s && window.requests >= WINDOW_REQUESTS_MIN {
            let short_s = window.times_sum_s / window.requests as f64;
            let under_way = window.under_way_max;
            self.window = Window::until(now_s + WINDOW_S);
            self.update(short_s, under_way);
        }
    }

    fn update(&mut self, short_s: f64, under_way: u64) {
        if self.long_windows < WARM_UP_WINDOWS {
            self.long_windows += 1.0;
            self.long_sum_s += short_s;
            self.long_s = self.long_sum_s / self.long_windows;
        } else {
            let factor = 2.0 / (LONG_WINDOWS + 1.0);
            self.long_s = self.long_s * (1.0 - factor) + short_s * factor;
        }
        let ratio = self.long_s / short_s;
        if ratio > 2.0 {
            self.long_s *= 0.9;
        }
        if (under_way as f64) < self.limit / 2.0 {
            return;
        }
        let new = self.limit * ratio.clamp(0.5, 1.0) + QUEUE;
        let smooth = self.limit * (1.0 - SMOOTHING) + new * SMOOTHING;
        self.limit = smooth.clamp(LIMIT_MIN, LIMIT_MAX);
    }
}

impl Window {
    fn until(end_s: f64) -> Self {
        Self {
            end_s,
            times_sum_s: 0.0,
            requests: 0,
            under_way_max: 0,
        }
    }
}

/// Counts what is under way, and refuses what is above the limit.
pub struct Limiter {
    begin: Instant,
    state: Mutex<(Gradient, u64)>,
}

/// A request under way. Dropped without an end, it does not count as a time.
pub struct Permit {
    limiter: Arc<Limiter>,
    since: Instant,
    under_way: u64,
}

impl Limiter {
    pub fn new(gradient: Gradient) -> Self {
        Self {
            begin: Instant::now(),
            state: Mutex::new((gradient, 0)),
        }
    }

    /// `None` if the limit is reached.
    pub fn acquire(self: &Arc<Self>) -> Option<Permit> {
        let mut state = self.state.lock();
        let (gradient, under_way) = &mut *state;
        if *under_way >= gradient.limit() {
            return None;
        }
        *under_way += 1;
        Some(Permit {
            limiter: Arc::clone(self),
            since: Instant::now(),
            under_way: *under_way,
        })
    }
}

impl Permit {
    /// The request has got its response.
    pub fn completed(self) {
        let now = Instant::now();
        let now_s = now.duration_since(self.limiter.begin).as_secs_f64();
        let time_s = now.duration_since(self.since).as_secs_f64();
        let mut state = self.limiter.state.lock();
        state.0.completed(now_s, time_s, self.under_way);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limiter.state.lock().1 -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit after so many windows of this time at a full limit.
    fn after(gradient: &mut Gradient, windows: u64, time_s: f64) -> u64 {
        for _ in 0..windows {
            let under_way = gradient.limit();
            gradient.update(time_s, under_way);
        }
        gradient.limit()
    }

    #[test]
    fn it_grows_while_times_stay_and_shrinks_while_they_grow() {
        let mut gradient = Gradient::default();
        let grown = after(&mut gradient, 60, 0.01);
        assert!(grown > 60, "{grown}");
        let shrunk = after(&mut gradient, 30, 0.05);
        assert!(shrunk < grown / 2, "{shrunk} of {grown}");
    }

    #[test]
    fn it_stays_while_the_load_does_not_need_it() {
        let mut gradient = Gradient::default();
        for _ in 0..50 {
            gradient.update(0.01, 3);
        }
        assert_eq!(gradient.limit(), 20);
    }
}
