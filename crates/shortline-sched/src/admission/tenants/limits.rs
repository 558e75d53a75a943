//! The weight and the limits of a tenant, with their defaults.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use serde::Deserialize;

use crate::units::excerpt;

/// The weight and the limits of a tenant, as written in the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TenantLimits {
    /// Its share of the work while others wait, too.
    pub weight: Weight,
    /// The most connections of its clients. Further ones are refused.
    pub connections_max: Option<NonZeroUsize>,
    /// The most of its requests that run at once, paused ones included. Further ones wait.
    pub running_max: Option<NonZeroUsize>,
    /// The largest part of the capacity that its requests take. Further ones wait.
    pub capacity_max: Option<CapacityPart>,
    /// The most of its requests that wait. Further ones are refused.
    pub waiting_max: Option<usize>,
}

/// A weight, from 1 to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u64")]
pub struct Weight(u16);

/// The largest weight.
const WEIGHT_MAX: u64 = 1000;

/// A number that is not a weight.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("weight `{0}`: must be a whole number from 1 to {WEIGHT_MAX}")]
pub struct WeightError(u64);

impl Default for Weight {
    fn default() -> Self {
        Self(1)
    }
}

impl Weight {
    /// The number.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl TryFrom<u64> for Weight {
    type Error = WeightError;

    fn try_from(number: u64) -> Result<Self, WeightError> {
        if (1..=WEIGHT_MAX).contains(&number) {
            Ok(Self(number as u16))
        } else {
            Err(WeightError(number))
        }
    }
}

/// A part of the capacity, above 0 and up to 100%.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct CapacityPart(f64);

/// A text that is not a part of the capacity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("capacity-max `{0}`: must be a percentage above 0 and up to 100%, such as 25%")]
pub struct CapacityPartError(String);

impl CapacityPart {
    /// This part of a capacity.
    pub(super) fn of_ns(self, capacity_ns: u64) -> u64 {
        (capacity_ns as f64 * self.0) as u64
    }
}

impl FromStr for CapacityPart {
    type Err = CapacityPartError;

    fn from_str(text: &str) -> Result<Self, CapacityPartError> {
        let number = text.strip_suffix('%');
        let percent = number.and_then(|number| number.trim().parse::<f64>().ok());
        percent
            .filter(|&percent| percent > 0.0 && percent <= 100.0)
            .map(|percent| Self(percent / 100.0))
            .ok_or_else(|| CapacityPartError(excerpt(text)))
    }
}

impl TryFrom<String> for CapacityPart {
    type Error = CapacityPartError;

    fn try_from(text: String) -> Result<Self, CapacityPartError> {
        text.parse()
    }
}

impl fmt::Display for CapacityPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ten digits hide the rounding error of the division by 100.
        let percent = (self.0 * 1e12).round() / 1e10;
        f.pad(&format!("{percent}%"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_part_of_the_capacity_is_a_percentage() {
        for text in ["25%", "100%", "0.5%"] {
            assert_eq!(text.parse::<CapacityPart>().unwrap().to_string(), text);
        }
        for text in ["0%", "101%", "-1%", "", "25", "NaN%", "much"] {
            let refusal = text.parse::<CapacityPart>().unwrap_err().to_string();
            assert!(
                refusal.contains("up to 100%") && refusal.contains(text),
                "{refusal}"
            );
        }
    }

    #[test]
    fn a_weight_is_a_small_number() {
        assert_eq!(Weight::try_from(1000).unwrap().get(), 1000);
        for number in [0, 1001, u64::MAX] {
            let refusal = Weight::try_from(number).unwrap_err().to_string();
            assert!(refusal.contains("from 1 to 1000"), "{refusal}");
        }
    }
}
