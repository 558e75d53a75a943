//! Arrivals on their way in: sizes become work, and impossible ones are refused.
//!
//! A job's work is the time that one server needs for its bytes,
//!
//! ```text
//! service = 8e9 * bytes / rate    [ns, to the nearest, at least 1]
//! ```

use crate::SimError;

/// How long the link needs for so many bytes, in nanoseconds: to the nearest, at least 1;
/// `u64::MAX` if it is more than that or the rate is 0.
fn service_ns(bytes: u64, rate_bps: u64) -> u64 {
    let scaled = u128::from(bytes) * 8_000_000_000 + u128::from(rate_bps / 2);
    scaled
        .checked_div(u128::from(rate_bps))
        .and_then(|service_ns| u64::try_from(service_ns).ok())
        .unwrap_or(u64::MAX)
        .max(1)
}

/// Checks arrivals one after the other.
pub(crate) struct Intake {
    rate_bps: u64,
    arrived: u64,
    previous_ns: u64,
    drained_ns: u64,
}

impl Intake {
    pub(crate) fn new(rate_bps: u64) -> Result<Self, SimError> {
        if rate_bps == 0 {
            return Err(SimError::ZeroRate);
        }
        Ok(Self {
            rate_bps,
            arrived: 0,
            previous_ns: 0,
            drained_ns: 0,
        })
    }

    /// How many have arrived.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// The work of the next arrival, in nanoseconds.
    pub(crate) fn work_ns(&mut self, at_ns: u64, bytes: f64) -> Result<u64, SimError> {
        self.arrived += 1;
        let number = self.arrived;
        if at_ns < self.previous_ns {
            return Err(SimError::Unsorted {
                number,
                at_ns,
                previous_ns: self.previous_ns,
            });
        }
        self.previous_ns = at_ns;
        if !bytes.is_finite() || bytes < 0.0 {
            return Err(SimError::Size { number, bytes });
        }
        let work_ns = if bytes.fract() == 0.0 {
            service_ns(bytes as u64, self.rate_bps)
        } else {
            // A float converts with saturation.
            ((bytes * 8e9 / self.rate_bps as f64).round() as u64).max(1)
        };
        self.drained_ns = self
            .drained_ns
            .max(at_ns)
            .checked_add(work_ns)
            .ok_or(SimError::TooMuchWork { number })?;
        Ok(work_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At this rate a byte takes a nanosecond.
    const BYTE_PER_NS: u64 = 8_000_000_000;

    #[test]
    fn service_is_the_time_on_the_link_to_the_nearest_nanosecond() {
        assert_eq!(service_ns(1250, 10_000_000), 1_000_000);
        assert_eq!(service_ns(2, 3 * BYTE_PER_NS), 1);
        assert_eq!(service_ns(5, 3 * BYTE_PER_NS), 2);
        assert_eq!(service_ns(0, 10_000_000), 1);
        assert_eq!(service_ns(u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn fractions_of_bytes_count() {
        let mut intake = Intake::new(BYTE_PER_NS / 1000).expect("a rate above 0");
        assert_eq!(intake.work_ns(0, 2.5), Ok(2500));
        assert_eq!(intake.work_ns(0, 0.0), Ok(1));
        let infinite = SimError::Size {
            number: 3,
            bytes: f64::INFINITY,
        };
        assert_eq!(intake.work_ns(0, f64::INFINITY), Err(infinite));
    }
}
