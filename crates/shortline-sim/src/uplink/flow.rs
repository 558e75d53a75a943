//! One TCP connection: CUBIC (RFC 9438) in bytes, without timeouts.

use super::PACKET;

/// RFC 9438, 4.1 and 4.6: C and beta.
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;
const WINDOW_FIRST: f64 = 10.0 * PACKET;
const WINDOW_MIN: f64 = 2.0 * PACKET;
/// What the kernel's buffers allow (`tcp_wmem`, 4 MiB).
const WINDOW_MAX: f64 = 4.0 * 1024.0 * 1024.0;

pub(super) struct Flow {
    /// The path of one of our flows; the others' have none.
    pub path: Option<usize>,
    pub unsent: f64,
    to_repeat: f64,
    in_flight: f64,
    window: f64,
    threshold: f64,
    window_at_loss: f64,
    epoch: Option<u32>,
    recovers_until: u32,
    rtt_min_ms: f64,
    window_was_full: bool,
}

impl Flow {
    pub fn ours(path: usize, bytes: f64) -> Self {
        Self {
            path: Some(path),
            unsent: bytes,
            to_repeat: 0.0,
            in_flight: 0.0,
            window: WINDOW_FIRST,
            threshold: f64::INFINITY,
            window_at_loss: 0.0,
            epoch: None,
            recovers_until: 0,
            rtt_min_ms: f64::INFINITY,
            window_was_full: false,
        }
    }

    pub fn cross(rtt_ms: f64) -> Self {
        Self {
            path: None,
            rtt_min_ms: rtt_ms,
            ..Self::ours(0, f64::INFINITY)
        }
    }

    /// Nothing of it is under way any more.
    pub fn is_over(&self) -> bool {
        self.path.is_some() && self.unsent <= 0.0 && self.in_flight < 1.0
    }

    pub fn is_ours_with_work(&self) -> bool {
        self.path.is_some() && self.unsent > 0.0
    }

    /// What it may send now.
    pub fn room(&self) -> f64 {
        (self.window - self.in_flight).clamp(0.0, self.unsent.max(0.0))
    }

    /// Sends, and returns how much of it was sent before.
    pub fn send(&mut self, bytes: f64) -> f64 {
        self.unsent -= bytes;
        self.in_flight += bytes;
        self.window_was_full = self.in_flight + PACKET >= self.window;
        let repeated = bytes.min(self.to_repeat);
        self.to_repeat -= repeated;
        repeated
    }

    pub fn acknowledge(&mut self, bytes: f64, rtt_ms: f64, step: u32) {
        self.in_flight = (self.in_flight - bytes).max(0.0);
        self.rtt_min_ms = self.rtt_min_ms.min(rtt_ms);
        if step < self.recovers_until || !self.window_was_full {
            return;
        }
        if self.window < self.threshold {
            self.window += bytes;
            let late_ms = (self.rtt_min_ms / 8.0).clamp(4.0, 16.0);
            if rtt_ms > self.rtt_min_ms + late_ms && self.window > 16.0 * PACKET {
                self.threshold = self.window;
            }
        } else {
            self.grow(bytes, rtt_ms, step);
        }
        self.window = self.window.min(WINDOW_MAX);
    }

    /// The news that `bytes` did not arrive.
    pub fn lose(&mut self, bytes: f64, step: u32) {
        self.in_flight = (self.in_flight - bytes).max(0.0);
        self.unsent += bytes;
        self.to_repeat += bytes;
        if step < self.recovers_until {
            return;
        }
        self.window_at_loss = self.window;
        self.window = (self.window * CUBIC_BETA).max(WINDOW_MIN);
        self.threshold = self.window;
        self.epoch = None;
        let rtt_ms = if self.rtt_min_ms.is_finite() {
            self.rtt_min_ms
        } else {
            100.0
        };
        self.recovers_until = step + rtt_ms as u32 + 1;
    }

    /// RFC 9438, 4.2 and 4.3, with the average additive increase of 4.3 as the floor.
    fn grow(&mut self, bytes: f64, rtt_ms: f64, step: u32) {
        let begun = *self.epoch.get_or_insert(step);
        let since_s = f64::from(step - begun) / 1000.0 + rtt_ms / 1000.0;
        let top = self.window_at_loss / PACKET;
        let k_s = libm::cbrt((top * (1.0 - CUBIC_BETA) / CUBIC_C).max(0.0));
        let target = (CUBIC_C * (since_s - k_s).powi(3) + top) * PACKET;
        let cubic = ((target - self.window) / self.window).clamp(0.0, 0.5) * bytes;
        let reno = 0.53 * PACKET * bytes / self.window;
        self.window += cubic.max(reno);
    }
}
