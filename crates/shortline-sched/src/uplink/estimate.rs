//! The capacity that is left for us, and how sure it is.
//!
//! cake-autorate's rule: the throughput achieved while delay shows is the capacity. Such
//! measurements are averaged as long as they agree within [`AGREE`], and replace the average when
//! they do not. What clients acknowledge falsely, or never, is taken out first ([`Delivery`]).

use super::config::UplinkConfig;
use super::meter::{Meter, Window};

/// Measurements this close to the estimate, relatively, confirm it.
const AGREE: f64 = 0.08;
/// Limits of the share of what is sent that may count as delivered.
const RATIO_MIN: f64 = 0.5;
const RATIO_MAX: f64 = 1.5;
/// A queue being emptied makes deliveries at most this many times what is sent.
const QUEUE_EMPTIED: f64 = 1.15;
/// Without a measurement, the estimate falls at most this share below the last one.
const SCALED_DOWN_MAX: f64 = 0.05;
/// The weight of a new measurement that agrees.
const WEIGHT: f64 = 0.2;

/// A capacity, in bits per second, and its measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub bps: f64,
    /// The value from the last measurements.
    pub measured_bps: f64,
    /// Moving average of the relative distance of measurements.
    error: f64,
    /// Measurements that have agreed since the last that did not, up to a few.
    agreed: u32,
}

impl Estimate {
    pub fn new(bps: f64) -> Self {
        Self {
            bps,
            measured_bps: bps,
            error: 0.05,
            agreed: 0,
        }
    }

    /// Adds a measurement: the mean of the first few, then a moving average.
    pub fn measure(&mut self, bps: f64) {
        let distance = (bps - self.bps).abs() / self.bps;
        if distance > AGREE {
            *self = Self::new(bps);
            return;
        }
        let weight = WEIGHT.max(1.0 / f64::from(self.agreed + 2));
        self.bps += weight * (bps - self.bps);
        self.measured_bps = self.bps;
        self.error += WEIGHT * (distance - self.error);
        self.agreed = (self.agreed + 1).min(4);
    }

    /// Notes a measurement that only shows that the estimate may be right.
    pub fn confirm(&mut self, bps: f64) {
        if (bps - self.bps).abs() <= AGREE * self.bps {
            self.error += WEIGHT * ((bps - self.bps).abs() / self.bps - self.error);
            self.agreed = (self.agreed + 1).min(4);
        }
    }

    /// Scales the estimate without a measurement; downwards hardly below the last one.
    pub fn scale(&mut self, factor: f64) {
        let lowest = self.bps.min((1.0 - SCALED_DOWN_MAX) * self.measured_bps);
        self.bps = (self.bps * factor).max(lowest);
    }

    /// The same, inside the limits of the configuration.
    pub fn within(mut self, config: &UplinkConfig) -> Self {
        let (lowest, highest) = (config.rate_bps_min as f64, config.rate_bps_max as f64);
        if !self.bps.is_finite() {
            self.bps = highest;
        }
        self.bps = self.bps.min(highest).max(lowest);
        self
    }

    /// The confidence, from 0 to 1.
    pub fn confidence(&self) -> f64 {
        let seen = f64::from(self.agreed) / 2.0;
        (1.0 - 3.0 * self.error).clamp(0.0, 1.0) * seen.min(1.0)
    }
}

/// The share of what is sent that is seen to be delivered, in the long run. It is not 1 where
/// clients acknowledge falsely or never, where packets get lost behind the bottleneck, or where the
/// scaling to bytes on the wire is a little wrong. In steady pacing nothing piles up, so only these
/// causes are in the ratio. What is delivered is divided by it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Delivery {
    ratio: f64,
    since_ns: u64,
}

impl Delivery {
    pub fn new() -> Self {
        Self {
            ratio: 1.0,
            since_ns: 0,
        }
    }

    /// While paced, learns one ratio for each longest window in which no delay was as long as
    /// `high_ns`, because a queue that long changes and overflows. Returns true if what was
    /// measured so far was in quite different bytes, and must be measured again.
    pub fn learn(
        &mut self,
        meter: &Meter,
        config: &UplinkConfig,
        span_ns: u64,
        high_ns: u64,
    ) -> bool {
        self.since_ns += span_ns;
        if self.since_ns < config.window_ns_max {
            return false;
        }
        let Some(window) = meter.last(config.window_ns_max, high_ns) else {
            return false;
        };
        if window.sent_bytes == 0 {
            return false;
        }
        let seen = window.delivered_bytes as f64 / window.sent_bytes as f64;
        if window.busy_ns * 10 > window.span_ns && seen < QUEUE_EMPTIED {
            return false;
        }
        self.since_ns = 0;
        let distance = seen.clamp(RATIO_MIN, RATIO_MAX) - self.ratio;
        let stranger = distance.abs() > 0.2;
        self.ratio += if stranger { 0.8 } else { 0.4 } * distance;
        stranger
    }

    /// What was delivered, in the bytes that we send in; never much more than was sent.
    pub fn delivered_bps(
        &self,
        meter: &Meter,
        config: &UplinkConfig,
        window: &Window,
    ) -> Option<f64> {
        let sent_bps = meter
            .last(config.window_ns_max, 0)
            .map_or(f64::INFINITY, |longest| longest.sent_bps());
        let bps = (window.delivered_bps() / self.ratio).min(1.2 * sent_bps.max(window.sent_bps()));
        (bps > 0.0 && bps.is_finite()).then_some(bps)
    }
}
