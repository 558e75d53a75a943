//! The capacity that is left to us, and how sure we are.
//!
//! cake-autorate's rule: the throughput achieved while delay shows is the capacity. Such
//! measurements are averaged as long as they agree within [`AGREE`], and replace the average
//! when they do not. Measurements of what was delivered are believed inside what the sent
//! bytes and the change of the delay allow ([`Window::drained_bps`]): a client that acknowledges
//! what it never got, or never acknowledges, moves nothing else.

use super::config::UplinkConfig;
use super::meter::Window;

/// Measurements this close to the estimate, relatively, confirm it.
const AGREE: f64 = 0.08;
/// The weight of a new measurement that agrees.
const WEIGHT: f64 = 0.2;

/// A capacity, in bits per second, and its measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub bps: f64,
    /// Moving average of the relative distance of measurements.
    error: f64,
    /// Measurements that agreed since one did not, up to a few.
    agreed: u32,
}

impl Estimate {
    pub fn new(bps: f64) -> Self {
        Self {
            bps,
            error: 0.05,
            agreed: 1,
        }
    }

    /// Takes a measurement into account.
    pub fn measure(&mut self, bps: f64) {
        let distance = (bps - self.bps).abs() / self.bps;
        if distance > AGREE {
            *self = Self {
                agreed: 0,
                ..Self::new(bps)
            };
            return;
        }
        self.bps += WEIGHT * (bps - self.bps);
        self.error += WEIGHT * (distance - self.error);
        self.agreed = (self.agreed + 1).min(4);
    }

    /// Takes note of a measurement from which nothing follows but that the estimate may be
    /// right.
    pub fn confirm(&mut self, bps: f64) {
        if (bps - self.bps).abs() <= AGREE * self.bps {
            self.error += WEIGHT * ((bps - self.bps).abs() / self.bps - self.error);
            self.agreed = (self.agreed + 1).min(4);
        }
    }

    /// Moves the estimate by a factor without a measurement.
    pub fn scale(&mut self, factor: f64) {
        self.bps *= factor;
    }

    /// The same inside the limits of the configuration.
    pub fn within(mut self, config: &UplinkConfig) -> Self {
        let (lowest, highest) = (config.rate_bps_min as f64, config.rate_bps_max as f64);
        if !self.bps.is_finite() {
            self.bps = highest;
        }
        self.bps = self.bps.min(highest).max(lowest);
        self
    }

    /// From 0 to 1.
    pub fn confidence(&self) -> f64 {
        let seen = f64::from(self.agreed) / 2.0;
        (1.0 - 3.0 * self.error).clamp(0.0, 1.0) * seen.min(1.0)
    }
}

/// What the bottleneck drained in a busy window, in bits per second; None if nothing was.
pub(super) fn measured_bps(window: &Window) -> Option<f64> {
    let delivered = window.delivered_bps();
    let bps = match window.drained_bps() {
        Some(drained) => delivered.clamp(0.7 * drained, 1.2 * drained),
        None => delivered,
    };
    (bps > 0.0 && bps.is_finite()).then_some(bps)
}
