//! What an operator chooses for admission, each with its default.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use super::estimate::Estimator;
use crate::units::{Span, UnitError, excerpt};

/// How requests are admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdmissionConfig {
    /// Who goes first of those that wait.
    pub order: Order,
    /// How much may run at once.
    pub capacity: Capacity,
    /// How service times are estimated.
    pub estimator: Estimator,
    /// The most requests that wait at once.
    pub queue_max: usize,
    /// The most types told apart, beside the one for all others.
    pub types_max: usize,
    /// The service time of a type before any request of any type has ended, in nanoseconds.
    pub service_ns_prior: u64,
}

impl Default for AdmissionConfig {
    /// Shortest job first at a capacity without limit, 10,000 waiters, 1000 types.
    fn default() -> Self {
        Self {
            order: Order::Sjf,
            capacity: Capacity::Off,
            estimator: Estimator::default(),
            queue_max: 10_000,
            types_max: 1000,
            service_ns_prior: 10_000_000,
        }
    }
}

/// Who goes first of those that wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// In order of arrival (002 3.1).
    Fifo,
    /// Shortest estimate first (002 3.2).
    Sjf,
}

/// How much may run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// Everything: nobody waits.
    Off,
    /// A sum of estimates, in nanoseconds of service.
    Fixed(NonZeroU64),
}

/// A text that is no capacity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("capacity `{value}`: {problem}; write it like 500ms, 20s or off")]
pub struct CapacityError {
    value: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("must be above 0, for nothing would ever be admitted")]
    Zero,
    #[error("{0}")]
    NoSpan(UnitError),
}

impl Capacity {
    /// A fixed capacity.
    ///
    /// # Errors
    /// [`CapacityError`] if it is 0.
    pub fn fixed(span: Span) -> Result<Self, CapacityError> {
        let capacity_ns = u64::try_from(span.duration().as_nanos()).unwrap_or(u64::MAX);
        NonZeroU64::new(capacity_ns)
            .map(Self::Fixed)
            .ok_or_else(|| CapacityError {
                value: span.to_string(),
                problem: Problem::Zero,
            })
    }

    /// The limit, in nanoseconds; `None` without one.
    pub(super) fn limit_ns(self) -> Option<u64> {
        match self {
            Capacity::Off => None,
            Capacity::Fixed(capacity_ns) => Some(capacity_ns.get()),
        }
    }
}

impl FromStr for Capacity {
    type Err = CapacityError;

    fn from_str(text: &str) -> Result<Self, CapacityError> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let span: Span = text.parse().map_err(|error| CapacityError {
            value: excerpt(text),
            problem: Problem::NoSpan(error),
        })?;
        Self::fixed(span)
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Capacity::Off => f.pad("off"),
            Capacity::Fixed(capacity_ns) => {
                let duration = std::time::Duration::from_nanos(capacity_ns.get());
                Span::from_duration(duration).fmt(f)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_capacity_is_a_time_or_off() {
        assert_eq!("off".parse(), Ok(Capacity::Off));
        let fixed: Capacity = "20s".parse().unwrap();
        assert_eq!(fixed.limit_ns(), Some(20_000_000_000));
        assert_eq!(fixed.to_string(), "20s");
    }

    #[test]
    fn nonsense_is_refused_in_one_line_that_says_what_would_be_right() {
        for text in ["0s", "0ns", "", "20", "-1s", "much"] {
            let refusal = text.parse::<Capacity>().unwrap_err().to_string();
            assert!(refusal.starts_with("capacity `"), "{refusal}");
            assert!(refusal.contains("20s or off"), "{refusal}");
            assert_eq!(refusal.lines().count(), 1);
        }
    }
}
