//! Aging: nobody waits much longer than a multiple of its own expected service.
//!
//! Paper 002 3.2 bounds the time a request is delayed by X times its expected service.
//! So the deadline of a job is
//!
//! ```text
//! deadline = arrival + X * expected service
//! ```
//!
//! and a job is overdue from its deadline on. The scheduler serves overdue jobs first,
//! earliest deadline first, all others by rank.
//!
//! It departs from 002 in that 002 promotes a job only if that delays no other beyond
//! its bound (a look-ahead, for the gate); here, on a link that preempts at every grant,
//! the overdue job takes over at its deadline. A job that is overdue alone waits no
//! longer; several share the link in the order of their deadlines. In overload no bound
//! can hold for all.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The factor X: how many times its expected service a job may wait before it is overdue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aging(f64);

impl Aging {
    /// Makes an aging factor.
    ///
    /// # Errors
    /// [`AgingError`] unless the factor is finite and above 0.
    pub fn new(factor: f64) -> Result<Self, AgingError> {
        if factor.is_finite() && factor > 0.0 {
            Ok(Self(factor))
        } else {
            Err(AgingError {
                value: factor.to_string(),
            })
        }
    }

    /// The factor, finite and above 0.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// When a job becomes overdue, in nanoseconds; at the end of time if that overflows.
    pub(crate) fn deadline_ns(self, arrival_ns: u64, service_ns_expected: u64) -> u64 {
        // A float converts with saturation, so a huge factor means "never".
        let wait_ns = (self.0 * service_ns_expected as f64).round() as u64;
        arrival_ns.saturating_add(wait_ns)
    }
}

/// An aging factor that is not a finite number above 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("aging `{value}`: must be a number above 0, such as 5")]
pub struct AgingError {
    value: String,
}

impl FromStr for Aging {
    type Err = AgingError;

    fn from_str(text: &str) -> Result<Self, AgingError> {
        let refused = || AgingError {
            value: crate::units::excerpt(text),
        };
        let factor = text.trim().parse::<f64>().map_err(|_| refused())?;
        Self::new(factor).map_err(|_| refused())
    }
}

impl fmt::Display for Aging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Aging {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Aging {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let factor = f64::deserialize(deserializer)?;
        Self::new(factor).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn deadline_is_a_multiple_of_the_expected_service_after_arrival() {
        let aging: Aging = "2.5".parse().unwrap();
        assert_eq!(aging.deadline_ns(100, 40), 200);
        assert_eq!(aging.to_string(), "2.5");
    }

    #[test]
    fn deadline_saturates() {
        let aging = Aging::new(1e300).unwrap();
        assert_eq!(aging.deadline_ns(1, 1), u64::MAX);
    }

    #[test]
    fn refuses_what_is_no_finite_factor_above_zero() {
        for text in ["", "0", "-1", "inf", "NaN", "five", "5x"] {
            let error = text.parse::<Aging>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn is_a_number_in_a_configuration() {
        let aging: Aging = serde_json::from_str("3").unwrap();
        assert_eq!(aging.factor(), 3.0);
        assert_eq!(serde_json::to_string(&aging).unwrap(), "3.0");
        assert!(serde_json::from_str::<Aging>("0").is_err());
    }
}
